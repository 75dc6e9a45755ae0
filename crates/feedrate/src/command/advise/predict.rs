//! `feedrate advise RUN --set KEY=VALUE`: predicts the utilisation of a changed run from the record of the run. Nothing is run.

use crate::exit::Exit;
use crate::{messages, text, time};
use clap::Args;
use feedrate_analysis::predict::{NotPredictable, PipelineChange, PipelinePool, Prediction, Scale};
use feedrate_measure::metric::{AU_ALL_STEPS, Unit};
use feedrate_measure::record::Record;
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_report::table::ReportTable;
use feedrate_report::words::unpredicted;
use feedrate_session::failure::on_one_line;
use feedrate_session::template::{ACCELERATORS_KEY, RunTemplate};
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::{canonical_key, overridden_key};
use schemars::JsonSchema;
use serde::Serialize;

/// Options of predictions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Predict")]
pub(super) struct PredictArguments {
    /// Predict these changes together: keys of the workload, storage.bandwidth, storage.latency, storage.open_latency, storage.concurrency or
    /// decode.time, to a value or by a factor (`2x`).
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., conflicts_with = "try_out")]
    set: Vec<String>,
    /// Predict several common changes, one at a time.
    #[arg(long, conflicts_with = "try_out")]
    table: bool,
}

/// Settings that are changed together.
#[derive(Clone, Debug, Default)]
struct Change {
    /// Name that the table shows instead of the settings.
    label: Option<&'static str>,
    /// All settings, as the user typed them.
    settings: Vec<String>,
    /// Settings of the workload.
    overrides: Vec<String>,
    /// Settings of storage and decoding.
    pipeline: Vec<PipelineChange>,
}

/// A change and its prediction.
struct Row {
    change: Change,
    prediction: Result<Prediction, NotPredicted>,
}

/// Reason that a change cannot be predicted.
#[derive(Serialize, JsonSchema)]
struct NotPredicted {
    /// The reason.
    why: String,
    /// A run that would give the evidence.
    hint: String,
    /// Whether the record has no evidence on the changed setting.
    #[serde(skip)]
    is_unseen: bool,
}

/// Predicts changes of one run.
pub(super) struct Predictor<'a> {
    pub(super) run_dir: &'a str,
    pub(super) record: &'a Record,
    /// Other records of the same plan.
    pub(super) replicates: &'a [Record],
    pub(super) template: &'a RunTemplate,
}

/// Minimum gain of an effective change, in percentage points of utilisation.
const GAIN_MIN_POINTS: f64 = 1.0;
/// Maximum number of alternatives that are shown for a change without effect.
const ALTERNATIVES_MAX: usize = 3;

impl PredictArguments {
    /// Whether the user requested a prediction.
    pub(super) fn are_given(&self) -> bool {
        self.table || !self.set.is_empty()
    }
}

