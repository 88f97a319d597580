//! Verdicts as JUnit XML, which build servers show as tests.
//!
//! Input: verdicts with their sentences. Output: one test suite. A verdict that is not met is a failure;
//! one without evidence is an error; one that is undecided is skipped, because a test that is red for lack
//! of time is switched off.

use super::html::escape::html;
use rigel_analyse::BoundVerdict;
use rigel_model::in_line;
use std::fmt::Write;

/// A verdict as a test case.
#[derive(Debug, Clone, PartialEq)]
pub struct TestCase {
    /// What was expected.
    pub name: String,
    /// The outcome.
    pub verdict: BoundVerdict,
    /// The figure, or the reason.
    pub said: String,
    /// Measured time in seconds.
    pub seconds: f64,
}

/// The test suite `name`.
pub fn suite(name: &str, cases: &[TestCase]) -> String {
    let with = |verdict: BoundVerdict| {
        let cases = cases.iter().filter(|case| case.verdict == verdict);
        cases.count()
    };
    let text = |text: &str| html(&in_line(text));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\" skipped=\"{}\">\n",
        text(name),
        cases.len(),
        with(BoundVerdict::Broken),
        with(BoundVerdict::NotMeasured),
        with(BoundVerdict::Undecided),
    );
    for case in cases {
        let said = text(&case.said);
        let inside = match case.verdict {
            BoundVerdict::Kept => format!("<system-out>{said}</system-out>"),
            BoundVerdict::Broken => format!("<failure message=\"{said}\"/>"),
            BoundVerdict::NotMeasured => format!("<error message=\"{said}\"/>"),
            BoundVerdict::Undecided => format!("<skipped message=\"{said}\"/>"),
        };
        let _ = writeln!(
            xml,
            "  <testcase classname=\"rigel.expect\" name=\"{}\" time=\"{:.1}\">{inside}</testcase>",
            text(&case.name),
            case.seconds
        );
    }
    xml + "</testsuite>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_a_case_that_build_servers_tell_apart() {
        let case = |name: &str, verdict| TestCase {
            name: name.into(),
            verdict,
            said: "said \"so\"\u{1b}".into(),
            seconds: 12.34,
        };
        let cases = [
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
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"a &amp; b\" tests=\"4\" \
             failures=\"1\" errors=\"1\" skipped=\"1\">\n"
                .to_string(),
            case("p99&lt;2ms@3000/s", format!("<system-out>{said}</system-out>")),
            case("iops&gt;=3000", format!("<failure message=\"{said}\"/>")),
            case("mbps&gt;=125", format!("<skipped message=\"{said}\"/>")),
            case("log p99&lt;10ms", format!("<error message=\"{said}\"/>")),
            "</testsuite>\n".into(),
        ];
        assert_eq!(suite("a & b", &cases), expected.concat());
    }
}
