//! Folders of results that lie: read or refused, within bounds, and nothing of them reaches the terminal as control characters.

use super::Class;
use super::case::{Case, copy_tree, files_below, workload};
use super::child::{Ended, LEAVES_WITHIN};
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) static CLASS: Class = Class {
    name: "hostile_results",
    what: "hostile folders of results",
    cases: 60,
    short: 4,
    at_once: 2,
    run,
};

const FOLDERS_OF_A_CASE: u32 = 10;

const STUDY: &str = "\
model,epochs,processes,overrides,run
workload.yaml,1,1,,N
workload.yaml,1,2,,N
workload.yaml,1,2,,N
";

const PLOTS: &[&str] = &[
    "au_processes",
    "throughput_processes",
    "scaling",
    "factor_levels",
    "main_effects",
    "stall",
    "by_epoch",
    "phases",
    "timeline",
    "latency",
    "status",
];

/// A study of ours, a run in DLIO's place, and the same as DLIO would have left it.
fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 900, 2, "train:\n  epochs: 2\n");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    case.write("study.csv", STUDY)?;
    case.feedrate(&["study", "run", "study.csv", "--quiet-wait", "0"])?.with_code(&[0])?;
    let dlio = case.program("dlio_benchmark");
    let words = ["--config-dir", "conf", "workload=tiny", "++hydra.run.dir=results/dlio/a"];
    let generate = "++workload.workflow.generate_data=True";
    let data = "++workload.dataset.data_folder=dlio-data";
    case.start(dlio, &[&words[..], &[generate, data]].concat())?.wait()?.with_code(&[0])?;
    copy_tree(&case.path("results/dlio/a"), &case.path("results/dlio/b"))?;
    fs::remove_file(case.path("results/dlio/b/record.json"))?;
    copy_tree(&case.path("results"), &case.path("whole"))?;
    for folder in ["results", "study.study", ""] {
        case.plant(folder)?;
    }
    for round in 0..FOLDERS_OF_A_CASE {
        one(case).with_context(|| format!("round {round}"))?;
    }
    Ok(FOLDERS_OF_A_CASE)
}

fn one(case: &mut Case) -> Result<()> {
    let mut files = case.files("results");
    files.retain(|path| !case.strangers.has(path));
    files.push(case.path("study.csv"));
    files.push(case.path("study.study/settings.json"));
    let i = case.random.below(files.len());
    let path = files.swap_remove(i);
    let whole = fs::read(&path)?;
    let how = lie(case, &path, &whole)?;
    let before = bytes_of(&case.path("results"));
    let run = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
    for _ in 0..4 {
        let arguments = command(case, &run);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = case.start_feedrate(&arguments)?.wait_for(LEAVES_WITHIN);
        ended.and_then(is_decent).with_context(|| format!("{} {how}", path.display()))?;
    }
    ensure!(before == bytes_of(&case.path("results")), "results were changed by reading them");
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    fs::write(&path, whole)?;
    Ok(())
}

/// Put something else in the place of a file; says how.
fn lie(case: &mut Case, path: &Path, whole: &[u8]) -> Result<&'static str> {
    let how = case.random.below(16);
    if how < 7 {
        fs::remove_file(path)?;
    }
    Ok(match how {
        0 => "is gone",
        1 => {
            fs::create_dir(path)?;
            "is a folder"
        }
        2 => {
            ensure!(Command::new("mkfifo").arg(path).status()?.success(), "no pipe");
            "is a pipe"
        }
        3 => {
            symlink(path, path)?;
            "is a link to itself"
        }
        4 => {
            symlink("/dev/zero", path)?;
            "never ends"
        }
        5 => {
            File::create(path)?.set_len(2 << 30)?;
            "has 2 GiB of zeros"
        }
        6 => {
            fs::write(path, "[".repeat(3_000_000))?;
            "is nested without end"
        }
        _ => {
            let mut content = whole.to_vec();
            mutate::text(&mut content, &mut case.random);
            fs::write(path, content)?;
            "lies"
        }
    })
}

/// One of the commands that read results.
fn command(case: &mut Case, run: &str) -> Vec<String> {
    let folder = case.random.pick(&["results", run]).to_string();
    let plot = case.random.pick(PLOTS);
    let words: &[&str] = match case.random.below(12) {
        0 => &["analyze", &folder],
        1 => &["analyze", &folder, "--json"],
        2 => &["analyze", "study.csv", "--all"],
        3 => &["compare", "whole", &folder],
        4 => &["compare", run, "whole/dlio/a", "--json"],
        5 => &["report", &folder],
        6 => &["report", "study.csv", "--json"],
        7 => &["show", run],
        8 => &["show", run, "--json"],
        9 => &["plot", plot, &folder, "--output", "plot.svg", "--force"],
        10 => &["study", "status", "study.csv"],
        _ => &["study", "show", "study.csv", "*", "--json"],
    };
    words.iter().map(ToString::to_string).collect()
}

/// No panic, an exit code of ours, JSON that is JSON, and no control characters.
fn is_decent(ended: Ended) -> Result<()> {
    let ended = ended.with_code(&[0, 1, 2, 3, 4])?;
    let is_json = ended.line.ends_with("--json") && [0, 3, 4].contains(&ended.code);
    if is_json {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&ended.stdout);
        parsed.with_context(|| format!("no JSON: `{}`", ended.line))?;
    }
    for text in [&ended.stdout, &ended.stderr] {
        let control =
            text.lines().find(|line| line.contains(|c: char| c.is_control() && c != '\t'));
        ensure!(control.is_none(), "control characters: `{}`: {control:?}", ended.line);
        let forged = text.lines().any(|line| line.starts_with("forged"));
        ensure!(!forged, "a line of its own: `{}`", ended.line);
    }
    Ok(())
}

/// Regular files with their content; large ones and others by their names alone.
fn bytes_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = files_below(folder);
    found.sort();
    let content = |path: &Path| match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() && data.len() < 10_000_000 => fs::read(path).unwrap_or_default(),
        _ => Vec::new(),
    };
    found.into_iter().map(|path| (path.clone(), content(&path))).collect()
}