impl Predictor<'_> {
    /// Prints the predictions. A given number of `accelerators` is part of the change.
    pub(super) fn predict(
        &self,
        arguments: &PredictArguments,
        accelerators: Option<u32>,
        json: bool,
    ) -> anyhow::Result<Exit> {
        let record = self.record;
        refuse_repeated(&arguments.set)?;
        let number = accelerators.map(|number| format!("{ACCELERATORS_KEY}{number}"));
        let change = Change::parse(arguments.set.iter().cloned().chain(number).collect())?;
        let plan = self.template.resolve(&change.overrides)?.plan;
        let pipeline = PipelinePool::from_records(record, self.replicates)
            .map_err(|why| NotPredicted::new(&why).refusal(self.run_dir))?;
        let unchanged = pipeline.predict(&record.plan, &[], &AU_ALL_STEPS);
        let row = |change| self.predict_row(change, &pipeline);
        let mut rows = Vec::new();
        let mut alternatives = Vec::new();
        if !change.settings.is_empty() {
            rows.push(row(change.clone()));
            alternatives = self.alternatives(&rows[0], &plan, &pipeline)?;
        }
        if arguments.table {
            rows.extend(common_changes(&change, &plan)?.into_iter().map(row));
        }
        let suggestion = alternatives_text(&alternatives);
        if let [Row { prediction: Err(why), .. }] = &mut rows[..] {
            why.hint += &suggestion.map_or(String::new(), |text| format!("; {text}"));
            return Err(why.refusal(self.run_dir).into());
        }
        if json {
            let measured = Summary::new(record).figures.value(&AU_ALL_STEPS);
            let output = WhatifOutput {
                run_dir: self.run_dir,
                measured_au_percent: measured,
                as_it_was: unchanged.as_ref().ok(),
                whatif: rows.iter().map(PredictedChange::new).collect(),
                binds: alternatives.iter().map(PredictedChange::new).collect(),
            };
            messages::print_json(Schema::Whatif, &output)?;
        } else {
            let settings = change.settings.join(" ");
            let note = suggestion.map(|text| format!("{settings} does not raise the AU; {text}"));
            messages::print_document(&document(record, unchanged, &rows, note), true)?;
        }
        Ok(Exit::Fine)
    }

    fn predict_row(&self, change: Change, pipeline: &PipelinePool) -> Row {
        let prediction =
            match self.template.resolve(&change.overrides).map(|resolved| resolved.plan) {
                Ok(plan) => pipeline
                    .predict(&plan, &change.pipeline, &AU_ALL_STEPS)
                    .map_err(|why| NotPredicted::new(&why)),
                Err(error) => {
                    let hint = "this run cannot be made".to_string();
                    Err(NotPredicted { why: on_one_line(&error), hint, is_unseen: false })
                }
            };
        Row { change, prediction }
    }

    /// The usual changes with the largest predicted gain for the same number of accelerators, if the change of `row` has no effect or no
    /// evidence.
    fn alternatives(
        &self,
        row: &Row,
        plan: &Plan,
        pipeline: &PipelinePool,
    ) -> anyhow::Result<Vec<Row>> {
        let is_accelerators = |text: &&String| text.starts_with(ACCELERATORS_KEY);
        let settings = &row.change.settings;
        let number = settings.iter().filter(is_accelerators).cloned().collect();
        let base = self.predict_row(Change::parse(number)?, pipeline);
        let Ok(unchanged) = &base.prediction else { return Ok(Vec::new()) };
        let gains = |prediction: &Prediction| {
            unchanged.au_percent + GAIN_MIN_POINTS <= prediction.au_percent
        };
        let needs_alternatives = match &row.prediction {
            Ok(prediction) => !gains(prediction),
            Err(why) => why.is_unseen,
        };
        if base.change.settings == *settings || !needs_alternatives {
            return Ok(Vec::new());
        }
        let common = common_changes(&base.change, plan).unwrap_or_default().into_iter();
        let common = common.filter(|change| {
            let numbers = change.settings.iter().filter(is_accelerators);
            change.label.is_none() && numbers.eq(&base.change.settings)
        });
        let au = |row: &Row| row.prediction.as_ref().map_or(0.0, |known| known.au_percent);
        let mut rows: Vec<Row> = common.map(|change| self.predict_row(change, pipeline)).collect();
        rows.retain(|row| row.prediction.as_ref().is_ok_and(gains));
        rows.sort_by(|a, b| au(b).total_cmp(&au(a)));
        rows.truncate(ALTERNATIVES_MAX);
        Ok(rows)
    }
}

/// Refusal to predict a loop that `feedrate.watch` recorded: it has no workload to plan again.
pub(super) fn refusal_of_watched(run_dir: &str) -> Refusal {
    NotPredicted::new(&NotPredictable::OnlyWatched).refusal(run_dir)
}

/// Lists alternatives, such as `alternatives: storage.latency=0.5x (96.3 % AU)`; `None` if there are none.
fn alternatives_text(rows: &[Row]) -> Option<String> {
    let each: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let au = Unit::Percent.text(row.prediction.as_ref().ok()?.au_percent);
            Some(format!("{} ({au} AU)", row.change.settings.join(" ")))
        })
        .collect();
    (!each.is_empty()).then(|| format!("alternatives: {}", each.join(", ")))
}

