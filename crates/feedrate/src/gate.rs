//! The options `--fail-below-au` and `--fail-on`: conditions that a run must meet, so that scripts can test the exit code.

use crate::cli::OUTPUT;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use feedrate_analysis::answer::{Answer, AnswerKind, AnsweredSummary};
use feedrate_measure::doubt::{self, Doubt, Severity};
use feedrate_measure::verdict::Bound;
use feedrate_report::words::answer::percent_near_target;
use feedrate_spec::refusal::alternatives;
use feedrate_spec::workload::similar_names;

/// Conditions on a run. Exit code 3 means not met, 4 means not decided.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GateArguments {
    /// Exit with 3 if AU is below this percentage.
    #[arg(long, value_name = "AU", value_parser = percentage, allow_negative_numbers = true, help_heading = OUTPUT)]
    fail_below_au: Option<f64>,
    /// Exit with 3 on these verdicts, doubts or severities.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_outcome, help_heading = OUTPUT)]
    fail_on: Vec<String>,
}

/// Parses a utilisation in percent. A fraction such as 0.9 is refused: read as 0.9 %, it would let every run pass.
///
/// # Errors
/// A hint for the user.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if 0.0 < share && share <= 1.0 => {
            Err(format!("it is in percent: write `{}`", 100.0 * share))
        }
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        Ok(_) => Err("a utilisation is between 0 and 100".into()),
        Err(_) => Err("it is no number".into()),
    }
}

/// Checks that `text` is the name of a verdict, doubt or severity.
fn parse_outcome(text: &str) -> Result<String, String> {
    if names().any(|name| name == text) {
        return Ok(text.into());
    }
    Err(match alternatives(&similar_names(text, names())) {
        Some(names) => format!("did you mean {names}?"),
        None => format!("one of {}", Vec::from_iter(names()).join(", ")),
    })
}

impl GateArguments {
    /// Whether there is any condition.
    pub(crate) fn are_given(&self) -> bool {
        self.fail_below_au.is_some() || !self.fail_on.is_empty()
    }

    /// The utilisation that a run must reach, if one is given: the answer is about this one.
    pub(crate) fn target_percent(&self) -> Option<f64> {
        self.fail_below_au
    }

    /// Prints the conditions that are not met, and returns the exit code.
    pub(crate) fn exit(&self, run: &AnsweredSummary) -> Exit {
        let low_utilisation = self.utilisation_failure(&run.answer);
        let listed = self.listed_findings(run.summary.verdict.name, &run.summary.doubts);
        let listed = listed.into_iter().map(|why| (Exit::Unmet, why));
        let unmet: Vec<(Exit, String)> = low_utilisation.into_iter().chain(listed).collect();
        for (exit, why) in &unmet {
            let word = if *exit == Exit::Undecided { "not decided" } else { "unmet" };
            messages::say(format!("{word}: {why}"));
        }
        let exits = || unmet.iter().map(|(exit, _)| *exit);
        exits().find(|exit| *exit == Exit::Unmet).or_else(|| exits().next()).unwrap_or(Exit::Fine)
    }

    /// Reason that `--fail-below-au` is not met or not decided; `None` if it is met or not given.
    fn utilisation_failure(&self, answer: &Answer) -> Option<(Exit, String)> {
        let required = self.fail_below_au?;
        let condition = format!("`--fail-below-au` requires {required} %");
        match answer.au_percent {
            _ if answer.kind == AnswerKind::Unknown => {
                Some((Exit::Undecided, format!("the utilisation is unknown, {condition}")))
            }
            None => Some((Exit::Undecided, format!("there is no utilisation, {condition}"))),
            Some(au) if au < required => {
                let shown = percent_near_target(au, required);
                Some((Exit::Unmet, format!("the utilisation is {shown} %, {condition}")))
            }
            Some(_) => answer.is_memory_served.then(|| {
                let reason = "the bytes came or may have come from memory, not from the storage";
                (Exit::Undecided, format!("{reason}, {condition}"))
            }),
        }
    }

    /// The verdict and doubts of the run that `--fail-on` lists.
    fn listed_findings(&self, bound: Bound, doubts: &[Doubt]) -> Vec<String> {
        let is_listed = |name: &str| self.fail_on.iter().any(|listed| listed == name);
        let severities = self.fail_on.iter().filter_map(|name| Severity::from_name(name));
        let mildest = severities.max();
        let is_matched = |doubt: &&Doubt| {
            is_listed(&doubt.name) || Some(doubt.severity) <= mildest && mildest.is_some()
        };
        let verdict = is_listed(bound.name()).then(|| format!("the verdict is {}", bound.name()));
        let doubts = doubts
            .iter()
            .filter(is_matched)
            .map(|doubt| format!("[{}] {}: {}", doubt.severity.name(), doubt.name, doubt.evidence));
        verdict.into_iter().chain(doubts).collect()
    }
}

