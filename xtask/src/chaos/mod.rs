//! A campaign against the real programs: what users own stays, what is measured is whole, and all ends in time. A row of [`CLASSES`] is a class.
//!
//! To add one: write a function that is one case, drawn from its seed, and returns how much it tried; add its `mod` line and its row.

mod random;
mod child;
mod strangers;
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
mod hostile_results;
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

/// Something that may go wrong, tried in many cases.
struct Class {
    name: &'static str,
    /// The thing that is tried, counted.
    what: &'static str,
    /// Cases of the campaign, from seed 1 on.
    cases: u64,
    /// Those of the short form.
    short: u64,
    /// Cases at once: 1 where they load the machine.
    at_once: usize,
    /// One case; how much it tried.
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
    &hostile_results::CLASS,
];

/// Failures of a class whose folders are kept.
const KEPT_FAILURES: usize = 20;
/// Set in the process that has mounts of its own.
const PRIVATE: &str = "FEEDRATE_CHAOS_PRIVATE";

/// As asked for on the command line.
#[derive(Parser)]
pub(crate) struct Options {
    /// The form that CI runs
    #[arg(long)]
    short: bool,
    /// Only this class of cases
    #[arg(long, value_name = "CLASS", value_parser = names())]
    only: Vec<String>,
    /// The only seed, for a failure to be seen again
    #[arg(long)]
    seed: Option<u64>,
    /// The seed of the first case
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Folder of the programs; built if none is said
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    CLASSES.iter().map(|class| class.name).collect::<Vec<_>>().into()
}

/// `cargo xtask chaos …`.
pub(crate) fn chaos(root: &Path, options: &Options) -> Result<()> {
    if std::env::var_os(PRIVATE).is_none() {
        return in_private_mounts();
    }
    let programs = match &options.programs {
        Some(folder) => folder.canonicalize().with_context(|| folder.display().to_string())?,
        None => {
            shell::run(
                root,
                "cargo",
                &["build", "--package", "feedrate", "--features", "libhdf5"],
            )?;
            built()?
        }
    };
    campaign(options, &programs)
}

/// The short form, on the programs that the tests have just built.
pub(crate) fn short(root: &Path) -> Result<()> {
    let here = std::env::current_exe()?;
    let programs = built()?.display().to_string();
    let arguments = ["chaos", "--short", "--programs", &programs];
    shell::run(root, &here.display().to_string(), &arguments)
}

fn built() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.parent().context("a program lies in a folder")?.to_path_buf())
}

/// The same command where what it mounts is seen by nobody else, and is gone with it.
fn in_private_mounts() -> Result<()> {
    let choices: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let Some(choice) =
        choices.iter().find(|choice| shell::works("unshare", &[choice, &["true"][..]].concat()))
    else {
        bail!(
            "the campaign mounts small file systems\n  hint: run it as root, or where users may make namespaces"
        );
    };
    let mut command = Command::new("unshare");
    command.args(*choice).arg(std::env::current_exe()?).args(std::env::args_os().skip(1));
    Err(command.env(PRIVATE, "1").exec()).context("cannot start `unshare`")
}

fn campaign(options: &Options, programs: &Path) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("feedrate-chaos-{}", std::process::id()));
    let is_asked = |class: &Class| {
        options.only.is_empty() || options.only.iter().any(|name| name == class.name)
    };
    let mut failures = 0;
    for class in CLASSES.iter().filter(|class| is_asked(class)) {
        let start = Instant::now();
        let (tried, failed) = run(class, options, programs, &folder);
        let Class { name, what, .. } = class;
        println!(
            "{name}: {tried} {what}, {failed} failures, {:.0} s",
            start.elapsed().as_secs_f64()
        );
        failures += failed;
    }
    // Folders of failures stay in it.
    let _ = fs::remove_dir(&folder);
    if failures > 0 {
        bail!("{failures} cases failed; what they left is in {}", folder.display());
    }
    Ok(())
}

/// Returns how much was tried, and how many cases failed.
fn run(class: &Class, options: &Options, programs: &Path, folder: &Path) -> (u64, usize) {
    let count = if options.short { class.short } else { class.cases };
    let seeds = match options.seed {
        Some(seed) => seed..seed + 1,
        None => options.first..options.first + count,
    };
    let next = AtomicU64::new(seeds.start);
    let tried = AtomicU64::new(0);
    let failures = AtomicUsize::new(0);
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| seeds.contains(seed))
        {
            let count = run_case(class, seed, programs, folder).unwrap_or_else(|error| {
                let name = class.name;
                eprintln!("{error:#}\n  cargo xtask chaos --only {name} --seed {seed}");
                if failures.fetch_add(1, Relaxed) >= KEPT_FAILURES {
                    let _ = fs::remove_dir_all(case_folder(folder, class, seed));
                }
                1
            });
            tried.fetch_add(count.into(), Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..class.at_once {
            scope.spawn(work);
        }
    });
    (tried.into_inner(), failures.into_inner())
}

fn run_case(class: &Class, seed: u64, programs: &Path, folder: &Path) -> Result<u32> {
    let folder = case_folder(folder, class, seed);
    let mut case = Case::new(seed, folder.clone(), programs)?;
    let tried = (class.run)(&mut case)?;
    case.is_clean()?;
    drop(case);
    fs::remove_dir_all(&folder)?;
    Ok(tried)
}

fn case_folder(folder: &Path, class: &Class, seed: u64) -> PathBuf {
    folder.join(format!("{}-{seed}", class.name))
}
