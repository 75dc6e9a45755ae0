//! Phases of hand-made records and timelines, compared with figures computed by hand.

use super::*;
use crate::example::{block, checkpoint, epoch, plan, record};
use crate::record::timeline::{GpuSample, Sample};

const MS: u64 = 1_000_000;

/// A timeline from samples of (milliseconds, bytes read, bytes written, busy ticks of 10).
fn timeline(samples: &[(u64, u64, u64, u64)]) -> Timeline {
    let mut timeline = Timeline::new(0);
    timeline.set_gpus(&["A".into()]);
    for &(ms, read, written, busy) in samples {
        let sample = Sample {
            duration_ns: ms * MS,
            read_bytes: Some(read),
            operations: Some(1),
            written_bytes: Some(written),
            cpu_busy_ticks: Some(busy),
            cpu_ticks: Some(10),
            ..Sample::default()
        };
        let gpu = GpuSample { utilisation_percent: Some(busy), ..GpuSample::default() };
        timeline.push(&sample, &[gpu]);
    }
    timeline
}

/// Two accelerators with two blocks of two steps, 100 ms each. The first accelerator loads for a quarter of a step, the second for half.
/// A checkpoint of 20 ms follows each block, and an evaluation of one step starts 10 ms after the last checkpoint.
fn run() -> Record {
    let fast = |at| block(at, &[(25, 70, 5, 1000), (25, 70, 5, 1000)]);
    let slow = |at| block(at, &[(50, 50, 0, 1000), (50, 50, 0, 1000)]);
    let mut first = epoch(1, vec![vec![fast(0), fast(220)], vec![slow(0), slow(220)]]);
    first.checkpoints = vec![checkpoint(200, 220, 500, 2), checkpoint(420, 440, 500, 4)];
    let evaluation =
        epoch(1, vec![vec![block(450, &[(10, 90, 0, 30)])], vec![block(450, &[(10, 90, 0, 30)])]]);
    let mut record = record(plan(2, 4), vec![first]);
    record.evaluations = vec![evaluation];
    record.timeline = Some(timeline(&[
        (100, 3000, 0, 5),
        (100, 1000, 0, 6),
        (20, 0, 500, 10),
        (100, 2000, 0, 7),
        (100, 2000, 0, 8),
        (20, 0, 500, 9),
        (10, 0, 0, 0),
        (100, 60, 0, 2),
    ]));
    record
}

#[test]
fn phases_match_figures_computed_by_hand() {
    use PhaseKind::*;
    let rows = phases(&run());
    let spans: Vec<_> = rows
        .iter()
        .map(|row| {
            let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
            (row.phase, row.after_step, ms(row.start_s), ms(row.duration_s), row.steps)
        })
        .collect();
    assert_eq!(
        spans,
        [
            (Epoch, None, 0, 420, 4),
            (BeforeCheckpoint, Some(2), 0, 200, 2),
            (Checkpoint, Some(2), 200, 20, 0),
            (AfterCheckpoint, Some(2), 220, 200, 2),
            (BeforeCheckpoint, Some(4), 220, 200, 2),
            (Checkpoint, Some(4), 420, 20, 0),
            (AfterCheckpoint, Some(4), 450, 100, 1),
            (Evaluation, None, 450, 100, 1),
        ]
    );
    let [training, before, during, after, ..] = &rows[..] else { panic!("too few phases") };
    assert_eq!(training.delivered_bytes_per_second, Some(8000.0 / 0.42));
    assert_eq!(training.written_bytes, Some(500), "the checkpoint between its blocks");
    // Each of the two accelerators takes 100 ms for a batch.
    let batch = run().plan.loader.batch_size as f64;
    assert_eq!(before.samples_per_second, Some(20.0 * batch));
    assert_eq!(training.samples_per_second, Some(8.0 * batch / 0.42));
    assert_eq!((during.samples_per_second, rows[6].samples_per_second), (None, None));
    assert_eq!(training.au_percent, Some((70.0 + 50.0) / 2.0));
    assert_eq!(training.stall_share, Some(0.375));
    assert_eq!(before.delivered_bytes_per_second, Some(4000.0 / 0.2));
    assert_eq!((before.written_bytes, before.cpu_busy_share), (Some(0), Some(0.55)));
    assert_eq!((before.au_percent, before.stall_share), (Some(60.0), Some(0.375)));
    assert_eq!(after.cpu_busy_share, Some(0.75));
    assert_eq!(after.gpus.as_ref().unwrap()[0].utilisation_percent, Some(7.5));
    assert_eq!(during.written_bytes_per_second, Some(500.0 / 0.02));
    assert_eq!((during.delivered_bytes_per_second, during.steps), (Some(0.0), 0));
    assert_eq!((during.au_percent, during.stall_share), (None, None), "it contains no step");
    assert_eq!(during.device_bytes_per_second, None, "unknown");
    let evaluation = &rows[7];
    assert_eq!(evaluation.au_percent, Some(90.0));
    assert_eq!(evaluation.stall_share, Some(0.1));
}

