//! Conditions that runs must meet, so that scripts can test the exit code: the options `--fail-below-au` and `--fail-on`, and the workload's
//! section `expect`. This file alone decides whether they are met.
//!
//! Long because each gate has an option, a rule and words.

use crate::cli::OUTPUT;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use feedrate_analysis::answer::{Answer, AnswerKind, AnsweredSummary, UnknownBecause};
use feedrate_analysis::repeat::{RepeatedAnswer, RepeatedValue, at_configured_compute};
use feedrate_measure::doubt::{self, Bias, COMPUTE_OVERSHOOT, Doubt, OTHER_IO, Severity};
use feedrate_measure::metric::{Better, DELIVERED_WHOLE, Metric, READ_LATENCY, SAMPLES_WHOLE};
use feedrate_measure::verdict::Bound;
use feedrate_report::words::answer::percent_near_target;
use feedrate_report::words::number::list;
use feedrate_spec::plan::Expectations;
use feedrate_spec::workload::{alternatives, similar_names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Conditions on a run. Exit code 3 means not met, 4 means not decided.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GateArguments {
    /// Exit with 3 if AU is below this percentage.
    ///
    /// It exits with 4 if AU is unknown, or if memory or busy cores could change the outcome. The workload's section `expect` has further limits.
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
        None => "give invalid, warning, note, or a name in `feedrate list verdicts` or `feedrate list doubts`".into(),
    })
}

/// Whether runs meet a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GateResult {
    /// Key of the workload's section `expect` (`au` also for `--fail-below-au`), or a name in `--fail-on`.
    pub(crate) name: String,
    /// Whether the condition is met; `null` if the runs do not decide this.
    pub(crate) is_met: Option<bool>,
    /// Measured value, the mean of several runs; `null` if it is unknown or no number.
    pub(crate) measured: Option<f64>,
    /// The limit in the same unit; `null` for `--fail-on`.
    pub(crate) limit: Option<f64>,
    /// What was measured, and the condition.
    pub(crate) says: String,
}

/// Key, limit and metric.
type Limit = (&'static str, fn(&Expectations) -> Option<f64>, &'static Metric);

/// Limits of the section `expect` in addition to the utilisation.
static LIMITS: [Limit; 3] = [
    ("bytes_per_second", |expect| expect.bytes_per_second, &DELIVERED_WHOLE),
    ("samples_per_second", |expect| expect.samples_per_second, &SAMPLES_WHOLE),
    ("read_latency_p99_s", |expect| expect.read_latency_p99_s, &READ_LATENCY),
];

impl GateArguments {
    /// Whether there is any condition on the command line.
    pub(crate) fn are_given(&self) -> bool {
        self.fail_below_au.is_some() || !self.fail_on.is_empty()
    }

    /// The utilisation that a run must reach, if one is given: the answer is about this one.
    pub(crate) fn target_percent(&self, expect: &Expectations) -> Option<f64> {
        self.fail_below_au.or(expect.au_percent)
    }

    /// Judges runs of one plan, whose workload has the limits `expect`. Numbers are means over the runs.
    pub(crate) fn judge(&self, expect: &Expectations, runs: &[AnsweredSummary]) -> Vec<GateResult> {
        let (answer, distortions) = (RepeatedAnswer::new(runs), distortions(runs));
        let measured = &Measured { runs, answer, distortions };
        let utilisation = match (self.fail_below_au, expect.au_percent) {
            (Some(limit), _) => Some(utilisation_gate(measured, limit, "--fail-below-au")),
            (None, Some(limit)) => Some(utilisation_gate(measured, limit, "expect.au")),
            (None, None) => None,
        };
        let limits = LIMITS.iter().filter_map(|(name, limit, metric)| {
            Some(limit_gate(measured, name, limit(expect)?, metric))
        });
        // A name that is given twice would be a metric twice.
        let fail_on: BTreeSet<&String> = self.fail_on.iter().collect();
        let listed = fail_on.iter().map(|name| listed_gate(name, &fail_on, runs, measured));
        utilisation.into_iter().chain(limits).chain(listed).collect()
    }
}

/// Prints the conditions that are not met or not decided, or that all are met, and returns the exit code.
pub(crate) fn exit(gates: &[GateResult]) -> Exit {
    for gate in gates {
        match gate.is_met {
            Some(true) => {}
            Some(false) => messages::say(format!("unmet: {}", gate.says)),
            None => messages::say(format!("not decided: {}", gate.says)),
        }
    }
    match is_met(gates) {
        Some(true) => {
            if !gates.is_empty() {
                messages::note(format!("gates: {} met", gates.len()));
            }
            Exit::Fine
        }
        Some(false) => Exit::Unmet,
        None => Exit::Undecided,
    }
}

