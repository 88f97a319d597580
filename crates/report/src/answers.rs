//! Answers of yes or no for machines that show them to people: tests of a build server, annotations of a CI system,
//! the message of a container that ends.
//!
//! Input: answers with their sentences. Output: text in the form of each.

use super::html::escape::html;
use rigel_analyse::BoundVerdict;
use rigel_model::{in_line, unobeyed};
use std::fmt::Write;

/// An answer, as a test of a build server.
#[derive(Debug, Clone, PartialEq)]
pub struct TestCase {
    /// What was asked.
    pub name: String,
    /// Whether it is as it should be.
    pub verdict: BoundVerdict,
    /// The same in the verb's words: `not met`.
    pub word: &'static str,
    /// The figure, or the reason.
    pub said: String,
    /// Measured time in seconds.
    pub seconds: f64,
}

/// The answers of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// The verb that answered.
    pub verb: &'static str,
    /// Its answers, in the order of the questions.
    pub all: Vec<TestCase>,
}

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

/// The first bytes of answers in JUnit's XML.
const JUNIT_OPENING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rigel ";

/// True if a file that begins so has answers of Rigel's in JUnit's XML.
pub fn begins_junit(begins: &str) -> bool {
    begins.starts_with(JUNIT_OPENING)
}

/// True if a file that ends so was last added to by [`Answers::message`].
pub fn ends_message(ends: &str) -> bool {
    let last = ends.strip_suffix('\n').map(|text| text.rsplit('\n').next());
    let answer = last.flatten().and_then(|line| line.strip_prefix("rigel "));
    let verb = answer.and_then(|answer| answer.split_once(": "));
    verb.is_some_and(|(verb, _)| verb.chars().all(|c| c.is_ascii_lowercase()))
}

/// From the answer that decides to the one that is no news.
const WORST_FIRST: [BoundVerdict; 4] = [
    BoundVerdict::Broken,
    BoundVerdict::NotMeasured,
    BoundVerdict::Undecided,
    BoundVerdict::Kept,
];

impl Answers {
    /// As tests of a build server, in JUnit's XML; `target` is what they are about. One that is not met is a
    /// failure, one without evidence an error; one that is undecided is skipped, because a test that is red
    /// for lack of time is switched off.
    pub fn junit(&self, target: &str) -> String {
        let with = |verdict: BoundVerdict| {
            let cases = self.all.iter().filter(|case| case.verdict == verdict);
            cases.count()
        };
        let text = |text: &str| html(&in_line(text));
        let mut xml = format!(
            "{JUNIT_OPENING}{} of {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
            self.verb,
            text(target),
            self.all.len(),
            with(BoundVerdict::Broken),
            with(BoundVerdict::NotMeasured),
            with(BoundVerdict::Undecided),
        );
        for case in &self.all {
            let said = text(&case.said);
            let inside = match case.verdict {
                BoundVerdict::Kept => format!("<system-out>{said}</system-out>"),
                BoundVerdict::Broken => format!("<failure message=\"{said}\"/>"),
                BoundVerdict::NotMeasured => format!("<error message=\"{said}\"/>"),
                BoundVerdict::Undecided => format!("<skipped message=\"{said}\"/>"),
            };
            let _ = writeln!(
                xml,
                "  <testcase classname=\"rigel.{}\" name=\"{}\" time=\"{:.1}\">{inside}</testcase>",
                self.verb,
                text(&case.name),
                case.seconds
            );
        }
        xml + "</testsuite>\n"
    }

    /// Those that are not met as annotations, the worst first: errors; and warnings, where nobody knows.
    pub fn annotations(&self, system: CiSystem) -> String {
        let verb = self.verb;
        let annotation = |answer: &TestCase| {
            let level = match answer.verdict {
                BoundVerdict::Kept => return String::new(),
                BoundVerdict::Broken => "error",
                BoundVerdict::NotMeasured | BoundVerdict::Undecided => "warning",
            };
            let text = answer.in_line();
            let text = unobeyed(&text, |c| c.escape_unicode().to_string());
            match system {
                // Workflow commands of GitHub Actions: a percent sign begins an escape.
                CiSystem::Github => {
                    format!(
                        "::{level} title=rigel {verb}::{}\n",
                        text.replace('%', "%25")
                    )
                }
                // Logging commands of Azure Pipelines.
                CiSystem::Azure => format!(
                    "##vso[task.logissue type={level}]rigel {verb}: {}\n",
                    text.replace('%', "%AZP25")
                ),
            }
        };
        self.worst_first().map(annotation).collect()
    }

