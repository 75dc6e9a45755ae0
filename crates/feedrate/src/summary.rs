//! The end of a run in the terminal: the answer in a few lines; in detail the three utilisations, rates, where the time went, doubts with advice.

mod reads;

pub(crate) use self::reads::of_reads;

use crate::{messages, text};
use feedrate_analysis::advice::{Case, Proposal, advise, ranked_proposals};
use feedrate_analysis::answer::{Answer, AnsweredSummary};
use feedrate_analysis::predict::Pipeline;
use feedrate_measure::checkpoints::Checkpoints;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::Doubt;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, BARRIER_S, COMPUTE_S, DELIVERED_WHOLE,
    DELIVERED_WINDOWED, DEVICE_BYTES, DURATION_S, LOAD_S, LOGICAL_BYTES, METRICS, Metric,
    NOMINAL_WHOLE, NOMINAL_WINDOWED, NotMeasurable, SAMPLES_WHOLE, SAMPLES_WINDOWED, STALL_CLIENT,
    STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ, STALL_SKEW, Shown,
};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, Record, StagingSummary};
use feedrate_measure::summary::{EpochSummary, EvaluationSummary, Figures, Summary};
use feedrate_report::output::{OpenObject, Schema};
use feedrate_report::words::{
    advice, answer as words, client as client_words, mlperf, unpredicted,
};
use feedrate_results::replan::Replan;
use feedrate_results::run::Run;
use feedrate_session::folder::FoundFolder;
use feedrate_session::request::Request;
use feedrate_session::template::RunTemplate;
use feedrate_session::threads;
use feedrate_spec::plan::ClientPlan;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// How a run is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutputMode {
    /// One JSON object.
    Json,
    /// At most six lines.
    Answer,
    /// All for people.
    Details,
}

/// Print the summary. `next`: what asks about more than this run does.
pub(crate) fn print(
    answered: &AnsweredSummary,
    record: &Record,
    output_mode: OutputMode,
    found: Option<&FoundFolder>,
    next: Option<&str>,
) -> anyhow::Result<()> {
    match output_mode {
        OutputMode::Json => {
            let AnsweredSummary { summary, answer } = answered;
            let helps = helps(answered, record);
            let answer = AnswerOutput { answer, helps, client: client(record) };
            messages::print_json(Schema::Run, &RunOutput { summary, answer, found })?;
        }
        OutputMode::Answer => messages::print_page(&brief(answered, record, found, next))?,
        OutputMode::Details => {
            let mut lines = vec![answer(answered, record)];
            lines.extend(client_line(record));
            messages::print_answered(&lines.join("\n"), &details(answered, record))?;
        }
    }
    Ok(())
}

/// Changes that would help, the first choice first: those of `feedrate advise`, where the run can be planned again.
fn helps(answered: &AnsweredSummary, record: &Record) -> Vec<Proposal> {
    let derived = Derived::new(record);
    let AnsweredSummary { summary, answer } = answered;
    let case = Case::new(&derived, answer, &summary.doubts);
    let template = summary
        .run_dir
        .as_deref()
        .and_then(|folder| RunTemplate::from_run(folder, record, &Request::default()).ok());
    let Some(template) = template else { return ranked_proposals(&case) };
    let advice = advise(&case, &|overrides| template.plan(overrides));
    advice.into_iter().map(|advice| advice.proposal).collect()
}

fn brief(
    answered: &AnsweredSummary,
    record: &Record,
    found: Option<&FoundFolder>,
    next: Option<&str>,
) -> String {
    let summary = &answered.summary;
    let shown_by = if summary.run_dir.is_some() { "`feedrate show`" } else { "--details" };
    let doubts = match words::counted(&summary.doubts) {
        counted if summary.doubts.is_empty() => format!("Doubts: {counted}"),
        counted => format!("Doubts: {counted}; {shown_by} explains"),
    };
    let client = client_line(record).into_iter().chain(next.map(str::to_string));
    let results = summary.run_dir.iter().map(|dir| format!("Results: {dir}"));
    let answer = match found {
        Some(found) => of_folder(answered, record, found),
        None => answer(answered, record),
    };
    [answer].into_iter().chain(client).chain([doubts]).chain(results).collect::<Vec<_>>().join("\n")
}