/// Whether all conditions are met; `None` if none is unmet, but some are not decided.
pub(crate) fn is_met(gates: &[GateResult]) -> Option<bool> {
    let is = |state| gates.iter().any(|gate| gate.is_met == state);
    if is(Some(false)) { Some(false) } else { (!is(None)).then_some(true) }
}

/// The means of runs, and how they differ from the speed of the storage.
struct Measured<'a> {
    runs: &'a [AnsweredSummary],
    answer: RepeatedAnswer,
    distortions: Vec<Distortion>,
}

/// A cause that makes the values of runs better or worse than the storage is.
struct Distortion {
    /// The runs and the cause, such as `run 3 is cpu-saturated`.
    reason: String,
    bias: Bias,
}

/// The cause that distorts the values of a run. A rate without compute is an answer even if the cores were busy.
fn distorted_by(answer: &Answer) -> Option<UnknownBecause> {
    let is_busy = answer.kind == AnswerKind::Rate && answer.verdict == Bound::CpuSaturated;
    answer.unknown_because.or(is_busy.then_some(UnknownBecause::CpuSaturated))
}

fn distortions(runs: &[AnsweredSummary]) -> Vec<Distortion> {
    let runs_with = |is_matched: &dyn Fn(&Answer) -> bool| {
        let numbers = runs.iter().zip(1..).filter(|(run, _)| is_matched(&run.answer));
        let numbers: Vec<String> = numbers.map(|(_, number)| number.to_string()).collect();
        match numbers.len() {
            0 => None,
            1 if runs.len() == 1 => Some("the run is".to_string()),
            1 => Some(format!("run {} is", numbers[0])),
            _ => Some(format!("runs {} are", list(numbers))),
        }
    };
    let unknown = UnknownBecause::ALL.into_iter().filter_map(|because| {
        let which = runs_with(&|answer: &Answer| distorted_by(answer) == Some(because))?;
        let advice = if because == UnknownBecause::CacheFed { ", use `--cold`" } else { "" };
        let reason = format!("{which} {}{advice}", because.name());
        Some(Distortion { reason, bias: because.bias() })
    });
    let is_known = |answer: &Answer| answer.unknown_because.is_none();
    let from_memory = runs_with(&|answer: &Answer| is_known(answer) && answer.is_memory_served);
    let from_memory = from_memory.map(|which| Distortion {
        reason: format!("{which} or may be served from memory, not from the storage"),
        bias: Bias::Raised,
    });
    let shares_device = runs_with(&|answer: &Answer| answer.shares_device);
    let shares_device = shares_device.map(|which| Distortion {
        reason: format!("{which} slowed down by other processes on the device, {OTHER_IO}"),
        bias: Bias::Lowered,
    });
    unknown.chain(from_memory).chain(shares_device).collect()
}