/// Names that `--fail-on` accepts.
fn names() -> impl Iterator<Item = &'static str> {
    let doubts = doubt::DOUBTS.iter().map(|row| row.kind.name);
    // `invalid` is both a verdict and a severity.
    let verdicts = Bound::ALL.into_iter().map(Bound::name);
    let verdicts = verdicts.filter(|name| Severity::from_name(name).is_none());
    Severity::ALL.into_iter().map(Severity::name).chain(verdicts).chain(doubts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{set_stall, simple};
    use feedrate_measure::record::{Record, Stall};

    /// A run that waits for the storage half of the time and has warnings and notes.
    fn record() -> Record {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        record.plan.storage.throttle_bytes_per_second = Some(2e6);
        record
    }

    #[track_caller]
    fn check(record: &Record, fail_below_au: Option<f64>, fail_on: &[&str], expected: Exit) {
        let fail_on = fail_on.iter().map(|name| (*name).to_string()).collect();
        let gates = GateArguments { fail_below_au, fail_on };
        assert_eq!(gates.exit(&AnsweredSummary::new(record)), expected);
    }

    #[test]
    fn the_utilisation_of_the_answer_is_compared() {
        check(&record(), Some(49.9), &[], Exit::Fine);
        check(&record(), Some(50.0), &[], Exit::Fine);
        check(&record(), Some(50.1), &[], Exit::Unmet);
        let mut without_compute = record();
        without_compute.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        check(&without_compute, Some(0.0), &[], Exit::Undecided);
        let mut busy = simple(&[(500, 500, 0, 1_000_000); 20]);
        check(&busy, Some(90.0), &["storage-bound"], Exit::Unmet);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        check(&busy, Some(90.0), &["storage-bound"], Exit::Undecided);
        let mut cached = simple(&[(0, 500, 0, 1_000_000); 20]);
        check(&cached, Some(100.0), &[], Exit::Fine);
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(20_000_000);
        check(&cached, Some(0.0), &[], Exit::Undecided);
        let mut decoded = simple(&[(500, 500, 0, 1_000_000); 20]);
        set_stall(&mut decoded, Stall { decode_ns: 10_000_000_000, ..Stall::default() });
        check(&decoded, Some(40.0), &[], Exit::Fine);
        decoded.epochs[0].host = cached.epochs[0].host.clone();
        check(&decoded, Some(40.0), &[], Exit::Undecided);
        check(&decoded, Some(40.0), &["decode-bound"], Exit::Unmet);
    }

    /// The headline and the exit code follow the same target.
    #[test]
    fn the_answer_is_about_the_required_utilisation() {
        let record = record();
        for (required, kind) in [(49.9, AnswerKind::Yes), (50.1, AnswerKind::No)] {
            let gates = GateArguments { fail_below_au: Some(required), fail_on: Vec::new() };
            let answered = AnsweredSummary::with_target(&record, gates.target_percent());
            assert_eq!((answered.answer.kind, answered.answer.required_percent), (kind, required));
            let expected = if kind == AnswerKind::Yes { Exit::Fine } else { Exit::Unmet };
            assert_eq!(gates.exit(&answered), expected);
            let is_compute_bound = answered.summary.verdict.name == Bound::ComputeBound;
            assert_eq!(is_compute_bound, kind == AnswerKind::Yes);
        }
    }

    #[test]
    fn a_utilisation_just_below_the_limit_is_printed_with_more_decimals() {
        let mut close = AnsweredSummary::new(&record()).answer;
        close.au_percent = Some(89.997);
        let gates = GateArguments { fail_below_au: Some(90.0), fail_on: Vec::new() };
        let (_, reason) = gates.utilisation_failure(&close).unwrap();
        assert!(reason.starts_with("the utilisation is 89.997 %, "), "{reason}");
    }

    #[test]
    fn a_listed_verdict_or_doubt_fails() {
        check(&record(), None, &[], Exit::Fine);
        check(&record(), None, &["storage-bound"], Exit::Unmet);
        check(&record(), None, &["decode-bound", "cache-fed"], Exit::Fine);
        let mut stopped = record();
        stopped.complete = false;
        check(&stopped, None, &["incomplete_run"], Exit::Unmet);
        check(&stopped, None, &["clock_step"], Exit::Fine);
    }

    #[test]
    fn a_severity_includes_worse_ones() {
        let mut record = record();
        record.doubts.clear();
        check(&record, None, &["note"], Exit::Fine);
        record.plan.doubts = vec![feedrate_spec::plan::PlanDoubt {
            name: "records_shrunk".into(),
            evidence: "by half".into(),
            advice: String::new(),
        }];
        check(&record, None, &["invalid"], Exit::Fine);
        check(&record, None, &["warning"], Exit::Unmet);
        check(&record, None, &["note"], Exit::Unmet);
    }

    #[test]
    fn impossible_conditions_are_refused() {
        for (least, hint) in [
            ("900", "between 0 and 100"),
            ("-1", "between 0 and 100"),
            ("NaN", "between 0 and 100"),
            ("", "no number"),
            ("0.5", "write `50`"),
            ("1.0", "write `100`"),
        ] {
            assert!(percentage(least).unwrap_err().contains(hint), "{least}");
        }
        for (name, hint) in [
            ("page_cach", "did you mean `page_cache`?"),
            ("storage_bound", "did you mean `storage-bound`?"),
            ("warnings", "did you mean `warning`?"),
            ("", "one of invalid, warning, note, storage-bound"),
        ] {
            assert!(parse_outcome(name).unwrap_err().contains(hint), "{name}");
        }
    }

    #[test]
    fn each_name_in_the_hint_is_accepted_and_listed_once() {
        let hint = parse_outcome("").unwrap_err();
        let listed = Vec::from_iter(hint.trim_start_matches("one of ").split(", "));
        assert!(listed.contains(&"invalid") && listed.contains(&"page_cache"), "{hint}");
        let names = std::collections::BTreeSet::from_iter(&listed);
        assert_eq!(names.len(), listed.len(), "{hint}");
        listed.iter().for_each(|name| assert_eq!(parse_outcome(name).as_deref(), Ok(*name)));
    }
}
