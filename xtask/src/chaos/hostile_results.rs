//! Folders of results that lie: read or refused, within bounds, and nothing of them reaches the terminal as control characters.

use super::Class;
use super::case::{Case, copy_tree, files_below, make_pipe, workload};
use super::child::{Ended, LEAVES_WITHIN};
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(super) static CLASS: Class = Class {
    name: "hostile_results",
    what: "hostile folders of results",
    cases: 60,
    short: 4,
    at_once: 2,
    run,
};

const FOLDERS_OF_A_CASE: u32 = 10;
/// Fields in which each case forges lines, in turn: all cases together reach each.
const FIELDS_OF_A_CASE: u64 = 3;
/// Words of the machine about itself, kept and not shown.
const NOT_SHOWN: [&str; 2] = ["\"host_cpuinfo\"", "\"host_meminfo\""];

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
    "stall",
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
    case.feedrate(&["study", "run", "study.csv"])?.with_code(&[0])?;
    let words = [
        "++hydra.run.dir=results/dlio/a",
        "++workload.workflow.generate_data=True",
        "++workload.dataset.data_folder=dlio-data",
    ];
    case.start_dlio(&words)?.wait()?.with_code(&[0])?;
    copy_tree(&case.path("results/dlio/a"), &case.path("results/dlio/b"))?;
    fs::remove_file(case.path("results/dlio/b/record.json"))?;
    copy_tree(&case.path("results"), &case.path("whole"))?;
    for folder in ["results", "study.study", ""] {
        case.plant(folder)?;
    }
    for round in 0..FOLDERS_OF_A_CASE {
        one(case).with_context(|| format!("round {round}"))?;
    }
    let fields = shown_fields(case)?;
    for turn in 0..FIELDS_OF_A_CASE {
        let of = (case.seed - 1) * FIELDS_OF_A_CASE + turn;
        let (path, at) = &fields[of as usize % fields.len()];
        let whole = fs::read(path)?;
        let mut content = whole.clone();
        mutate::forge_at(&mut content, *at, &mut case.random);
        fs::write(path, content)?;
        let run = run_of(path);
        let commands = COMMANDS.len() * 2;
        read_by(case, path, "is forged", (0..commands).map(|n| command(n, "results", &run)))?;
        fs::write(path, whole)?;
    }
    Ok(FOLDERS_OF_A_CASE + FIELDS_OF_A_CASE as u32)
}

/// Where the values of fields begin, each once: among our results, and where DLIO's alone are read.
fn shown_fields(case: &Case) -> Result<Vec<(PathBuf, usize)>> {
    let (mut fields, mut seen) = (Vec::new(), BTreeSet::new());
    for path in case.files("results").into_iter().filter(|path| !case.strangers.has(path)) {
        let text = fs::read_to_string(&path)?;
        let name = path.file_name().unwrap_or_default().to_owned();
        let is_json = path.to_string_lossy().ends_with(".json");
        let values = mutate::values(text.as_bytes()).into_iter();
        for at in values.filter(|at| !is_json || text[..*at].ends_with('"')) {
            let before = &text[..at];
            let key = before.rsplit(['{', ',', '\n']).next().unwrap_or(before);
            let opened = before.rsplit_once('{').filter(|(_, inside)| !inside.contains('}'));
            let outside =
                opened.map_or("", |(outside, _)| outside.trim_end().trim_end_matches(':'));
            let is_shown = !NOT_SHOWN.iter().any(|name| outside.ends_with(name));
            let is_dlio = path.parent().is_some_and(|run| run.ends_with("b"));
            if is_shown && seen.insert((is_dlio, name.clone(), key.trim().to_string())) {
                fields.push((path.clone(), at));
            }
        }
    }
    ensure!(fields.len() > 50, "only {} fields are shown", fields.len());
    Ok(fields)
}

/// The folder of the run that a file belongs to.
fn run_of(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    let run = if folder.ends_with(".hydra") { folder.parent().unwrap_or(folder) } else { folder };
    run.to_string_lossy().into_owned()
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
    let run = run_of(&path);
    let commands = [(); 4].map(|()| {
        let folder = case.random.pick(&["results", &run]).to_string();
        command(case.random.below(COMMANDS.len() * 2), &folder, &run)
    });
    read_by(case, &path, how, commands)?;
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    fs::write(&path, whole)?;
    Ok(())
}

/// Commands read a file that lies, and change nothing.
fn read_by(
    case: &Case,
    path: &Path,
    how: &str,
    commands: impl IntoIterator<Item = Vec<String>>,
) -> Result<()> {
    let before = bytes_of(&case.path("results"));
    for arguments in commands {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = case.start_feedrate(&arguments)?.wait_for(LEAVES_WITHIN);
        ended.and_then(is_decent).with_context(|| format!("{} {how}", path.display()))?;
    }
    ensure!(before == bytes_of(&case.path("results")), "results were changed by reading them");
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
            make_pipe(path)?;
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

/// Commands that read results, in words and as JSON where they have it; `FOLDER`, `RUN`, and a run that is `ANOTHER`.
const COMMANDS: &[&[&str]] = &[
    &["analyze", "FOLDER"],
    &["analyze", "study.csv", "--all"],
    &["compare", "ANOTHER", "RUN"],
    &["report", "FOLDER"],
    &["report", "study.csv"],
    &["show", "RUN"],
    &["study", "status", "study.csv"],
    &["study", "status", "study.csv", "*"],
    &["clean", "FOLDER"],
    &["plot", "PLOT", "FOLDER", "--output", "plot.svg", "--force"],
];

/// Command number `n`, of twice as many as there are: each in words, and another way.
fn command(n: usize, folder: &str, run: &str) -> Vec<String> {
    let words = COMMANDS[n % COMMANDS.len()];
    let another = if run.contains("/dlio/") { "whole/workload/1" } else { "whole/dlio/a" };
    let plot = PLOTS[n % PLOTS.len()];
    let named = words.iter().map(|word| match *word {
        "FOLDER" => folder,
        "RUN" => run,
        "ANOTHER" => another,
        "PLOT" => plot,
        word => word,
    });
    let json = (n >= COMMANDS.len() && words[0] != "plot").then_some("--json");
    named.chain(json).map(String::from).collect()
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
    let contents = found.into_iter().map(|path| match fs::symlink_metadata(&path) {
        Ok(data) if data.is_file() && data.len() < 10_000_000 => {
            (path.clone(), fs::read(path).unwrap_or_default())
        }
        _ => (path, Vec::new()),
    });
    contents.collect()
}
