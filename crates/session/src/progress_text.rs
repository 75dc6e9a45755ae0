//! Texts of progress about runs and about files that are generated or read, with rates and the remaining time.

use crate::live_table::{LiveDoubt, Loaders};
use feedrate_run::clock::Clock;
use feedrate_run::driver::WorkProgress;
use feedrate_run::live::{Live, LiveBytes, LivePhase};
use feedrate_spec::listener::ProgressText;
use feedrate_spec::plan::TrainPlan;
use feedrate_spec::units;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Separates the parts of a line. The last parts are left out first if there is no room.
pub const SEPARATOR: &str = " · ";

/// Returns the text about the run of this process, which has `accelerators` accelerators. `work`: of its training and its evaluation.
pub(crate) fn run(
    live: Arc<Live>,
    clock: Clock,
    plan: TrainPlan,
    accelerators: usize,
    work: Vec<WorkProgress>,
    doubt: LiveDoubt,
) -> ProgressText {
    let run = LiveRun { live, plan, accelerators };
    let mut loaders: Vec<Loaders> = work.into_iter().map(Loaders::new).collect();
    Box::new(move |_| {
        let now_ns = clock.now_ns();
        let mut lines = vec![run.line(now_ns)];
        let evaluates = run.live.phase() == LivePhase::Evaluates;
        if run.live.epoch.load(Relaxed) > 0
            && let Some(loaders) = loaders.get_mut(usize::from(evaluates))
        {
            lines.extend(loaders.table(now_ns));
        }
        lines.extend(doubt.line());
        lines.join("\n")
    })
}

/// Returns the text about files that are generated or read, with the counter of processed bytes.
pub fn files(action: &'static str, total_bytes: u64) -> (ProgressText, Arc<AtomicU64>) {
    let done = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&done);
    let text = move |elapsed: Duration| {
        let done_bytes = done.load(Relaxed);
        join([
            action.to_string(),
            bytes(done_bytes, Some(total_bytes), "≈ ", elapsed.as_secs_f64()),
        ])
    };
    (Box::new(text), counter)
}

struct LiveRun {
    live: Arc<Live>,
    plan: TrainPlan,
    accelerators: usize,
}

impl LiveRun {
    fn line(&self, now_ns: u64) -> String {
        let live = &self.live;
        let is_training = live.epoch.load(Relaxed) > 0;
        match live.phase() {
            LivePhase::Prepares => "preparing".into(),
            LivePhase::Waits => {
                let left_ns = live.wait_end_ns.load(Relaxed).saturating_sub(now_ns);
                let left = units::seconds((left_ns as f64 / 1e9).ceil());
                let number = live.step.load(Relaxed) + 1;
                format!("waiting {left} before checkpoint {number}/{}", live.steps.load(Relaxed))
            }
            LivePhase::Copies => {
                join(["copying the dataset".into(), live_bytes(&live.bytes, "≈ ", now_ns)])
            }
            LivePhase::Trains | LivePhase::Evaluates => self.steps(now_ns),
            phase => {
                let verb = if phase == LivePhase::Saves { "writing" } else { "reading" };
                let number = live.step.load(Relaxed) + 1;
                let count = live.steps.load(Relaxed);
                let position = if is_training {
                    format!("{} checkpoint", self.position())
                } else {
                    format!("{verb} checkpoint {number}/{count}")
                };
                join([position, live_bytes(&live.bytes, "", now_ns)])
            }
        }
    }

    /// Returns the position in the run, such as `epoch 1/10 step 3/100`.
    fn position(&self) -> String {
        let live = &self.live;
        let unit = if live.phase() == LivePhase::Evaluates { "evaluation" } else { "step" };
        let step = live.step.load(Relaxed);
        let steps = live.steps.load(Relaxed);
        format!(
            "epoch {}/{} {unit} {step}/{steps}",
            live.epoch.load(Relaxed),
            self.plan.epochs_run()
        )
    }

