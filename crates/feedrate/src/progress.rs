//! The line of what goes on, on stderr: in a terminal always the newest, elsewhere a plain one now and then. A run that another
//! process of ours has started leaves it in a file, for that process to show.

use crate::{interrupt, messages, text};
use feedrate_run::clock::Clock;
use feedrate_run::live::{Live, LiveBytes, LivePhase};
use feedrate_spec::plan::TrainPlan;
use feedrate_spec::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the line is drawn in a terminal.
const TICK: Duration = Duration::from_millis(200);
/// How often it is left in a file.
const FILE_PERIOD: Duration = Duration::from_secs(1);
/// Seconds from one plain line to the next, where the user gives none.
const PLAIN_S: f64 = 10.0;
/// The user gives them here; 0 for no lines.
const PLAIN_VARIABLE: &str = "FEEDRATE_PROGRESS_S";
/// Columns of a terminal that everybody has, but for the last: a line that fills it up wraps in some.
const COLUMNS: usize = 79;
/// A trial has a few more, as its changes are what is looked at.
const RUN_COLUMNS: usize = 64;
/// Between the parts of a line, of which the last go first where there is no room.
const BETWEEN: &str = " · ";

/// Who looks at the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// Nobody wants it.
    Nobody,
    /// The user.
    User,
    /// The process that has started this one, which reads this file.
    Parent(PathBuf),
}

/// A line that is kept up to date until it is dropped.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    /// Its end is the word to stop.
    drawer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl LiveLine {
    /// `text` makes the line from the time since it was begun; an empty one is not shown.
    pub(crate) fn start(
        viewer: Viewer,
        mut text: impl FnMut(Duration) -> String + Send + 'static,
    ) -> Self {
        let is_live = messages::is_live();
        let period = match viewer {
            Viewer::Nobody => None,
            Viewer::User if is_live => Some(TICK),
            Viewer::User => plain_period(),
            Viewer::Parent(_) => Some(FILE_PERIOD),
        };
        let is_drawn = viewer == Viewer::User && is_live;
        let bar = if is_drawn { bar() } else { ProgressBar::hidden() };
        let Some(period) = period else { return LiveLine { bar, drawer: None } };
        let (own, begun) = (bar.clone(), Instant::now());
        let (stop, stopped) = mpsc::channel();
        let draw = move || {
            interrupt::leave_to_others();
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                let line = fitted(&text(begun.elapsed()));
                match &viewer {
                    _ if line.is_empty() => {}
                    // Nobody waits for it, and a later one says the same.
                    Viewer::Parent(file) => drop(std::fs::write(file, &line)),
                    _ if is_drawn => own.set_message(line),
                    _ => messages::note(&line),
                }
            }
            if let Viewer::Parent(file) = &viewer {
                let _ = std::fs::remove_file(file);
            }
        };
        // Without a thread there is no line, and nothing else is amiss.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw).ok();
        LiveLine { bar, drawer: thread.map(|thread| (stop, thread)) }
    }

    /// Whether it is drawn in a terminal, in which nothing else tells of what goes on.
    pub(crate) fn is_drawn(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// A line above it that stays.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| messages::note(text));
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawer.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

/// `None` where the user wants no plain lines.
fn plain_period() -> Option<Duration> {
    let given = std::env::var(PLAIN_VARIABLE).ok().and_then(|text| text.parse().ok());
    let period = Duration::try_from_secs_f64(given.unwrap_or(PLAIN_S)).ok();
    period.filter(|period| !period.is_zero())
}

/// Something that tells nothing of itself but that it goes on, and that changes on the way.
pub(crate) fn taking_turns(what: impl Fn() -> String + Send + 'static, viewer: Viewer) -> LiveLine {
    LiveLine::start(viewer, move |elapsed| join([what(), whole_seconds(elapsed)]))
}

/// A run of ours in another process, which tells of itself in `file`.
pub(crate) fn run_of(what: &str, viewer: Viewer, file: PathBuf) -> LiveLine {
    let what = text::cut(what, RUN_COLUMNS);
    LiveLine::start(viewer, move |elapsed| join([what.clone(), told(Some(&file), elapsed)]))
}

/// The line that a run has left in `file`; where there is none, how long nothing is known of it.
pub(crate) fn told(file: Option<&Path>, elapsed: Duration) -> String {
    let line = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if line.is_empty() { whole_seconds(elapsed) } else { line }
}

/// Files that are made or read, with the counter of the bytes that are done.
pub(crate) fn of_files(
    what: &'static str,
    total_bytes: u64,
    viewer: Viewer,
) -> (LiveLine, Arc<AtomicU64>) {
    let done = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&done);
    let text = move |elapsed: Duration| {
        let done = own.load(Relaxed);
        join([what.to_string(), bytes(done, Some(total_bytes), "≈ ", elapsed.as_secs_f64())])
    };
    (LiveLine::start(viewer, text), done)
}

/// A run of this process.
pub(crate) fn run(
    live: Arc<Live>,
    clock: Clock,
    plan: TrainPlan,
    own_accelerators: usize,
    viewer: Viewer,
) -> LiveLine {
    let run = LiveRun { live, plan, own_accelerators };
    LiveLine::start(viewer, move |_| run.line(clock.now_ns()))
}

