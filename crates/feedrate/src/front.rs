//! The process that the user waits for, before the one that works. A thread in a call that its storage never answers cannot be
//! ended, not even by SIGKILL, and its process neither. This one touches no storage, so it can always leave.

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

/// A process that has finished its work ends within this time, unless it cannot.
const END: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Do `work` in a process behind this one, which ends as that does, or without it where it cannot end. Call it before there are
/// threads.
pub(crate) fn before(work: impl FnOnce() -> Exit) -> ExitCode {
    // A launcher has its own ways to be rid of a process, and knows those it started.
    if crate::launched().is_some() {
        return work().into();
    }
    let Ok((told, mut tells)) = pipe() else { return work().into() };
    let own = getpid();
    // SAFETY: this process has one thread, so whatever the other needs of its memory is whole.
    match unsafe { libc::fork() } {
        0 => {
            drop(told);
            let dies_too = set_parent_process_death_signal(Some(Signal::KILL));
            // This one may have died before it was asked for.
            if dies_too.is_ok() && getppid() != Some(own) {
                return Exit::Failed.into();
            }
            let code = work();
            let _ = tells.write_all(&[code as u8]);
            // The kernel closes it, when the last thread has ended.
            std::mem::forget(tells);
            code.into()
        }
        behind if behind > 0 => {
            drop(tells);
            let behind = Pid::from_raw(behind);
            behind.map_or(Exit::Failed.into(), |behind| until_ended(behind, told))
        }
        _ => work().into(),
    }
}

/// The end of `told` is that of the process; a byte before it says how it will end.
fn until_ended(behind: Pid, mut told: PipeReader) -> ExitCode {
    interrupt::pass_on(move |signal| {
        // It may be gone by now.
        let _ = Signal::from_named_raw(signal).map(|signal| kill_process(behind, signal));
    });
    let mut code = [0];
    if told.read(&mut code).is_ok_and(|len| len > 0) {
        let mut ends = [PollFd::new(&told, PollFlags::IN)];
        if poll(&mut ends, Some(&END)) == Ok(0) {
            return code[0].into();
        }
    }
    let ended = loop {
        match waitpid(Some(behind), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            ended => break ended.ok().flatten(),
        }
    };
    let Some((_, ended)) = ended else { return Exit::Failed.into() };
    if let Some(signal) = ended.terminating_signal() {
        interrupt::end_by(signal);
    }
    let code = ended.exit_status().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(Exit::Failed as u8).into()
}