impl Measured<'_> {
    /// Whether the storage keeps the limit that `value` keeps or not; `None` if the interval of several runs or a distortion leaves this open.
    /// Adds the interval and the distortion to `found`.
    fn decide(&self, is_kept: bool, value: &RepeatedValue, limit: f64, found: String) -> Decision {
        let text = |number| value.unit().text(number);
        let interval = value.low.zip(value.high).map(|(low, high)| {
            let runs = self.answer.runs;
            format!(" (mean of {runs} runs, 95 % interval [{}, {}])", text(low), text(high))
        });
        let found = found + &interval.unwrap_or_default();
        // Without this distortion, the limit is kept or missed by even more.
        let harmless = if is_kept { Bias::Lowered } else { Bias::Raised };
        match self.distortions.iter().find(|distortion| distortion.bias != harmless) {
            Some(Distortion { reason, .. }) => {
                Decision { is_met: None, found: format!("{found} (not usable: {reason})") }
            }
            None => match self.stretched(is_kept, value, limit) {
                Some(reason) => {
                    Decision { is_met: None, found: format!("{found} (not usable: {reason})") }
                }
                None if value.leaves_open(limit) => Decision { is_met: None, found },
                None => Decision { is_met: Some(is_kept), found },
            },
        }
    }

    /// The reason why a utilisation or rate leaves `limit` open if emulated steps took longer than configured; `None` if it decides.
    fn stretched(&self, is_kept: bool, value: &RepeatedValue, limit: f64) -> Option<String> {
        let corrected = at_configured_compute(value, self.runs)?;
        // A correction away from the limit changes nothing.
        let is_towards_limit = (corrected.mean < value.mean) == is_kept;
        let is_decided = (limit <= corrected.mean) == is_kept && !corrected.leaves_open(limit);
        if !is_towards_limit || is_decided {
            return None;
        }
        let text = corrected.unit().text(corrected.mean);
        Some(format!(
            "compute took longer than configured, {COMPUTE_OVERSHOOT}; otherwise it could be {text}"
        ))
    }

    /// The reason why the bucket of the 99th percentile of read latency leaves `limit` open; `None` if it decides.
    fn bucketed(&self, limit: f64) -> Option<String> {
        let end = |index: usize| {
            let quantiles = self.runs.iter().map(|run| run.summary.figures.read_latency.as_ref());
            let ends = quantiles.map(|quantiles| Some(quantiles?.p99_range_s?[index]));
            let ends = ends.collect::<Option<Vec<f64>>>()?;
            Some(RepeatedValue::new(READ_LATENCY.id.name(), READ_LATENCY.unit, ends)?.mean)
        };
        let (low, high) = (end(0)?, end(1)?);
        let [from, to] = [low, high].map(|end| READ_LATENCY.unit.text(end));
        let is_open = low <= limit && limit < high;
        is_open.then(|| format!(" (the histogram shows only that it is from {from} to {to})"))
    }
}

/// Whether a limit is kept, and what was found.
struct Decision {
    is_met: Option<bool>,
    found: String,
}

fn utilisation_gate(measured: &Measured, limit: f64, option: &str) -> GateResult {
    let au = measured.answer.utilisation();
    let Decision { is_met, found } = match au {
        None => Decision { is_met: None, found: "there is no utilisation".into() },
        Some(au) => {
            let shown = percent_near_target(au.mean, limit);
            measured.decide(limit <= au.mean, au, limit, format!("the utilisation is {shown} %"))
        }
    };
    let says = format!("{found}, `{option}` requires {limit} %");
    let measured = au.map(|au| au.mean);
    GateResult { name: "au".into(), is_met, measured, limit: Some(limit), says }
}

fn limit_gate(measured: &Measured, name: &str, limit: f64, metric: &Metric) -> GateResult {
    let subject = metric.id.name();
    let value = measured.answer.value(subject);
    let Decision { is_met, found } = match value {
        None => Decision { is_met: None, found: format!("there is no {subject}") },
        Some(value) => {
            let is_kept = match metric.better {
                Better::Higher => limit <= value.mean,
                Better::Lower => value.mean <= limit,
            };
            // Rounded, a value beyond the limit may look equal to it.
            let mut shown = metric.unit.text(value.mean);
            if !is_kept && shown == metric.unit.text(limit) {
                shown = value.mean.to_string();
            }
            // The rate of an answer excludes the start of epochs.
            let are_whole = measured.runs.iter().all(|run| run.summary.complete);
            let scope = if metric.unit.is_rate() && are_whole { " over whole epochs" } else { "" };
            let found = format!("{subject} is {shown}{scope}");
            let decision = measured.decide(is_kept, value, limit, found);
            let is_latency = metric.id == READ_LATENCY.id && decision.is_met.is_some();
            match is_latency.then(|| measured.bucketed(limit)).flatten() {
                Some(reason) => Decision { is_met: None, found: decision.found + &reason },
                None => decision,
            }
        }
    };
    let direction = match metric.better {
        Better::Higher => "at least",
        Better::Lower => "at most",
    };
    let limit_text = metric.unit.text(limit);
    let says = format!("{found}, `expect.{name}` requires {direction} {limit_text}");
    let measured = value.map(|value| value.mean);
    GateResult { name: name.into(), is_met, measured, limit: Some(limit), says }
}