fn client_line(record: &Record) -> Option<String> {
    let derived = Derived::new(record);
    client_words::line(&derived, Pipeline::with_ideal_client(&derived).as_ref())
}

/// Output of `run --json` and `show --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunOutput<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Whether the accelerators were fed.
    answer: AnswerOutput<'a>,
    /// The folder of files that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a FoundFolder>,
}

/// The answer, and what follows from it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct AnswerOutput<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    /// Changes that would help, the first choice first.
    helps: Vec<Proposal>,
    /// The client that the run rests on; `null` if none was emulated.
    client: Option<ClientOutput<'a>>,
}

/// The job's own code, as it was emulated.
#[derive(Serialize, JsonSchema)]
struct ClientOutput<'a> {
    /// `calibrated`, or `ideal` where it takes no time.
    kind: &'static str,
    /// Its costs by the keys of `client`.
    #[schemars(with = "Option<OpenObject>")]
    costs: Option<&'a ClientPlan>,
    /// Utilisation over all steps.
    au_all_steps_percent: Option<f64>,
    /// The same with a client that takes no time, estimated.
    with_ideal_client: Option<IdealClientOutput>,
    /// Why that cannot be estimated.
    untold: Option<String>,
    /// All of it in a sentence.
    says: String,
}

/// The run as it would be if its client took no time.
#[derive(Serialize, JsonSchema)]
struct IdealClientOutput {
    /// Always `true`.
    estimated: bool,
    /// Utilisation over all steps.
    au_all_steps_percent: f64,
    /// Least and most of it that the record leaves open.
    interval: [f64; 2],
    /// Whether it is below the one that was measured.
    difference_is_within_error: Option<bool>,
}

fn client(record: &Record) -> Option<ClientOutput<'_>> {
    let derived = Derived::new(record);
    let ideal = Pipeline::with_ideal_client(&derived);
    let says = client_words::line(&derived, ideal.as_ref())?;
    let predicted = ideal.as_ref().and_then(|ideal| ideal.as_ref().ok());
    let au_percent = client_words::au_percent(&derived);
    Some(ClientOutput {
        kind: if ideal.is_some() { "calibrated" } else { "ideal" },
        costs: record.plan.loader.client.as_ref(),
        au_all_steps_percent: au_percent,
        with_ideal_client: predicted.map(|prediction| IdealClientOutput {
            estimated: true,
            au_all_steps_percent: prediction.au_percent,
            interval: prediction.interval,
            difference_is_within_error: au_percent.map(|au| prediction.au_percent < au),
        }),
        untold: ideal.as_ref().and_then(|ideal| ideal.as_ref().err()).map(unpredicted::why),
        says,
    })
}

/// The files that were found, and what came of them: the loader's ceiling, where nothing is known of compute.
fn of_folder(answered: &AnsweredSummary, record: &Record, found: &FoundFolder) -> String {
    let loader = &record.plan.loader;
    let workers = u64::from(record.plan.accelerators) * u64::from(loader.workers.max(1));
    match words::ceiling(&answered.answer, workers, threads() as u64) {
        Some(ceiling) => {
            format!("{}; compute time unknown: the loader's ceiling\n{ceiling}", found.line())
        }
        None => {
            let step = units::seconds(record.plan.train.compute.mean_s());
            format!("{}; steps of {step}\n{}", found.line(), answer(answered, record))
        }
    }
}

fn answer(answered: &AnsweredSummary, record: &Record) -> String {
    let answer = &answered.answer;
    let head = words::head(answer);
    let mut lines = words::lines(answer, &answered.summary.doubts);
    lines.extend(advice::would_help(&helps(answered, record)));
    let lines = lines.join("\n");
    lines.replacen(&head, &text::answer_head(answer.kind, &head), 1)
}