impl NotPredicted {
    fn new(reason: &NotPredictable) -> Self {
        let is_unseen = matches!(reason, NotPredictable::NotSeen { .. });
        NotPredicted {
            why: unpredicted::why(reason),
            hint: unpredicted::needed_run(reason),
            is_unseen,
        }
    }

    fn refusal(&self, run_dir: &str) -> Refusal {
        Refusal::new(format!("`{run_dir}`: {}", self.why), self.hint.clone())
    }
}

impl Change {
    /// Sorts settings into settings of the workload and of the pipeline. Keys of the workload are checked later, when the change is planned.
    fn parse(settings: Vec<String>) -> Result<Self, Refusal> {
        let mut change = Change::default();
        for text in &settings {
            match pipeline_change(text)? {
                Some(pipeline_change) => change.pipeline.push(pipeline_change),
                None => change.overrides.push(text.clone()),
            }
        }
        Ok(Change { settings, ..change })
    }

    /// Adds settings to the change. A new number of accelerators replaces an earlier one.
    fn with_settings(&self, added: &[&str]) -> Result<Self, Refusal> {
        let is_replaced = added.iter().any(|text| text.starts_with(ACCELERATORS_KEY));
        let kept = self.settings.iter();
        let kept = kept.filter(|text| !(is_replaced && text.starts_with(ACCELERATORS_KEY)));
        Change::parse(kept.cloned().chain(added.iter().map(ToString::to_string)).collect())
    }
}

/// Refuses settings of one key, of which only the last would count.
fn refuse_repeated(settings: &[String]) -> Result<(), Refusal> {
    let keys: Vec<String> = settings
        .iter()
        .map(|text| canonical_key(overridden_key(text.trim_start_matches('~'))))
        .collect();
    let repeated = keys.iter().enumerate().find(|(i, key)| keys[..*i].contains(key));
    repeated.map_or(Ok(()), |(_, key)| {
        Err(Refusal::new(
            format!("`{key}` is set twice, but `--set` predicts all its settings together"),
            "predict each value by a command of its own",
        ))
    })
}

/// Common changes of a run of this plan, each added to `change`.
fn common_changes(change: &Change, plan: &Plan) -> Result<Vec<Change>, Refusal> {
    let threads = format!("reader.read_threads={}", (2 * plan.loader.workers).max(1));
    let times = [2, 4, 8].map(|times| plan.accelerators.saturating_mul(times));
    let more = times.map(|number| format!("{ACCELERATORS_KEY}{number}"));
    let settings = [
        "storage.bandwidth=2x",
        "storage.latency=0.5x",
        "decode.time=0",
        "storage.open_latency=0",
        &threads,
        "reader.transfer_size=4MiB",
    ];
    let single = settings.into_iter().chain(more.iter().map(String::as_str));
    let memory = ["storage.bandwidth=1TB/s", "storage.latency=0", "storage.open_latency=0"];
    let mut from_memory =
        Change { label: Some("all from memory"), ..change.with_settings(&memory)? };
    // Memory has no limit on the request rate either.
    from_memory.pipeline.push(PipelineChange::Bandwidth(Scale::Times(f64::INFINITY)));
    single.map(|setting| change.with_settings(&[setting])).chain([Ok(from_memory)]).collect()
}

