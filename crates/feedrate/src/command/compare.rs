//! `feedrate compare`: tests whether two results or two studies are equivalent, with an exit code for CI.

use super::compare_logs::compare_logs;
use crate::exit::Exit;
use crate::export::{ExportArguments, MetricSet, TestCase, TestSuite};
use crate::gate::GateResult;
use crate::messages;
use clap::Args;
use feedrate_analysis::compare::{
    ComparedResponse, Comparison, ComparisonVerdict, DifferingSetting, IntervalEstimate,
    MAIN_RESPONSES, Pairing, Question, Side, SideDoubt, UnmatchedExperiment, UnmatchedResponse,
    compare as compare_runs, find_shared_run, matching::KEYS, read_sides,
};
use feedrate_analysis::precision;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::Provenance;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_report::report::FindingFigure;
use feedrate_report::words::comparison::{note, percent, verdict};
use feedrate_report::words::number::{chance, with_interval};
use feedrate_results::index::LeftOut;
use feedrate_session::log_files::is_log;
use feedrate_session::threads;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// `feedrate compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Experiments of A and B are matched by their settings. A setting in which every run of A differs from every run of B is printed as the difference under test. \
Intervals are 95 % confidence intervals over runs, not epochs.

If A or B is an I/O log that `feedrate import` reads, a table compares the access patterns instead (sizes, order, files, concurrency, rates), \
and the exit code is 0.

Examples:
  feedrate compare results/nfs results/lustre
  feedrate compare before.csv after.csv --no-worse-than 2%     a gate for CI

Exit codes: 0 equivalent in every experiment; 2 bad usage, nothing to compare, or the same run on both sides; 3 different, \
or an experiment is missing on one side; 4 not decided.")]
pub(super) struct CompareArguments {
    /// Folder of one or several runs (feedrate's or DLIO's), CSV of a study, or I/O log of a real job.
    a: PathBuf,
    /// The results to compare with A.
    b: PathBuf,
    /// Metric to compare; may be repeated [default: au_all_steps_percent and samples_per_second].
    #[arg(long = "response", value_name = "NAME")]
    responses: Vec<String>,
    /// Test that A and B differ by at most this fraction [default: 2%].
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with = "no_worse_than")]
    within: Option<f64>,
    /// Test that B is at most this fraction worse than A.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    no_worse_than: Option<f64>,
    /// Pair the runs of A and B by block and replicate of a study, otherwise by their start times.
    #[arg(long)]
    paired: bool,
    /// Allow A and B to differ in workload, processes, batch_size, record_length_bytes or computation_time. May be repeated.
    #[arg(long, value_name = "KEY")]
    across: Vec<String>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) exports: ExportArguments,
}

impl CompareArguments {
    /// Refuses options that apply only to runs; called if a log is compared.
    fn refuse_run_options(&self) -> Result<(), Refusal> {
        let options = [
            ("--response", !self.responses.is_empty()),
            ("--within", self.within.is_some()),
            ("--no-worse-than", self.no_worse_than.is_some()),
            ("--paired", self.paired),
            ("--across", !self.across.is_empty()),
            ("--junit or --openmetrics", self.exports.are_given()),
        ];
        let given: Vec<&str> =
            options.into_iter().filter(|option| option.1).map(|option| option.0).collect();
        if given.is_empty() {
            return Ok(());
        }
        refuse(
            format!("{}: not available when a log is compared", given.join(", ")),
            "leave these options out; `--json` has the distances between the access patterns",
        )
    }
}

/// Name of what is tested if no experiment was compared.
pub(super) const SUBJECT: &str = "comparison";

/// Default equivalence margin, as a fraction.
const DEFAULT_MARGIN: f64 = 0.02;

