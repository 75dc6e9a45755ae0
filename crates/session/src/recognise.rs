//! Files and folders that a user may take for a workload or a run, and are something else: what they are, and which command reads them.

use feedrate_measure::record::file::{RECORD_FILE, read_text_bounded};
use feedrate_results::diagnosis::{DIAGNOSIS_FILE, Diagnosis};
use feedrate_results::import::find;
use feedrate_spec::escape::bash_word;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Refuses a path that is known to be something else than a workload or a run.
///
/// # Errors
/// What it is, and the command that reads it.
pub fn refuse_other(path: &Path) -> Result<(), Refusal> {
    let known = if path.is_dir() { recognise_folder(path) } else { recognise_file(path) };
    match known {
        Some((what, hint)) => refuse(format!("`{}` is {what}", path.display()), hint),
        None => Ok(()),
    }
}

/// The folder of the run that `file` belongs to.
pub fn run_of(file: &Path) -> Option<&Path> {
    let name = file.file_name()?.to_str()?;
    let folder = file.parent().filter(|folder| folder.join(RECORD_FILE).is_file())?;
    (name == RECORD_FILE || is_result(name)).then_some(folder)
}

/// Whether DLIO writes files of that name, and we as it does.
fn is_result(name: &str) -> bool {
    let ends = ["_output.json", "_per_epoch_stats.json"];
    ["summary.json", "dlio.log"].contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

fn recognise_folder(path: &Path) -> Option<(String, String)> {
    let folder = bash_word(&path.display().to_string());
    let names = path.read_dir().into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    if names.any(|name| is_result(&name)) {
        let config = path.join(".hydra/config.yaml");
        let again = if config.is_file() {
            format!("; `feedrate run {}` runs its workload", config.display())
        } else {
            String::new()
        };
        let hint = format!("`feedrate analyze {folder}` reads it{again}");
        return Some(("the result folder of a run of DLIO".into(), hint));
    }
    if path.join(DIAGNOSIS_FILE).is_file() {
        if Diagnosis::read(path).is_none() {
            let found = "a diagnosis that is damaged, or of another version of feedrate";
            return Some((found.into(), "make another: `feedrate diagnose`".into()));
        }
        let hint = format!("`feedrate show {folder}` says what it measured");
        return Some(("the result of a diagnosis".into(), hint));
    }
    let (found, _) = find(path).unwrap_or_default();
    if let Some(first) = found.first() {
        let (count, first) = (units::counted(found.len() as u64, "run"), first.path.display());
        let hint = format!("`feedrate analyze {folder}` reads them; the first is `{first}`");
        return Some((format!("a folder with {count} of DLIO, and none of feedrate"), hint));
    }
    if path.read_dir().is_ok_and(|mut names| names.next().is_none()) {
        let hint = format!("`feedrate run WORKLOAD --data {folder}` makes a dataset in it");
        return Some(("an empty folder".into(), hint));
    }
    let hint = format!("`feedrate run --data {folder}` trains on the files in it");
    Some(("a folder, and holds no result".into(), hint))
}

fn recognise_file(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if run_of(path).is_some() {
        let folder = folder.display();
        let hint = format!(
            "`feedrate show {folder}` shows the run, `feedrate run {folder}` makes it again"
        );
        return Some((format!("a result of the run in `{folder}`"), hint));
    }
    if is_result(name) {
        let hint = format!("`feedrate analyze {}` reads its folder", folder.display());
        return Some(("a result file of DLIO".into(), hint));
    }
    if name.ends_with(".json") {
        return recognise_json(path);
    }
    is_binary(path).then(|| {
        let hint = format!("`feedrate run --data {}` trains on such files", folder.display());
        ("no text".into(), hint)
    })
}

/// An object that a command printed with `--json`.
fn recognise_json(path: &Path) -> Option<(String, String)> {
    let object: Value = serde_json::from_str(&read_text_bounded(path).ok()?).ok()?;
    let schema = object.get("schema")?.as_str()?.split('/').next()?;
    object.get("feedrate")?;
    let hint = match object.get("run_dir").and_then(Value::as_str) {
        Some(folder) => format!("`feedrate show {folder}` shows the run"),
        None => format!("`feedrate schema {schema}` says what it holds"),
    };
    Some((format!("what a command printed with `--json` (`{schema}`)"), hint))
}

fn is_binary(path: &Path) -> bool {
    let mut begin = [0; 512];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut begin));
    read.is_ok_and(|len| begin[..len].contains(&0))
}
