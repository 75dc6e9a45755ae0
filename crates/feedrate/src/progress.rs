//! The live line of each phase, on stderr. Without a terminal, plain lines now and then.

use feedrate_run::driver::Live;
use feedrate_spec::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// A bar over bytes, for generation and verification.
pub(crate) fn byte_bar(what: &str, total_bytes: u64, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{msg} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr())
        .with_style(style)
        .with_message(what.to_string())
}

/// A line that moves while something goes on that tells nothing of itself.
pub(crate) fn waiting(what: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what.to_string());
    bar.enable_steady_tick(TICK);
    bar
}

/// The line of a training run; it ends when dropped.
pub(crate) struct TrainingLine {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TrainingLine {
    /// Show `live` until dropped.
    pub(crate) fn start(live: Arc<Live>, epochs: u32, quiet: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || draw(&live, epochs, &stop))
        });
        TrainingLine { stop, thread }
    }
}

impl Drop for TrainingLine {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn draw(live: &Live, epochs: u32, stop: &AtomicBool) {
    let bar = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let mut before: Option<(u64, u64)> = None;
    while !stop.load(Relaxed) {
        let now = (live.elapsed_ns.load(Relaxed), live.read_bytes.load(Relaxed));
        let rate = before.and_then(|(ns, bytes)| {
            let elapsed_s = now.0.checked_sub(ns).filter(|&ns| ns > 0)? as f64 / 1e9;
            Some(now.1.checked_sub(bytes)? as f64 / elapsed_s)
        });
        bar.set_message(line(live, epochs, rate));
        before = Some(now);
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}

fn line(live: &Live, epochs: u32, bytes_per_second: Option<f64>) -> String {
    let [load, compute, barrier] = [&live.load_ns, &live.compute_ns, &live.barrier_ns]
        .map(|counter| counter.load(Relaxed) as f64);
    let all = load + compute + barrier;
    let [utilisation, stall] = [compute, load]
        .map(|part| if all > 0.0 { format!("{:.1} %", 100.0 * part / all) } else { "-".into() });
    format!(
        "epoch {}/{epochs} · {} {}/{} · AU {utilisation} · stall {stall} · {}",
        live.epoch.load(Relaxed),
        if live.evaluates.load(Relaxed) { "evaluation" } else { "step" },
        live.step.load(Relaxed),
        live.steps.load(Relaxed),
        bytes_per_second.map_or("-".into(), units::bytes_per_second),
    )
}