fn details(answered: &AnsweredSummary, record: &Record) -> String {
    let summary = &answered.summary;
    let mut parts = vec![head(summary, record)];
    let folder = summary.run_dir.as_deref().unwrap_or_default();
    let run = Run::from_record(Path::new(folder), record);
    parts
        .extend(mlperf::line([&run].into_iter()).map(|rules| format!("{}: {rules}", mlperf::NAME)));
    if !record.plan.is_checkpoint_only() {
        parts.extend([figures(answered, record), epochs(&summary.per_epoch)]);
        parts.push(phases(&summary.phases));
    }
    if !summary.doubts.is_empty() {
        parts.push(doubts(summary));
    }
    if let Some(dir) = &summary.run_dir {
        parts.push(format!("Results: {dir}"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn head(summary: &Summary, record: &Record) -> String {
    let state = if summary.complete { "" } else { " (incomplete)" };
    let what = if record.plan.is_checkpoint_only() {
        "checkpoints only".to_string()
    } else {
        let epochs = units::counted(summary.epochs, "epoch");
        format!("{epochs} of {}", units::counted(summary.steps, "step"))
    };
    format!(
        "{}: {}, {what}{state}\nVerdict: {}\n  {}",
        summary.workload,
        units::counted(u64::from(summary.accelerators), "accelerator"),
        summary.verdict.name.name(),
        summary.verdict.evidence.replace('\n', "\n  "),
    )
}

fn figures(answered: &AnsweredSummary, record: &Record) -> String {
    let summary = &answered.summary;
    let figures = &summary.figures;
    let mut rows = utilisations(answered, record);
    rows.extend([
        ("Delivered", both(figures, &DELIVERED_WHOLE, &DELIVERED_WINDOWED)),
        ("Nominal", both(figures, &NOMINAL_WHOLE, &NOMINAL_WINDOWED)),
        ("Samples", both(figures, &SAMPLES_WHOLE, &SAMPLES_WINDOWED)),
        (
            "Time",
            shares(figures, &[("load", &LOAD_S), ("compute", &COMPUTE_S), ("barrier", &BARRIER_S)]),
        ),
    ]);
    if figures.value(&LOAD_S).is_some_and(|s| s > 0.0) {
        let parts = [
            ("open", &STALL_OPEN),
            ("read", &STALL_READ),
            ("decode", &STALL_DECODE),
            ("client", &STALL_CLIENT),
            ("queue", &STALL_QUEUE),
            ("skew", &STALL_SKEW),
        ];
        rows.push(("Stall", shares(figures, &parts)));
    }
    rows.extend(of_reads(figures));
    rows.extend(summary.staging.as_ref().map(|all| ("Staged", staging(all))));
    rows.extend(summary.evaluation.as_ref().map(|all| ("Evaluation", evaluation(all))));
    if let Some(checkpoint) = &summary.checkpoint {
        rows.extend(checkpoint.save.as_ref().map(|all| ("Saved", checkpoints(all))));
        rows.extend(checkpoint.load.as_ref().map(|all| ("Loaded", checkpoints(all))));
    }
    let [read, device] = [&LOGICAL_BYTES, &DEVICE_BYTES].map(|metric| {
        figures.value(metric).map_or("unknown".into(), |value| metric.unit.text(value))
    });
    rows.push(("Bytes", format!("{read} read, {device} from the device")));
    let own = METRICS.iter().filter(|metric| metric.shown == Shown::OwnLine);
    rows.extend(own.map(|metric| (metric.title, known(figures, metric))));
    text::rows(&rows)
}

/// That of the answer first.
fn utilisations(answered: &AnsweredSummary, record: &Record) -> Vec<(&'static str, String)> {
    let (figures, exclude) = (&answered.summary.figures, record.plan.metric.exclude_start_steps);
    let excluded = if exclude == 1 { "step".into() } else { format!("{exclude} steps") };
    let left_out = format!("   first {excluded} left out, as DLIO");
    let mut rows = vec![
        ("AU sustained", sustained(figures)),
        ("AU all steps", known(figures, &AU_ALL_STEPS) + "   nothing left out"),
        ("AU windowed", known(figures, &AU_WINDOWED) + &left_out),
    ];
    let Some(kind) = answered.answer.au_kind else { return rows };
    rows.swap(0, usize::from(kind == AU_ALL_STEPS.id.name()));
    rows[0].1 += ": the answer's AU, the one to quote";
    rows
}

fn staging(staging: &StagingSummary) -> String {
    let files =
        |files, bytes| format!("{} of {}", units::counted(files, "file"), units::bytes(bytes));
    let mut words =
        vec![format!("{} copied into {}", files(staging.files, staging.bytes), staging.folder)];
    words.extend(staging.copy_s.map(|s| format!("{} before training", units::seconds(s))));
    words.extend(staging.bytes_per_second.map(units::bytes_per_second));
    if staging.kept_files > 0 {
        words.push(format!("{} were there", files(staging.kept_files, staging.kept_bytes)));
    }
    words.join(" · ")
}

fn evaluation(evaluation: &EvaluationSummary) -> String {
    format!(
        "{} of {}: AU all steps {}, windowed {}, {}",
        units::counted(evaluation.evaluations, "evaluation"),
        units::counted(evaluation.steps, "step"),
        known(&evaluation.figures, &AU_ALL_STEPS),
        known(&evaluation.figures, &AU_WINDOWED),
        known(&evaluation.figures, &DELIVERED_WHOLE),
    )
}

fn checkpoints(all: &Checkpoints) -> String {
    let [duration, longest] =
        [all.duration_s, all.duration_max_s].map(|s| text::known(s, units::seconds));
    let [rate, rank_rate] = [all.gib_per_second, all.rank_gib_per_second]
        .map(|rate| text::known(rate, |rate| format!("{rate:.2} GiB/s")));
    let synced = all.fsync_share.filter(|&share| share > 0.0);
    let synced = synced.map_or(String::new(), |share| format!(", {:.0} % in sync", share * 100.0));
    format!(
        "{} of {} in {duration} each (max {longest}), {rate}, a rank {rank_rate}{synced}; training waited {}",
        units::counted(all.count, "checkpoint"),
        units::bytes_binary(all.bytes),
        units::seconds(all.stall_s),
    )
}

fn sustained(figures: &Figures) -> String {
    if let Some(au) = figures.value(&AU_SUSTAINED) {
        let au = AU_SUSTAINED.unit.text(au);
        return format!("{au}   what the storage can keep up");
    }
    let why = match figures.sustained_missing {
        Some(NotMeasurable::ReadsNotKnown) => {
            "reads are not known of a loop that was watched".into()
        }
        Some(NotMeasurable::NothingRead) => "nothing was read".into(),
        Some(NotMeasurable::NoWindow) => "reading was over before the window began".into(),
        _ => format!("run at least {} steps an epoch", units::count(figures.sustained_needs_steps)),
    };
    format!("not measurable: {why}")
}

fn epochs(epochs: &[EpochSummary]) -> String {
    if epochs.len() < 2 {
        return String::new();
    }
    let values = [
        ("Duration", &DURATION_S),
        ("AU all", &AU_ALL_STEPS),
        ("AU windowed", &AU_WINDOWED),
        ("AU sustained", &AU_SUSTAINED),
        ("Delivered", &DELIVERED_WHOLE),
        ("Device", &DEVICE_BYTES),
    ];
    let rows = epochs.iter().map(|epoch| {
        let values = values.map(|(_, metric)| known(&epoch.figures, metric));
        [epoch.epoch.to_string(), epoch.steps.to_string()].into_iter().chain(values)
    });
    text::table(["Epoch", "Steps"].into_iter().chain(values.map(|(title, _)| title)), rows)
}

/// Rows that are shown, at most; `phases.csv` has them all.
const PHASES_MAX: usize = 40;

/// Nothing where there are epochs only: they have a table of their own.
fn phases(phases: &[Phase]) -> String {
    if phases.iter().all(|phase| phase.phase == PhaseKind::Epoch) {
        return String::new();
    }
    let header = [
        "Phase",
        "Epoch",
        "Checkpoint",
        "Duration",
        "AU",
        "Stall",
        "Delivered",
        "Device",
        "Written",
        "CPU",
    ];
    let rows = phases.iter().take(PHASES_MAX).map(|phase| {
        [
            phase.phase.name().replace('_', " "),
            phase.epoch.to_string(),
            phase.checkpoint.map_or("", CheckpointKind::name).into(),
            units::seconds(phase.duration_s),
            text::known(phase.au_percent, percent),
            text::known(phase.stall_share, |share| percent(100.0 * share)),
            text::known(phase.delivered_bytes_per_second, units::bytes_per_second),
            text::known(phase.device_bytes_per_second, units::bytes_per_second),
            text::known(phase.written_bytes_per_second, units::bytes_per_second),
            text::known(phase.cpu_busy_share, |share| percent(100.0 * share)),
        ]
    });
    let table = text::table(header, rows);
    match phases.len().saturating_sub(PHASES_MAX) {
        0 => table,
        more => format!("{table}\n and {more} more in phases.csv"),
    }
}

/// One epoch in a line, where there is no terminal to draw on; its AU only where steps compute.
pub(crate) fn epoch_line(epoch: &EpochSummary, epochs: u32, computes: bool) -> String {
    // As in the answer.
    let figures = &epoch.figures;
    let au = figures.value(&AU_SUSTAINED).or_else(|| figures.value(&AU_ALL_STEPS));
    let au = if computes { format!(" AU {},", text::known(au, percent)) } else { String::new() };
    format!(
        "epoch {}/{epochs}: {} in {},{au} {}",
        epoch.epoch,
        units::counted(epoch.steps, "step"),
        known(&epoch.figures, &DURATION_S),
        known(&epoch.figures, &DELIVERED_WHOLE),
    )
}

/// One checkpoint in a line.
pub(crate) fn checkpoint_line(checkpoint: &CheckpointRecord) -> String {
    let done = match checkpoint.kind {
        CheckpointKind::Save => "written",
        CheckpointKind::Load => "read",
    };
    let rate = text::known(checkpoint.gib_per_second(), |rate| format!("{rate:.3} GiB/s"));
    format!(
        "checkpoint {} {done}: {} in {}, {rate}",
        checkpoint.after_step,
        units::bytes_binary(checkpoint.bytes),
        units::seconds(checkpoint.duration_s()),
    )
}

/// Each doubt with its advice.
pub(crate) fn doubts(summary: &Summary) -> String {
    let mut all = "Doubts:".to_string();
    for Doubt { severity, name, evidence, advice, .. } in &summary.doubts {
        let named = format!("[{}] {name}", text::severity(*severity));
        all += &format!("\n  {named}: {evidence}\n    {advice}");
    }
    all
}

pub(crate) fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn known(figures: &Figures, metric: &Metric) -> String {
    text::known(figures.value(metric), |value| metric.unit.text(value))
}

fn both(figures: &Figures, whole: &Metric, windowed: &Metric) -> String {
    let [whole, windowed] = [whole, windowed].map(|metric| known(figures, metric));
    format!("{whole} over whole epochs, {windowed} in the window")
}

fn shares(figures: &Figures, parts: &[(&str, &Metric)]) -> String {
    let sum: f64 = parts.iter().filter_map(|(_, metric)| figures.value(metric)).sum();
    let texts = parts.iter().map(|(name, metric)| {
        let text = text::known(figures.value(metric), |seconds| match units::seconds(seconds) {
            text if sum > 0.0 => format!("{text} ({:.1} %)", 100.0 * seconds / sum),
            text => text,
        });
        format!("{name} {text}")
    });
    texts.collect::<Vec<_>>().join(" · ")
}
