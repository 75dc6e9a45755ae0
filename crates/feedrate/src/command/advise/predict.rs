//! `feedrate advise RUN --set KEY=VALUE`: the utilisation of a changed run, predicted from the record of the run. Runs nothing.

use crate::exit::Exit;
use crate::{messages, text, time};
use clap::Args;
use feedrate_analysis::predict::{NotPredictable, Pipeline, PipelineChange, Prediction, Scale};
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
use schemars::JsonSchema;
use serde::Serialize;

/// Options of predictions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Predict")]
pub(super) struct PredictArguments {
    /// Predict the run with these changes together: keys of the workload, or, by a factor (`2x`) or to a value, storage.bandwidth, storage.latency, storage.open_latency, storage.concurrency, decode.time.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., conflicts_with = "try_out")]
    set: Vec<String>,
    /// Predict the usual changes, each by itself, on top of those of `--set`.
    #[arg(long, conflicts_with = "try_out")]
    table: bool,
}

/// Changes that are made together.
#[derive(Clone, Debug, Default)]
struct Change {
    /// Name in the table instead of the settings.
    label: Option<&'static str>,
    /// As they are typed.
    settings: Vec<String>,
    /// Those of the workload.
    overrides: Vec<String>,
    /// Those of storage and decoding.
    pipeline: Vec<PipelineChange>,
}

/// A change and its prediction.
struct Row {
    change: Change,
    prediction: Result<Prediction, NotPredicted>,
}

/// The reason why there is no prediction.
#[derive(Serialize, JsonSchema)]
struct NotPredicted {
    /// The reason.
    why: String,
    /// A run that would show it.
    hint: String,
    /// The record has no evidence on what is changed.
    #[serde(skip)]
    is_unseen: bool,
}

/// A run that can be planned again with changes, and the model made of its record.
pub(super) struct Predictor<'a> {
    pub(super) run_dir: &'a str,
    pub(super) record: &'a Record,
    pub(super) template: &'a RunTemplate,
}

/// Gain in points of utilisation below which a change has no effect.
const GAIN_MIN_POINTS: f64 = 1.0;
/// Alternatives to a change without effect, at most.
const ALTERNATIVES_MAX: usize = 3;

impl PredictArguments {
    /// Whether a prediction is requested.
    pub(super) fn are_given(&self) -> bool {
        self.table || !self.set.is_empty()
    }
}

impl Predictor<'_> {
    /// Print predictions; `accelerators` is a change too.
    pub(super) fn predict(
        &self,
        arguments: &PredictArguments,
        accelerators: Option<u32>,
        json: bool,
    ) -> anyhow::Result<Exit> {
        let record = self.record;
        let number = accelerators.map(|number| format!("{ACCELERATORS_KEY}{number}"));
        let change = Change::parse(arguments.set.iter().cloned().chain(number).collect())?;
        let plan = self.template.resolve(&change.overrides)?.plan;
        let pipeline =
            Pipeline::new(record).map_err(|why| NotPredicted::new(&why).refusal(self.run_dir))?;
        let unchanged = pipeline.predict(&record.plan, &[]);
        let row = |change| self.row(change, &pipeline);
        let mut rows = Vec::new();
        let mut alternatives = Vec::new();
        if !change.settings.is_empty() {
            rows.push(row(change.clone()));
            alternatives = self.alternatives(&rows[0], &plan, &pipeline)?;
        }
        if arguments.table {
            rows.extend(usual_changes(&change, &plan)?.into_iter().map(row));
        }
        let helps = alternatives_text(&alternatives);
        if let [Row { prediction: Err(why), .. }] = &mut rows[..] {
            why.hint += &helps.map_or(String::new(), |helps| format!("; {helps}"));
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
            let note =
                helps.map(|helps| format!("{} has no effect; {helps}", change.settings.join(" ")));
            messages::print_document(&document(record, unchanged, &rows, note), true)?;
        }
        Ok(Exit::Fine)
    }

    fn row(&self, change: Change, pipeline: &Pipeline) -> Row {
        let prediction =
            match self.template.resolve(&change.overrides).map(|resolved| resolved.plan) {
                Ok(plan) => {
                    pipeline.predict(&plan, &change.pipeline).map_err(|why| NotPredicted::new(&why))
                }
                Err(error) => {
                    let hint = "no such run can be made".to_string();
                    Err(NotPredicted { why: on_one_line(&error), hint, is_unseen: false })
                }
            };
        Row { change, prediction }
    }

    /// The usual changes with the largest gain for as many accelerators, where the change of `row` has no effect or no evidence.
    fn alternatives(
        &self,
        row: &Row,
        plan: &Plan,
        pipeline: &Pipeline,
    ) -> anyhow::Result<Vec<Row>> {
        let is_number = |text: &&String| text.starts_with(ACCELERATORS_KEY);
        let settings = &row.change.settings;
        let base = Change::parse(settings.iter().filter(is_number).cloned().collect())?;
        let base = self.row(base, pipeline);
        let Ok(without) = &base.prediction else { return Ok(Vec::new()) };
        let gains =
            |prediction: &Prediction| without.au_percent + GAIN_MIN_POINTS <= prediction.au_percent;
        let is_in_vain = match &row.prediction {
            Ok(prediction) => !gains(prediction),
            Err(why) => why.is_unseen,
        };
        if base.change.settings == *settings || !is_in_vain {
            return Ok(Vec::new());
        }
        let usual = usual_changes(&base.change, plan).unwrap_or_default().into_iter();
        let usual = usual.filter(|change| {
            let numbers = change.settings.iter().filter(is_number);
            change.label.is_none() && numbers.eq(&base.change.settings)
        });
        let au = |row: &Row| row.prediction.as_ref().map_or(0.0, |known| known.au_percent);
        let mut rows: Vec<Row> = usual.map(|change| self.row(change, pipeline)).collect();
        rows.retain(|row| row.prediction.as_ref().is_ok_and(gains));
        rows.sort_by(|a, b| au(b).total_cmp(&au(a)));
        rows.truncate(ALTERNATIVES_MAX);
        Ok(rows)
    }
}