#[test]
fn phases_of_a_checkpoint_are_grouped() {
    let mut record = run();
    record.epochs[0].checkpoints.push(checkpoint(441, 449, 500, 4));
    let rows = phases(&record);
    let found: Vec<_> = checkpoint_phases(&rows, CheckpointKind::Save)
        .map(|group| {
            let start_ms =
                |row: Option<&Phase>| row.map(|row| (row.start_s * 1000.0).round() as u64);
            (start_ms(group.before), start_ms(Some(group.during)), start_ms(group.after))
        })
        .collect();
    let expected = [
        (Some(0), Some(200), Some(220)),
        (Some(220), Some(420), None),
        // No step runs between the last two checkpoints.
        (None, Some(441), Some(450)),
    ];
    assert_eq!(found, expected);
}

/// An accelerator with two blocks of `steps` steps of 100 ms and a checkpoint between them. The first `hidden_ms` of the load after the
/// checkpoint happened during the checkpoint. A sample of the timeline covers each step, and one the checkpoint.
fn run_around_checkpoint(steps: usize, checkpoint_ms: u64, hidden_ms: u64) -> Record {
    let before = vec![(60, 40, 0, 1000); steps];
    let mut after = before.clone();
    after[0].0 -= hidden_ms;
    let start_ms = 100 * steps as u64;
    let end_ms = start_ms + checkpoint_ms;
    let mut first = epoch(1, vec![vec![block(0, &before), block(end_ms, &after)]]);
    first.checkpoints = vec![checkpoint(start_ms, end_ms, 500, steps as u64)];
    let mut samples = vec![(100, 1000, 0, 5); steps];
    samples.push((checkpoint_ms, 1000 * hidden_ms / 60, 500, 5));
    samples.extend(vec![(100, 1000, 0, 5); steps]);
    samples[steps + 1] = (100 - hidden_ms, 1000 - 1000 * hidden_ms / 60, 0, 5);
    Record { timeline: Some(timeline(&samples)), ..record(plan(1, 2 * steps as u64), vec![first]) }
}

/// Checks the duration in milliseconds and the whole steps of the phase before and after the checkpoint.
#[track_caller]
fn check_windows(record: &Record, before: (u64, u64), after: (u64, u64)) {
    let rows = phases(record);
    let group = checkpoint_phases(&rows, CheckpointKind::Save).next().unwrap();
    let window =
        |row: Option<&Phase>| row.map(|row| ((row.duration_s * 1e3).round() as u64, row.steps));
    assert_eq!((window(group.before), window(group.after)), (Some(before), Some(after)));
}

#[test]
fn phases_around_short_checkpoints_have_four_steps_or_the_whole_interval() {
    check_windows(&run_around_checkpoint(8, 80, 0), (800, 8), (800, 8));
    check_windows(&run_around_checkpoint(8, 45, 0), (450, 4), (450, 4));
    check_windows(&run_around_checkpoint(8, 4, 0), (400, 4), (400, 4));
    check_windows(&run_around_checkpoint(3, 4, 0), (300, 3), (300, 3));
    check_windows(&run_around_checkpoint(1, 4, 0), (100, 1), (100, 1));
    // Six workers deliver six batches together.
    let mut record = run_around_checkpoint(8, 4, 0);
    record.plan.loader.workers = 6;
    check_windows(&record, (600, 6), (600, 6));
}