struct LiveRun {
    live: Arc<Live>,
    plan: TrainPlan,
    own_accelerators: usize,
}

impl LiveRun {
    fn line(&self, now_ns: u64) -> String {
        let live = &self.live;
        let is_training = live.epoch.load(Relaxed) > 0;
        match live.phase() {
            LivePhase::Prepares => "preparing".into(),
            LivePhase::Copies => {
                join(["copying the dataset".into(), of_bytes(&live.bytes, "≈ ", now_ns)])
            }
            LivePhase::Trains | LivePhase::Evaluates => self.steps(now_ns),
            phase => {
                let does = if phase == LivePhase::Saves { "writing" } else { "reading" };
                let (at, of) = (live.step.load(Relaxed) + 1, live.steps.load(Relaxed));
                let place = if is_training {
                    format!("{} checkpoint", self.place())
                } else {
                    format!("{does} checkpoint {at}/{of}")
                };
                join([place, of_bytes(&live.bytes, "", now_ns)])
            }
        }
    }

    /// `epoch 1/10 step 3/100`.
    fn place(&self) -> String {
        let live = &self.live;
        let what = if live.phase() == LivePhase::Evaluates { "evaluation" } else { "step" };
        let (step, steps) = (live.step.load(Relaxed), live.steps.load(Relaxed));
        format!(
            "epoch {}/{} {what} {step}/{steps}",
            live.epoch.load(Relaxed),
            self.plan.epochs_run()
        )
    }

    fn steps(&self, now_ns: u64) -> String {
        let live = &self.live;
        if live.step.load(Relaxed) == 0 {
            // What there is of figures is of the epoch before.
            return join([self.place(), self.left(now_ns)]);
        }
        let [load_ns, compute_ns, barrier_ns] =
            [&live.load_ns, &live.compute_ns, &live.barrier_ns].map(|of| of.load(Relaxed) as f64);
        let all_ns = load_ns + compute_ns + barrier_ns;
        let percent = |part_ns: f64| format!("{:.1} %", 100.0 * part_ns / all_ns);
        let (mut utilisation, mut stall) = (String::new(), String::new());
        if compute_ns > 0.0 {
            utilisation = format!("AU {}", percent(compute_ns));
            stall = format!("stall {}", percent(load_ns));
        }
        let steps_s = all_ns / 1e9 / self.own_accelerators as f64;
        let rate = rate(live.read_bytes.load(Relaxed), steps_s);
        join([self.place(), utilisation, self.left(now_ns), rate, stall])
    }

    /// Time that is left as far as all steps take as long as those that are done, with what lay between them.
    fn left(&self, now_ns: u64) -> String {
        let live = &self.live;
        let before = u64::from(live.epoch.load(Relaxed).saturating_sub(1));
        let mut done = before.saturating_mul(self.plan.steps_per_epoch);
        done += match live.phase() {
            LivePhase::Evaluates => self.plan.steps_per_epoch,
            _ => live.step.load(Relaxed),
        };
        let elapsed_ns = now_ns.saturating_sub(live.begun_ns.load(Relaxed));
        left(done, self.plan.steps(), elapsed_ns as f64 / 1e9)
    }
}

fn of_bytes(of: &LiveBytes, about: &str, now_ns: u64) -> String {
    let elapsed_ns = now_ns.saturating_sub(of.begun_ns.load(Relaxed));
    let total = Some(of.total.load(Relaxed)).filter(|&total| total > 0);
    bytes(of.done.load(Relaxed), total, about, elapsed_ns as f64 / 1e9)
}

/// `1.2 GB of ≈ 4 GB · ≈ 7 s left · 400 MB/s`: `about` is before a total that is an estimate.
fn bytes(done: u64, total: Option<u64>, about: &str, elapsed_s: f64) -> String {
    let total = total.filter(|&total| done <= total);
    let of = total.map_or(String::new(), |total| format!(" of {about}{}", units::bytes(total)));
    let left = total.map_or(String::new(), |total| left(done, total, elapsed_s));
    join([format!("{}{of}", units::bytes(done)), left, rate(done, elapsed_s)])
}

fn rate(bytes: u64, elapsed_s: f64) -> String {
    if bytes == 0 || elapsed_s <= 0.0 {
        return String::new();
    }
    units::bytes_per_second_rounded(bytes as f64 / elapsed_s)
}

/// `≈ 3 min left`; nothing where nothing is done, from which it could be told.
fn left(done: u64, total: u64, elapsed_s: f64) -> String {
    let left_s = elapsed_s * total.saturating_sub(done) as f64 / done as f64;
    if done == 0 || left_s.round() < 1.0 {
        return String::new();
    }
    format!("≈ {} left", rough_seconds(left_s))
}

/// Seconds, or minutes where there are many.
pub(crate) fn rough_seconds(seconds: f64) -> String {
    let whole = if seconds < 120.0 { 1.0 } else { 60.0 };
    units::seconds((seconds / whole).round() * whole)
}