/// Compares two sides, and prints the verdict on each experiment.
pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    if is_log(&arguments.a) || is_log(&arguments.b) {
        arguments.refuse_run_options()?;
        return compare_logs(&arguments.a, &arguments.b, arguments.json);
    }
    let named = arguments.responses.iter().map(|name| Metric::find(name));
    let responses: Vec<&Metric> = named.collect::<Result<_, _>>().map_err(Refusal::from)?;
    let question = match arguments.no_worse_than {
        Some(margin) => Question::NoWorseThan(margin),
        None => Question::Within(arguments.within.unwrap_or(DEFAULT_MARGIN)),
    };
    let pairing = if arguments.paired { Pairing::ByReplicate } else { Pairing::None };
    let across: Vec<&str> = arguments.across.iter().map(String::as_str).collect();
    check_across(&across)?;
    let (a, b) = read_sides(&arguments.a, &arguments.b, threads()).map_err(Refusal::from)?;
    if let Some((in_a, in_b)) = find_shared_run(&a, &b) {
        return refuse(
            format!("`{}` and `{}` are the same run", in_a.display(), in_b.display()),
            "give different runs",
        );
    }
    let responses = if responses.is_empty() { &MAIN_RESPONSES[..] } else { &responses };
    let found = compare_runs(a, b, responses, question, pairing, &across);
    if arguments.json {
        let says = |compared| CompareFinding { compared, says: verdict(compared) };
        let output = CompareOutput {
            comparison: &found,
            findings: found.findings.iter().map(says).collect(),
            a: &arguments.a,
            b: &arguments.b,
            question: question_text(question),
            met: found.is_met(),
            notes: found.notes.iter().map(note).collect(),
        };
        messages::print_json(Schema::Compare, &output)?;
    } else {
        messages::print_document(&document(arguments, &found, question), true)?;
    }
    let gates: Vec<(&str, GateResult)> = gates(&found, question);
    let cases = gates.iter().map(|(experiment, gate)| TestCase::for_gate(experiment, gate));
    let suite = TestSuite { name: "feedrate compare".into(), cases: cases.collect() };
    arguments.exports.write(&suite, &metric_sets(&found, &gates))?;
    let otherwise = if found.is_undecided() { Exit::Undecided } else { Exit::Unmet };
    Ok(if found.is_met() { Exit::Fine } else { otherwise })
}

/// The verdict on each response of each experiment as a condition. An experiment without a partner fails.
fn gates(found: &Comparison, question: Question) -> Vec<(&str, GateResult)> {
    let findings = found.findings.iter().map(|finding| {
        let is_met = match finding.verdict {
            ComparisonVerdict::Same | ComparisonVerdict::NotWorse => Some(true),
            ComparisonVerdict::Differs => Some(false),
            ComparisonVerdict::CannotTell => None,
        };
        let allowed = match is_met {
            Some(true) => {
                let unit = unit(finding);
                let [a, b] = [&finding.a, &finding.b].map(|side| side_text(unit, side));
                format!(" (A: {a}; B: {b})")
            }
            Some(false) => format!(" (allowed: {})", percent(margin(question))),
            None => String::new(),
        };
        let says = verdict(finding) + &allowed;
        (finding.experiment.as_str(), gate(finding.response, is_met, says))
    });
    let unmatched = found.unmatched.iter().map(|alone| {
        let says = format!("only in {}", alone.side);
        (alone.experiment.as_str(), gate("experiment", Some(false), says))
    });
    let gates: Vec<_> = findings.chain(unmatched).collect();
    if gates.is_empty() {
        return vec![(SUBJECT, gate("runs", None, "neither side has a usable run".into()))];
    }
    gates
}

fn gate(name: &str, is_met: Option<bool>, says: String) -> GateResult {
    GateResult { name: name.into(), is_met, measured: None, limit: None, says }
}

/// Name and values of a side.
type NamedSide = (&'static str, fn(&ComparedResponse) -> &Side);

/// The means of each side, with the gates at side B, which is judged.
fn metric_sets(found: &Comparison, gates: &[(&str, GateResult)]) -> Vec<MetricSet> {
    let mut sets = Vec::new();
    for findings in found.findings.chunk_by(|a, b| a.experiment == b.experiment) {
        let experiment = &findings[0].experiment;
        let sides: [NamedSide; 2] = [("a", |finding| &finding.a), ("b", |finding| &finding.b)];
        for (name, side) in sides {
            let means = findings.iter().filter_map(|finding| {
                Some((finding.response.to_string(), side(finding).mean.estimate?))
            });
            let judged = gates.iter().filter(|(subject, _)| name == "b" && subject == experiment);
            sets.push(MetricSet {
                labels: vec![("experiment", experiment.clone()), ("side", name.into())],
                means: means.collect(),
                runs: side(&findings[0]).runs as u64,
                gates: judged.map(|(_, gate)| gate.clone()).collect(),
                ..MetricSet::default()
            });
        }
    }
    let is_compared =
        |experiment: &str| found.findings.iter().any(|finding| finding.experiment == experiment);
    let others = gates.iter().filter(|(experiment, _)| !is_compared(experiment));
    sets.extend(others.map(|(experiment, gate)| MetricSet {
        labels: vec![("experiment", (*experiment).to_string()), ("side", "b".into())],
        gates: vec![gate.clone()],
        ..MetricSet::default()
    }));
    sets
}

/// Output of `compare --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CompareOutput<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// The verdict on each experiment and response, with values, intervals and p.
    findings: Vec<CompareFinding<'a>>,
    /// The first argument.
    a: &'a Path,
    /// The second argument.
    b: &'a Path,
    /// The tested question in words.
    #[serde(rename = "asked")]
    question: String,
    /// Whether the answer is yes for every experiment.
    met: bool,
    /// Circumstances that may explain a difference.
    notes: Vec<String>,
}

