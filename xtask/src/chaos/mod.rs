//! Fault injection into the real programs: files of users must not change, results must be complete, and programs must end in time. Each
//! row of [`CLASSES`] is a class of faults.
//!
//! To add a class: write a function that runs the case of a seed and returns the number of injected faults. Add its `mod` line and its row.

mod random;
mod child;
mod user_files;
mod case;
mod kill_studies;
mod kill_checkpoints;
mod race_generation;
mod runs_at_once;
mod full_disks;
mod hung_storage;
mod lost_ranks;
mod mutate;
mod hostile_files;
mod hostile_folders;
mod hostile_results;
mod work;
mod injected_errors;
mod resource_limits;
mod without_proc;
mod fuse;
mod other_owners;
mod received_studies;
mod starved_ranks;
mod silent_guests;
#[cfg(test)]
mod tests;

use crate::shell;
use anyhow::{Context, Result, bail};
use case::Case;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// A class of faults. The campaign runs many cases of it.
struct Class {
    name: &'static str,
    /// Plural noun for the faults, used in the summary.
    noun: &'static str,
    /// Number of cases of the full campaign, with seeds from 1.
    cases: u64,
    /// Number of cases of the short campaign.
    short_cases: u64,
    /// Number of cases that run at the same time: 1 if a case loads the machine.
    parallel_cases: usize,
    /// Runs a case, and returns the number of injected faults.
    run: fn(&mut Case) -> Result<u32>,
}

static CLASSES: &[&Class] = &[
    &kill_studies::CLASS,
    &kill_checkpoints::CLASS,
    &race_generation::CLASS,
    &runs_at_once::CLASS,
    &full_disks::CLASS,
    &hung_storage::CLASS,
    &lost_ranks::CLASS,
    &hostile_files::CLASS,
    &hostile_folders::CLASS,
    &hostile_results::CLASS,
    &injected_errors::CLASS,
    &resource_limits::CLASS,
    &without_proc::CLASS,
    &fuse::CLASS,
    &other_owners::CLASS,
    &received_studies::CLASS,
    &starved_ranks::CLASS,
    &silent_guests::CLASS,
];

/// Maximum number of failed cases of a class whose folders are kept.
const KEPT_FAILURES_MAX: usize = 20;
/// Environment variable that marks the process with private mounts.
const PRIVATE: &str = "FEEDRATE_CHAOS_PRIVATE";

/// Options of the command line.
#[derive(Parser)]
pub(crate) struct Options {
    /// Run only the cases that CI runs
    #[arg(long)]
    short: bool,
    /// Run only this class of cases
    #[arg(long, value_name = "CLASS", value_parser = class_names())]
    only: Vec<String>,
    /// Run only this seed, to reproduce a failure
    #[arg(long)]
    seed: Option<u64>,
    /// Seed of the first case
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Folder of the programs; by default the programs are built
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

fn class_names() -> PossibleValuesParser {
    CLASSES.iter().map(|class| class.name).collect::<Vec<_>>().into()
}

/// Runs `cargo xtask chaos …`.
pub(crate) fn chaos(root: &Path, options: &Options) -> Result<()> {
    if std::env::var_os(PRIVATE).is_none() {
        return restart_in_private_mounts();
    }
    let programs = match &options.programs {
        Some(folder) => folder.canonicalize().with_context(|| folder.display().to_string())?,
        None => {
            shell::run(
                root,
                "cargo",
                &["build", "--package", "feedrate", "--features", "libhdf5"],
            )?;
            built_programs()?
        }
    };
    run_campaign(options, &programs)
}

/// Runs the short campaign with the programs that were built for the tests.
pub(crate) fn check_briefly(root: &Path) -> Result<()> {
    let here = shell::this_program()?;
    let programs = built_programs()?.display().to_string();
    let arguments = ["chaos", "--short", "--programs", &programs];
    shell::run(root, &here.display().to_string(), &arguments)
}

/// Returns the folder of the built programs, which also contains this program.
pub(crate) fn built_programs() -> Result<PathBuf> {
    let here = shell::this_program()?;
    Ok(here.parent().context("the program has no folder")?.to_path_buf())
}

/// Starts the same command with private mounts. Other processes do not see them, and they disappear at the end of the command.
fn restart_in_private_mounts() -> Result<()> {
    let choices: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let Some(choice) =
        choices.iter().find(|choice| shell::succeeds("unshare", &[choice, &["true"][..]].concat()))
    else {
        bail!(
            "the campaign mounts small file systems\n  hint: run it as root, or on a system where users may create namespaces"
        );
    };
    let mut command = Command::new("unshare");
    command.args(*choice).arg(shell::this_program()?).args(std::env::args_os().skip(1));
    Err(command.env(PRIVATE, "1").exec()).context("cannot start `unshare`")
}

fn run_campaign(options: &Options, programs: &Path) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("feedrate-chaos-{}", std::process::id()));
    let is_selected = |class: &Class| {
        options.only.is_empty() || options.only.iter().any(|name| name == class.name)
    };
    let mut failures = 0;
    for class in CLASSES.iter().filter(|class| is_selected(class)) {
        let start = Instant::now();
        let (faults, failed) = run_class(class, options, programs, &folder);
        let Class { name, noun, .. } = class;
        println!(
            "{name}: {faults} {noun}, {failed} failures, {:.0} s",
            start.elapsed().as_secs_f64()
        );
        failures += failed;
    }
    // The folder stays if it contains folders of failures.
    let _ = fs::remove_dir(&folder);
    if failures > 0 {
        bail!("{failures} cases failed; their files are in {}", folder.display());
    }
    Ok(())
}

/// Runs the cases of a class. Returns the number of injected faults and the number of failed cases.
fn run_class(class: &Class, options: &Options, programs: &Path, folder: &Path) -> (u64, usize) {
    let count = if options.short { class.short_cases } else { class.cases };
    let seeds = match options.seed {
        Some(seed) => seed..seed + 1,
        None => options.first..options.first + count,
    };
    let next = AtomicU64::new(seeds.start);
    let faults = AtomicU64::new(0);
    let failures = AtomicUsize::new(0);
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| seeds.contains(seed))
        {
            let count = run_case(class, seed, programs, folder).unwrap_or_else(|error| {
                let name = class.name;
                eprintln!("{error:#}\n  cargo xtask chaos --only {name} --seed {seed}");
                if failures.fetch_add(1, Relaxed) >= KEPT_FAILURES_MAX {
                    let _ = fs::remove_dir_all(case_folder(folder, class, seed));
                }
                1
            });
            faults.fetch_add(count.into(), Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..class.parallel_cases {
            scope.spawn(work);
        }
    });
    (faults.into_inner(), failures.into_inner())
}

fn run_case(class: &Class, seed: u64, programs: &Path, folder: &Path) -> Result<u32> {
    let case_folder_path = case_folder(folder, class, seed);
    let mut case = Case::new(seed, case_folder_path.clone(), programs)?;
    let faults = (class.run)(&mut case)?;
    case.check_clean()?;
    drop(case);
    fs::remove_dir_all(&case_folder_path)?;
    Ok(faults)
}

fn case_folder(folder: &Path, class: &Class, seed: u64) -> PathBuf {
    folder.join(format!("{}-{seed}", class.name))
}
