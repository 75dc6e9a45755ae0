//! Corrupt result folders: programs must read or refuse them in limited time and memory, and must not print their control characters.

use super::Class;
use super::case::{Case, copy_tree, files_below, make_pipe, workload};
use super::child::{FinishedProgram, STOP_TIMEOUT};
use super::mutate;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(super) static CLASS: Class = Class {
    name: "hostile_results",
    noun: "corrupt result folders",
    cases: 60,
    short_cases: 4,
    parallel_cases: 2,
    run,
};

const FOLDERS_PER_CASE: u32 = 10;
/// Number of fields in which a case puts control characters. All cases together reach all fields.
const FIELDS_PER_CASE: u64 = 3;
/// Texts about the machine that are in the record but that no command shows.
const HIDDEN_FIELDS: [&str; 2] = ["\"host_cpuinfo\"", "\"host_meminfo\""];

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

/// Creates results of a study, of a run of `dlio_benchmark` and of DLIO itself. Then reads them, with one corrupt file at a time.
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
    copy_tree(&case.path("results"), &case.path("original"))?;
    for folder in ["results", "study.study", ""] {
        case.create_user_files(folder)?;
    }
    for round in 0..FOLDERS_PER_CASE {
        read_corrupt_file(case).with_context(|| format!("round {round}"))?;
    }
    let fields = shown_fields(case)?;
    for turn in 0..FIELDS_PER_CASE {
        let field = (case.seed - 1) * FIELDS_PER_CASE + turn;
        let (path, position) = &fields[field as usize % fields.len()];
        let original = fs::read(path)?;
        let mut content = original.clone();
        mutate::insert_control_characters_at(&mut content, *position, &mut case.random);
        fs::write(path, content)?;
        let run = run_folder(path);
        let numbers = 0..COMMANDS.len() * 2;
        let commands = numbers.map(|number| command(number, "results", &run));
        check_commands(case, path, "is forged", commands)?;
        fs::write(path, original)?;
    }
    Ok(FOLDERS_PER_CASE + FIELDS_PER_CASE as u32)
}

/// Returns the positions of values that commands show. Each field occurs once for results of feedrate and once for results of DLIO.
fn shown_fields(case: &Case) -> Result<Vec<(PathBuf, usize)>> {
    let mut fields = Vec::new();
    let mut seen = BTreeSet::new();
    for path in case.files("results").into_iter().filter(|path| !case.user_files.has(path)) {
        let text = fs::read_to_string(&path)?;
        let name = path.file_name().unwrap_or_default().to_owned();
        let is_json = path.to_string_lossy().ends_with(".json");
        let values = mutate::value_positions(text.as_bytes()).into_iter();
        for position in values.filter(|position| !is_json || text[..*position].ends_with('"')) {
            let before = &text[..position];
            let key = before.rsplit(['{', ',', '\n']).next().unwrap_or(before);
            let enclosing = before.rsplit_once('{').filter(|(_, inside)| !inside.contains('}'));
            let outside =
                enclosing.map_or("", |(outside, _)| outside.trim_end().trim_end_matches(':'));
            let is_shown = !HIDDEN_FIELDS.iter().any(|name| outside.ends_with(name));
            let is_dlio = path.parent().is_some_and(|run| run.ends_with("b"));
            if is_shown && seen.insert((is_dlio, name.clone(), key.trim().to_string())) {
                fields.push((path.clone(), position));
            }
        }
    }
    ensure!(fields.len() > 50, "only {} fields are shown", fields.len());
    Ok(fields)
}

/// Returns the folder of the run that a file belongs to.
fn run_folder(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    let run = if folder.ends_with(".hydra") { folder.parent().unwrap_or(folder) } else { folder };
    run.to_string_lossy().into_owned()
}

/// Makes one file corrupt, reads the results with several commands, and restores the file.
fn read_corrupt_file(case: &mut Case) -> Result<()> {
    let mut files = case.files("results");
    files.retain(|path| !case.user_files.has(path));
    files.push(case.path("study.csv"));
    files.push(case.path("study.study/settings.json"));
    let i = case.random.below(files.len());
    let path = files.swap_remove(i);
    let original = fs::read(&path)?;
    let description = corrupt(case, &path, &original)?;
    let run = run_folder(&path);
    let commands = [(); 4].map(|()| {
        let folder = case.random.pick(&["results", &run]).to_string();
        command(case.random.below(COMMANDS.len() * 2), &folder, &run)
    });
    check_commands(case, &path, description, commands)?;
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    fs::write(&path, original)?;
    Ok(())
}

/// Runs commands that read a corrupt file. Checks that they end properly and change no file.
fn check_commands(
    case: &Case,
    path: &Path,
    description: &str,
    commands: impl IntoIterator<Item = Vec<String>>,
) -> Result<()> {
    let before = file_contents(&case.path("results"));
    for arguments in commands {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = case.start_feedrate(&words)?.wait_for(STOP_TIMEOUT);
        ended
            .and_then(check_output)
            .with_context(|| format!("{} {description}", path.display()))?;
    }
    ensure!(before == file_contents(&case.path("results")), "results were changed by reading them");
    Ok(())
}

/// Replaces a file or changes its content. Returns a description of the change.
fn corrupt(case: &mut Case, path: &Path, original: &[u8]) -> Result<&'static str> {
    let change = case.random.below(16);
    if change < 7 {
        fs::remove_file(path)?;
    }
    Ok(match change {
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
            let mut content = original.to_vec();
            mutate::mutate_text(&mut content, &mut case.random);
            fs::write(path, content)?;
            "is corrupt"
        }
    })
}

/// Commands that read results. `FOLDER`, `RUN`, `ANOTHER` (another run) and `PLOT` are placeholders.
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

/// Returns command number `number`: first the commands of [`COMMANDS`], then the same commands with `--json` if they support it.
fn command(number: usize, folder: &str, run: &str) -> Vec<String> {
    let words = COMMANDS[number % COMMANDS.len()];
    let another = if run.contains("/dlio/") { "original/workload/1" } else { "original/dlio/a" };
    let plot = PLOTS[number % PLOTS.len()];
    let arguments = words.iter().map(|word| match *word {
        "FOLDER" => folder,
        "RUN" => run,
        "ANOTHER" => another,
        "PLOT" => plot,
        word => word,
    });
    let json = (number >= COMMANDS.len() && words[0] != "plot").then_some("--json");
    arguments.chain(json).map(String::from).collect()
}

/// Checks exit code and output: JSON must be valid, and there are no control characters.
fn check_output(ended: FinishedProgram) -> Result<()> {
    let ended = ended.with_code(&[0, 1, 2, 3, 4])?;
    let is_json = ended.command_line.ends_with("--json") && [0, 3, 4].contains(&ended.code);
    if is_json {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&ended.stdout);
        parsed.with_context(|| format!("invalid JSON: `{}`", ended.command_line))?;
    }
    for text in [&ended.stdout, &ended.stderr] {
        let control =
            text.lines().find(|line| line.contains(|c: char| c.is_control() && c != '\t'));
        ensure!(control.is_none(), "control characters: `{}`: {control:?}", ended.command_line);
        let forged = text.lines().any(|line| line.starts_with("forged"));
        ensure!(!forged, "a forged line: `{}`", ended.command_line);
    }
    Ok(())
}

/// Returns all files below a folder with their content. The content of large and special files is empty.
fn file_contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
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
