//! Formats the timeline and the phases of a run as CSV files for plots. This module computes no figures.

use crate::phase::{Phase, PhaseKind, phases, stall_shares};
use crate::record::timeline::{Column, Timeline};
use crate::record::{CheckpointKind, EpochRecord, Record};
use crate::window::{seconds, share};
use std::fmt::Write as _;

/// Names of the files. Only the first exists without a timeline.
pub const NAMES: [&str; 2] = ["phases.csv", "timeline.csv"];

/// Returns names and contents of the files: `phases.csv`, and `timeline.csv` if the run has a timeline.
pub fn files(record: &Record) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(NAMES[0].to_string(), phases_csv(record).into_bytes())];
    if let Some(timeline) = &record.timeline {
        files.push((NAMES[1].to_string(), timeline_csv(record, timeline).into_bytes()));
    }
    files
}

/// One row per phase; an empty cell is an unknown value.
fn phases_csv(record: &Record) -> String {
    let rows = phases(record);
    let gpus = rows.iter().find_map(|row| row.gpus.as_ref()).map_or(0, Vec::len);
    let mut text = String::from(
        "phase,epoch,checkpoint,after_step,start_s,duration_s,steps,samples_per_second,delivered_bytes_per_second,device_bytes_per_second,\
         written_bytes,written_bytes_per_second,device_written_bytes_per_second,au_percent,stall_share,cpu_busy_share",
    );
    finish_header(&mut text, gpus);
    for row in &rows {
        phase_row(&mut text, row);
    }
    text
}

fn phase_row(text: &mut String, row: &Phase) {
    text.push_str(row.phase.name());
    put(text, Some(row.epoch));
    put(text, row.checkpoint.map(CheckpointKind::name));
    put(text, row.after_step);
    put(text, Some(row.start_s));
    put(text, Some(row.duration_s));
    put(text, Some(row.steps));
    put(text, row.samples_per_second);
    put(text, row.delivered_bytes_per_second);
    put(text, row.device_bytes_per_second);
    put(text, row.written_bytes);
    put(text, row.written_bytes_per_second);
    put(text, row.device_written_bytes_per_second);
    put(text, row.au_percent);
    put(text, row.stall_share);
    put(text, row.cpu_busy_share);
    for gpu in row.gpus.iter().flatten() {
        put(text, gpu.utilisation_percent);
        put(text, gpu.memory_bytes);
        put(text, gpu.power_w);
    }
    text.push('\n');
}

/// One row per sample; an empty cell is an unknown value. `during` names the phase that contains the middle of the sample: a checkpoint,
/// an epoch, an evaluation, or none.
fn timeline_csv(record: &Record, timeline: &Timeline) -> String {
    let mut text = String::from(
        "start_s,end_s,epoch,during,read_bytes,operations,written_bytes,stall_share,process_device_read_bytes,device_read_bytes,\
         device_written_bytes,cpu_busy_share,process_cpu_s,page_cache_bytes",
    );
    finish_header(&mut text, timeline.gpus.as_ref().map_or(0, Vec::len));
    let spans = TimeSpans::new(record);
    let stalls = stall_shares(record, timeline);
    for (i, end_ns) in timeline.ends_ns().into_iter().enumerate() {
        let start_ns = end_ns - timeline.duration_ns[i];
        let middle_ns = end_ns - timeline.duration_ns[i] / 2;
        // An epoch may contain checkpoints, so checkpoints are tried first.
        let span =
            span_at(&spans.checkpoints, middle_ns).or_else(|| span_at(&spans.epochs, middle_ns));
        let busy = value(&timeline.cpu_busy_ticks, i).zip(value(&timeline.cpu_ticks, i));
        let _ = write!(text, "{},{}", seconds(start_ns), seconds(end_ns));
        put(&mut text, span.map(|span| span.epoch));
        put(&mut text, span.map(|span| span.during.name()));
        put(&mut text, value(&timeline.read_bytes, i));
        put(&mut text, value(&timeline.operations, i));
        put(&mut text, value(&timeline.written_bytes, i));
        put(&mut text, stalls[i]);
        put(&mut text, value(&timeline.process_device_read_bytes, i));
        put(&mut text, value(&timeline.device_read_bytes, i));
        put(&mut text, value(&timeline.device_written_bytes, i));
        put(&mut text, busy.and_then(|(busy, total)| share(busy, total)));
        put(&mut text, value(&timeline.process_cpu_ns, i).map(seconds));
        put(&mut text, value(&timeline.cached_bytes, i));
        for gpu in timeline.gpus.iter().flatten() {
            put(&mut text, gpu.utilisation_percent[i]);
            put(&mut text, gpu.memory_bytes[i]);
            put(&mut text, gpu.power_mw[i].map(|mw| mw as f64 / 1000.0));
        }
        text.push('\n');
    }
    text
}

