//! Limits of the shell: the length of files, address space, open files and processes.

use super::Class;
use super::case::Case;
use super::child::WORK_TIMEOUT;
use super::random::Random;
use super::work::Work;
use anyhow::Result;

pub(super) static CLASS: Class = Class {
    name: "resource_limits",
    noun: "limits",
    cases: 40,
    short_cases: 5,
    parallel_cases: 2,
    run,
};

/// Limits of a case, which share a dataset and a result.
const LIMITS: usize = 5;

fn run(case: &mut Case) -> Result<u32> {
    let work = Work::start(case)?;
    for number in 0..LIMITS {
        let limit = limit(&mut case.random);
        let program = case.program("feedrate").display().to_string();
        let script = format!("{limit}; exec \"$@\"");
        work.check_disturbed(case, number, &format!("`{limit}`"), |arguments| {
            let words = [&["-c", &script, "bash", &program], arguments].concat();
            case.start("bash", &words)?.end(WORK_TIMEOUT)?.without_other_crash()
        })?;
    }
    Ok(LIMITS as u32)
}

/// Draws a limit that some commands can keep and others cannot. The units are KiB, except for open files.
fn limit(random: &mut Random) -> String {
    let (option, smallest, steps, step) = random.pick(&[
        // Files have about 20 kB.
        ("-f", 1, 40, 1),
        // Below 100 MB, the program itself may not fit.
        ("-v", 100_000, 60, 8_000),
        ("-n", 3, 60, 1),
    ]);
    format!("ulimit {option} {}", smallest + step * random.below(steps))
}
