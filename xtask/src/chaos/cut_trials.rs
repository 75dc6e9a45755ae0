//! Trials, tuning, diagnoses and copies of datasets that are killed, find no room, or hang: the same command works afterwards.

use super::Class;
use super::case::{Case, until, workload};
use super::child::{Ended, LEAVES_WITHIN};
use super::kill_studies::hit;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::os::unix::ffi::OsStrExt;

pub(super) static CLASS: Class = Class {
    name: "cut_trials",
    what: "trials, diagnoses and copies cut short",
    cases: 48,
    short: 3,
    at_once: 2,
    run,
};

/// Some make datasets or copies, which are gone when they end; the last keeps its copy.
const COMMANDS: [&[&str]; 5] = [
    &["advise", "workload.yaml", "--try", "--cold", "--budget", "3s"],
    &[
        "tune",
        "workload.yaml",
        "--cold",
        "--budget",
        "3s",
        "--keys",
        "dataset.format,reader.read_threads",
    ],
    &["diagnose", "workload.yaml", "--budget", "1s"],
    &["run", "workload.yaml", "reader.stage=copy"],
    &[
        "run",
        "workload.yaml",
        "reader.stage=copy",
        "reader.stage_when=first_read",
        "reader.stage_keep=true",
    ],
];
/// Folders that programs work in, one of which has little room in some cases.
const PLACES: [&str; 3] = ["data", "results", "copy"];

fn run(case: &mut Case) -> Result<u32> {
    let more = "  transfer_size: 4096\nstorage:\n  throttle: {latency_seconds: 0.002}\ntrain:\n  epochs: 1\n  computation_time: 0.005\n";
    case.write("workload.yaml", workload(8, 20_000, 2, more))?;
    let turn = case.seed as usize - 1;
    let arguments = COMMANDS[turn % COMMANDS.len()];
    let tried = match turn / COMMANDS.len() % 3 {
        0 => killed(case, arguments)?,
        1 => without_room(case, arguments)?,
        _ => hung(case, arguments)?,
    };
    case.strangers.are_untouched()?;
    case.feedrate(&["generate", "--verify", "workload.yaml"])?
        .with_code(&[0])
        .context("afterwards")?;
    // What a killed one left is known for ours.
    case.feedrate(&["clean", ".", "--yes"])?.with_code(&[0])?;
    let mut left = [case.files("data"), case.files("copy")].concat();
    left.retain(|path| !case.strangers.has(path));
    // Hidden ones may be of a maker that was killed before it could say whose they are.
    left.retain(|path| path.file_name().is_none_or(|name| name.as_bytes()[0] != b'.'));
    ensure!(left.is_empty(), "`clean` does not know {left:?}");
    Ok(tried)
}

/// Killed at some moment, with files of others among its own.
fn killed(case: &mut Case, arguments: &[&str]) -> Result<u32> {
    for place in PLACES {
        case.plant(place)?;
    }
    let is_among = case.random.chance(50);
    let mut kills = 0;
    for _ in 0..2 {
        let running = case.start_feedrate(arguments)?;
        case.pass(if arguments[0] == "run" { 400 } else { 2500 });
        if is_among {
            plant_among(case)?;
        }
        kills += hit(case, running)?;
    }
    // A copy is not made among files of others.
    again(case, arguments, if is_among { &[0, 1, 4] } else { &[0, 4] })?;
    Ok(kills)
}

/// Strangers in the folders that programs have just made.
fn plant_among(case: &mut Case) -> Result<()> {
    for place in PLACES {
        for entry in fs::read_dir(case.path(place))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if ["trials-", "advise-", "tune-", "stage-"].iter().any(|made| name.starts_with(made)) {
                case.strangers.plant(&entry.path(), &mut case.random)?;
            }
        }
    }
    Ok(())
}

/// One of its places has little room.
fn without_room(case: &mut Case, arguments: &[&str]) -> Result<u32> {
    let place = case.random.pick(&PLACES);
    let size_kb = 4 * (1 + case.random.below(150) as u64);
    case.mount(place, size_kb)?;
    let ended = case.feedrate(arguments)?.with_code(&[0, 1, 4])?;
    let is_told = [&ended.stderr, &ended.stdout]
        .iter()
        .any(|said| said.contains("pace") || said.contains("room"));
    ensure!(ended.code != 1 || is_told, "blames another: {}", ended.told());
    case.enlarge(place)?;
    again(case, arguments, &[0, 4]).context("with room again")?;
    Ok(1)
}

/// One file of the dataset is a pipe, to which nobody writes.
fn hung(case: &mut Case, arguments: &[&str]) -> Result<u32> {
    for place in PLACES {
        case.plant(place)?;
    }
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    let pipe = case.hang_a_file()?;
    let mut hangs = case.start_feedrate(arguments)?;
    until("an open of the pipe", || hangs.is_over() || hangs.is_at(&pipe))?;
    case.pass(500);
    let refused = hangs.is_over();
    hangs.signal(case.random.pick(&[Signal::INT, Signal::TERM]));
    let ended = hangs.wait_for(LEAVES_WITHIN)?.with_code(if refused { &[1, 2] } else { &[130] })?;
    ensure!(ended.stderr.contains("img_5_of_8"), "does not name the file: {}", ended.told());
    fs::remove_file(&pipe)?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    again(case, arguments, &[0, 4])?;
    Ok(1)
}

fn again(case: &Case, arguments: &[&str], codes: &[i32]) -> Result<Ended> {
    let ended = case.feedrate(arguments)?.with_code(codes)?;
    let keeps = arguments.iter().any(|word| word.ends_with("stage_keep=true"));
    let left = case.files("copy").into_iter().find(|path| !case.strangers.has(path));
    ensure!(keeps || ended.code == 1 || left.is_none(), "a copy is left: {left:?}");
    Ok(ended)
}
