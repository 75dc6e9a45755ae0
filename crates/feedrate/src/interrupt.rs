//! Ctrl-C and SIGTERM. The first sets a flag that the work checks; the second, or some seconds without an end, stops waiting for operations
//! that hang. A process that does not end then is ended.

use crate::exit::Exit;
use crate::messages;
use feedrate_run::live::Signals;
use feedrate_session::hung;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Signals that end the work.
const END_SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM];
/// A launcher passes on signals that the terminal has sent too: a second one within this time is the same request.
const SAME: Duration = Duration::from_secs(1);
/// Time that an operation of a storage may take after the first request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Further time to save what was measured, and then for each process that waits for that one.
const LAST_WORDS: Duration = Duration::from_secs(2);
const LAST_WORDS_BEHIND: Duration = Duration::from_secs(1);
/// Interval between checks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// Listens to signals from now on.
pub(crate) fn signals() -> Signals {
    signals_until(LAST_WORDS)
}

/// The same in a process whose work is done by another, which saves its own results.
pub(crate) fn signals_of_runner() -> Signals {
    signals_until(LAST_WORDS + LAST_WORDS_BEHIND)
}

fn signals_until(last_words: Duration) -> Signals {
    let signals = Signals::default();
    let interrupted = Arc::clone(&signals.interrupted);
    let abandon = Arc::clone(&signals.abandon);
    listen(
        Arc::clone(&interrupted),
        move |_| interrupted.store(true, Relaxed),
        move |is_signalled| {
            abandon.store(true, Relaxed);
            thread::sleep(last_words);
            let why =
                if is_signalled { "interrupted" } else { "the work of other ranks has ended" };
            match hung::waiting_now() {
                Some(waiting) => messages::say(format!("error: {why}, {waiting}")),
                None => messages::say(format!("error: {why}")),
            }
        },
    );
    signals
}

/// Passes signals on to another process, and ends somewhat later than that one must.
pub(crate) fn pass_on(hand_on: impl Fn(i32) + Send + 'static) {
    let wanted = Arc::new(AtomicBool::new(false));
    let set_wanted = Arc::clone(&wanted);
    listen(
        wanted,
        move |signal| {
            set_wanted.store(true, Relaxed);
            hand_on(signal);
        },
        |_| thread::sleep(LAST_WORDS + 2 * LAST_WORDS_BEHIND),
    );
}

/// Calls `on_signal` with each signal, and `leave` with whether there was one when the process must end; then ends it. `wanted` may be set
/// elsewhere too.
fn listen(
    wanted: Arc<AtomicBool>,
    on_signal: impl Fn(i32) + Send + 'static,
    leave: impl FnOnce(bool) + Send + 'static,
) {
    let set = set_of(END_SIGNALS);
    mask(libc::SIG_BLOCK, &set);
    let (runs, is_running) = mpsc::channel();
    let listener = thread::Builder::new().name("signals".into()).spawn(move || {
        drop(runs);
        let mut first: Option<Instant> = None;
        let mut is_signalled = false;
        loop {
            let came = next(&set);
            is_signalled |= came.is_some();
            came.iter().for_each(|signal| on_signal(*signal));
            if wanted.load(Relaxed) {
                let since = first.get_or_insert_with(Instant::now).elapsed();
                if since > PATIENCE || since > SAME && came.is_some() {
                    break;
                }
            }
        }
        leave(is_signalled);
        let code = if is_signalled { Exit::Interrupted } else { Exit::Failed };
        #[expect(clippy::exit, reason = "who interrupts twice waits for nothing")]
        std::process::exit(code as i32);
    });
    // A thread maps memory as it starts. Wait for that: MPI libraries, which are opened next, patch the calls for it while they run.
    let _: Result<(), _> = is_running.recv();
    if listener.is_err() {
        // Without the thread, signals have their default action.
        mask(libc::SIG_UNBLOCK, &set);
    }
}

/// Receives signals that the parent process blocked: a process inherits what is blocked.
pub(crate) fn hear() {
    mask(libc::SIG_UNBLOCK, &set_of(END_SIGNALS));
}

/// Leaves signals to other threads than this one. Otherwise the kernel may deliver a signal to it, which ends the process.
pub(crate) fn leave_to_others() {
    mask(libc::SIG_BLOCK, &set_of(END_SIGNALS));
}

/// Ends as a process does that does not handle `signal`.
pub(crate) fn end_by(signal: i32) {
    mask(libc::SIG_UNBLOCK, &set_of(&[signal]));
    // SAFETY: a number.
    let _ = unsafe { libc::raise(signal) };
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call fills the set in, the others change it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with EFBIG instead of ending this process with SIGXFSZ. It is a handler because
/// programs that this process starts would inherit an ignored signal.
pub(crate) fn survive_file_size_limit() {
    extern "C" fn do_nothing(_: libc::c_int) {}
    // SAFETY: the handler touches nothing.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, do_nothing as *const () as libc::sighandler_t) };
}

/// Changes the signals that this thread, and those it starts, leave to others. The kernel may deliver a signal to any other thread, also to
/// one that hangs, where it would be lost.
fn mask(how: i32, set: &libc::sigset_t) {
    // SAFETY: the set is whole, and the one before is not asked for.
    let _ = unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) };
}

/// The next signal of `set`, if one comes soon.
fn next(set: &libc::sigset_t) -> Option<i32> {
    let look = libc::timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    // SAFETY: the set and the time are whole, and nothing but the number is asked for.
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &look) };
    (signal > 0).then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread has no name of its own before it runs.
    #[test]
    fn who_listens_has_started() {
        signals();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap());
        assert!(names.into_iter().any(|name| name.trim_end() == "signals"));
    }

    #[test]
    fn programs_that_are_started_have_the_default_action_of_sigxfsz() {
        survive_file_size_limit();
        let status = std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGXFSZ - 1), 0, "{ignored:x}");
    }
}
