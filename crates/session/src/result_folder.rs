//! The result folder of a run, `<results>/<model>/<timestamp>/`, and the files in it. A run never uses a folder with other results.

use crate::output::refuse_root;
use anyhow::Context;
use feedrate_data::storage::StorageError;
use feedrate_measure::dlio::{self, HydraText, Invocation};
use feedrate_measure::plot_data;
use feedrate_measure::record::file::{NAMES_FILE, NewFiles, RecordFileError};
use feedrate_measure::record::{Record, StudyRun, file};
use feedrate_results::leftovers::{first_leftover, has_results, move_results_aside};
use feedrate_results::place::make_run_dir;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{Workload, override_without_secret, resolved_yaml, yaml_text};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Formats local time as DLIO does: `2026-11-21T10:00:00.000000`.
pub fn local_time(time: SystemTime) -> String {
    match Zoned::try_from(time) {
        Ok(zoned) => zoned.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string(),
        Err(_) => String::new(),
    }
}

/// Returns the current local time in DLIO's form.
pub fn local_time_now() -> String {
    local_time(SystemTime::now())
}

/// Returns the current local time in iostat's form: `11/21/26 10:00:00`.
pub fn iostat_now() -> String {
    now().strftime("%m/%d/%y %H:%M:%S").to_string()
}

const CANNOT_WRITE: &str = "cannot write the results";

/// The destination of a run's results.
pub struct Results {
    /// Folder of the run.
    pub folder: PathBuf,
    /// The command line and settings that DLIO's files show.
    pub invocation: Invocation,
}

impl Results {
    /// Writes the record, the log and the settings at the start, for runs that are killed before the end of their first epoch.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn begin(&self, record: &Record) -> anyhow::Result<()> {
        let mut files = NewFiles::new(&self.folder);
        let written = file::write_to(&mut files, record)
            .and_then(|()| dlio::write_log(&mut files, record, &self.invocation));
        written.and_then(|()| files.publish()).context(CANNOT_WRITE)
    }

    /// Writes the record and DLIO's result files.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn save(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.write(record);
        if written.is_err() && !record.complete {
            // There may be enough space for the record without the other files.
            let _ = file::write(&self.folder, record);
        }
        written.context(CANNOT_WRITE)
    }

    /// Writes all files. A complete record is published last, because readers then expect the other files to be complete. An incomplete record
    /// is published first, because without it the files would look like a run of DLIO.
    fn write(&self, record: &Record) -> Result<(), RecordFileError> {
        let mut files = NewFiles::new(&self.folder);
        if !record.complete {
            file::write_to(&mut files, record)?;
        }
        for (name, bytes) in plot_data::files(record) {
            files.write(&name, &bytes)?;
        }
        dlio::write(&mut files, record, &self.invocation)?;
        if record.complete {
            file::write_to(&mut files, record)?;
        }
        files.publish()
    }
}

/// Returns the folder of all results: the requested folder, the workload's, or `results`.
///
/// # Errors
/// Returns a refusal for the root of the file system.
pub fn root(requested: Option<&Path>, workload: &Workload) -> Result<PathBuf, Refusal> {
    let workloads = workload.output_folder.as_ref().map(Path::new);
    let root = requested.or(workloads).unwrap_or(Path::new("results"));
    refuse_root(root, "`--results` (or `output.folder`)")?;
    Ok(root.to_path_buf())
}

/// Returns the texts of the files that Hydra writes for a run. `task` and `hydra` are the overrides of the workload and of Hydra, as typed.
pub fn hydra_text(
    task: &[String],
    hydra: &[String],
    name: &str,
    workload: &Workload,
    run_dir: &Path,
    subfolder: &str,
) -> HydraText {
    let cwd = std::env::current_dir().unwrap_or_default();
    let task: Vec<String> = task.iter().map(|text| override_without_secret(text)).collect();
    let output_subdir = if subfolder.is_empty() { "null".into() } else { yaml_text(subfolder) };
    let text = [
        format!(
            "hydra:\n  run:\n    dir: {}\n  output_subdir: {output_subdir}\n",
            yaml_path(run_dir)
        ),
        format!("  overrides:\n{}{}", yaml_entry("hydra", hydra), yaml_entry("task", &task)),
        "  job:\n    name: dlio_benchmark\n    chdir: null\n    config_name: config\n".into(),
        format!(
            "  runtime:\n    cwd: {}\n    output_dir: {}\n",
            yaml_path(&cwd),
            yaml_path(&cwd.join(run_dir))
        ),
        format!("    choices:\n      workload: {}\n", yaml_text(name)),
    ];
    HydraText {
        config: resolved_yaml(workload),
        overrides: yaml_list(&task, ""),
        hydra: text.concat(),
    }
}