    fn steps(&self, now_ns: u64) -> String {
        let live = &self.live;
        if live.step.load(Relaxed) == 0 {
            // The counters still have the values of the previous epoch.
            return join([self.position(), self.remaining(now_ns)]);
        }
        let load_ns = live.load_ns.load(Relaxed) as f64;
        let compute_ns = live.compute_ns.load(Relaxed) as f64;
        let barrier_ns = live.barrier_ns.load(Relaxed) as f64;
        let all_ns = load_ns + compute_ns + barrier_ns;
        let percent = |part_ns: f64| format!("{:.1} %", 100.0 * part_ns / all_ns);
        let mut utilisation = String::new();
        let mut stall = String::new();
        if compute_ns > 0.0 {
            utilisation = format!("AU {}", percent(compute_ns));
            stall = format!("stall {}", percent(load_ns));
        }
        let steps_s = all_ns / 1e9 / self.accelerators as f64;
        let rate = rate(live.read_bytes.load(Relaxed), steps_s);
        join([self.position(), utilisation, self.remaining(now_ns), rate, stall])
    }

    /// Returns the remaining time, assuming that each remaining step takes as long as a finished step with the time after it.
    fn remaining(&self, now_ns: u64) -> String {
        let live = &self.live;
        let earlier_epochs = u64::from(live.epoch.load(Relaxed).saturating_sub(1));
        let mut done = earlier_epochs.saturating_mul(self.plan.steps_per_epoch);
        done += match live.phase() {
            LivePhase::Evaluates => self.plan.steps_per_epoch,
            _ => live.step.load(Relaxed),
        };
        let elapsed_ns = now_ns.saturating_sub(live.start_ns.load(Relaxed));
        remaining(done, self.plan.steps(), elapsed_ns as f64 / 1e9)
    }
}

fn live_bytes(live: &LiveBytes, total_prefix: &str, now_ns: u64) -> String {
    let elapsed_ns = now_ns.saturating_sub(live.start_ns.load(Relaxed));
    let total = Some(live.total.load(Relaxed)).filter(|&total| total > 0);
    bytes(live.done.load(Relaxed), total, total_prefix, elapsed_ns as f64 / 1e9)
}

/// Formats progress in bytes: `1.2 GB of ≈ 4 GB · ≈ 7 s left · 400 MB/s`. `total_prefix` is `≈ ` for an estimated total.
fn bytes(done: u64, total: Option<u64>, total_prefix: &str, elapsed_s: f64) -> String {
    let plausible_total = total.filter(|&total| done <= total);
    let done_text = match plausible_total {
        Some(total) => format!("{} of {total_prefix}{}", units::bytes(done), units::bytes(total)),
        None => units::bytes(done),
    };
    let remaining_text =
        plausible_total.map_or(String::new(), |total| remaining(done, total, elapsed_s));
    join([done_text, remaining_text, rate(done, elapsed_s)])
}

fn rate(bytes: u64, elapsed_s: f64) -> String {
    if bytes == 0 || elapsed_s <= 0.0 {
        return String::new();
    }
    units::bytes_per_second_rounded(bytes as f64 / elapsed_s)
}

/// Formats the remaining time, such as `≈ 3 min left`; empty while nothing is done.
fn remaining(done: u64, total: u64, elapsed_s: f64) -> String {
    let left_s = elapsed_s * total.saturating_sub(done) as f64 / done as f64;
    if done == 0 || left_s.round() < 1.0 {
        return String::new();
    }
    format!("≈ {} left", rough_seconds(left_s))
}

/// Formats a time in whole seconds, or from two minutes in whole minutes.
pub fn rough_seconds(seconds: f64) -> String {
    let step_s = if seconds < 120.0 { 1.0 } else { 60.0 };
    units::seconds((seconds / step_s).round() * step_s)
}