fn whole_seconds(elapsed: Duration) -> String {
    units::seconds(elapsed.as_secs_f64().floor())
}

/// The parts that there are.
pub(crate) fn join<const N: usize>(parts: [String; N]) -> String {
    let there: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    there.join(BETWEEN)
}

/// The line without the last of its parts, as far as there is no room for them.
fn fitted(line: &str) -> String {
    let mut line = line;
    while line.chars().count() > COLUMNS
        && let Some((shorter, _)) = line.rsplit_once(BETWEEN)
    {
        line = shorter;
    }
    if line.chars().count() <= COLUMNS { line.into() } else { text::cut(line, COLUMNS - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Ten epochs of a hundred steps on two accelerators, in the third: 30 s of computing, 10 s of stall and 10 s at the barrier
    /// on each, and 4 GB.
    fn third_epoch(phase: LivePhase) -> LiveRun {
        let live = Live::default();
        live.enter(phase);
        live.epoch.store(3, Relaxed);
        live.begun_ns.store(7 * S, Relaxed);
        live.step.store(50, Relaxed);
        live.steps.store(100, Relaxed);
        for (of, seconds) in [(&live.load_ns, 10), (&live.compute_ns, 30), (&live.barrier_ns, 10)] {
            of.store(2 * seconds * S, Relaxed);
        }
        live.read_bytes.store(4_000_000_000, Relaxed);
        let plan = TrainPlan { epochs: 10, steps_per_epoch: 100, ..TrainPlan::default() };
        LiveRun { live: Arc::new(live), plan, own_accelerators: 2 }
    }

    #[test]
    fn a_line_tells_step_time_left_utilisation_rate_and_stall() {
        let run = third_epoch(LivePhase::Trains);
        // A quarter of all steps took 50 s.
        assert_eq!(
            run.line(57 * S),
            "epoch 3/10 step 50/100 · AU 60.0 % · ≈ 3 min left · 80 MB/s · stall 20.0 %"
        );
        run.live.compute_ns.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 3/10 step 50/100 · ≈ 3 min left · 200 MB/s");
        // Figures are still those of the epoch before.
        run.live.step.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 3/10 step 0/100 · ≈ 3 min left");
    }

    #[test]
    fn what_nothing_is_known_of_is_left_out() {
        let run = third_epoch(LivePhase::Trains);
        run.live.epoch.store(1, Relaxed);
        run.live.step.store(0, Relaxed);
        assert_eq!(run.line(57 * S), "epoch 1/10 step 0/100");
        run.live.enter(LivePhase::Prepares);
        assert_eq!(run.line(57 * S), "preparing");
    }

    #[test]
    fn an_evaluation_is_no_step_of_training() {
        let run = third_epoch(LivePhase::Evaluates);
        assert!(
            run.line(67 * S).starts_with("epoch 3/10 evaluation 50/100 · AU 60.0 % · ≈ 2 min left")
        );
    }

    #[test]
    fn copies_and_checkpoints_tell_what_is_done() {
        let run = third_epoch(LivePhase::Copies);
        run.live.bytes.begin(Some(40_000_000), 3 * S);
        run.live.bytes.done.store(10_000_000, Relaxed);
        assert_eq!(run.line(5 * S), "copying the dataset · 10 MB of ≈ 40 MB · ≈ 6 s left · 5 MB/s");
        let done = "10 MB of 40 MB · ≈ 6 s left · 5 MB/s";
        run.live.enter(LivePhase::Saves);
        let place = "epoch 3/10 step 50/100 checkpoint";
        assert_eq!(run.line(5 * S), format!("{place} · {done}"));
        run.live.enter(LivePhase::Loads);
        run.live.epoch.store(0, Relaxed);
        assert_eq!(run.line(5 * S), format!("reading checkpoint 51/100 · {done}"));
        // What one of several processes has to do is not known.
        run.live.bytes.begin(None, 3 * S);
        assert_eq!(run.line(5 * S), "reading checkpoint 51/100 · 0 B");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut run = third_epoch(LivePhase::Trains);
        run.plan.steps_per_epoch = 2_000_000;
        run.live.step.store(1_000_000, Relaxed);
        run.live.steps.store(2_000_000, Relaxed);
        let line = fitted(&run.line(57 * S));
        assert_eq!(line, "epoch 3/10 step 1000000/2000000 · AU 60.0 % · ≈ 3 min left · 80 MB/s");
        for what in ["a word ".repeat(40), "word".repeat(40)] {
            assert!(fitted(&what).chars().count() <= COLUMNS, "{what}");
        }
        for line in ["as it is · 3 s".to_string(), "x".repeat(COLUMNS - 6) + " · 3 s"] {
            assert_eq!(fitted(&line), line);
        }
    }

    #[test]
    fn a_run_elsewhere_tells_of_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let after = Duration::from_millis(2900);
        assert_eq!(told(Some(&file), after), "2 s");
        std::fs::write(&file, "epoch 1/2 step 1/2").unwrap();
        assert_eq!(told(Some(&file), after), "epoch 1/2 step 1/2");
    }
}