fn yaml_path(path: &Path) -> String {
    yaml_text(&path.display().to_string())
}

fn yaml_entry(key: &str, texts: &[String]) -> String {
    if texts.is_empty() {
        return format!("    {key}: []\n");
    }
    format!("    {key}:\n{}", yaml_list(texts, "    "))
}

fn yaml_list(texts: &[String], indent: &str) -> String {
    if texts.is_empty() {
        return format!("{indent}[]\n");
    }
    texts.iter().map(|text| format!("{indent}- {}\n", yaml_text(text))).collect()
}

/// Returns the current local time for the name of a folder.
pub fn stamp() -> String {
    now().strftime("%Y-%m-%d-%H-%M-%S").to_string()
}

/// Returns the current local time; the latest known date if the clock is beyond it.
pub(crate) fn now() -> Zoned {
    Zoned::try_from(SystemTime::now())
        .unwrap_or_else(|_| Timestamp::MAX.to_zoned(TimeZone::system()))
}

/// Creates a folder that is named after a prefix and the time, with a number appended if the name exists.
///
/// # Errors
/// Fails if the folder cannot be created.
pub fn make_folder(parent: &Path, prefix: &str) -> anyhow::Result<PathBuf> {
    make_new(&parent.join(format!("{prefix}{}", stamp())))
}

/// Creates `folder`, with a number appended to its name if it exists.
///
/// # Errors
/// Fails if the folder cannot be created.
pub fn make_new(folder: &Path) -> anyhow::Result<PathBuf> {
    let parent = folder.parent().unwrap_or(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    make_run_dir(parent, &name)
        .map_err(|source| StorageError::new("make", folder, source))
        .context("cannot create a folder for the results")
}

/// The result folder of a run, which is locked until this is dropped.
pub struct RunFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Folders that were created for the run, innermost first. They are removed again if they are empty.
    created: Vec<PathBuf>,
    /// Whether the folder had no results before.
    is_new: bool,
    _lock: Option<File>,
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if self.is_new && !has_results(&self.path) {
            let _ = fs::remove_file(self.path.join(NAMES_FILE));
        }
        // Stops at the first folder that is not empty.
        let _ = self.created.iter().try_for_each(fs::remove_dir);
    }
}

/// Returns `path` and its ancestors that do not exist yet, innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    missing.map(Path::to_path_buf).collect()
}

impl RunFolder {
    /// Creates a folder in `parent` that is named after the time.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn make_in(parent: &Path, named_by: &str) -> anyhow::Result<Self> {
        let missing = missing_folders(parent);
        let mut folder = Self::take(make_folder(parent, "")?, named_by)?;
        folder.created = [vec![folder.path.clone()], missing].concat();
        folder.is_new = true;
        Ok(folder)
    }

    /// Locks a folder that the option `named_by` named, and creates it if necessary.
    ///
    /// # Errors
    /// Fails if another run uses the folder, or if it cannot be created.
    pub fn take(path: PathBuf, named_by: &str) -> anyhow::Result<Self> {
        let created = missing_folders(&path);
        fs::create_dir_all(&path).map_err(|source| StorageError::new("make", &path, source))?;
        refuse_root(&path, named_by)?;
        let folder =
            File::open(&path).map_err(|source| StorageError::new("open", &path, source))?;
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => refuse(
                format!("another run is writing its results to `{}`", path.display()),
                format!("give each run a separate folder with {named_by}"),
            ),
            // On file systems without locks, other runs are not excluded.
            locked => {
                let lock = locked.is_ok().then_some(folder);
                Ok(RunFolder { path, created, is_new: false, _lock: lock })
            }
        }
    }

    /// Locks a folder without results.
    ///
    /// # Errors
    /// Fails if the folder has results, or if another run uses it.
    pub fn take_new(path: &Path) -> anyhow::Result<Self> {
        let mut folder = Self::take(path.to_path_buf(), "`--run-dir`")?;
        if let Some(name) = first_leftover(path) {
            return refuse(
                format!("`--run-dir {}` contains results of another run: `{name}`", path.display()),
                "give an empty folder, or one that does not exist yet",
            );
        }
        folder.is_new = true;
        Ok(folder)
    }

    /// Refuses a file in the folder that the log would replace.
    ///
    /// # Errors
    /// Returns a refusal if there is a file with the name `log`.
    pub fn refuse_existing_log(&self, log: &str) -> Result<(), Refusal> {
        let path = self.path.join(log);
        match path.symlink_metadata() {
            Err(_) => Ok(()),
            Ok(_) => refuse(
                format!("`output.log_file`: `{}` exists already", path.display()),
                "give another name, or another folder with `--run-dir`",
            ),
        }
    }

    /// Locks a folder. Moves results of other runs, their Hydra folder `hydra`, and a file with the name `log` into another folder, and returns
    /// its path.
    ///
    /// # Errors
    /// Fails if another run uses the folder, or if the results cannot be moved.
    pub fn take_over(
        path: PathBuf,
        named_by: &str,
        hydra: &str,
        log: &str,
    ) -> anyhow::Result<(Self, Option<PathBuf>)> {
        let folder = Self::take(path, named_by)?;
        let aside = move_results_aside(&folder.path, &stamp(), hydra, log)
            .map_err(|source| StorageError::new("move the results in", &folder.path, source))?;
        Ok((folder, aside))
    }
}

