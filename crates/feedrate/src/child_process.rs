//! Runs the work in a child process, so that the parent can always exit. A thread blocked in a system call on a dead storage cannot be
//! ended, not even by SIGKILL, and keeps its process alive. The parent never touches storage.

use crate::exit::Exit;
use crate::interrupt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    waitpid,
};
use rustix::time::Timespec;
use std::io::{PipeReader, Read, Write, pipe};
use std::process::ExitCode;

/// Time that the child has to exit after it reported its exit code. A child that is still alive then is blocked.
const CHILD_EXIT_TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Does `work` in a child process and returns the child's exit code, even if the child is blocked and cannot exit. Must be called
/// before the first thread starts.
pub(crate) fn run_in_child(work: impl FnOnce() -> Exit) -> ExitCode {
    // A launcher such as mpirun can end only the processes that it started itself.
    if crate::launched().is_some() {
        return work().into();
    }
    let Ok((exit_reader, mut exit_writer)) = pipe() else { return work().into() };
    let parent = getpid();
    // SAFETY: this process has one thread, so no lock or data structure is copied in the middle of a change.
    match unsafe { libc::fork() } {
        0 => {
            drop(exit_reader);
            let death_signal = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have died before the signal was set.
            if death_signal.is_ok() && getppid() != Some(parent) {
                return Exit::Failed.into();
            }
            let code = work();
            let _ = exit_writer.write_all(&[code as u8]);
            // Left open: the kernel closes it when the last thread has ended.
            std::mem::forget(exit_writer);
            code.into()
        }
        id if id > 0 => {
            drop(exit_writer);
            Pid::from_raw(id)
                .map_or(Exit::Failed.into(), |child| wait_for_child(child, exit_reader))
        }
        _ => work().into(),
    }
}

/// Waits for the child and returns its exit code. The child writes the code to the pipe before it exits; the pipe is closed after the exit.
fn wait_for_child(child: Pid, mut exit_reader: PipeReader) -> ExitCode {
    interrupt::forward_signals(move |signal| {
        // Fails if the child has exited by now.
        let _ = Signal::from_named_raw(signal).map(|signal| kill_process(child, signal));
    });
    let mut code = [0];
    if exit_reader.read(&mut code).is_ok_and(|len| len > 0) {
        let mut closed = [PollFd::new(&exit_reader, PollFlags::IN)];
        if poll(&mut closed, Some(&CHILD_EXIT_TIMEOUT)) == Ok(0) {
            return code[0].into();
        }
    }
    let result = loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result.ok().flatten(),
        }
    };
    let Some((_, status)) = result else { return Exit::Failed.into() };
    if let Some(signal) = status.terminating_signal() {
        interrupt::terminate_by(signal);
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(Exit::Failed as u8).into()
}
