//! Writes the figures of a run as rows: utilisations, rates, shares of the time, reads, staging, evaluation, checkpoints.

use super::read_rows;
use crate::text;
use crate::words::{mlperf, mlperf_class};
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::checkpoints::Checkpoints;
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, BARRIER_S, COMPUTE_S, DELIVERED_WHOLE,
    DELIVERED_WINDOWED, DEVICE_BYTES, LOAD_S, LOGICAL_BYTES, METRICS, Metric, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, NotMeasurable, Placement, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use feedrate_measure::record::{Record, StagingSummary};
use feedrate_measure::summary::{EvaluationSummary, Figures, Summary};
use feedrate_measure::transfers::TransferSummary;
use feedrate_measure::waits::Waits;
use feedrate_results::run::Run;
use feedrate_spec::units::{self, GIB};
use std::cmp::Reverse;
use std::path::Path;

type FigureRow = (&'static str, String);

/// All rows. A run that only writes or reads checkpoints has no rows on training.
pub(super) fn rows(answered: &AnsweredSummary, derived: &Derived<'_>) -> Vec<FigureRow> {
    let record = derived.record;
    let summary = &answered.summary;
    let is_trained = !record.plan.is_checkpoint_only();
    let verdict = &summary.verdict;
    let mut rows = vec![
        ("Run", run(summary, is_trained)),
        ("Verdict", format!("{}\n{}", verdict.name.name(), verdict.evidence)),
    ];
    let folder = summary.run_dir.as_deref().unwrap_or_default();
    let imported = Run::from_record(Path::new(folder), record);
    rows.extend(mlperf::line_of_run(&imported).map(|rules| (mlperf::NAME, rules)));
    rows.extend(
        mlperf_class::line([&imported].into_iter()).map(|class| (mlperf_class::NAME, class)),
    );
    rows.extend(record.members_line().map(|line| ("Files", line)));
    if is_trained {
        rows.extend(utilisations(answered, record));
        rows.extend(figures(summary, derived));
    }
    rows.extend(page_faults(record).map(|faults| ("Page faults", faults)));
    rows
}

/// Major page faults in all epochs, which wait for I/O, and those of the rank with the most. `None` if they are unknown.
fn page_faults(record: &Record) -> Option<String> {
    let all: Option<u64> = record.epochs.iter().map(|epoch| epoch.host.major_page_faults).sum();
    let ranks = record.epochs.first().map_or(0, |epoch| epoch.host.rank_major_page_faults.len());
    let by_rank = (0..ranks).filter_map(|rank| {
        let epochs = record.epochs.iter();
        let faults = epochs.map(|epoch| *epoch.host.rank_major_page_faults.get(rank)?);
        Some((rank, faults.sum::<Option<u64>>()?))
    });
    let most = by_rank.max_by_key(|(rank, faults)| (*faults, Reverse(*rank)));
    let most = most.filter(|_| 1 < ranks).map_or(String::new(), |(rank, faults)| {
        format!(", the most in rank {rank}: {}", units::count(faults))
    });
    let all = all.filter(|_| !record.epochs.is_empty())?;
    Some(match all {
        0 => "0 major".into(),
        _ => format!("{} major (each waits for I/O){most}", units::count(all)),
    })
}

/// The workload, its size and state.
fn run(summary: &Summary, is_trained: bool) -> String {
    let extent = if is_trained {
        let epochs = units::counted(summary.epochs, "epoch");
        format!("{epochs} of {}", units::counted(summary.steps, "step"))
    } else {
        "checkpoints only".to_string()
    };
    let state = if summary.complete { "" } else { " (incomplete)" };
    let accelerators = units::counted(u64::from(summary.accelerators), "accelerator");
    format!("{}: {accelerators}, {extent}{state}", summary.workload)
}

/// Utilisations; the utilisation that decides the answer comes first.
fn utilisations(answered: &AnsweredSummary, record: &Record) -> Vec<FigureRow> {
    let figures = &answered.summary.figures;
    let exclude = record.plan.metric.exclude_start_steps;
    let excluded = if exclude == 1 { "step".into() } else { format!("{exclude} steps") };
    let note = format!("   without the first {excluded}, as in DLIO");
    let mut rows = vec![
        ("AU sustained", sustained(figures)),
        ("AU all steps", known(figures, &AU_ALL_STEPS) + "   all steps counted"),
        ("AU windowed", known(figures, &AU_WINDOWED) + &note),
    ];
    let Some(kind) = answered.answer.au_kind else { return rows };
    rows.swap(0, usize::from(kind == AU_ALL_STEPS.id.name()));
    rows[0].1 += ": decides the answer; quote this one";
    rows
}

/// Rates, shares of the time, reads, staging, evaluation and checkpoints.
fn figures(summary: &Summary, derived: &Derived<'_>) -> Vec<FigureRow> {
    let figures = &summary.figures;
    let times = [("load", &LOAD_S), ("compute", &COMPUTE_S), ("barrier", &BARRIER_S)];
    let mut rows = vec![
        ("Delivered", epochs_and_window(figures, &DELIVERED_WHOLE, &DELIVERED_WINDOWED)),
        ("Nominal", nominal(figures)),
        ("Samples", epochs_and_window(figures, &SAMPLES_WHOLE, &SAMPLES_WINDOWED)),
        ("Time", shares(&times.map(|(name, metric)| (name, figures.value(metric))))),
    ];
    rows.extend(stall(derived).map(|stall| ("Stall", stall)));
    rows.extend(read_rows(figures));
    rows.extend(summary.transfers.as_ref().map(|all| ("Requests", requests(all))));
    rows.extend(summary.staging.as_ref().map(|all| ("Staged", staging(all))));
    rows.extend(summary.evaluation.as_ref().map(|all| ("Evaluation", evaluation(all))));
    if let Some(checkpoint) = &summary.checkpoint {
        rows.extend(checkpoint.save.as_ref().map(|all| ("Saved", checkpoints(all))));
        rows.extend(checkpoint.load.as_ref().map(|all| ("Loaded", checkpoints(all))));
    }
    let bytes = |metric: &Metric| {
        figures.value(metric).map_or("unknown".into(), |value| metric.unit.text(value))
    };
    let read = bytes(&LOGICAL_BYTES);
    rows.push(("Bytes", format!("{read} read, {} from the device", bytes(&DEVICE_BYTES))));
    let metrics = METRICS.iter().filter(|metric| metric.placement == Placement::OwnLine);
    rows.extend(metrics.map(|metric| (metric.title, known(figures, metric))));
    rows
}

/// Requests to an object store: `40,000, 12 repeated (10 status 503, 2 timeout), which cost 3.1 s`.
fn requests(transfers: &TransferSummary) -> String {
    let requests = units::count(transfers.requests);
    match transfers.retried.total() {
        0 => format!("{requests}, none repeated"),
        repeated => format!(
            "{requests}, {} repeated ({}), which cost {}",
            units::count(repeated),
            transfers.retried.list(),
            units::seconds(transfers.retry_lost_s),
        ),
    }
}

fn staging(staging: &StagingSummary) -> String {
    let files =
        |files, bytes| format!("{} of {}", units::counted(files, "file"), units::bytes(bytes));
    let mut words =
        vec![format!("{} copied into {}", files(staging.files, staging.bytes), staging.folder)];
    words
        .extend(staging.copy_s.map(|copy_s| format!("{} before training", units::seconds(copy_s))));
    words.extend(staging.bytes_per_second.map(units::bytes_per_second));
    if staging.kept_files > 0 {
        words.push(format!("{} existed already", files(staging.kept_files, staging.kept_bytes)));
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
    let rank_rate = all.rank_gib_per_second.map(|rate| rate * GIB);
    let synced = all.fsync_share.filter(|&share| share > 0.0);
    let synced = synced.map_or(String::new(), |share| format!(", {:.0} % in sync", share * 100.0));
    format!(
        "{} of {} in {} each (max {}), {}, {} per rank{synced}; training waited {}",
        units::counted(all.count, "checkpoint"),
        units::bytes(all.bytes),
        text::known(all.duration_s, units::seconds),
        text::known(all.duration_max_s, units::seconds),
        text::known(all.bytes_per_second, units::bytes_per_second_rounded),
        text::known(rank_rate, units::bytes_per_second_rounded),
        units::seconds(all.stall_s),
    )
}

/// The sustained utilisation, or the reason why it is missing.
fn sustained(figures: &Figures) -> String {
    if let Some(au) = figures.value(&AU_SUSTAINED) {
        let au = AU_SUSTAINED.unit.text(au);
        return format!("{au}   what the storage can sustain");
    }
    let why = match figures.sustained_missing {
        Some(NotMeasurable::ReadsUnknown) => "the reads of a watched loop are unknown".into(),
        Some(NotMeasurable::NothingRead) => "nothing was read".into(),
        Some(NotMeasurable::NoWindow) => "all reads ended before the window began".into(),
        _ => {
            format!("run at least {} steps per epoch", units::count(figures.sustained_needs_steps))
        }
    };
    format!("not measurable: {why}")
}

pub(super) fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

pub(super) fn known(figures: &Figures, metric: &Metric) -> String {
    text::known(figures.value(metric), |value| metric.unit.text(value))
}

/// A rate over whole epochs and in the window.
fn epochs_and_window(figures: &Figures, epochs: &Metric, window: &Metric) -> String {
    let epochs = known(figures, epochs);
    format!("{epochs} over whole epochs, {} in the window", known(figures, window))
}

/// The waits of an accelerator by cause, on the verdict's basis: queueing counts as the work that the workers did meanwhile, and decoding as the client's
/// work within its time. `None` without waits.
fn stall(derived: &Derived<'_>) -> Option<String> {
    let waits = Waits::new(derived).filter(|waits| waits.data_s() > 0.0)?;
    let client_s = derived.record.plan.loader.client.as_ref().map(|_| waits.client_s);
    Some(shares(&[
        ("open", Some(waits.open_s)),
        ("read", Some(waits.read_s)),
        ("decode", Some(waits.decode_s)),
        ("client", client_s),
        ("skew", Some(waits.skew_s)),
    ]))
}

/// The rate of the samples' payload. It exceeds the delivered rate if files are compressed, as images are.
fn nominal(figures: &Figures) -> String {
    let rates = [&NOMINAL_WHOLE, &DELIVERED_WHOLE].map(|metric| figures.value(metric));
    let is_compressed =
        matches!(rates, [Some(nominal), Some(delivered)] if COMPRESSED_MIN * delivered < nominal);
    let suffix = if is_compressed { ", of decoded data" } else { "" };
    epochs_and_window(figures, &NOMINAL_WHOLE, &NOMINAL_WINDOWED) + suffix
}

/// Ratio of nominal to delivered bytes from which samples count as compressed.
const COMPRESSED_MIN: f64 = 1.2;

/// Times with their shares of the sum.
fn shares(parts: &[(&str, Option<f64>)]) -> String {
    let sum: f64 = parts.iter().filter_map(|(_, seconds)| *seconds).sum();
    let texts = parts.iter().map(|(name, seconds)| {
        let text = text::known(*seconds, |seconds| match units::seconds(seconds) {
            text if sum > 0.0 => format!("{text} ({:.1} %)", 100.0 * seconds / sum),
            text => text,
        });
        format!("{name} {text}")
    });
    texts.collect::<Vec<_>>().join(" · ")
}