/// Formats a time in whole seconds.
pub fn whole_seconds(elapsed: Duration) -> String {
    units::seconds(elapsed.as_secs_f64().floor())
}

/// Joins the parts that are not empty.
pub fn join<const N: usize>(parts: [String; N]) -> String {
    let filled: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    filled.join(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// A run of ten epochs with a hundred steps on two accelerators, in its third epoch. Each accelerator has 30 s of computing, 10 s of
    /// stall and 10 s at the barrier; 4 GB were read.
    fn third_epoch(phase: LivePhase) -> LiveRun {
        let live = Live::default();
        live.set_phase(phase);
        live.epoch.store(3, Relaxed);
        live.start_ns.store(7 * S, Relaxed);
        live.step.store(50, Relaxed);
        live.steps.store(100, Relaxed);
        for (counter, seconds) in
            [(&live.load_ns, 10), (&live.compute_ns, 30), (&live.barrier_ns, 10)]
        {
            counter.store(2 * seconds * S, Relaxed);
        }
        live.read_bytes.store(4_000_000_000, Relaxed);
        let plan = TrainPlan { epochs: 10, steps_per_epoch: 100, ..TrainPlan::default() };
        LiveRun { live: Arc::new(live), plan, accelerators: 2 }
    }

    #[test]
    fn a_line_has_step_utilisation_remaining_time_rate_and_stall() {
        let run = third_epoch(LivePhase::Trains);
        // A quarter of all steps took 50 s.
        assert_eq!(
            run.line(57 * S),
            "epoch 3/10 step 50/100 · AU 60.0 % · ≈ 3 min left · 80 MB/s · stall 20.0 %"
        );
        run.live.compute_ns.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 3/10 step 50/100 · ≈ 3 min left · 200 MB/s");
        // The counters still have the values of the previous epoch.
        run.live.step.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 3/10 step 0/100 · ≈ 3 min left");
    }

    #[test]
    fn unknown_numbers_are_left_out() {
        let run = third_epoch(LivePhase::Trains);
        run.live.epoch.store(1, Relaxed);
        run.live.step.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 1/10 step 0/100");
        run.live.set_phase(LivePhase::Prepares);
        assert_eq!(run.line(57 * S), "preparing");
    }

    #[test]
    fn an_evaluation_shows_its_own_steps() {
        let run = third_epoch(LivePhase::Evaluates);
        assert!(
            run.line(67 * S).starts_with("epoch 3/10 evaluation 50/100 · AU 60.0 % · ≈ 2 min left")
        );
    }

    #[test]
    fn copies_and_checkpoints_show_the_finished_bytes() {
        let run = third_epoch(LivePhase::Copies);
        run.live.bytes.begin(Some(40_000_000), 3 * S);
        run.live.bytes.done.store(10_000_000, Relaxed);
        assert_eq!(run.line(5 * S), "copying the dataset · 10 MB of ≈ 40 MB · ≈ 6 s left · 5 MB/s");
        let done = "10 MB of 40 MB · ≈ 6 s left · 5 MB/s";
        run.live.set_phase(LivePhase::Saves);
        let position = "epoch 3/10 step 50/100 checkpoint";
        assert_eq!(run.line(5 * S), format!("{position} · {done}"));
        run.live.set_phase(LivePhase::Loads);
        run.live.epoch.store(0, Relaxed);
        assert_eq!(run.line(5 * S), format!("reading checkpoint 51/100 · {done}"));
        run.live.set_phase(LivePhase::Waits);
        run.live.wait_end_ns.store(9 * S, Relaxed);
        assert_eq!(run.line(5 * S), "waiting 4 s before checkpoint 51/100");
        run.live.set_phase(LivePhase::Loads);
        // The share of one of several processes is unknown.
        run.live.bytes.begin(None, 3 * S);
        assert_eq!(run.line(5 * S), "reading checkpoint 51/100 · 0 B");
    }
}
