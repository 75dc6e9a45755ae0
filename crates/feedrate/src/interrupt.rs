//! Handles Ctrl-C and SIGTERM. The first signal sets a flag that the work checks. On a second signal, or ten seconds later,
//! the process stops waiting for operations that hang. After two more seconds it exits in any case.

use crate::exit::Exit;
use crate::messages;
use feedrate_run::live::Signals;
use feedrate_session::hung;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Signals that interrupt the work.
const END_SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM];
/// A second signal within this time is a duplicate: the terminal and the launcher both send the same request.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(1);
/// Time that storage operations have to finish after the first signal.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Further time to save the results.
const SAVE_TIME: Duration = Duration::from_secs(2);
/// Extra time of each parent process, so that it outlives the child that saves.
const PARENT_EXTRA_TIME: Duration = Duration::from_secs(1);
/// Interval between checks for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Starts to listen for signals, in a process that does the work itself.
pub(crate) fn signals() -> Signals {
    signals_with(SAVE_TIME)
}

/// Starts to listen for signals, in a process whose child does the work and saves its own results.
pub(crate) fn signals_of_runner() -> Signals {
    signals_with(SAVE_TIME + PARENT_EXTRA_TIME)
}

fn signals_with(save_time: Duration) -> Signals {
    let signals = Signals::default();
    let interrupted = Arc::clone(&signals.interrupted);
    let abandon = Arc::clone(&signals.abandon);
    listen(
        Arc::clone(&interrupted),
        move |_| interrupted.store(true, Relaxed),
        move |is_signalled| {
            abandon.store(true, Relaxed);
            thread::sleep(save_time);
            let cause =
                if is_signalled { "interrupted" } else { "the work of other ranks has ended" };
            match hung::waiting_message() {
                Some(waiting) => messages::say(format!("error: {cause}, {waiting}")),
                None => messages::say(format!("error: {cause}")),
            }
        },
    );
    signals
}

/// Passes each signal to `forward`, which sends it to a child process. This process exits shortly after the child must have exited.
pub(crate) fn forward_signals(forward: impl Fn(i32) + Send + 'static) {
    let is_requested = Arc::new(AtomicBool::new(false));
    let request = Arc::clone(&is_requested);
    listen(
        is_requested,
        move |signal| {
            request.store(true, Relaxed);
            forward(signal);
        },
        |_| thread::sleep(SAVE_TIME + 2 * PARENT_EXTRA_TIME),
    );
}

/// Starts a thread that calls `on_signal` with each signal. When the process must end, the thread calls `before_exit` and exits; the
/// argument of `before_exit` is whether a signal was the cause. Other code may also set `is_requested`.
fn listen(
    is_requested: Arc<AtomicBool>,
    on_signal: impl Fn(i32) + Send + 'static,
    before_exit: impl FnOnce(bool) + Send + 'static,
) {
    let set = set_of(END_SIGNALS);
    mask(libc::SIG_BLOCK, &set);
    let (started, start_receiver) = mpsc::channel();
    let listener = thread::Builder::new().name("signals".into()).spawn(move || {
        drop(started);
        let mut requested_at: Option<Instant> = None;
        let mut is_signalled = false;
        loop {
            let signal = next_signal(&set);
            is_signalled |= signal.is_some();
            signal.iter().for_each(|signal| on_signal(*signal));
            if is_requested.load(Relaxed) {
                let elapsed = requested_at.get_or_insert_with(Instant::now).elapsed();
                if elapsed > STORAGE_TIMEOUT || elapsed > DUPLICATE_WINDOW && signal.is_some() {
                    break;
                }
            }
        }
        before_exit(is_signalled);
        let code = if is_signalled { Exit::Interrupted } else { Exit::Failed };
        #[expect(clippy::exit, reason = "a second signal ends the process without waiting")]
        std::process::exit(code as i32);
    });
    // A starting thread maps memory, and the MPI library that is loaded next patches these calls. So wait until the thread has started.
    let _: Result<(), _> = start_receiver.recv();
    if listener.is_err() {
        // Without the thread, signals have their default action.
        mask(libc::SIG_UNBLOCK, &set);
    }
}

/// Unblocks the signals that the parent process blocked, since a process inherits the signal mask.
pub(crate) fn unblock() {
    mask(libc::SIG_UNBLOCK, &set_of(END_SIGNALS));
}

/// Blocks the signals in this thread. Otherwise the kernel may deliver a signal to it, which ends the process.
pub(crate) fn block_in_thread() {
    mask(libc::SIG_BLOCK, &set_of(END_SIGNALS));
}

/// Ends this process by the default action of `signal`.
pub(crate) fn terminate_by(signal: i32) {
    mask(libc::SIG_UNBLOCK, &set_of(&[signal]));
    // SAFETY: the call takes a number and accesses no memory of this program.
    let _ = unsafe { libc::raise(signal) };
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before the other calls use it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with EFBIG instead of ending this process with SIGXFSZ. The signal is
/// handled rather than ignored, because child processes inherit ignored signals.
pub(crate) fn survive_file_size_limit() {
    extern "C" fn do_nothing(_: libc::c_int) {}
    // SAFETY: the handler accesses nothing.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, do_nothing as *const () as libc::sighandler_t) };
}

/// Changes the signal mask of this thread and of the threads that it starts. The kernel may deliver a signal to any thread that does not
/// block it, even to one that hangs, where the signal would be lost.
fn mask(how: i32, set: &libc::sigset_t) {
    // SAFETY: the set is initialised; a null pointer is allowed for the old mask.
    let _ = unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) };
}

/// Next signal of `set`, if one arrives within the poll interval.
fn next_signal(set: &libc::sigset_t) -> Option<i32> {
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
    // SAFETY: the set and the time are initialised; a null pointer is allowed for the details.
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &timeout) };
    (signal > 0).then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread has its name only once it runs.
    #[test]
    fn the_listening_thread_has_started() {
        signals();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap());
        assert!(names.into_iter().any(|name| name.trim_end() == "signals"));
    }

    #[test]
    fn child_processes_have_the_default_action_of_sigxfsz() {
        survive_file_size_limit();
        let status = std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGXFSZ - 1), 0, "{ignored:x}");
    }
}
