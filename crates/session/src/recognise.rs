//! Recognises files and folders that a user gives by mistake instead of a workload or a run, and names the command that reads them.

use crate::log_files::is_log;
use feedrate_measure::record::file::{RECORD_FILE, read_folder, read_text_bounded};
use feedrate_results::diagnosis::{DIAGNOSIS_FILE, Diagnosis};
use feedrate_results::import::{RunOrigin, find, find_within};
use feedrate_results::logs::{LOG_OF_JOB, import_hint};
use feedrate_spec::escape::bash_word;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Refuses a path that is recognised as something other than a workload or a run.
///
/// # Errors
/// Returns a refusal with a description of the path, and the command that reads it.
pub fn refuse_other(path: &Path) -> Result<(), Refusal> {
    let recognised = if path.is_dir() { recognise_folder(path) } else { recognise_file(path) };
    match recognised {
        Some((description, hint)) => refuse(format!("`{}` is {description}", path.display()), hint),
        None => Ok(()),
    }
}

/// Returns the folder of the run that a result file belongs to.
pub fn run_of_file(file: &Path) -> Option<&Path> {
    let name = file.file_name()?.to_str()?;
    let folder = file.parent().filter(|folder| folder.join(RECORD_FILE).is_file())?;
    (name == RECORD_FILE || is_result_name(name)).then_some(folder)
}

/// Whether a file has the name of a result file of DLIO, which feedrate writes too.
fn is_result_name(name: &str) -> bool {
    let ends = ["_output.json", "_per_epoch_stats.json"];
    ["summary.json", "dlio.log"].contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

/// Whether a folder is the result folder of a run of DLIO.
pub fn is_run_of_dlio(folder: &Path) -> bool {
    let found = find_within(folder, 0).map(|(found, _)| found).unwrap_or_default();
    found.iter().any(|run| run.origin != RunOrigin::Feedrate)
}

/// Returns a description of a folder, and a hint.
fn recognise_folder(path: &Path) -> Option<(String, String)> {
    let folder = bash_word(&path.display().to_string());
    let entries = read_folder(path).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    if names.any(|name| is_result_name(&name)) {
        let config = path.join(".hydra/config.yaml");
        let repeat_hint = if config.is_file() {
            format!("; `feedrate run {}` runs its workload", config.display())
        } else {
            String::new()
        };
        let hint = format!("`feedrate analyze {folder}` reads it{repeat_hint}");
        return Some(("the result folder of a run of DLIO".into(), hint));
    }
    if path.join(DIAGNOSIS_FILE).is_file() {
        if Diagnosis::read(path).is_none() {
            let description = "a diagnosis that is damaged, or of another version of feedrate";
            return Some((description.into(), "repeat it with `feedrate diagnose`".into()));
        }
        let hint = format!("`feedrate show {folder}` shows its results");
        return Some(("the result of a diagnosis".into(), hint));
    }
    let (found, _) = find(path).unwrap_or_default();
    if let Some(first) = found.first() {
        let count = units::counted(found.len() as u64, "run");
        let hint = format!(
            "`feedrate analyze {folder}` reads them; the first is `{}`",
            first.path.display()
        );
        return Some((format!("a folder with {count} of DLIO, and none of feedrate"), hint));
    }
    if read_folder(path).is_ok_and(|mut names| names.next().is_none()) {
        let hint = format!("`feedrate run WORKLOAD --data {folder}` generates a dataset in it");
        return Some(("an empty folder".into(), hint));
    }
    if is_log(path) {
        return Some(log_of_job(path));
    }
    let hint = format!("`feedrate run --data {folder}` trains on the files in it");
    Some(("a folder without results".into(), hint))
}

/// Returns a description of a file, and a hint.
fn recognise_file(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?;
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    if run_of_file(path).is_some() {
        let run_folder = folder.display();
        let hint = format!(
            "`feedrate show {run_folder}` shows the run, `feedrate run {run_folder}` repeats it"
        );
        return Some((format!("a result of the run in `{run_folder}`"), hint));
    }
    if is_result_name(name) {
        let hint = format!("`feedrate analyze {}` reads its folder", folder.display());
        return Some(("a result file of DLIO".into(), hint));
    }
    if name.ends_with(".json") {
        return recognise_json(path);
    }
    // A comment in a workload may look like a call.
    let may_be_workload = name.ends_with(".yaml") || name.ends_with(".yml");
    if !may_be_workload && is_log(path) {
        return Some(log_of_job(path));
    }
    is_binary(path).then(|| {
        let hint = format!("`feedrate run --data {}` trains on such files", folder.display());
        ("not a text file".into(), hint)
    })
}

/// Describes the I/O log of a job, and the command that reads it.
fn log_of_job(path: &Path) -> (String, String) {
    (LOG_OF_JOB.into(), import_hint(path))
}

/// Returns a description of output that a command printed with `--json`, and a hint.
fn recognise_json(path: &Path) -> Option<(String, String)> {
    let object: Value = serde_json::from_str(&read_text_bounded(path).ok()?).ok()?;
    let schema = object.get("schema")?.as_str()?.split('/').next()?;
    object.get("feedrate")?;
    let hint = match object.get("run_dir").and_then(Value::as_str) {
        Some(folder) => format!("`feedrate show {folder}` shows the run"),
        None => format!("`feedrate schema {schema}` describes it"),
    };
    Some((format!("output of a command with `--json` (`{schema}`)"), hint))
}

fn is_binary(path: &Path) -> bool {
    let mut head = [0; 512];
    let outcome = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
    outcome.is_ok_and(|len| head[..len].contains(&0))
}
