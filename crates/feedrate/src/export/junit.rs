//! Test cases as JUnit's XML, in the form that Jenkins, GitLab and GitHub's actions read.

use crate::gate::GateResult;
use feedrate_measure::record::Record;
use feedrate_spec::escape::one_line;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::borrow::Cow;
use std::io;

/// The test cases of one command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestSuite {
    /// Name, such as `feedrate run unet3d_h100`.
    pub(crate) name: String,
    /// The cases.
    pub(crate) cases: Vec<TestCase>,
}

/// One test case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestCase {
    /// What is tested: a workload or an experiment.
    pub(crate) subject: String,
    /// Name of the condition.
    pub(crate) name: String,
    /// Duration in seconds, if known.
    pub(crate) duration_s: Option<f64>,
    /// Whether the condition is met.
    pub(crate) state: CaseState,
    /// What was found. Lines after the first are details.
    pub(crate) says: String,
}

/// Name of the case that a run reached its end.
pub(crate) const RUN_CASE: &str = "run";

/// Outcome of a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseState {
    /// The condition is met.
    Passed,
    /// The condition is not met.
    Failed,
    /// There is no result.
    Error(ErrorKind),
    /// There is no run yet.
    Skipped,
}

/// Reasons why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The evidence does not decide the condition.
    Undecided,
    /// The run failed.
    Failed,
    /// The request was refused.
    Usage,
    /// The user stopped the run.
    Interrupted,
    /// The command has not ended, or it was killed.
    Unfinished,
}

impl ErrorKind {
    fn name(self) -> &'static str {
        match self {
            ErrorKind::Undecided => "undecided",
            ErrorKind::Failed => "failed",
            ErrorKind::Usage => "usage",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Unfinished => "unfinished",
        }
    }
}

impl CaseState {
    /// The state of a condition that may be undecided.
    pub(crate) fn for_condition(is_met: Option<bool>) -> Self {
        match is_met {
            Some(true) => CaseState::Passed,
            Some(false) => CaseState::Failed,
            None => CaseState::Error(ErrorKind::Undecided),
        }
    }

    /// Element and type of a case that did not pass.
    fn element(self) -> Option<(&'static str, &'static str)> {
        match self {
            CaseState::Passed => None,
            CaseState::Failed => Some(("failure", "unmet")),
            CaseState::Error(kind) => Some(("error", kind.name())),
            CaseState::Skipped => Some(("skipped", "not run")),
        }
    }
}

impl TestCase {
    /// The case that a run reached its end.
    pub(crate) fn for_run(record: &Record, duration_s: Option<f64>) -> Self {
        // A run that failed is an error of its command.
        let stopped = CaseState::Error(ErrorKind::Interrupted);
        let (state, says) = match &record.stopped_because {
            _ if record.complete => (CaseState::Passed, "the run is complete".into()),
            Some(reason) => (stopped, reason.clone()),
            None => (stopped, "the run did not finish".into()),
        };
        let subject = record.plan.workload.clone();
        TestCase { subject, name: RUN_CASE.into(), duration_s, state, says }
    }

    /// The case of a gate on runs of `subject`.
    pub(crate) fn for_gate(subject: &str, gate: &GateResult) -> Self {
        TestCase {
            subject: subject.into(),
            name: gate.name.clone(),
            duration_s: None,
            state: CaseState::for_condition(gate.is_met),
            says: gate.says.clone(),
        }
    }
}

impl TestSuite {
    /// Whether there is a case other than that of a run's end.
    pub(super) fn has_gates(&self) -> bool {
        self.cases.iter().any(|case| case.name != RUN_CASE)
    }

