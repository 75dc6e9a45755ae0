//! Metrics in the text format of OpenMetrics 1.0: a gauge for each metric, a summary for each latency, and a state set for the answer and each
//! gate. Unknown values are left out.

use crate::gate::GateResult;
use feedrate_analysis::answer::{AnswerKind, AnsweredSummary, UnknownBecause};
use feedrate_analysis::repeat::{CHECKPOINT_RATES, RepeatedAnswer, RepeatedValue};
use feedrate_measure::metric::{METRICS, Quantiles, Unit};
use feedrate_measure::record::Record;
use std::fmt::Write;

/// Label and value.
type Label = (&'static str, String);

/// The metrics of runs that share their labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricSet {
    /// Labels of all metrics.
    pub(crate) labels: Vec<Label>,
    /// Means by the names of the metrics.
    pub(crate) means: Vec<(String, f64)>,
    /// Latencies.
    pub(crate) latencies: Vec<Latency>,
    /// The answer; `None` if the metrics are not those of runs of one plan.
    pub(crate) answer: Option<AnswerKind>,
    /// Number of runs.
    pub(crate) runs: u64,
    /// The gates.
    pub(crate) gates: Vec<GateResult>,
    /// The number that a search found.
    pub(crate) found: Option<u64>,
}

/// Quantiles of the duration of calls.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    name: &'static str,
    count: u64,
    /// Shares and seconds.
    quantiles: Vec<(&'static str, f64)>,
}

impl MetricSet {
    /// The metrics of runs of one plan, as means over the runs. An incomplete run has only its answer and its gates, since the means of a few
    /// steps would be stored beside those of whole runs.
    pub(crate) fn for_runs(
        labels: Vec<Label>,
        runs: &[AnsweredSummary],
        gates: &[GateResult],
    ) -> Self {
        let answer = RepeatedAnswer::new(runs);
        if runs.iter().any(is_incomplete) {
            let (answer, gates) = (Some(answer.kind()), gates.to_vec());
            return MetricSet { labels, answer, gates, ..MetricSet::default() };
        }
        let latencies = LATENCIES.iter().filter_map(|(name, quantiles)| {
            let all = runs.iter().map(|run| quantiles(run).as_ref());
            Latency::new(name, &all.collect::<Option<Vec<_>>>()?)
        });
        MetricSet {
            labels,
            answer: Some(answer.kind()),
            runs: answer.runs,
            latencies: latencies.collect(),
            means: answer.values.into_iter().map(named_mean).collect(),
            gates: gates.to_vec(),
            found: None,
        }
    }
}

/// Whether a run was stopped or failed.
fn is_incomplete(run: &AnsweredSummary) -> bool {
    matches!(
        run.answer.unknown_because,
        Some(UnknownBecause::Incomplete | UnknownBecause::Interrupted)
    )
}

/// Name and mean of a metric. The mean of counts is computed with logarithms, whose rounding errors make 800 files 799.9999999999999.
fn named_mean(value: RepeatedValue) -> (String, f64) {
    let mean = if value.unit().is_count() { value.mean.round() } else { value.mean };
    (value.metric, mean)
}

/// The labels of a run.
pub(crate) fn labels(record: &Record) -> Vec<Label> {
    let hosts: Vec<&str> =
        record.machines().iter().map(|machine| machine.hostname.as_str()).collect();
    vec![
        ("workload", record.plan.workload.clone()),
        ("host", hosts.join(" ")),
        ("accelerators", record.plan.accelerators.to_string()),
    ]
}

/// Name and quantiles of a latency.
type LatencyRow = (&'static str, fn(&AnsweredSummary) -> &Option<Quantiles>);

/// Latencies with their names.
static LATENCIES: [LatencyRow; 3] = [
    ("open", |run| &run.summary.figures.open_latency),
    ("read", |run| &run.summary.figures.read_latency),
    ("sample", |run| &run.summary.figures.sample_latency),
];

/// Label and value of a quantile.
type QuantileRow = (&'static str, fn(&Quantiles) -> Option<f64>);

/// Quantiles as labels, with their values.
static QUANTILES: [QuantileRow; 6] = [
    ("0.5", |latency| latency.p50_s),
    ("0.9", |latency| latency.p90_s),
    ("0.99", |latency| latency.p99_s),
    ("0.999", |latency| latency.p999_s),
    ("0.9999", |latency| latency.p9999_s),
    ("1", |latency| latency.max_s),
];

impl Latency {
    /// `None` if nothing was counted.
    fn new(name: &'static str, runs: &[&Quantiles]) -> Option<Self> {
        let quantiles = QUANTILES.iter().filter_map(|(share, value)| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| value(run)).collect();
            // The same mean as that of the metric `read_latency_p99_s`.
            Some((*share, RepeatedValue::new(share, Unit::Seconds, values?)?.mean))
        });
        let count = runs.iter().map(|run| run.count).sum();
        let latency = Latency { name, count, quantiles: quantiles.collect() };
        (!latency.quantiles.is_empty()).then_some(latency)
    }
}

