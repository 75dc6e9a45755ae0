//! `feedrate whatif`: the utilisation that a changed run would have, predicted from the record of another. Runs nothing.

use crate::exit::Exit;
use crate::progress::TERMINAL;
use crate::{messages, text, time};
use clap::Args;
use feedrate_analysis::predict::{Pipeline, PipelineChange, Prediction, Scale, Untold};
use feedrate_measure::metric::{AU_ALL_STEPS, Unit};
use feedrate_measure::record::Record;
use feedrate_measure::summary::Summary;
use feedrate_report::output::Schema;
use feedrate_report::words::untold;
use feedrate_results::load_run;
use feedrate_session::failure::on_one_line;
use feedrate_session::request::Request;
use feedrate_session::resolve;
use feedrate_session::template::{ACCELERATORS_KEY, RunTemplate};
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use serde_json::{Value, json};
use std::path::Path;

/// `feedrate whatif`.
#[derive(Debug, Args)]
#[command(after_help = "\
Besides the keys of the workload, these can change, by a factor (`2x`) or to a value: storage.bandwidth, \
storage.latency, storage.open_latency, storage.concurrency, decode.time.

Examples:
  feedrate whatif results/unet3d/RUN --table
  feedrate whatif results/unet3d/RUN storage.bandwidth=2x -n 64")]