/// The refusal to predict a watched loop, which has no workload to run again.
pub(super) fn refusal_of_watched(run_dir: &str) -> Refusal {
    NotPredicted::new(&NotPredictable::OnlyWatched).refusal(run_dir)
}

/// `this would change it: storage.latency=0.5x (96.3 % AU), reader.read_threads=2 (95.1 % AU)`; `None` without any.
fn alternatives_text(rows: &[Row]) -> Option<String> {
    let each: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let au = Unit::Percent.text(row.prediction.as_ref().ok()?.au_percent);
            Some(format!("{} ({au} AU)", row.change.settings.join(" ")))
        })
        .collect();
    (!each.is_empty()).then(|| format!("this would change it: {}", each.join(", ")))
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
    /// Keys of the workload are not checked here: a plan with them says what is wrong.
    fn parse(settings: Vec<String>) -> Result<Self, Refusal> {
        let mut change = Change::default();
        for text in &settings {
            match pipeline_change(text)? {
                Some(of_pipeline) => change.pipeline.push(of_pipeline),
                None => change.overrides.push(text.clone()),
            }
        }
        Ok(Change { settings, ..change })
    }

    /// The change with another one behind it; a number of accelerators replaces the one before.
    fn and(&self, more: &[&str]) -> Result<Self, Refusal> {
        let is_replaced = more.iter().any(|text| text.starts_with(ACCELERATORS_KEY));
        let kept = self.settings.iter();
        let kept = kept.filter(|text| !(is_replaced && text.starts_with(ACCELERATORS_KEY)));
        Change::parse(kept.cloned().chain(more.iter().map(ToString::to_string)).collect())
    }
}

/// Changes that are usually of interest for a run of this plan, each on top of `change`.
fn usual_changes(change: &Change, plan: &Plan) -> Result<Vec<Change>, Refusal> {
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
    let mut from_memory = Change { label: Some("all from memory"), ..change.and(&memory)? };
    // Without a limit of requests.
    from_memory.pipeline.push(PipelineChange::Bandwidth(Scale::Times(f64::INFINITY)));
    single.map(|setting| change.and(&[setting])).chain([Ok(from_memory)]).collect()
}

/// A change of storage or decoding; `None` for a key of the workload.
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
    // A rate or a number of reads of 0 would read nothing; beyond these limits no run would end.
    let possible = match (factor, key) {
        (Some(_), "storage.bandwidth" | "storage.concurrency") => 1e-6..=1e6,
        (Some(_), _) => 0.0..=1e6,
        (None, "storage.bandwidth" | "storage.concurrency") => 1.0..=1e18,
        (None, _) => 0.0..=1e4,
    };
    let scale = if factor.is_some() { Scale::Times } else { Scale::Value };
    match number.filter(|number| possible.contains(number)) {
        Some(number) => Ok(Some(make(scale(number)))),
        None => refuse(
            format!("`{text}` is no change of `{key}`"),
            format!("write a factor or a value: `{key}=2x`, `{key}={example}`"),
        ),
    }
}

/// Output of `advise RUN --set KEY=VALUE --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct WhatifOutput<'a> {
    /// The folder of the run.
    run_dir: &'a str,
    /// Utilisation as measured.
    measured_au_percent: Option<f64>,
    /// Prediction without a change, which shows how good predictions are.
    as_it_was: Option<&'a Prediction>,
    /// Each change and its prediction.
    whatif: Vec<PredictedChange<'a>>,
    /// Changes that would bring something, where one has no effect.
    binds: Vec<PredictedChange<'a>>,
}

/// A change and its prediction.
#[derive(Serialize, JsonSchema)]
struct PredictedChange<'a> {
    /// Keys with their values.
    changes: &'a [String],
    /// Utilisation over all steps; `null` if it cannot be predicted.
    au_percent: Option<f64>,
    /// Least and most of it that the record leaves open.
    interval: Option<[f64; 2]>,
    /// The stage that would take the time.
    bottleneck: Option<Bound>,
    /// Read by all accelerators, over the run.
    bytes_per_second: Option<f64>,
    /// Why it cannot be predicted; `null` if it can.
    untold: Option<&'a NotPredicted>,
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
            untold: row.prediction.as_ref().err(),
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
    // One setting a line keeps the table narrow.
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
    fn usual_changes_come_on_top_of_the_given_ones() {
        let given = Change::parse(vec!["decode.time=1ms".into(), "accelerators=3".into()]).unwrap();
        let mut plan = Plan { accelerators: 3, ..Plan::default() };
        plan.loader.workers = 2;
        let changes = usual_changes(&given, &plan).unwrap();
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
