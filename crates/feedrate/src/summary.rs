//! The end of a run in the terminal: the three utilisations, rates, where the time went, doubts with advice.

use crate::messages;
use crate::text;
use feedrate_measure::access::Access;
use feedrate_measure::checkpoints::Checkpoints;
use feedrate_measure::metric::{NotMeasurable, Quantiles};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, Record};
use feedrate_measure::summary::{Au, EpochSummary, EvaluationSummary, Rate, Summary};
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
    let rate = &summary.throughput;
    let bytes = |rate: Rate| both(rate, units::bytes_per_second);
    let mut rows = vec![
        ("AU all steps", format!("{}   nothing left out", percent(summary.au.all_steps_percent))),
        (
            "AU windowed",
            format!(
                "{}   first {} left out, as DLIO; asked for: {target:.0} %",
                percent(summary.au.windowed_percent),
                steps(record.plan.metric.exclude_start_steps)
            ),
        ),
        ("AU sustained", sustained(&summary.au)),
        ("Delivered", bytes(rate.delivered_bytes_per_second)),
        ("Nominal", bytes(rate.nominal_bytes_per_second)),
        ("Samples", both(rate.samples_per_second, |r| units::per_second(r, "samples"))),
        (
            "Time",
            shares(&[
                ("load", summary.time.load_s),
                ("compute", summary.time.compute_s),
                ("barrier", summary.time.barrier_s),
            ]),
        ),
    ];
    let stall = &summary.stall;
    if summary.time.load_s.is_some_and(|s| s > 0.0) {
        rows.push((
            "Stall",
            shares(&[
                ("open", stall.open_s),
                ("read", stall.read_s),
                ("decode", stall.decode_s),
                ("queue", stall.queue_s),
            ]),
        ));
    }
    if let Some(latency) = latency(&summary.latency.read) {
        rows.push(("Read latency", latency));
    }
    if let Some(access) = access(&summary.access) {
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
    let device = summary.bytes.device.map_or("unknown".into(), units::bytes);
    rows.push((
        "Bytes",
        format!(
            "{} read, {device} from the device",
            summary.bytes.logical.map_or("unknown".into(), units::bytes)
        ),
    ));
    text::rows(&rows)
}

fn evaluation(evaluation: &EvaluationSummary) -> String {
    let rate = evaluation.throughput.delivered_bytes_per_second.whole;
    format!(
        "{} of {}: AU all steps {}, windowed {}, {}",
        units::counted(evaluation.evaluations, "evaluation"),
        units::counted(evaluation.steps, "step"),
        percent(evaluation.au.all_steps_percent),
        percent(evaluation.au.windowed_percent),
        rate.map_or("-".into(), units::bytes_per_second),
    )
}

fn checkpoints(all: &Checkpoints) -> String {
    let seconds = |s: Option<f64>| s.map_or("-".into(), units::seconds);
    let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{rate:.2} GiB/s"));
    let synced = all.fsync_share.filter(|&share| share > 0.0);
    let synced = synced.map_or(String::new(), |share| format!(", {:.0} % in sync", share * 100.0));
    format!(
        "{} of {} in {} each (max {}), {}, a rank {}{synced}; training waited {}",
        units::counted(all.count, "checkpoint"),
        units::bytes_binary(all.bytes),
        seconds(all.duration_s),
        seconds(all.duration_max_s),
        rate(all.gib_per_second),
        rate(all.rank_gib_per_second),
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

fn access(access: &Access) -> Option<String> {
    let requests = access.request_bytes.as_ref()?;
    let common = if access.reads > 0 { requests.common.first()? } else { return None };
    let share = |share: f64| format!("{:.0} %", 100.0 * share);
    // Of sizes that are all different none is common.
    let part = common.count as f64 / access.reads as f64;
    let mut words = match part {
        0.01.. => vec![format!("{} of reads {}", share(part), units::bytes(common.bytes))],
        _ => vec!["reads of many sizes".into()],
    };
    let orders =
        [("sequential", access.sequential_share), ("consecutive", access.consecutive_share)];
    for (name, value) in orders {
        words.extend(value.map(|value| format!("{name} {}", share(value))));
    }
    words.extend(access.files.map(|files| units::counted(files, "file") + " an accelerator"));
    let amplification = access.read_amplification;
    words.extend(amplification.map(|ratio| format!("{ratio:.2} bytes read to one of payload")));
    Some(words.join(" · "))
}

fn sustained(au: &Au) -> String {
    if au.sustained_percent.is_some() {
        return format!("{}   what the storage can keep up", percent(au.sustained_percent));
    }
    let why = match au.sustained_missing {
        Some(NotMeasurable::NothingRead) => "nothing was read".into(),
        Some(NotMeasurable::NoWindow) => "reading was over before the window began".into(),
        _ => format!("run at least {} steps an epoch", units::count(au.sustained_needs_steps)),
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
            epoch.duration_s.map_or("-".into(), units::seconds),
            percent(epoch.au.all_steps_percent),
            percent(epoch.au.windowed_percent),
            percent(epoch.au.sustained_percent),
            epoch
                .throughput
                .delivered_bytes_per_second
                .whole
                .map_or("-".into(), units::bytes_per_second),
            epoch.bytes.device.map_or("-".into(), units::bytes),
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
    let rate = |rate: Option<f64>| rate.map_or("-".into(), units::bytes_per_second);
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
        epoch.duration_s.map_or("-".into(), units::seconds),
        percent(epoch.au.all_steps_percent),
        epoch
            .throughput
            .delivered_bytes_per_second
            .whole
            .map_or("-".into(), units::bytes_per_second),
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

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1} %"))
}

fn both(rate: Rate, text: impl Fn(f64) -> String) -> String {
    let one = |value: Option<f64>| value.map_or("-".into(), &text);
    format!("{} over whole epochs, {} in the window", one(rate.whole), one(rate.windowed))
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
