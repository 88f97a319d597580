//! The answers of `rigel expect` for machines that show them to people: tests of a build server, annotations
//! of a CI system, the message of a container that ends.

use super::conclusion::said;
use super::result::{ExpectResult, ExpectedLine, words};
use rigel_analyse::BoundVerdict;
use rigel_model::in_line;
use rigel_report::junit::{self, TestCase};

/// A system that shows annotations beside a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiSystem {
    /// GitHub Actions, and what follows its workflow commands.
    Github,
    /// Azure Pipelines.
    Azure,
}

/// Most bytes of a message: what Kubernetes keeps of one.
const MESSAGE_MAX: usize = 4096;

/// From the answer that decides to the one that is no news.
const WORST_FIRST: [BoundVerdict; 4] = [
    BoundVerdict::Broken,
    BoundVerdict::NotMeasured,
    BoundVerdict::Undecided,
    BoundVerdict::Kept,
];

impl ExpectResult {
    /// The lines as tests of a build server; `target` is what they are about.
    pub fn junit(&self, target: &str) -> String {
        let case = |line: &ExpectedLine| TestCase {
            name: line.condition.to_string(),
            verdict: line.outcome,
            said: said(line),
            seconds: line.measured_s,
        };
        let cases: Vec<TestCase> = self.lines.iter().map(case).collect();
        junit::suite(&format!("rigel expect of {target}"), &cases)
    }

    /// The lines that are not met as annotations, the worst first: errors; and warnings, where nobody
    /// knows.
    pub fn annotations(&self, system: CiSystem) -> String {
        let annotation = |line: &ExpectedLine| {
            let level = match line.outcome {
                BoundVerdict::Kept => return String::new(),
                BoundVerdict::Broken => "error",
                BoundVerdict::NotMeasured | BoundVerdict::Undecided => "warning",
            };
            let text = answer(line);
            match system {
                // Workflow commands of GitHub Actions: a percent sign begins an escape.
                CiSystem::Github => {
                    format!(
                        "::{level} title=rigel expect::{}\n",
                        text.replace('%', "%25")
                    )
                }
                // Logging commands of Azure Pipelines.
                CiSystem::Azure => format!(
                    "##vso[task.logissue type={level}]rigel expect: {}\n",
                    text.replace('%', "%AZP25")
                ),
            }
        };
        self.worst_first().map(annotation).collect()
    }

    /// The lines as the message of a container that ends, the worst first; as many as fit.
    pub fn message(&self) -> String {
        let mut message = String::new();
        for line in self.worst_first() {
            let text = answer(line) + "\n";
            if message.len() + text.len() > MESSAGE_MAX {
                break;
            }
            message += &text;
        }
        message
    }

    fn worst_first(&self) -> impl Iterator<Item = &ExpectedLine> {
        WORST_FIRST
            .into_iter()
            .flat_map(|outcome| self.with(outcome))
    }
}

/// `not met: p99<2ms@3000/s: 3.4 ms (3.1 to 3.9)`
fn answer(line: &ExpectedLine) -> String {
    let text = format!("{}: {}", words(line.outcome), said(line));
    in_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::figures::quantity::Unit;
    use rigel_model::Ratio;

    fn of(outcomes: &[BoundVerdict]) -> ExpectResult {
        let line = |outcome: &BoundVerdict| ExpectedLine {
            outcome: *outcome,
            condition: "p99<2ms±5%@3000/s".parse().unwrap(),
            load: "3000/s".into(),
            figure: Some(3400.0.into()),
            unit: Unit::Microseconds,
            operations: 9000,
            measured_s: 3.0,
            more_s: None,
            why: String::new(),
        };
        ExpectResult {
            outcome: BoundVerdict::all_of(outcomes.iter().copied()),
            error: Ratio::of(1, 100),
            is_sequential: true,
            lines: outcomes.iter().map(line).collect(),
            points: Vec::new(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn the_worst_comes_first_and_a_percent_sign_is_none_of_a_command() {
        let found = of(&[
            BoundVerdict::Kept,
            BoundVerdict::Undecided,
            BoundVerdict::Broken,
        ]);
        let github = found.annotations(CiSystem::Github);
        let lines: Vec<&str> = github.lines().collect();
        assert_eq!(lines.len(), 2, "{github}");
        assert!(
            lines[0]
                .starts_with("::error title=rigel expect::not met: p99<2ms±5%25@3000/s: 3.40 ms"),
            "{github}"
        );
        assert!(lines[1].starts_with("::warning "), "{github}");
        let azure = found.annotations(CiSystem::Azure);
        assert!(
            azure.starts_with(
                "##vso[task.logissue type=error]rigel expect: not met: p99<2ms±5%AZP25"
            ),
            "{azure}"
        );
        let message = found.message();
        let outcomes: Vec<&str> = message
            .lines()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(outcomes, ["not met", "undecided", "met"]);
        assert_eq!(of(&[BoundVerdict::Kept]).annotations(CiSystem::Github), "");
    }

    #[test]
    fn a_message_has_whole_lines_and_no_more_than_is_kept() {
        let message = of(&[BoundVerdict::Kept; 200]).message();
        assert!(message.len() <= MESSAGE_MAX && message.ends_with('\n'));
        assert!(message.len() > MESSAGE_MAX - 200, "{}", message.len());
    }
}