/// The condition that no run has the verdict, doubt or severity `name`. A severity includes worse ones that are not in `fail_on` themselves.
fn listed_gate(
    name: &str,
    fail_on: &BTreeSet<&String>,
    runs: &[AnsweredSummary],
    measured: &Measured,
) -> GateResult {
    let severity = Severity::from_name(name);
    let listed = fail_on.iter().filter_map(|name| Severity::from_name(name));
    let worse = listed.filter(|other| severity.is_some_and(|severity| *other < severity)).max();
    let is_matched = |doubt: &Doubt| {
        let is_severe = |severity| {
            doubt.severity <= severity && worse.is_none_or(|worse| worse < doubt.severity)
        };
        doubt.name == name || severity.is_some_and(is_severe)
    };
    let mut findings: Vec<String> = Vec::new();
    for finding in runs.iter().flat_map(|run| listed_findings(name, is_matched, run)) {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    // `invalid` is also a severity: its absence is known.
    let is_verdict = severity.is_none() && Bound::ALL.into_iter().any(|bound| bound.name() == name);
    let is_unknown = |run: &AnsweredSummary| run.answer.kind == AnswerKind::Unknown;
    let (is_met, says) = if !findings.is_empty() {
        (Some(false), findings.join("; "))
    } else if is_verdict && runs.iter().any(is_unknown) {
        // The true verdict may be this one.
        let reason = measured.distortions.first().map_or("", |first| &first.reason);
        (None, format!("the verdict is unknown ({reason}), `--fail-on` excludes {name}"))
    } else {
        (Some(true), format!("no run has {name}"))
    };
    GateResult { name: name.into(), is_met, measured: None, limit: None, says }
}

/// The verdict of the run if it is called `name`, and its matching doubts.
fn listed_findings(
    name: &str,
    is_matched: impl Fn(&Doubt) -> bool,
    run: &AnsweredSummary,
) -> Vec<String> {
    let bound = run.summary.verdict.name;
    let verdict = (bound.name() == name).then(|| format!("the verdict is {}", bound.name()));
    let doubts = run
        .summary
        .doubts
        .iter()
        .filter(|doubt| is_matched(doubt))
        .map(|doubt| format!("[{}] {}: {}", doubt.severity.name(), doubt.name, doubt.evidence));
    verdict.into_iter().chain(doubts).collect()
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
    use feedrate_spec::workload::TimeSpec;

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
        let gates = gates.judge(&Expectations::default(), &[AnsweredSummary::new(record)]);
        assert_eq!(exit(&gates), expected, "{gates:?}");
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
            let answered = AnsweredSummary::with_target(&record, Some(required));
            assert_eq!((answered.answer.kind, answered.answer.required_percent), (kind, required));
            let expected = if kind == AnswerKind::Yes { Exit::Fine } else { Exit::Unmet };
            assert_eq!(gates.target_percent(&Expectations::default()), Some(required));
            let is_compute_bound = answered.summary.verdict.name == Bound::ComputeBound;
            assert_eq!(exit(&gates.judge(&Expectations::default(), &[answered])), expected);
            assert_eq!(is_compute_bound, kind == AnswerKind::Yes);
        }
    }

    #[test]
    fn a_value_just_beyond_the_limit_is_printed_with_more_decimals() {
        let record = simple(&[(10_003, 89_997, 0, 1_000_000); 20]);
        let gates = GateArguments { fail_below_au: Some(90.0), fail_on: Vec::new() };
        let gates = gates.judge(&Expectations::default(), &[AnsweredSummary::new(&record)]);
        let says = &gates[0].says;
        assert!(says.starts_with("the utilisation is 89.997 %, "), "{says}");
    }

    #[test]
    fn the_limits_of_a_workload_are_compared_with_the_means_of_its_runs() {
        let run = |load_ns| AnsweredSummary::new(&simple(&[(load_ns, 500, 0, 1_000_000); 20]));
        let judge = |expect: &Expectations, runs: &[AnsweredSummary]| {
            let gates = GateArguments::default().judge(expect, runs);
            let [gate] = &gates[..] else { panic!("{gates:?}") };
            (gate.name.clone(), gate.is_met, gate.measured)
        };
        // All runs at 50 %, whose mean has no uncertainty, and at 50 % and 100 %.
        let equal = [run(500), run(500)];
        let runs = [run(500), run(0)];
        for (runs, mean, limit, is_met) in [
            (&equal, 50.0, 49.9, Some(true)),
            (&equal, 50.0, 50.0, Some(true)),
            (&equal, 50.0, 50.1, Some(false)),
            (&runs, 75.0, 74.9, None),
            (&runs, 75.0, 75.1, None),
        ] {
            let expect = Expectations { au_percent: Some(limit), ..Expectations::default() };
            let expected = ("au".to_string(), is_met, Some(mean));
            assert_eq!(judge(&expect, runs), expected, "{limit}");
        }
        let rate = runs[0].summary.figures.value(&SAMPLES_WHOLE).unwrap();
        for (limit, is_met) in [(rate * 0.99, true), (rate * 1.01, false)] {
            let expect =
                Expectations { samples_per_second: Some(limit), ..Expectations::default() };
            let (name, found, _) = judge(&expect, &runs[..1]);
            assert_eq!((name.as_str(), found), ("samples_per_second", Some(is_met)));
        }
    }

    /// 48, 50 and 52 % have a standard error of 1.15 points, and t(2) is 4.3.
    #[test]
    fn a_limit_in_the_interval_of_several_runs_is_not_decided() {
        let loads_ms = [1083, 1000, 923];
        let runs =
            loads_ms.map(|ms| AnsweredSummary::new(&simple(&[(ms, 1000, 0, 1_000_000); 20])));
        let gate = |limit| {
            let gates = GateArguments { fail_below_au: Some(limit), fail_on: Vec::new() };
            gates.judge(&Expectations::default(), &runs).swap_remove(0)
        };
        for (limit, is_met) in [(44.0, Some(true)), (46.0, None), (54.0, None), (56.0, Some(false))]
        {
            assert_eq!(gate(limit).is_met, is_met, "{:?}", gate(limit));
        }
        let says = gate(54.0).says;
        assert!(says.starts_with("the utilisation is 50 % (mean of 3 runs, 95 % interval [4"));
        assert!(says.ends_with(" %]), `--fail-below-au` requires 54 %"), "{says}");
    }

    #[test]
    fn a_rate_is_named_with_the_part_of_the_run_to_which_it_belongs() {
        let runs = [AnsweredSummary::new(&simple(&[(500, 500, 0, 1_000_000); 20]))];
        let expect = Expectations { bytes_per_second: Some(2e6), ..Expectations::default() };
        let gate = GateArguments::default().judge(&expect, &runs).swap_remove(0);
        let says = "delivered_bytes_per_second is 1 MB/s over whole epochs, `expect.bytes_per_second` requires at least 2 MB/s";
        assert_eq!(gate.says, says);
        let mut stopped = simple(&[(500, 500, 0, 1_000_000); 20]);
        stopped.complete = false;
        let stopped = [AnsweredSummary::new(&stopped)];
        let gate = GateArguments::default().judge(&expect, &stopped).swap_remove(0);
        assert!(gate.says.starts_with("delivered_bytes_per_second is 1 MB/s (not usable: "));
    }

    /// Busy cores only lower a rate, and memory only raises it.
    #[test]
    fn a_limit_is_decided_unless_a_distortion_could_change_it() {
        let none = Expectations::default();
        let rate = |limit| Expectations { samples_per_second: Some(limit), ..none.clone() };
        let record = simple(&[(500, 500, 0, 1_000_000); 20]);
        let [mut busy, mut cached, mut shared, mut stopped] = [(); 4].map(|()| record.clone());
        shared.epochs[0].host.process_device_read_bytes = Some(20_000_000);
        shared.epochs[0].host.device_read_bytes = Some(400_000_000);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(20_000_000);
        stopped.complete = false;
        let good = AnsweredSummary::new(&record);
        let value = good.summary.figures.value(&SAMPLES_WHOLE).unwrap();
        let (low, high) = (rate(value * 0.9), rate(value * 1.1));
        for (distorted, low_is_met, high_is_met, reason) in [
            (&record, Some(true), Some(false), ""),
            (&busy, Some(true), None, "run 2 is cpu-saturated"),
            (&cached, None, Some(false), "run 2 is cache-fed, use `--cold`"),
            (&shared, Some(true), None, "run 2 is slowed down by other processes"),
            (&stopped, None, None, "run 2 is incomplete"),
        ] {
            let runs = [good.clone(), AnsweredSummary::new(distorted)];
            for (expect, is_met) in [(&low, low_is_met), (&high, high_is_met)] {
                let gate = GateArguments::default().judge(expect, &runs).swap_remove(0);
                assert_eq!(gate.is_met, is_met, "{gate:?}");
                assert!(gate.says.starts_with("samples_per_second is "), "{gate:?}");
                assert!(is_met.is_some() || gate.says.contains(reason), "{gate:?}");
            }
        }
    }

    /// Steps of 440 instead of 400 ms raise a utilisation of 80 % to 88 %, and lower a rate that the storage could exceed.
    #[test]
    fn slow_compute_leaves_open_what_it_could_change() {
        let run = |compute_ms: u64| {
            let mut record = simple(&[(500 - compute_ms, compute_ms, 0, 1_000_000); 20]);
            record.plan.train.compute = TimeSpec::Constant { mean: 0.4 };
            AnsweredSummary::new(&record)
        };
        let (calm, busy) = (run(400), run(440));
        let au = |limit| Expectations { au_percent: Some(limit), ..Expectations::default() };
        let rate = busy.summary.figures.value(&SAMPLES_WHOLE).unwrap();
        let rate_above = |factor: f64| {
            let samples_per_second = Some(rate * factor);
            Expectations { samples_per_second, ..Expectations::default() }
        };
        for (expect, calm_is_met, busy_is_met) in [
            (au(79.0), Some(true), Some(true)),
            (au(85.0), Some(false), None),
            (au(89.0), Some(false), Some(false)),
            (rate_above(0.99), Some(true), Some(true)),
            (rate_above(1.05), Some(false), None),
            (rate_above(1.2), Some(false), Some(false)),
        ] {
            for (run, is_met) in [(&calm, calm_is_met), (&busy, busy_is_met)] {
                let runs = std::slice::from_ref(run);
                let gate = GateArguments::default().judge(&expect, runs).swap_remove(0);
                assert_eq!(gate.is_met, is_met, "{gate:?}");
                let says_why = gate.says.contains("compute took longer than configured");
                assert_eq!(says_why, is_met.is_none(), "{gate:?}");
            }
        }
    }

    /// All reads take 50 ms, whose bucket is from 46.1 to 50.3 ms.
    #[test]
    fn a_limit_inside_the_bucket_of_the_quantile_is_not_decided() {
        let run = |longest_ms: u64| {
            let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
            let latency = &mut record.epochs[0].accelerators[0].io.read_latency;
            (0..200).for_each(|_| latency.record(50_000_000));
            latency.record(longest_ms * 1_000_000);
            AnsweredSummary::new(&record)
        };
        let judge = |longest_ms, limit_s| {
            let expect =
                Expectations { read_latency_p99_s: Some(limit_s), ..Expectations::default() };
            GateArguments::default().judge(&expect, &[run(longest_ms)]).swap_remove(0)
        };
        for (longest_ms, limit_s, is_met) in [
            (60, 0.046, Some(false)),
            (60, 0.0499, None),
            (60, 0.0504, Some(true)),
            (50, 0.0499, None),
            (50, 0.05, Some(true)),
        ] {
            assert_eq!(judge(longest_ms, limit_s).is_met, is_met, "{longest_ms} {limit_s}");
        }
        let says = judge(60, 0.0499).says;
        assert!(
            says.contains(" (the histogram shows only that it is from 46.1 ms to 50.3 ms), "),
            "{says}"
        );
    }

    #[test]
    fn an_unknown_verdict_is_not_decided() {
        let mut stopped = record();
        stopped.complete = false;
        check(&stopped, None, &["decode-bound"], Exit::Undecided);
        let fail_on = ["decode-bound"; 2].map(String::from).to_vec();
        let gates = GateArguments { fail_below_au: None, fail_on };
        let runs = [AnsweredSummary::new(&stopped)];
        assert_eq!(gates.judge(&Expectations::default(), &runs).len(), 1);
        check(&record(), None, &["decode-bound"], Exit::Fine);
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
        let fail_on = ["note", "warning"].map(String::from).to_vec();
        let gates = GateArguments { fail_below_au: None, fail_on };
        let gates = gates.judge(&Expectations::default(), &[AnsweredSummary::new(&record)]);
        let is_met = |name: &str| gates.iter().find(|gate| gate.name == name).unwrap().is_met;
        // A worse severity that is listed too has its own condition.
        assert_eq!((is_met("warning"), is_met("note")), (Some(false), Some(true)));
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
            ("", "give invalid, warning, note, or a name in `feedrate list verdicts` or"),
        ] {
            assert!(parse_outcome(name).unwrap_err().contains(hint), "{name}");
        }
    }

    #[test]
    fn each_name_is_accepted_and_occurs_once() {
        let all = Vec::from_iter(names());
        assert!(all.contains(&"invalid") && all.contains(&"page_cache"), "{all:?}");
        assert_eq!(BTreeSet::from_iter(&all).len(), all.len(), "{all:?}");
        all.iter().for_each(|name| assert_eq!(parse_outcome(name).as_deref(), Ok(*name)));
    }
}
