//! Ctrl-C as a flag that runs look at. A second one ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set when the user wants to stop.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let wanted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registration fails only for signals that cannot be caught. The order matters: the first signal finds the
        // flag unset and sets it, the second finds it set and exits.
        let _ = flag::register_conditional_shutdown(signal, 130, Arc::clone(&wanted));
        let _ = flag::register(signal, Arc::clone(&wanted));
    }
    wanted
}