/// The text of all sets. The samples of a metric are together, as the format requires.
pub(super) fn text(sets: &[MetricSet]) -> String {
    let mut text = String::new();
    let checkpoint_rates = CHECKPOINT_RATES
        .map(|name| (name, Unit::BytesPerSecond, format!("Mean rate of checkpoints: {name}.")));
    let metrics = METRICS.iter().map(|metric| (metric.id.name(), metric.unit, metric.meaning()));
    for (name, unit, help) in metrics.chain(checkpoint_rates) {
        let (family, unit) = family(name, unit);
        let samples = sets.iter().filter_map(|set| {
            let (_, value) = set.means.iter().find(|(known, _)| known == name)?;
            Some((String::new(), set.labels.clone(), *value))
        });
        write_family(
            &mut text,
            &Family { name: &family, kind: "gauge", unit, help: &help },
            samples,
        );
    }
    for (name, _) in &LATENCIES {
        write_latency(&mut text, name, sets);
    }
    let runs = sets.iter().filter(|set| 0 < set.runs);
    let runs = runs.map(|set| (String::new(), set.labels.clone(), set.runs as f64));
    let help = "Number of runs whose mean the other metrics are.";
    write_family(&mut text, &Family { name: "feedrate_runs", kind: "gauge", unit: "", help }, runs);
    let found = sets.iter().filter_map(|set| Some((set, set.found?)));
    let found = found.map(|(set, found)| (String::new(), set.labels.clone(), found as f64));
    let help = "Number that reaches the target of a search.";
    write_family(
        &mut text,
        &Family { name: "feedrate_found", kind: "gauge", unit: "", help },
        found,
    );
    write_states(&mut text, sets);
    text + "# EOF\n"
}

fn write_latency(text: &mut String, name: &str, sets: &[MetricSet]) {
    let family = format!("feedrate_{name}_latency_seconds");
    let known = sets.iter().flat_map(|set| {
        let latencies = set.latencies.iter().filter(|latency| latency.name == name);
        latencies.map(move |latency| (set, latency))
    });
    let samples = known.flat_map(|(set, latency)| {
        let quantiles = latency.quantiles.iter().map(|(share, seconds)| {
            let label = ("quantile", share.to_string());
            (String::new(), [set.labels.clone(), vec![label]].concat(), *seconds)
        });
        let count = ("_count".to_string(), set.labels.clone(), latency.count as f64);
        quantiles.chain([count])
    });
    let help = format!("Duration of {name} calls; of several runs, the mean of each quantile.");
    let family = Family { name: &family, kind: "summary", unit: "seconds", help: &help };
    write_family(text, &family, samples);
}

/// The answers and gates, as a gauge of 0 or 1 for each state: Prometheus and node_exporter refuse the type `stateset`.
fn write_states(text: &mut String, sets: &[MetricSet]) {
    let answers = sets.iter().filter_map(|set| Some((set, set.answer?)));
    let answers = answers.flat_map(|(set, answer)| {
        AnswerKind::ALL.into_iter().map(move |kind| {
            let state = ("feedrate_answer", kind.name().to_string());
            (String::new(), [set.labels.clone(), vec![state]].concat(), is(kind == answer))
        })
    });
    let help = "Whether the accelerators were fed.";
    let family = Family { name: "feedrate_answer", kind: "gauge", unit: "", help };
    write_family(text, &family, answers);
    let gates = sets.iter().flat_map(|set| set.gates.iter().map(move |gate| (set, gate)));
    let states = [("met", Some(true)), ("unmet", Some(false)), ("undecided", None)];
    let gates = gates.flat_map(|(set, gate)| {
        states.into_iter().map(move |(name, is_met)| {
            let labels = vec![("gate", gate.name.clone()), ("feedrate_gate", name.to_string())];
            (String::new(), [set.labels.clone(), labels].concat(), is(gate.is_met == is_met))
        })
    });
    let help = "Whether a condition on the runs is met.";
    let family = Family { name: "feedrate_gate", kind: "gauge", unit: "", help };
    write_family(text, &family, gates);
}

fn is(state: bool) -> f64 {
    f64::from(u8::from(state))
}

/// Description of a metric's samples.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    /// Unit, with which the name ends; empty if there is none.
    unit: &'a str,
    help: &'a str,
}

/// Suffix, labels and value.
type Sample = (String, Vec<Label>, f64);

/// Writes the samples of a family; nothing if there are none.
fn write_family(text: &mut String, family: &Family<'_>, samples: impl Iterator<Item = Sample>) {
    let Family { name, kind, unit, help } = family;
    for (index, (suffix, labels, value)) in samples.enumerate() {
        if index == 0 {
            text.push_str(&format!("# TYPE {name} {kind}\n"));
            if !unit.is_empty() {
                text.push_str(&format!("# UNIT {name} {unit}\n"));
            }
            text.push_str(&format!("# HELP {name} {}\n", escaped(help)));
        }
        let labels = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}{suffix}{{{labels}}} {value}");
    }
}