pub(super) struct WhatifArguments {
    /// Folder of a run, or one above several, of which the newest is taken.
    run: String,
    /// Changes to make together: `reader.read_threads=4`, `storage.latency=0.5x`.
    #[arg(value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Emulated accelerators [default: the run's].
    #[arg(short = 'n', long, value_name = "N")]
    accelerators: Option<u32>,
    /// Predict the usual changes, each by itself, on top of those given.
    #[arg(long)]
    table: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Some changes that are made together, to the workload and to what lies below it.
#[derive(Clone, Debug, Default)]
struct Question {
    /// In words, where they are shorter.
    label: Option<&'static str>,
    /// As it is asked.
    changes: Vec<String>,
    of_workload: Vec<String>,
    of_pipeline: Vec<PipelineChange>,
}

/// The reason why there is no prediction.
struct Unpredicted {
    why: String,
    hint: String,
    /// The record shows nothing of what is changed.
    is_unseen: bool,
}

/// Points of utilisation below which a change brings nothing.
const GAIN_MIN_POINTS: f64 = 1.0;
/// Changes that are told in place of one that brings nothing, at most.
const BINDING_MAX: usize = 3;

/// Predict, and tell.
pub(super) fn whatif(arguments: &WhatifArguments) -> anyhow::Result<Exit> {
    let folder = resolve::run_folder(Path::new(&arguments.run), &TERMINAL).display().to_string();
    if !resolve::is_run(&folder) {
        let message = format!("`{folder}` is not the folder of a run of feedrate");
        let hint = "name one that `feedrate run` has told of, under `Results:`; what DLIO writes does not count reads";
        return refuse(message, hint);
    }
    let record = load_run(Path::new(&folder))?;
    if record.watched.is_some() {
        return Err(refusal(&folder, &unpredicted(&Untold::OnlyWatched)).into());
    }
    let of = RunTemplate::from_run(&folder, &record, &Request::default())?;
    let number = arguments.accelerators.map(|number| format!("{ACCELERATORS_KEY}{number}"));
    let asked = Question::read(arguments.changes.iter().cloned().chain(number).collect())?;
    let plan = of.resolve(&asked.of_workload)?.plan;
    // Of a record that tells nothing there is no row to show.
    let pipeline = Pipeline::new(&record).map_err(|of| refusal(&folder, &unpredicted(&of)))?;
    let own = pipeline.predict(&record.plan, &[]);
    let mut questions = Vec::new();
    if !asked.changes.is_empty() {
        questions.push(asked.clone());
    }
    if arguments.table {
        questions.extend(standing(&asked, &plan)?);
    }
    let mut rows: Vec<(Question, Result<Prediction, Unpredicted>)> =
        questions.into_iter().map(|question| predicted(question, &of, &pipeline)).collect();
    let binds = match &rows[..] {
        [(question, told), ..] if question.changes == asked.changes => {
            instead(&asked, told, &plan, &|question| predicted(question, &of, &pipeline))?
        }
        _ => Vec::new(),
    };
    if let [(_, Err(of))] = &mut rows[..] {
        of.hint += &binding(&binds).map_or(String::new(), |says| format!("; {says}"));
        return Err(refusal(&folder, of).into());
    }
    if arguments.json {
        let told: Vec<Value> = rows.iter().map(|(question, of)| as_json(question, of)).collect();
        let measured = Summary::new(&record).figures.value(&AU_ALL_STEPS);
        messages::print_json(Schema::Whatif.object(json!({
            "run_dir": folder,
            "measured_au_percent": measured,
            "as_it_was": own.as_ref().ok(),
            "whatif": told,
            "binds": binds.iter().map(|(question, of)| as_json(question, &Ok(*of))).collect::<Vec<_>>(),
        })))?;
    } else {
        let binds = binding(&binds)
            .map(|says| format!("{} has no effect; {says}", asked.changes.join(" ")));
        messages::print_page(&page(&record, &own, &rows, binds))?;
    }
    Ok(Exit::Fine)
}

/// Standing questions that bring more than what was `asked`, of which this was `told`: where that brings nothing, or nothing that the record shows, those
/// that bring the most for as many accelerators, the best first.
fn instead(
    asked: &Question,
    told: &Result<Prediction, Unpredicted>,
    plan: &Plan,
    predicted: &dyn Fn(Question) -> (Question, Result<Prediction, Unpredicted>),
) -> anyhow::Result<Vec<(Question, Prediction)>> {
    let is_number = |text: &&String| text.starts_with(ACCELERATORS_KEY);
    let base = Question::read(asked.changes.iter().filter(is_number).cloned().collect())?;
    let (base, Ok(without)) = predicted(base) else { return Ok(Vec::new()) };
    let is_in_vain = match told {
        Ok(told) => told.au_percent < without.au_percent + GAIN_MIN_POINTS,
        Err(of) => of.is_unseen,
    };
    if base.changes == asked.changes || !is_in_vain {
        return Ok(Vec::new());
    }
    let mut alone = standing(&base, plan).unwrap_or_default();
    alone.retain(|one| {
        one.label.is_none() && one.changes.iter().filter(is_number).eq(&base.changes)
    });
    let told = alone.into_iter().filter_map(|one| {
        let (question, told) = predicted(one);
        Some((question, told.ok()?))
    });
    let mut found: Vec<(Question, Prediction)> =
        told.filter(|(_, of)| without.au_percent + GAIN_MIN_POINTS <= of.au_percent).collect();
    found.sort_by(|a, b| b.1.au_percent.total_cmp(&a.1.au_percent));
    found.truncate(BINDING_MAX);
    Ok(found)
}

/// `this would change it: storage.latency=0.5x (96.3 % AU), reader.read_threads=2 (95.1 % AU)`; `None` where nothing is found.
fn binding(of: &[(Question, Prediction)]) -> Option<String> {
    let each = of.iter().map(|(question, of)| {
        let au = Unit::Percent.text(of.au_percent);
        format!("{} ({au} AU)", question.changes.join(" "))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("this would change it: {}", each.join(", ")))
}

fn predicted(
    question: Question,
    of: &RunTemplate,
    pipeline: &Pipeline,
) -> (Question, Result<Prediction, Unpredicted>) {
    let prediction = match of.resolve(&question.of_workload).map(|resolved| resolved.plan) {
        Ok(plan) => pipeline.predict(&plan, &question.of_pipeline).map_err(|of| unpredicted(&of)),
        Err(error) => {
            let hint = "no such run can be made".to_string();
            Err(Unpredicted { why: on_one_line(&error), hint, is_unseen: false })
        }
    };
    (question, prediction)
}

fn unpredicted(of: &Untold) -> Unpredicted {
    let is_unseen = matches!(of, Untold::NotSeen { .. });
    Unpredicted { why: untold::why(of), hint: untold::run_that_tells(of), is_unseen }
}

fn refusal(folder: &str, of: &Unpredicted) -> Refusal {
    Refusal::new(format!("`{folder}`: {}", of.why), of.hint.clone())
}

impl Question {
    /// Keys of the workload are not looked at here: a plan of them says what is wrong.
    fn read(changes: Vec<String>) -> Result<Self, Refusal> {
        let mut of = Question::default();
        for text in &changes {
            match below_workload(text)? {
                Some(change) => of.of_pipeline.push(change),
                None => of.of_workload.push(text.clone()),
            }
        }
        Ok(Question { changes, ..of })
    }

    /// With more changes behind those it has.
    fn and(&self, changes: &[&str]) -> Result<Self, Refusal> {
        let more = changes.iter().map(|text| text.to_string());
        let is_replaced = changes.iter().any(|text| text.starts_with(ACCELERATORS_KEY));
        let own = self.changes.iter();
        let own = own.filter(|text| !(is_replaced && text.starts_with(ACCELERATORS_KEY)));
        Question::read(own.cloned().chain(more).collect())
    }
}

/// Questions that are always worth asking, of a run that has this plan.
fn standing(asked: &Question, plan: &Plan) -> Result<Vec<Question>, Refusal> {
    let threads = format!("reader.read_threads={}", (2 * plan.loader.workers).max(1));
    let times = [2, 4, 8].map(|times| plan.accelerators.saturating_mul(times));
    let more = times.map(|number| format!("{ACCELERATORS_KEY}{number}"));
    let questions = [
        "storage.bandwidth=2x",
        "storage.latency=0.5x",
        "decode.time=0",
        "storage.open_latency=0",
        &threads,
        "reader.transfer_size=4MiB",
    ];
    let alone = questions.into_iter().chain(more.iter().map(String::as_str));
    let from_memory =
        asked.and(&["storage.bandwidth=1TB/s", "storage.latency=0", "storage.open_latency=0"])?;
    let mut from_memory = Question { label: Some("all from memory"), ..from_memory };
    // No limit of requests is left either.
    from_memory.of_pipeline.push(PipelineChange::Bandwidth(Scale::Times(f64::INFINITY)));
    alone.map(|change| asked.and(&[change])).chain([Ok(from_memory)]).collect()
}

/// A change of what lies below the workload; `None` of another key.
fn below_workload(text: &str) -> Result<Option<PipelineChange>, Refusal> {
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
            // The same reason as of a time anywhere else.
            Err(why) if value.parse::<f64>().is_ok() => Err(why),
            told => Ok(told.ok()),
        },
    };
    let number = number.map_err(|why| {
        Refusal::new(format!("`{text}`: {why}"), format!("or a factor: `{key}=2x`"))
    })?;
    // No rate and no number of reads is 0: nothing would be read. Nor would anything come to its end beyond these.
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

fn as_json(question: &Question, of: &Result<Prediction, Unpredicted>) -> Value {
    let known = of.as_ref().ok();
    json!({
        "changes": question.changes,
        "au_percent": known.map(|of| of.au_percent),
        "interval": known.map(|of| of.interval),
        "bottleneck": known.map(|of| of.bottleneck),
        "bytes_per_second": known.map(|of| of.bytes_per_second),
        "untold": of.as_ref().err().map(|of| json!({ "why": of.why, "hint": of.hint })),
    })
}

fn page(
    record: &Record,
    own: &Result<Prediction, Untold>,
    rows: &[(Question, Result<Prediction, Unpredicted>)],
    binds: Option<String>,
) -> String {
    let summary = Summary::new(record);
    let measured = summary.figures.value(&AU_ALL_STEPS);
    let head = format!(
        "{}: {} AU over all steps as measured, {}",
        record.plan.workload,
        text::known(measured, |au| Unit::Percent.text(au)),
        summary.verdict.name.name(),
    );
    let mut cells = vec![match own {
        Ok(own) => cells_of("no change", own),
        Err(of) => untold_cells("no change", &untold::why(of)),
    }];
    let mut notes = Vec::new();
    for (question, of) in rows {
        // Below each other they keep the table narrow.
        let changes = question.label.map_or_else(|| question.changes.join("\n"), str::to_string);
        match of {
            Ok(of) => cells.push(cells_of(&changes, of)),
            Err(Unpredicted { why, hint, .. }) => {
                cells.push(untold_cells(&changes, "not told"));
                notes.push(format!("{}: {why}; {hint}", question.changes.join(" ")));
            }
        }
    }
    let table = text::table(["Change", "AU", "Interval", "Rate", "Bottleneck"], cells);
    notes.extend(binds);
    let mut parts = vec![head, table];
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.push("Predicted from the record; nothing was run.".into());
    parts.join("\n\n")
}

fn cells_of(change: &str, of: &Prediction) -> [String; 5] {
    let [low, high] = of.interval;
    [
        change.into(),
        Unit::Percent.text(of.au_percent),
        format!("[{low:.1}, {high:.1}]"),
        units::bytes_per_second_rounded(of.bytes_per_second),
        of.bottleneck.name().into(),
    ]
}

fn untold_cells(change: &str, why: &str) -> [String; 5] {
    [change.into(), why.into(), "-".into(), "-".into(), "-".into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_the_workload_is_a_factor_or_a_value() {
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
            assert_eq!(below_workload(text).unwrap(), expected, "{text}");
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
            let error = below_workload(text).unwrap_err();
            assert!(error.message.contains(text) && error.hint.is_some(), "{text}");
        }
    }

    #[test]
    fn standing_questions_come_after_the_changes_that_are_asked() {
        let asked =
            Question::read(vec!["decode.time=1ms".into(), "accelerators=3".into()]).unwrap();
        let mut plan = Plan { accelerators: 3, ..Plan::default() };
        plan.loader.workers = 2;
        let questions = standing(&asked, &plan).unwrap();
        assert_eq!(questions.len(), 10);
        assert_eq!(
            questions[4].changes,
            ["decode.time=1ms", "accelerators=3", "reader.read_threads=4"]
        );
        assert_eq!(questions[6].of_workload, ["accelerators=6"]);
        assert_eq!(questions[6].changes, ["decode.time=1ms", "accelerators=6"]);
        assert_eq!(questions[9].of_pipeline.len(), 5);
    }
}
