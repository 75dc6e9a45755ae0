//! The end of a run in the terminal: the three utilisations, rates, where the time went, doubts with advice.

use crate::messages;
use crate::text;
use feedrate_measure::checkpoints::Checkpoints;
use feedrate_measure::metric::{
    AMPLIFICATION, AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, BARRIER_S, COMPUTE_S, CONSECUTIVE,
    DELIVERED_WHOLE, DELIVERED_WINDOWED, DEVICE_BYTES, DURATION_S, FILES, LOAD_S, LOGICAL_BYTES,
    METRICS, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, NotMeasurable, Quantiles, SAMPLES_WHOLE,
    SAMPLES_WINDOWED, SEQUENTIAL, STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ, Shown,
};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, Record};
use feedrate_measure::summary::{EpochSummary, EvaluationSummary, Figures, Summary};
use feedrate_spec::units;

/// Print one JSON object, or the summary for people.
pub(crate) fn print(summary: &Summary, record: &Record, json: bool) -> anyhow::Result<()> {
    if json {
        messages::print(serde_json::to_string(summary)?);
    } else {
        messages::print(page(summary, record));
    }
    Ok(())
}

fn page(summary: &Summary, record: &Record) -> String {
    let mut parts = vec![head(summary, record)];
    if !record.plan.is_checkpoints_alone() {
        parts.extend([figures(summary, record), epochs(&summary.per_epoch)]);
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
    let what = if record.plan.is_checkpoints_alone() {
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

fn figures(summary: &Summary, record: &Record) -> String {
    let target = record.plan.metric.au_target_percent;
    let mut rows = vec![
        (
            "AU all steps",
            format!("{}   nothing left out", percent(summary.figures.value(&AU_ALL_STEPS))),
        ),
        (
            "AU windowed",
            format!(
                "{}   first {} left out, as DLIO; asked for: {target:.0} %",
                percent(summary.figures.value(&AU_WINDOWED)),
                steps(record.plan.metric.exclude_start_steps)
            ),
        ),
        ("AU sustained", sustained(&summary.figures)),
        ("Delivered", both(summary, &DELIVERED_WHOLE, &DELIVERED_WINDOWED)),
        ("Nominal", both(summary, &NOMINAL_WHOLE, &NOMINAL_WINDOWED)),
        ("Samples", both(summary, &SAMPLES_WHOLE, &SAMPLES_WINDOWED)),
        (
            "Time",
            shares(&[
                ("load", summary.figures.value(&LOAD_S)),
                ("compute", summary.figures.value(&COMPUTE_S)),
                ("barrier", summary.figures.value(&BARRIER_S)),
            ]),
        ),
    ];
    if summary.figures.value(&LOAD_S).is_some_and(|s| s > 0.0) {
        rows.push((
            "Stall",
            shares(&[
                ("open", summary.figures.value(&STALL_OPEN)),
                ("read", summary.figures.value(&STALL_READ)),
                ("decode", summary.figures.value(&STALL_DECODE)),
                ("queue", summary.figures.value(&STALL_QUEUE)),
            ]),
        ));
    }
    if let Some(latency) = latency(&summary.figures.read_latency) {
        rows.push(("Read latency", latency));
    }
    if let Some(access) = access(&summary.figures) {
        rows.push(("Access", access));
    }
    if let Some(evaluation) = &summary.evaluation {
        rows.push(("Evaluation", self::evaluation(evaluation)));
    }
    if let Some(checkpoint) = &summary.checkpoint {
        let kinds = [("Saved", &checkpoint.save), ("Loaded", &checkpoint.load)];
        rows.extend(
            kinds
                .into_iter()
                .filter_map(|(what, all)| all.as_ref().map(|all| (what, checkpoints(all)))),
        );
    }
    let device = known(&summary.figures, &DEVICE_BYTES, "unknown");
    rows.push((
        "Bytes",
        format!(
            "{} read, {device} from the device",
            known(&summary.figures, &LOGICAL_BYTES, "unknown")
        ),
    ));
    let own = METRICS.iter().filter(|metric| metric.shown == Shown::OwnLine);
    let own = own.map(|metric| (metric.title, known(&summary.figures, metric, "-")));
    rows.extend(own);
    text::rows(&rows)
}

fn evaluation(evaluation: &EvaluationSummary) -> String {
    format!(
        "{} of {}: AU all steps {}, windowed {}, {}",
        units::counted(evaluation.evaluations, "evaluation"),
        units::counted(evaluation.steps, "step"),
        known(&evaluation.figures, &AU_ALL_STEPS, "-"),
        known(&evaluation.figures, &AU_WINDOWED, "-"),
        known(&evaluation.figures, &DELIVERED_WHOLE, "-"),
    )
}

fn checkpoints(all: &Checkpoints) -> String {
    let [duration, longest] =
        [all.duration_s, all.duration_max_s].map(|s| s.map_or("-".into(), units::seconds));
    let [rate, rank_rate] = [all.gib_per_second, all.rank_gib_per_second]
        .map(|rate| rate.map_or("-".into(), |rate| format!("{rate:.2} GiB/s")));
    let synced = all.fsync_share.filter(|&share| share > 0.0);
    let synced = synced.map_or(String::new(), |share| format!(", {:.0} % in sync", share * 100.0));
    format!(
        "{} of {} in {duration} each (max {longest}), {rate}, a rank {rank_rate}{synced}; training waited {}",
        units::counted(all.count, "checkpoint"),
        units::bytes_binary(all.bytes),
        units::seconds(all.stall_s),
    )
}

fn latency(reads: &Quantiles) -> Option<String> {
    let s = units::seconds;
    Some(format!(
        "p50 {} · p99 {} · p99.9 {} · max {} of {} reads",
        s(reads.p50_s?),
        s(reads.p99_s?),
        s(reads.p999_s?),
        s(reads.max_s?),
        units::count(reads.count),
    ))
}

fn access(figures: &Figures) -> Option<String> {
    let access = figures.access.as_ref()?;
    let requests = access.request_bytes.as_ref()?;
    let common = if access.reads > 0 { requests.common.first()? } else { return None };
    // Of sizes that are all different none is common.
    let part = common.count as f64 / access.reads as f64;
    let mut words = match part {
        0.01.. => vec![format!("{} of reads {}", share(part), units::bytes(common.bytes))],
        _ => vec!["reads of many sizes".into()],
    };
    for (name, metric) in [("sequential", &SEQUENTIAL), ("consecutive", &CONSECUTIVE)] {
        words.extend(figures.value(metric).map(|value| format!("{name} {}", share(value))));
    }
    words.extend(figures.value(&FILES).map(|files| FILES.unit.text(files) + " an accelerator"));
    let amplification = figures.value(&AMPLIFICATION);
    words.extend(amplification.map(|ratio| format!("{ratio:.2} bytes read to one of payload")));
    Some(words.join(" · "))
}

fn share(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn sustained(figures: &Figures) -> String {
    if let Some(au) = figures.value(&AU_SUSTAINED) {
        return format!("{}   what the storage can keep up", percent(Some(au)));
    }
    let why = match figures.sustained_missing {
        Some(NotMeasurable::NothingRead) => "nothing was read".into(),
        Some(NotMeasurable::NoWindow) => "reading was over before the window began".into(),
        _ => format!("run at least {} steps an epoch", units::count(figures.sustained_needs_steps)),
    };
    format!("not measurable: {why}")
}

fn steps(count: u64) -> String {
    if count == 1 { "step".into() } else { format!("{count} steps") }
}

fn epochs(epochs: &[EpochSummary]) -> String {
    if epochs.len() < 2 {
        return String::new();
    }
    let mut table = text::table([
        "Epoch",
        "Steps",
        "Duration",
        "AU all",
        "AU windowed",
        "AU sustained",
        "Delivered",
        "Device",
    ]);
    for epoch in epochs {
        table.add_row([
            epoch.epoch.to_string(),
            epoch.steps.to_string(),
            known(&epoch.figures, &DURATION_S, "-"),
            known(&epoch.figures, &AU_ALL_STEPS, "-"),
            known(&epoch.figures, &AU_WINDOWED, "-"),
            known(&epoch.figures, &AU_SUSTAINED, "-"),
            known(&epoch.figures, &DELIVERED_WHOLE, "-"),
            known(&epoch.figures, &DEVICE_BYTES, "-"),
        ]);
    }
    text::lines(&table)
}

/// Rows that are shown, at most; `phases.csv` has them all.
const PHASES_MAX: usize = 40;

/// Nothing where there are epochs only: they have a table of their own.
fn phases(phases: &[Phase]) -> String {
    if phases.iter().all(|phase| phase.phase == PhaseKind::Epoch) {
        return String::new();
    }
    let mut table = text::table([
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
    ]);
    for phase in phases.iter().take(PHASES_MAX) {
        table.add_row([
            phase.phase.name().replace('_', " "),
            phase.epoch.to_string(),
            phase.checkpoint.map_or("", CheckpointKind::name).into(),
            units::seconds(phase.duration_s),
            percent(phase.au_percent),
            percent(phase.stall_share.map(|share| 100.0 * share)),
            rate(phase.delivered_bytes_per_second),
            rate(phase.device_bytes_per_second),
            rate(phase.written_bytes_per_second),
            percent(phase.cpu_busy_share.map(|share| 100.0 * share)),
        ]);
    }
    let mut text = text::lines(&table);
    if PHASES_MAX < phases.len() {
        text += &format!("\n and {} more in phases.csv", phases.len() - PHASES_MAX);
    }
    text
}

/// One epoch in a line, where there is no terminal to draw on.
pub(crate) fn epoch_line(epoch: &EpochSummary, epochs: u32) -> String {
    format!(
        "epoch {}/{epochs}: {} in {}, AU {}, {}",
        epoch.epoch,
        units::counted(epoch.steps, "step"),
        known(&epoch.figures, &DURATION_S, "-"),
        known(&epoch.figures, &AU_ALL_STEPS, "-"),
        known(&epoch.figures, &DELIVERED_WHOLE, "-"),
    )
}

/// One checkpoint in a line.
pub(crate) fn checkpoint_line(checkpoint: &CheckpointRecord) -> String {
    let done = match checkpoint.kind {
        CheckpointKind::Save => "written",
        CheckpointKind::Load => "read",
    };
    let rate = checkpoint.gib_per_second().map_or("-".into(), |rate| format!("{rate:.3} GiB/s"));
    format!(
        "checkpoint {} {done}: {} in {}, {rate}",
        checkpoint.after_step,
        units::bytes_binary(checkpoint.bytes),
        units::seconds(checkpoint.duration_s()),
    )
}

pub(crate) fn doubts(summary: &Summary) -> String {
    let lines: Vec<String> = summary
        .doubts
        .iter()
        .map(|doubt| {
            format!(
                "  [{}] {}: {}\n    {}",
                doubt.severity.name(),
                doubt.name,
                doubt.evidence,
                doubt.advice
            )
        })
        .collect();
    format!("Doubts:\n{}", lines.join("\n"))
}

fn rate(value: Option<f64>) -> String {
    value.map_or("-".into(), units::bytes_per_second)
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1} %"))
}

fn known(figures: &Figures, metric: &Metric, unknown: &str) -> String {
    figures.value(metric).map_or(unknown.into(), |value| metric.unit.text(value))
}

fn both(summary: &Summary, whole: &Metric, windowed: &Metric) -> String {
    let [whole, windowed] = [whole, windowed].map(|metric| known(&summary.figures, metric, "-"));
    format!("{whole} over whole epochs, {windowed} in the window")
}

fn shares(parts: &[(&str, Option<f64>)]) -> String {
    let sum: f64 = parts.iter().filter_map(|(_, seconds)| *seconds).sum();
    let texts: Vec<String> = parts
        .iter()
        .map(|(name, seconds)| match seconds {
            Some(seconds) if sum > 0.0 => {
                format!("{name} {} ({:.1} %)", units::seconds(*seconds), 100.0 * seconds / sum)
            }
            Some(seconds) => format!("{name} {}", units::seconds(*seconds)),
            None => format!("{name} -"),
        })
        .collect();
    texts.join(" · ")
}
