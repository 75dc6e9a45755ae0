//! The live line of each phase, on stderr. Without a terminal, plain lines now and then.

use crate::{messages, text};
use feedrate_run::driver::Live;
use feedrate_spec::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// A bar over bytes, for generation and verification.
pub(crate) fn byte_bar(what: &str, total_bytes: u64, hidden: bool) -> ProgressBar {
    if hidden || !messages::is_live() {
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
pub(crate) fn waiting(what: &str) -> ProgressBar {
    if !messages::is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what.to_string());
    bar.enable_steady_tick(TICK);
    bar
}

/// The line of a training run.
pub(crate) fn training(live: Arc<Live>, epochs: u32, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let before = Arc::new(Mutex::new((0, 0)));
    let write = move |_: &ProgressState, out: &mut dyn Write| {
        let now = (live.elapsed_ns.load(Relaxed), live.read_bytes.load(Relaxed));
        let before = before.lock().map_or(now, |mut before| std::mem::replace(&mut before, now));
        let elapsed_s = now.0.saturating_sub(before.0) as f64 / 1e9;
        let bytes = now.1.checked_sub(before.1).map(|bytes| bytes as f64);
        let rate = bytes.map(|bytes| bytes / elapsed_s).filter(|rate| rate.is_finite());
        let _ = out.write_str(&line(&live, epochs, rate));
    };
    let style = ProgressStyle::with_template("{live}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    waiting("").with_style(style.with_key("live", write))
}

fn line(live: &Live, epochs: u32, bytes_per_second: Option<f64>) -> String {
    let to_copy_bytes = live.to_copy_bytes.load(Relaxed);
    if to_copy_bytes > 0 {
        let copied = units::bytes(live.copied_bytes.load(Relaxed));
        return format!("copying the dataset · {copied} of about {}", units::bytes(to_copy_bytes));
    }
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
        text::known(bytes_per_second, units::bytes_per_second),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_before_training_is_told_while_it_lasts() {
        let live = Live::default();
        assert!(line(&live, 2, None).starts_with("epoch 0/2 · step 0/0 · "));
        live.to_copy_bytes.store(40_000_000, Relaxed);
        live.copied_bytes.store(12_000_000, Relaxed);
        assert_eq!(line(&live, 2, None), "copying the dataset · 12 MB of about 40 MB");
    }
}
