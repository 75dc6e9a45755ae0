//! Commands without `/proc`, as in some containers. Numbers that are read there are unknown, but the work succeeds.

use super::Class;
use super::case::Case;
use super::child::WORK_TIMEOUT;
use super::work::Work;
use anyhow::Result;

pub(super) static CLASS: Class = Class {
    name: "without_proc",
    noun: "commands without /proc",
    cases: 10,
    short_cases: 5,
    parallel_cases: 2,
    run,
};

fn run(case: &mut Case) -> Result<u32> {
    let work = Work::start(case)?;
    let program = case.program("feedrate").display().to_string();
    let script = "mount -t tmpfs tmpfs /proc && exec \"$@\"";
    work.check_disturbed(case, 0, "without /proc", |arguments| {
        let words = [&["--mount", "sh", "-c", script, "sh", &program], arguments].concat();
        let ended = case.start("unshare", &words)?.wait_for(WORK_TIMEOUT)?;
        // The runner of a study finds its own program there.
        ended.with_code(if work == Work::Study { &[1] } else { &[0] })
    })?;
    Ok(1)
}