fn value(column: &Column, sample: usize) -> Option<u64> {
    column.as_ref().map(|values| values[sample])
}

/// Time span of an epoch, an evaluation or a checkpoint, in nanoseconds from the start of the run.
#[derive(Clone, Copy)]
struct TimeSpan {
    start_ns: u64,
    end_ns: u64,
    epoch: u32,
    during: PhaseKind,
}

/// Time spans of a run, sorted by start.
struct TimeSpans {
    checkpoints: Vec<TimeSpan>,
    /// Epochs and evaluations.
    epochs: Vec<TimeSpan>,
}

impl TimeSpans {
    fn new(record: &Record) -> Self {
        let mut spans = TimeSpans { checkpoints: Vec::new(), epochs: Vec::new() };
        for epoch in &record.epochs {
            spans.add(epoch, PhaseKind::Epoch);
        }
        for evaluation in &record.evaluations {
            spans.add(evaluation, PhaseKind::Evaluation);
        }
        spans.checkpoints.sort_by_key(|span| span.start_ns);
        spans.epochs.sort_by_key(|span| span.start_ns);
        spans
    }

    fn add(&mut self, epoch: &EpochRecord, during: PhaseKind) {
        self.epochs.push(TimeSpan {
            start_ns: epoch.start_ns,
            end_ns: epoch.end_ns,
            epoch: epoch.number,
            during,
        });
        self.checkpoints.extend(epoch.checkpoints.iter().map(|checkpoint| TimeSpan {
            start_ns: checkpoint.start_ns,
            end_ns: checkpoint.end_ns,
            epoch: epoch.number,
            during: PhaseKind::Checkpoint,
        }));
    }
}

/// The time span that contains `ns`, if any.
fn span_at(spans: &[TimeSpan], ns: u64) -> Option<&TimeSpan> {
    let started = spans.partition_point(|span| span.start_ns <= ns);
    spans[..started].last().filter(|span| ns < span.end_ns)
}

/// Appends the columns of the GPUs and ends the line.
fn finish_header(text: &mut String, gpus: usize) {
    for gpu in 0..gpus {
        let _ =
            write!(text, ",gpu{gpu}_utilisation_percent,gpu{gpu}_memory_bytes,gpu{gpu}_power_w");
    }
    text.push('\n');
}

/// Appends a comma and a cell to a row that already has a cell.
fn put(text: &mut String, value: Option<impl std::fmt::Display>) {
    text.push(',');
    if let Some(value) = value {
        // Writing to a string cannot fail.
        let _ = write!(text, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{block, checkpoint, epoch, plan, record};
    use crate::record::CheckpointRecord;
    use crate::record::timeline::Sample;
    use std::collections::BTreeMap;

    #[test]
    fn each_sample_names_its_phase() {
        let mut first =
            epoch(1, vec![vec![block(0, &[(25, 75, 0, 1000)]), block(300, &[(100, 0, 0, 1)])]]);
        let kind = CheckpointKind::Load;
        first.checkpoints = vec![CheckpointRecord { kind, ..checkpoint(100, 190, 7, 1) }];
        let mut record = record(plan(1, 2), vec![first]);
        let mut timeline = Timeline::new(0);
        for i in 0..5 {
            let sample =
                Sample { duration_ns: 100_000_000, operations: Some(i), ..Sample::default() };
            timeline.push(&sample, &[]);
        }
        record.timeline = Some(timeline);
        let files: BTreeMap<String, Vec<u8>> = files(&record).into_iter().collect();
        let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
        let rows = text("timeline.csv");
        let rows: Vec<&str> = rows.lines().skip(1).collect();
        assert_eq!(
            rows,
            [
                "0,0.1,1,epoch,,0,,0.25,,,,,,",
                "0.1,0.2,1,checkpoint,,1,,,,,,,,",
                "0.2,0.3,1,epoch,,2,,,,,,,,",
                "0.3,0.4,1,epoch,,3,,1,,,,,,",
                "0.4,0.5,,,,4,,,,,,,,",
            ]
        );
        for name in ["timeline.csv", "phases.csv"] {
            let text = text(name);
            let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert!(columns.iter().all(|count| *count == columns[0]), "{text}");
        }
        let rows = text("phases.csv");
        let first: Vec<String> =
            rows.lines().map(|row| row.split(',').take(4).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            first,
            [
                "phase epoch checkpoint after_step",
                "epoch 1  ",
                "before_checkpoint 1 load 1",
                "checkpoint 1 load 1",
                "after_checkpoint 1 load 1",
            ]
        );
    }
}
