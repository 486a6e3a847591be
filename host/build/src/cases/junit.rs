//! A report as JUnit XML, which most build servers read.

use std::fmt::Write as _;

use super::Report;

/// The report as JUnit XML: one suite, one test case for each case.
#[must_use]
pub fn junit(report: &Report) -> String {
    let time: f64 = report.cases.iter().map(|case| case.time.as_secs_f64()).sum();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // A string takes every write.
    let _ = writeln!(
        xml,
        "<testsuite name=\"toolcell\" tests=\"{}\" failures=\"{}\" time=\"{time:.3}\">",
        report.cases.len(),
        report.failed
    );
    for case in &report.cases {
        let (name, class, time) = (escaped(&case.name), escaped(&case.tool), case.time.as_secs_f64());
        let file = escaped(&case.file.to_string_lossy());
        let _ = write!(xml, "  <testcase name=\"{name}\" classname=\"{class}\" file=\"{file}\" time=\"{time:.3}\"");
        if case.passed {
            xml.push_str("/>\n");
            continue;
        }
        let text = escaped(&case.failures.join("\n"));
        let _ = write!(xml, ">\n    <failure message=\"{text}\"/>\n  </testcase>\n");
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// The text as the value of an attribute; what XML 1.0 cannot express becomes `?`.
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
