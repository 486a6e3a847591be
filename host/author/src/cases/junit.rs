//! Formats the report of test cases as JUnit XML, which most CI servers read.
//!
//! `toolcell test --junit` writes the text that [`junit`] returns into a file. It takes the report
//! of the cases and the reports of fuzzing, and returns one `testsuite` with a `testcase` for each
//! case and for each fuzzed tool; failures become `failure` elements. Names and messages can come
//! from an untrusted tool, so every attribute is escaped, and characters that XML 1.0 cannot
//! express become `?`.

use std::fmt::Write as _;

use super::{FuzzReport, Report};

/// Returns the report as JUnit XML: one suite with a test case for each case, and one for the
/// fuzzing of each tool.
#[must_use]
pub fn junit(report: &Report, fuzzed: &[FuzzReport]) -> String {
    let time: f64 = report.cases.iter().map(|case| case.time.as_secs_f64()).sum();
    let failed = report.failed + fuzzed.iter().filter(|tool| !tool.failures.is_empty()).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        xml,
        "<testsuite name=\"toolcell\" tests=\"{}\" failures=\"{failed}\" time=\"{time:.3}\">",
        report.cases.len() + fuzzed.len()
    );
    for case in &report.cases {
        let (file, time) = (escaped(&case.file.to_string_lossy()), case.time.as_secs_f64());
        let more = format!(" file=\"{file}\" time=\"{time:.3}\"");
        let failures = if case.passed { &[][..] } else { &case.failures };
        xml.push_str(&test_case(&case.name, &case.tool, &more, failures));
    }
    for tool in fuzzed {
        let failures = tool.failures.iter();
        let failures: Vec<_> = failures
            .map(|failure| {
                format!("{}\narguments: {}", failure.message_with_lines(), failure.arguments)
            })
            .collect();
        xml.push_str(&test_case(
            &format!("fuzz: {} calls, seed {}", tool.calls, tool.seed),
            &tool.tool,
            "",
            &failures,
        ));
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// Returns a test case with these additional attributes. Without failures it passed.
fn test_case(name: &str, tool: &str, attributes: &str, failures: &[String]) -> String {
    let head = format!(
        "  <testcase name=\"{}\" classname=\"{}\"{attributes}",
        escaped(name),
        escaped(tool)
    );
    if failures.is_empty() {
        return format!("{head}/>\n");
    }
    format!(
        "{head}>\n    <failure message=\"{}\"/>\n  </testcase>\n",
        escaped(&failures.join("\n"))
    )
}

/// Escapes the text as the value of an attribute. Characters that XML 1.0 cannot express become
/// `?`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            char if char.is_control() => escaped.push('?'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::SourceLine;
    use crate::cases::{CaseReport, Expect, FuzzFailure};

    /// Sequences that would end an attribute, a tag or a section, and characters that XML does not
    /// allow.
    const HOSTILE: &str = "<&\"'>]]>\0\u{1b}[31m\u{7f}\u{85}\u{ffff}\r\té";

    fn case(name: &str, failures: &[&str]) -> CaseReport {
        CaseReport {
            file: name.into(),
            name: name.into(),
            tool: name.into(),
            passed: failures.is_empty(),
            failures: failures.iter().map(ToString::to_string).collect(),
            updated: false,
            outcome: Expect::default(),
            fuel: None,
            memory: 0,
            time: Duration::from_millis(1500),
        }
    }

    #[test]
    fn junit_attributes_escape_hostile_text() {
        let cases = vec![case("fine", &[]), case(HOSTILE, &[HOSTILE, "two\nlines"])];
        let report = Report { passed: 1, failed: 1, updated: 0, cases, coverage: None };
        let line = SourceLine { file: "tool.c".into(), line: 5, function: Some("go".into()) };
        let lines = vec![line.clone(), line.clone(), line];
        let failure = FuzzFailure {
            reason: "timeout".into(),
            message: HOSTILE.into(),
            lines,
            arguments: json!({ "a": HOSTILE }),
        };
        let fuzzed = [
            FuzzReport { tool: "t".into(), calls: 3, seed: 7, failures: vec![failure] },
            FuzzReport { tool: "u".into(), calls: 3, seed: 7, failures: Vec::new() },
        ];
        let text = "&lt;&amp;&quot;'&gt;]]&gt;??[31m???  é";
        let argument = r"&lt;&amp;\&quot;'&gt;]]&gt;\u0000\u001b[31m???\r\té";
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuite name=\"toolcell\" tests=\"4\" failures=\"2\" time=\"3.000\">
  <testcase name=\"fine\" classname=\"fine\" file=\"fine\" time=\"1.500\"/>
  <testcase name=\"{text}\" classname=\"{text}\" file=\"{text}\" time=\"1.500\">
    <failure message=\"{text}&#10;two&#10;lines\"/>
  </testcase>
  <testcase name=\"fuzz: 3 calls, seed 7\" classname=\"t\">
    <failure message=\"{text}&#10;    at go (tool.c:5)&#10;    … 2 more times&#10;arguments: {{&quot;a&quot;:&quot;{argument}&quot;}}\"/>
  </testcase>
  <testcase name=\"fuzz: 3 calls, seed 7\" classname=\"u\"/>
</testsuite>
"
        );
        assert_eq!(junit(&report, &fuzzed), expected);
    }
}