    /// As the message of a container that ends, a line each, the worst first; as many as fit. Each says whose it is,
    /// so that [`ends_message`] knows the last one.
    pub fn message(&self) -> String {
        let mut message = String::new();
        for answer in self.worst_first() {
            let text = format!("rigel {}: {}\n", self.verb, answer.in_line());
            if message.len() + text.len() > MESSAGE_MAX {
                break;
            }
            message += &text;
        }
        message
    }

    fn worst_first(&self) -> impl Iterator<Item = &TestCase> {
        WORST_FIRST.into_iter().flat_map(|verdict| {
            self.all
                .iter()
                .filter(move |answer| answer.verdict == verdict)
        })
    }
}

impl TestCase {
    /// `not met: p99<2ms@3000/s: 3.4 ms (3.1 to 3.9)`
    fn in_line(&self) -> String {
        in_line(&format!("{}: {}", self.word, self.said)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_a_case_that_build_servers_tell_apart() {
        let case = |name: &str, verdict| TestCase {
            name: name.into(),
            verdict,
            word: "so",
            said: "said \"so\"\u{1b}".into(),
            seconds: 12.34,
        };
        let all = vec![
            case("p99<2ms@3000/s", BoundVerdict::Kept),
            case("iops>=3000", BoundVerdict::Broken),
            case("mbps>=125", BoundVerdict::Undecided),
            case("log p99<10ms", BoundVerdict::NotMeasured),
        ];
        let said = "said &quot;so&quot;\\u{1b}";
        let case = |name: &str, inside: String| {
            format!(
                "  <testcase classname=\"rigel.expect\" name=\"{name}\" time=\"12.3\">{inside}</testcase>\n"
            )
        };
        let expected = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rigel expect of a &amp; b\" tests=\"4\" \
             failures=\"1\" errors=\"1\" skipped=\"1\">\n"
                .to_string(),
            case("p99&lt;2ms@3000/s", format!("<system-out>{said}</system-out>")),
            case("iops&gt;=3000", format!("<failure message=\"{said}\"/>")),
            case("mbps&gt;=125", format!("<skipped message=\"{said}\"/>")),
            case("log p99&lt;10ms", format!("<error message=\"{said}\"/>")),
            "</testsuite>\n".into(),
        ];
        let verb = "expect";
        let xml = Answers { verb, all }.junit("a & b");
        assert_eq!(xml, expected.concat());
        assert!(begins_junit(&xml) && !begins_junit("<testsuite name=\"rigel expect\">"));
    }

    fn of(verdicts: &[BoundVerdict]) -> Answers {
        let answer = |verdict: &BoundVerdict| TestCase {
            name: "p99<2ms±5%@3000/s".into(),
            verdict: *verdict,
            word: match verdict {
                BoundVerdict::Kept => "met",
                BoundVerdict::Broken => "not met",
                _ => "undecided",
            },
            said: "p99<2ms±5%@3000/s: 3.40 ms".into(),
            seconds: 3.0,
        };
        Answers {
            verb: "expect",
            all: verdicts.iter().map(answer).collect(),
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
            .filter_map(|line| line.split(": ").nth(1))
            .collect();
        assert_eq!(outcomes, ["not met", "undecided", "met"]);
        assert_eq!(of(&[BoundVerdict::Kept]).annotations(CiSystem::Github), "");
    }

    #[test]
    fn a_message_has_whole_lines_and_no_more_than_is_kept() {
        let message = of(&[BoundVerdict::Kept; 200]).message();
        assert!(message.len() <= MESSAGE_MAX && message.ends_with('\n'));
        assert!(message.len() > MESSAGE_MAX - 200, "{}", message.len());
        assert!(ends_message(&message) && ends_message("another's\nrigel duet: slower: x\n"));
        for other in [
            "",
            "\n",
            "notes\n",
            "rigel expect: met",
            "rigel expect: met\nnotes\n",
        ] {
            assert!(!ends_message(other), "{other}");
        }
    }

    #[test]
    fn what_others_say_is_no_command_of_a_build_server() {
        let mut found = of(&[BoundVerdict::Broken]);
        found.all[0].said = "##vso[task.x]y\n::error::z".into();
        for system in [CiSystem::Github, CiSystem::Azure] {
            let said = found.annotations(system);
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains("not met: #\\u{23}vso[task.x]y"), "{said}");
        }
    }
}