/// Name and unit of a metric's family. A name ends with its unit.
fn family(name: &str, unit: Unit) -> (String, &'static str) {
    let unit = match unit {
        Unit::Percent => "percent",
        Unit::SamplesPerSecond => "samples_per_second",
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::Seconds => "seconds",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::Files | Unit::Ratio => "",
    };
    let (stem, scope) = match name.strip_suffix("_windowed") {
        Some(stem) => (stem, "windowed_"),
        None => (name, ""),
    };
    let abbreviation = if unit == "seconds" { "s" } else { unit };
    match stem.strip_suffix(abbreviation) {
        Some(stem) if !unit.is_empty() => (format!("feedrate_{stem}{scope}{unit}"), unit),
        _ => (format!("feedrate_{name}"), ""),
    }
}

/// Escapes text for HELP and labels.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::simple;
    use std::collections::BTreeSet;

    #[test]
    fn names_end_with_their_units_and_differ() {
        for (name, expected, expected_unit) in [
            ("au_all_steps_percent", "feedrate_au_all_steps_percent", "percent"),
            ("samples_per_second", "feedrate_samples_per_second", "samples_per_second"),
            (
                "delivered_bytes_per_second_windowed",
                "feedrate_delivered_windowed_bytes_per_second",
                "bytes_per_second",
            ),
            ("read_latency_p99_s", "feedrate_read_latency_p99_seconds", "seconds"),
            ("logical_bytes", "feedrate_logical_bytes", "bytes"),
            ("read_amplification", "feedrate_read_amplification", ""),
        ] {
            let unit = METRICS.iter().find(|metric| metric.id.name() == name).unwrap().unit;
            assert_eq!(family(name, unit), (expected.into(), expected_unit));
        }
        let names = METRICS.iter().map(|metric| family(metric.id.name(), metric.unit).0);
        assert_eq!(names.collect::<BTreeSet<_>>().len(), METRICS.len());
    }

    /// Three runs with a p99 of 65, 5 and 11 ms.
    #[test]
    fn a_quantile_is_the_mean_that_gates_judge() {
        let runs = [65_000_000, 5_000_000, 11_000_000].map(|read_ns| {
            let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
            let latency = &mut record.epochs[0].accelerators[0].io.read_latency;
            (0..100).for_each(|_| latency.record(read_ns));
            AnsweredSummary::new(&record)
        });
        let set = MetricSet::for_runs(Vec::new(), &runs, &[]);
        let metric = set.means.iter().find(|(name, _)| name == "read_latency_p99_s").unwrap().1;
        let latency = set.latencies.iter().find(|latency| latency.name == "read").unwrap();
        let (_, quantile) = latency.quantiles.iter().find(|(share, _)| *share == "0.99").unwrap();
        assert!((0.014..0.017).contains(quantile), "{quantile}");
        assert_eq!(*quantile, metric);
    }

    #[test]
    fn an_incomplete_run_has_no_means() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        (record.complete, record.stopped_because) = (false, Some("interrupted".into()));
        let set = MetricSet::for_runs(Vec::new(), &[AnsweredSummary::new(&record)], &[]);
        let text = text(&[set]);
        assert!(text.contains("feedrate_answer=\"unknown\"} 1\n"), "{text}");
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(families, ["# TYPE feedrate_answer gauge"]);
    }

    #[test]
    fn mean_counts_are_whole_numbers() {
        let mean = |unit, values: &[f64]| {
            named_mean(RepeatedValue::new("m", unit, values.to_vec()).unwrap()).1
        };
        assert_eq!(mean(Unit::Files, &[800.0; 3]), 800.0);
        assert_eq!(mean(Unit::Bytes, &[1e9 + 1.0; 5]), 1e9 + 1.0);
        assert_eq!(mean(Unit::Percent, &[50.25; 2]), 50.25);
    }

    #[test]
    fn samples_have_labels_and_families_are_described_once() {
        let record = simple(&[(500, 500, 0, 1_000_000); 20]);
        let runs = [AnsweredSummary::new(&record)];
        let gate = GateResult {
            name: "au".into(),
            is_met: None,
            measured: None,
            limit: Some(90.0),
            says: String::new(),
        };
        let labels = |n: &str| vec![("workload", "a\"b\\c\n".to_string()), ("n", n.to_string())];
        let sets =
            ["1", "2"].map(|n| MetricSet::for_runs(labels(n), &runs, std::slice::from_ref(&gate)));
        let text = text(&sets);
        let au = r#"# TYPE feedrate_au_all_steps_percent gauge
# UNIT feedrate_au_all_steps_percent percent
# HELP feedrate_au_all_steps_percent "#;
        assert_eq!(text.matches(au).count(), 1, "{text}");
        for n in ["1", "2"] {
            let labels = format!(r#"{{workload="a\"b\\c\n",n="{n}""#);
            for line in [
                format!("feedrate_au_all_steps_percent{labels}}} 50\n"),
                format!("feedrate_answer{labels},feedrate_answer=\"no\"}} 1\n"),
                format!("feedrate_gate{labels},gate=\"au\",feedrate_gate=\"undecided\"}} 1\n"),
                format!("feedrate_gate{labels},gate=\"au\",feedrate_gate=\"met\"}} 0\n"),
            ] {
                assert_eq!(text.matches(&line).count(), 1, "{line} in {text}");
            }
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