/// Parses a change of storage or decoding; `None` for a key of the workload.
fn pipeline_change(text: &str) -> Result<Option<PipelineChange>, Refusal> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let (make, example): (fn(Scale) -> PipelineChange, _) = match key {
        "storage.bandwidth" => (PipelineChange::Bandwidth, "400MB/s"),
        "storage.latency" => (PipelineChange::Latency, "2ms"),
        "storage.open_latency" => (PipelineChange::OpenLatency, "2ms"),
        "storage.concurrency" => (PipelineChange::Concurrency, "8"),
        "decode.time" => (PipelineChange::DecodeTime, "2ms"),
        _ => return Ok(None),
    };
    let factor = value.strip_suffix('x').and_then(|times| times.parse().ok());
    let number = match (factor, key) {
        (Some(times), _) => Ok(Some(times)),
        (None, "storage.bandwidth") => match units::parse_bytes_per_second(value) {
            Some(_) if !value.contains('B') => {
                Err(format!("it has no unit: write `{value}MB/s`, or `{value}B/s`"))
            }
            rate => Ok(rate),
        },
        (None, "storage.concurrency") => Ok(value.parse::<u32>().ok().map(f64::from)),
        (None, _) => match time::seconds(value) {
            Err(why) if value.parse::<f64>().is_ok() => Err(why),
            seconds => Ok(seconds.ok()),
        },
    };
    let number = number.map_err(|why| {
        Refusal::new(format!("`{text}`: {why}"), format!("or a factor: `{key}=2x`"))
    })?;
    // A rate or concurrency of 0 would read nothing, and a run with values beyond these limits would not end.
    let valid_range = match (factor, key) {
        (Some(_), "storage.bandwidth" | "storage.concurrency") => 1e-6..=1e6,
        (Some(_), _) => 0.0..=1e6,
        (None, "storage.bandwidth" | "storage.concurrency") => 1.0..=1e18,
        (None, _) => 0.0..=1e4,
    };
    let scale = if factor.is_some() { Scale::Times } else { Scale::Value };
    match number.filter(|number| valid_range.contains(number)) {
        Some(number) => Ok(Some(make(scale(number)))),
        None => refuse(
            format!("`{text}` is not a valid change of `{key}`"),
            format!("write a factor or a value, such as `{key}=2x` or `{key}={example}`"),
        ),
    }
}

/// Output of `advise RUN --set KEY=VALUE --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct WhatifOutput<'a> {
    /// The folder of the run.
    run_dir: &'a str,
    /// Measured utilisation over all steps.
    measured_au_percent: Option<f64>,
    /// Prediction for the unchanged run; its difference from the measured value shows the accuracy.
    as_it_was: Option<&'a Prediction>,
    /// Each change and its prediction.
    whatif: Vec<PredictedChange<'a>>,
    /// Other changes that would have an effect, if the requested one has none.
    binds: Vec<PredictedChange<'a>>,
}

/// A change and its prediction.
#[derive(Serialize, JsonSchema)]
struct PredictedChange<'a> {
    /// Keys with their values.
    changes: &'a [String],
    /// Predicted utilisation over all steps; `null` if it cannot be predicted.
    au_percent: Option<f64>,
    /// Lower and upper bound of the prediction.
    interval: Option<[f64; 2]>,
    /// The stage that would limit the run.
    bottleneck: Option<Bound>,
    /// Predicted rate at which all accelerators together read.
    bytes_per_second: Option<f64>,
    /// Reason that the change cannot be predicted; `null` if it can.
    #[serde(rename = "untold")]
    not_predicted: Option<&'a NotPredicted>,
}

impl<'a> PredictedChange<'a> {
    fn new(row: &'a Row) -> Self {
        let known = row.prediction.as_ref().ok();
        PredictedChange {
            changes: &row.change.settings,
            au_percent: known.map(|prediction| prediction.au_percent),
            interval: known.map(|prediction| prediction.interval),
            bottleneck: known.map(|prediction| prediction.bottleneck),
            bytes_per_second: known.map(|prediction| prediction.bytes_per_second),
            not_predicted: row.prediction.as_ref().err(),
        }
    }
}

