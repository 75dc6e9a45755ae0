//! Ctrl-C as a flag that runs look at. Another one, a moment later, ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A launcher passes on what the terminal has sent already: what comes so soon is the same wish.
const SAME: Duration = Duration::from_secs(1);

/// Set when the user wants to stop.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let wanted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&wanted);
    // Where neither a handler nor a thread can be had, signals do what they do by themselves.
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
        let listener = std::thread::Builder::new().name("signals".into());
        let _ = listener.spawn(move || {
            let mut first: Option<Instant> = None;
            for _ in signals.forever() {
                flag.store(true, Ordering::Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() > SAME {
                    #[expect(clippy::exit, reason = "who interrupts twice waits for nothing")]
                    std::process::exit(130);
                }
            }
        });
    }
    wanted
}