/// Reads the file with which a study describes its run.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read_study_run(file: &Path) -> anyhow::Result<StudyRun> {
    let text = fs::read(file).map_err(|source| StorageError::new("read", file, source))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("`{}` does not describe a run of a study", file.display()))
}

/// Returns the name of a model's folder. Special characters are replaced.
pub fn file_name(model: &str) -> String {
    let name: String = model
        .chars()
        .map(|c| if c.is_alphanumeric() || "._-+".contains(c) { c } else { '_' })
        .collect();
    if name.trim_matches('.').is_empty() { "default".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::simple;

    #[test]
    fn names_of_models_are_safe_folder_names() {
        for (model, expected) in [
            ("unet3d", "unet3d"),
            ("a/b c", "a_b_c"),
            ("../up", ".._up"),
            ("..", "default"),
            ("", "default"),
            ("modèle-1.0+x", "modèle-1.0+x"),
        ] {
            assert_eq!(file_name(model), expected);
        }
    }

    #[test]
    fn lists_are_written_as_hydra_does() {
        assert_eq!(yaml_list(&[], ""), "[]\n");
        assert_eq!(yaml_entry("task", &[]), "    task: []\n");
        let texts = ["a=1".to_string(), "b: c".to_string()];
        assert_eq!(yaml_entry("task", &texts), "    task:\n    - a=1\n    - 'b: c'\n");
    }

    /// `.hydra` is a file, so the folder of that name cannot be created.
    #[test]
    fn a_record_is_complete_only_if_all_files_are_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".hydra"), "in the way").unwrap();
        let invocation = Invocation { subfolder: ".hydra".into(), ..Invocation::default() };
        let results = Results { folder: folder.path().to_path_buf(), invocation };
        for complete in [false, true] {
            let record = Record { complete, ..simple(&[(500, 500, 0, 1_000); 4]) };
            results.save(&record).unwrap_err();
            assert!(!file::read(folder.path()).unwrap().complete);
        }
    }

    #[test]
    fn a_starting_run_writes_its_settings_and_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let invocation = Invocation { subfolder: ".hydra".into(), ..Invocation::default() };
        let results = Results { folder: folder.path().to_path_buf(), invocation };
        results.begin(&simple(&[(500, 500, 0, 1_000); 4])).unwrap();
        for name in [file::RECORD_FILE, "dlio.log", ".hydra/config.yaml", ".hydra/overrides.yaml"] {
            assert!(folder.path().join(name).exists(), "{name}");
        }
        assert!(!folder.path().join("0_output.json").exists());
    }

    #[test]
    fn empty_folders_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let check = |written: &str, is_left: bool| {
            let run_folder = RunFolder::make_in(&root.path().join("results/tiny"), "").unwrap();
            fs::write(run_folder.path.join(written), "").unwrap();
            let path = run_folder.path.clone();
            drop(run_folder);
            assert_eq!(path.exists(), is_left, "{written}");
            assert_eq!(root.path().join("results").exists(), is_left, "{written}");
        };
        check(NAMES_FILE, false);
        check("dlio.log", true);
        let existing = root.path().join("existing");
        fs::create_dir(&existing).unwrap();
        drop(RunFolder::take_new(&existing).unwrap());
        assert!(existing.exists(), "it existed before");
    }

    #[test]
    fn a_folder_with_results_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let run_dir = folder.path().join("run");
        fs::create_dir(&run_dir).unwrap();
        let locked = RunFolder::take_new(&run_dir).unwrap();
        let check_refusal = |word: &str| {
            let error = RunFolder::take_new(&run_dir).err().unwrap();
            assert!(error.is::<Refusal>() && error.to_string().contains(word), "{error}");
        };
        check_refusal("another run is writing");
        drop(locked);
        fs::write(run_dir.join("notes.txt"), "mine").unwrap();
        drop(RunFolder::take_new(&run_dir).unwrap());
        for name in ["3_output.json", "dlio.log", file::RECORD_FILE] {
            fs::write(run_dir.join(name), "{}").unwrap();
            check_refusal(name);
            fs::remove_file(run_dir.join(name)).unwrap();
        }
    }
}