fn document(
    record: &Record,
    unchanged: Result<Prediction, NotPredictable>,
    rows: &[Row],
    note: Option<String>,
) -> Document {
    let summary = Summary::new(record);
    let measured = summary.figures.value(&AU_ALL_STEPS);
    let head = format!(
        "{}: {} AU over all steps as measured, {}",
        record.plan.workload,
        text::known(measured, |au| Unit::Percent.text(au)),
        summary.verdict.name.name(),
    );
    let cells = |change: String, prediction: Result<&Prediction, String>| match prediction {
        Ok(Prediction {
            au_percent, interval: [low, high], bytes_per_second, bottleneck, ..
        }) => [
            change,
            Unit::Percent.text(*au_percent),
            format!("[{low:.1}, {high:.1}]"),
            units::bytes_per_second_rounded(*bytes_per_second),
            bottleneck.name().into(),
        ],
        Err(why) => [change, why, "-".into(), "-".into(), "-".into()],
    };
    let unchanged = unchanged.as_ref().map_err(unpredicted::why);
    let mut lines = vec![cells("no change".into(), unchanged)];
    // One setting per line keeps the table narrow.
    lines.extend(rows.iter().map(|Row { change, prediction }| {
        let name = change.label.map_or_else(|| change.settings.join("\n"), str::to_string);
        cells(name, prediction.as_ref().map_err(|_| "unknown".into()))
    }));
    let header = ["Change", "AU", "Interval", "Rate", "Bottleneck"];
    let reasons = rows.iter().filter_map(|Row { change, prediction }| {
        let NotPredicted { why, hint, .. } = prediction.as_ref().err()?;
        Some(format!("{}: {why}; {hint}", change.settings.join(" ")))
    });
    Document::from(vec![
        Block::Sentence(head),
        Block::Table(ReportTable::from_text("", header, lines)),
        Block::sentences(reasons.chain(note)),
        Block::Sentence("Predicted from the record; nothing was run.".into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_and_decoding_change_by_a_factor_or_to_a_value() {
        for (text, expected) in [
            ("storage.bandwidth=2x", Some(PipelineChange::Bandwidth(Scale::Times(2.0)))),
            ("storage.bandwidth=4MB/s", Some(PipelineChange::Bandwidth(Scale::Value(4e6)))),
            ("storage.latency=0.5x", Some(PipelineChange::Latency(Scale::Times(0.5)))),
            ("storage.latency=2ms", Some(PipelineChange::Latency(Scale::Value(0.002)))),
            ("storage.open_latency=0", Some(PipelineChange::OpenLatency(Scale::Value(0.0)))),
            ("storage.concurrency=8", Some(PipelineChange::Concurrency(Scale::Value(8.0)))),
            ("decode.time=0", Some(PipelineChange::DecodeTime(Scale::Value(0.0)))),
            ("reader.read_threads=2x", None),
        ] {
            assert_eq!(pipeline_change(text).unwrap(), expected, "{text}");
            if let Some(change) = expected {
                assert_eq!(pipeline_change(&change.setting()).unwrap(), expected, "{text}");
            }
        }
        for text in [
            "storage.bandwidth",
            "storage.bandwidth=0",
            "storage.bandwidth=0x",
            "storage.latency=-1",
            "storage.latency=-1x",
            "storage.concurrency=1.5",
            "decode.time=NaN",
            "decode.time=infx",
        ] {
            let error = pipeline_change(text).unwrap_err();
            assert!(error.message.contains(text) && error.hint.is_some(), "{text}");
        }
    }

    #[test]
    fn common_changes_are_added_to_the_given_ones() {
        let given = Change::parse(vec!["decode.time=1ms".into(), "accelerators=3".into()]).unwrap();
        let mut plan = Plan { accelerators: 3, ..Plan::default() };
        plan.loader.workers = 2;
        let changes = common_changes(&given, &plan).unwrap();
        assert_eq!(changes.len(), 10);
        assert_eq!(
            changes[4].settings,
            ["decode.time=1ms", "accelerators=3", "reader.read_threads=4"]
        );
        assert_eq!(changes[6].overrides, ["accelerators=6"]);
        assert_eq!(changes[6].settings, ["decode.time=1ms", "accelerators=6"]);
        assert_eq!(changes[9].pipeline.len(), 5);
    }
}