/// One response of one experiment, with its verdict in words.
#[derive(Serialize, JsonSchema)]
struct CompareFinding<'a> {
    #[serde(flatten)]
    compared: &'a ComparedResponse,
    /// The verdict in a sentence.
    says: String,
}

fn check_across(across: &[&str]) -> Result<(), Refusal> {
    match across.iter().find(|name| !KEYS.iter().any(|key| key.is_named(&[name]))) {
        None => Ok(()),
        Some(name) => Err(Refusal::unknown_name(
            format!("`--across {name}`: other settings may always differ"),
            name,
            KEYS.iter().map(|key| key.name),
            "give one of workload, processes, batch_size, record_length_bytes, computation_time",
        )),
    }
}

fn parse_share(text: &str) -> Result<f64, &'static str> {
    precision::parse_share(text).ok_or("write a value above 0 and below 1 as `2%` or `0.02`")
}

fn question_text(question: Question) -> String {
    let words = match question {
        Question::Within(_) => "the same within",
        Question::NoWorseThan(_) => "B is not worse by more than",
    };
    format!("{words} {}", percent(margin(question)))
}

fn margin(question: Question) -> f64 {
    match question {
        Question::Within(margin) | Question::NoWorseThan(margin) => margin,
    }
}

fn document(arguments: &CompareArguments, found: &Comparison, question: Question) -> Document {
    let fact = |name: &str, value: String| FindingFigure { name: name.into(), value };
    let sides = [("A", &arguments.a), ("B", &arguments.b)];
    let mut head = Vec::from(sides.map(|(name, path)| fact(name, path.display().to_string())));
    head.extend(
        found.differs_in.iter().map(difference_sentence).map(|says| fact("Differs in", says)),
    );
    head.extend(found.notes.iter().map(|circumstance| fact("Note", note(circumstance))));
    for (name, left_out) in [("A", &found.left_out_of_a), ("B", &found.left_out_of_b)] {
        head.extend(left_out.iter().map(|LeftOut { path, why }| {
            fact(&format!("Left out of {name}"), format!("`{}`: {why}", path.display()))
        }));
    }
    for (name, doubts) in [("A", &found.doubts_of_a), ("B", &found.doubts_of_b)] {
        head.extend(doubts_text(doubts).map(|says| fact(&format!("Doubts of {name}"), says)));
    }
    let mut blocks = vec![Block::Facts(head)];
    for experiment in found.findings.chunk_by(|a, b| a.experiment == b.experiment) {
        blocks.push(Block::Heading(experiment[0].experiment.clone()));
        blocks.extend(experiment.iter().map(|finding| Block::Facts(response_rows(finding))));
    }
    let mut sentences = Vec::new();
    for side in ["A", "B"] {
        let alone = found.unmatched.iter().filter(|alone| alone.side == side);
        let alone: Vec<String> = alone.map(unmatched_text).collect();
        sentences
            .extend((!alone.is_empty()).then(|| format!("Only in {side}: {}", alone.join("; "))));
    }
    if found.findings.is_empty() && sentences.is_empty() {
        sentences.push("Nothing was compared: neither side has a usable run.".into());
    }
    let tested = found.findings.iter().filter(|finding| finding.p.is_some());
    if 1 < tested.map(|finding| &finding.experiment).collect::<BTreeSet<_>>().len() {
        sentences.push(
            "Each p is corrected for the number of experiments (Holm); intervals are not.".into(),
        );
    }
    let verdict = if found.is_met() { "shown" } else { "not shown" };
    sentences.push(format!("Question: {}: {verdict}", question_text(question)));
    blocks.extend(sentences.into_iter().map(Block::Sentence));
    Document::from(blocks)
}