    /// The suite as a document in UTF-8.
    pub(super) fn xml(&self) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let name = xml_text(&self.name);
        let counts = self.counts();
        let named = |name| [("name", name)].into_iter().chain(counts.iter().map(pair));
        let suites = writer.create_element("testsuites").with_attributes(named("feedrate"));
        suites.write_inner_content(|writer| {
            let suite = writer.create_element("testsuite").with_attributes(named(&name));
            suite.write_inner_content(|writer| {
                self.cases.iter().try_for_each(|case| write_case(writer, case))
            })?;
            Ok(())
        })?;
        let mut xml = writer.into_inner();
        xml.push(b'\n');
        Ok(xml)
    }

    /// Numbers of cases, as attributes.
    fn counts(&self) -> [(&'static str, String); 4] {
        let count = |tag| {
            let tags = self.cases.iter().filter_map(|case| case.state.element());
            tags.filter(|(other, _)| *other == tag).count()
        };
        [
            ("tests", self.cases.len()),
            ("failures", count("failure")),
            ("errors", count("error")),
            ("skipped", count("skipped")),
        ]
        .map(|(name, count)| (name, count.to_string()))
    }
}

fn pair<'a>((name, value): &'a (&'static str, String)) -> (&'a str, &'a str) {
    (name, value)
}

/// Text without what XML cannot contain: control characters, and two code points that are no characters.
fn xml_text(text: &str) -> Cow<'_, str> {
    let line = one_line(text);
    let not_characters = ['\u{fffe}', '\u{ffff}'];
    if line.contains(not_characters) {
        Cow::Owned(line.replace(not_characters, "\u{fffd}"))
    } else {
        line
    }
}

fn write_case(writer: &mut Writer<Vec<u8>>, case: &TestCase) -> io::Result<()> {
    let (message, details) = case.says.split_once('\n').unwrap_or((&case.says, ""));
    let [subject, name, message] = [&*case.subject, &*case.name, message].map(xml_text);
    let duration = case.duration_s.map(|seconds| format!("{seconds:.3}"));
    let mut element = writer
        .create_element("testcase")
        .with_attributes([("classname", &*subject), ("name", &*name)]);
    if let Some(duration) = &duration {
        element = element.with_attribute(("time", duration.as_str()));
    }
    match case.state.element() {
        None => element.write_inner_content(|writer| {
            writer.create_element("system-out").write_text_content(BytesText::new(&message))?;
            Ok(())
        })?,
        Some((tag, kind)) => element.write_inner_content(|writer| {
            let problem = writer.create_element(tag);
            let problem = problem.with_attributes([("message", &*message), ("type", kind)]);
            if details.is_empty() {
                problem.write_empty()?;
            } else {
                let details: Vec<_> = details.lines().map(xml_text).collect();
                problem.write_text_content(BytesText::new(&details.join("\n")))?;
            }
            Ok(())
        })?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_outcome_and_no_invalid_character() {
        let case = |name: &str, state, says: &str| TestCase {
            subject: "w".into(),
            name: name.into(),
            duration_s: (state == CaseState::Passed).then_some(1.5),
            state,
            says: says.into(),
        };
        let cases = vec![
            case("run", CaseState::Passed, "complete"),
            case("au", CaseState::Failed, "54 % < 90 %"),
            case("a&b", CaseState::Error(ErrorKind::Undecided), "un\u{1b}known\u{ffff}"),
            case("key", CaseState::Error(ErrorKind::Usage), "`n`: wrong\n  hint: write <m>\u{1b}"),
            case("later", CaseState::Skipped, "pending"),
        ];
        let suite = TestSuite { name: "feedrate run \"w\"\n".into(), cases };
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="feedrate" tests="5" failures="1" errors="2" skipped="1">
  <testsuite name="feedrate run &quot;w&quot;\n" tests="5" failures="1" errors="2" skipped="1">
    <testcase classname="w" name="run" time="1.500">
      <system-out>complete</system-out>
    </testcase>
    <testcase classname="w" name="au">
      <failure message="54 % &lt; 90 %" type="unmet"/>
    </testcase>
    <testcase classname="w" name="a&amp;b">
      <error message="un\u{1b}known�" type="undecided"/>
    </testcase>
    <testcase classname="w" name="key">
      <error message="`n`: wrong" type="usage">  hint: write &lt;m&gt;\u{1b}</error>
    </testcase>
    <testcase classname="w" name="later">
      <skipped message="pending" type="not run"/>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(String::from_utf8(suite.xml().unwrap()).unwrap(), expected);
    }
}