#[test]
fn steps_and_samples_that_a_phase_cuts_are_shared_by_time() {
    let rows = phases(&run_around_checkpoint(8, 45, 0));
    let [_, before, _, after] = &rows[..] else { panic!("too few phases") };
    let batch = run().plan.loader.batch_size as f64;
    for phase in [before, after] {
        assert_eq!((phase.steps, phase.shared_steps), (4, 4.5));
        assert_eq!(phase.samples_per_second, Some(10.0 * batch));
        let read = phase.delivered_bytes_per_second.unwrap();
        assert!((read - 10_000.0).abs() < 1e-6, "{read}");
        assert_eq!(phase.written_bytes, Some(0));
    }
    // 50 ms of the first step are its compute time of 40 ms and 10 ms of its load time.
    assert_eq!(before.au_percent.map(f64::round), Some((100.0_f64 * 200.0 / 450.0).round()));
    assert_eq!(before.stall_share, Some(250.0 / 450.0));
}

#[test]
fn the_net_cost_of_a_checkpoint_includes_what_later_steps_gain() {
    let cost_ms = |record: &Record| {
        let rows = phases(record);
        let group = checkpoint_phases(&rows, CheckpointKind::Save).next().unwrap();
        group.net_cost_s().map(|cost_s| (cost_s * 1e6).round() / 1e3)
    };
    assert_eq!(cost_ms(&run_around_checkpoint(8, 45, 0)), Some(45.0));
    // Reads continued during the checkpoint.
    assert_eq!(cost_ms(&run_around_checkpoint(8, 45, 45)), Some(0.0));
    assert_eq!(cost_ms(&run_around_checkpoint(8, 4, 3)), Some(1.0));
    assert_eq!(cost_ms(&run_around_checkpoint(3, 4, 0)), None, "too few steps");
    let mut record = run_around_checkpoint(5, 4, 0);
    assert_eq!(cost_ms(&record), Some(4.0));
    record.plan.loader.workers = 6;
    assert_eq!(cost_ms(&record), None, "a worker has no batch");
}

#[test]
fn phases_of_a_checkpoint_during_training_are_found() {
    let mut record = run();
    record.epochs[0].checkpoints = vec![checkpoint(240, 260, 500, 2)];
    let rows = phases(&record);
    let spans = rows[1..4].iter().map(|row| (row.start_s, row.duration_s));
    // Neither interval around the checkpoint has four steps.
    assert_eq!(spans.collect::<Vec<_>>(), [(0.22, 0.02), (0.24, 0.02), (0.26, 0.16)]);
    // One accelerator waits until 245 ms, the other until 270 ms.
    assert_eq!(rows[2].stall_share, Some(0.625));
}

#[test]
fn without_a_timeline_figures_come_from_epochs_alone() {
    let with_timeline = phases(&run());
    let without_timeline = phases(&Record { timeline: None, ..run() });
    assert_eq!(without_timeline.len(), with_timeline.len());
    assert_eq!(
        without_timeline[0].delivered_bytes_per_second,
        with_timeline[0].delivered_bytes_per_second
    );
    assert_eq!(without_timeline[1].au_percent, with_timeline[1].au_percent);
    assert_eq!(
        (without_timeline[1].delivered_bytes_per_second, without_timeline[2].written_bytes),
        (None, None)
    );
    assert!(without_timeline[2].gpus.is_none() && phases(&record(plan(1, 1), vec![])).is_empty());
}

#[test]
fn stall_shares_of_samples_match_figures_computed_by_hand() {
    let record = run();
    let shares = stall_shares(&record, record.timeline.as_ref().unwrap());
    let expected = [0.375, 0.375, -1.0, 0.375, 0.375, -1.0, -1.0, 0.1];
    assert_eq!(shares, expected.map(|share| (share >= 0.0).then_some(share)));
}