/// Lists doubts that are warnings or worse, and counts the notes; `None` if there are no doubts.
fn doubts_text(doubts: &[SideDoubt]) -> Option<String> {
    let (notes, serious): (Vec<_>, Vec<_>) =
        doubts.iter().partition(|doubt| doubt.severity == Severity::Note);
    let mut parts: Vec<String> = serious
        .iter()
        .map(|doubt| {
            let runs = units::counted(doubt.runs as u64, "run");
            format!("{} {} ({runs})", doubt.severity.name(), doubt.name)
        })
        .collect();
    parts.extend((!notes.is_empty()).then(|| units::counted(notes.len() as u64, "note")));
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn difference_sentence(difference: &DifferingSetting) -> String {
    let a = difference.a.as_deref().unwrap_or("none");
    let b = difference.b.as_deref().unwrap_or("none");
    format!("{}: `{a}` in A, `{b}` in B", difference.setting)
}

/// An experiment of one side with its values: `unet3d, 8 accelerators (96.1 %, 180 samples/s, n = 3)`.
fn unmatched_text(alone: &UnmatchedExperiment) -> String {
    let values = alone.responses.iter().filter_map(|UnmatchedResponse { response, runs }| {
        runs.mean.estimate?;
        let unit = Metric::find(response).map_or(Unit::Percent, |response| response.unit);
        Some(estimate_text(runs.mean, |value| unit.text(value)))
    });
    let runs = alone.responses.iter().map(|response| response.runs.values.len()).max();
    let count = runs.filter(|runs| 0 < *runs).map(|runs| format!("n = {runs}"));
    let parts: Vec<String> = values.chain(count).collect();
    let values = if parts.is_empty() { "no usable run".into() } else { parts.join(", ") };
    format!("{} ({values})", alone.experiment)
}

/// The values of a response on both sides, their ratio, and for percentages their difference. The sides of other responses are geometric
/// means, whose difference is not tested.
fn response_rows(finding: &ComparedResponse) -> Vec<FindingFigure> {
    let unit = unit(finding);
    let p = finding.p.map_or(String::new(), |p| format!(", {}", chance(p, 1)));
    // Percentages are tested by their difference, other values by their ratio.
    let [difference_p, ratio_p] =
        if unit == Unit::Percent { [p, String::new()] } else { [String::new(), p] };
    let difference = estimate_text(finding.difference, |value| format!("{value:+.2} points"));
    let ratio = finding.ratio;
    let ratio = ratio.map_or("-".into(), |ratio| estimate_text(ratio, |v| format!("{v:.4}")));
    let mut rows = vec![
        (finding.response, verdict(finding)),
        ("  A", side_text(unit, &finding.a)),
        ("  B", side_text(unit, &finding.b)),
    ];
    rows.extend((unit == Unit::Percent).then(|| ("  B - A", difference + &difference_p)));
    rows.push(("  B / A", ratio + &ratio_p));
    let figure = |(name, value): (&str, String)| FindingFigure { name: name.into(), value };
    rows.into_iter().map(figure).collect()
}

fn unit(finding: &ComparedResponse) -> Unit {
    Metric::find(finding.response).map_or(Unit::Percent, |response| response.unit)
}

fn side_text(unit: Unit, side: &Side) -> String {
    let missing = match side.runs - side.values.len() {
        0 => String::new(),
        n => format!(", {} without a value", units::counted(n as u64, "run")),
    };
    let mean = estimate_text(side.mean, |value| unit.text(value));
    let provenance = match side.provenance {
        None | Some(Provenance::Measured) => String::new(),
        Some(provenance) => format!(", {}", provenance.name()),
    };
    format!("{mean}{provenance}, n = {}{missing}", side.values.len())
}

/// An estimate with its interval, if it has one, such as `96.9 % [95.5 %, 98.2 %]`.
fn estimate_text(value: IntervalEstimate, text: impl Fn(f64) -> String) -> String {
    let ends = value.low.zip(value.high);
    value.estimate.map_or("-".into(), |middle| with_interval(middle, ends, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_analysis::compare::Runs;
    use feedrate_measure::example::simple;
    use feedrate_results::run::Run;

    /// A test case that passes shows by how much.
    #[test]
    fn a_met_gate_names_the_values_of_both_sides() {
        let record = simple(&[(500, 500, 0, 1_000_000); 20]);
        let [a, b] = [(); 2].map(|()| Runs {
            runs: vec![Run::from_record(Path::new("run"), &record); 2],
            ..Runs::default()
        });
        let question = Question::NoWorseThan(0.1);
        let au = Metric::find("au_all_steps").unwrap();
        let found = compare_runs(a, b, &[au], question, Pairing::None, &[]);
        let (_, gate) = &gates(&found, question)[0];
        let side = "50.0 % [50.0 %, 50.0 %], n = 2";
        let expected = format!("equal in all runs: 50.0 % (A: {side}; B: {side})");
        assert_eq!((gate.is_met, &gate.says), (Some(true), &expected));
    }
}
