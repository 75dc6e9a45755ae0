//! The folder of a run: `<results>/<model>/<timestamp>/`, never one that was there before.

use crate::output::refuse_root;
use anyhow::Context;
use feedrate_data::storage::StorageError;
use feedrate_measure::dlio::{self, HydraText, Invocation};
use feedrate_measure::plot_data;
use feedrate_measure::record::file::{NAMES_FILE, NewFiles, RecordFileError};
use feedrate_measure::record::{Record, StudyRun, file};
use feedrate_results::leftovers::{left_by_another, put_results_aside};
use feedrate_results::place::make_run_dir;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{Workload, resolved_yaml, yaml_text};
use jiff::Zoned;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Local time as DLIO writes it: `2026-11-21T10:00:00.000000`.
pub fn wall(time: SystemTime) -> String {
    match Zoned::try_from(time) {
        Ok(zoned) => zoned.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string(),
        Err(_) => String::new(),
    }
}

/// The current time in that form.
pub fn wall_now() -> String {
    wall(SystemTime::now())
}

/// Local time as iostat writes it: `11/21/26 10:00:00`.
pub fn iostat_now() -> String {
    Zoned::now().strftime("%m/%d/%y %H:%M:%S").to_string()
}

const CANNOT_WRITE: &str = "cannot write the results";

/// Where the results of a run go.
pub struct Results {
    /// The run's own folder.
    pub folder: PathBuf,
    /// The command line and settings that DLIO's files show.
    pub invocation: Invocation,
}

impl Results {
    /// Writes the record, the log and the settings when a run begins, for one that is killed before its first epoch ends.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn begin(&self, record: &Record) -> anyhow::Result<()> {
        let mut files = NewFiles::new(&self.folder);
        let written = file::write_to(&mut files, record)
            .and_then(|()| dlio::write_log(&mut files, record, &self.invocation));
        written.and_then(|()| files.publish()).context(CANNOT_WRITE)
    }

    /// Writes the record, and beside it the files that DLIO would have written.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn save(&self, record: &Record) -> anyhow::Result<()> {
        let written = self.write(record);
        if written.is_err() && !record.complete {
            // Without the files beside it, it may find room.
            let _ = file::write(&self.folder, record);
        }
        written.context(CANNOT_WRITE)
    }

    /// A complete record gets its name last, since it vouches for the other files; an incomplete one gets it first, since without it they
    /// would read as DLIO's.
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

/// Folder of all results: the requested one, the workload's, or `results`.
///
/// # Errors
/// It is the root of the file system.
pub fn root(requested: Option<&Path>, workload: &Workload) -> Result<PathBuf, Refusal> {
    let workloads = workload.output_folder.as_ref().map(Path::new);
    let root = requested.or(workloads).unwrap_or(Path::new("results"));
    refuse_root(root, "`--results` (or `output.folder`)")?;
    Ok(root.to_path_buf())
}

/// Files that Hydra writes beside the results of a run: `task` and `hydra` are the overrides as typed, of the workload and of Hydra.
pub fn hydra_text(
    task: &[String],
    hydra: &[String],
    name: &str,
    workload: &Workload,
    run_dir: &Path,
    subfolder: &str,
) -> HydraText {
    let cwd = std::env::current_dir().unwrap_or_default();
    let subfolder = if subfolder.is_empty() { "null".into() } else { yaml_text(subfolder) };
    let text = [
        format!("hydra:\n  run:\n    dir: {}\n  output_subdir: {subfolder}\n", yaml_path(run_dir)),
        format!("  overrides:\n{}{}", yaml_entry("hydra", hydra), yaml_entry("task", task)),
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
        overrides: yaml_list(task, ""),
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

/// Local time as folders are named by it.
pub fn stamp() -> String {
    Zoned::now().strftime("%Y-%m-%d-%H-%M-%S").to_string()
}

/// Makes a folder that is named by a prefix and the time, with a number if that exists.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(parent: &Path, prefix: &str) -> anyhow::Result<PathBuf> {
    make_new(&parent.join(format!("{prefix}{}", stamp())))
}

/// Makes `folder`, or if it exists one of that name with a number.
///
/// # Errors
/// It cannot be made.
pub fn make_new(folder: &Path) -> anyhow::Result<PathBuf> {
    let parent = folder.parent().unwrap_or(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    make_run_dir(parent, &name)
        .map_err(|source| StorageError::new("make", folder, source))
        .context("no folder for the results")
}

/// The result folder of a run. It is locked until this is dropped.
pub struct RunFolder {
    /// Where.
    pub path: PathBuf,
    /// Folders that were made for it, itself first. Empty ones are removed again.
    made: Vec<PathBuf>,
    /// Whether it held no results.
    is_new: bool,
    _lock: Option<File>,
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let names = self.path.join(NAMES_FILE);
        let entries = || fs::read_dir(&self.path).into_iter().flatten().flatten();
        if self.is_new && entries().all(|entry| entry.path() == names) {
            let _ = fs::remove_file(&names);
        }
        // A folder with something in it is not removed, nor are those around it.
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}

/// The folders on the way to `path` that are not there yet, itself first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists());
    missing.map(Path::to_path_buf).collect()
}

impl RunFolder {
    /// Make one in `parent`, named by the time.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_in(parent: &Path, named_by: &str) -> anyhow::Result<Self> {
        let missing = missing_folders(parent);
        let mut folder = Self::take(make_folder(parent, "")?, named_by)?;
        folder.made = [vec![folder.path.clone()], missing].concat();
        folder.is_new = true;
        Ok(folder)
    }

    /// Takes a folder that the option `named_by` named.
    ///
    /// # Errors
    /// Another run has it, or it cannot be made.
    pub fn take(path: PathBuf, named_by: &str) -> anyhow::Result<Self> {
        let made = missing_folders(&path);
        fs::create_dir_all(&path).map_err(|source| StorageError::new("make", &path, source))?;
        refuse_root(&path, named_by)?;
        let folder =
            File::open(&path).map_err(|source| StorageError::new("open", &path, source))?;
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => refuse(
                format!("another run is writing its results to `{}`", path.display()),
                format!("give each run a folder of its own with {named_by}"),
            ),
            // Without such locks other runs are not kept out.
            locked => {
                let lock = locked.is_ok().then_some(folder);
                Ok(RunFolder { path, made, is_new: false, _lock: lock })
            }
        }
    }

    /// Takes a folder that holds no results.
    ///
    /// # Errors
    /// It holds some, or another run has it.
    pub fn take_new(path: &Path) -> anyhow::Result<Self> {
        let mut folder = Self::take(path.to_path_buf(), "`--run-dir`")?;
        if let Some(name) = left_by_another(path) {
            return refuse(
                format!(
                    "`--run-dir {}` holds the results of another run: `{name}`",
                    path.display()
                ),
                "give a folder that is empty, or not there yet",
            );
        }
        folder.is_new = true;
        Ok(folder)
    }

    /// Takes a folder, and moves results of other runs in it aside, with their Hydra folder `hydra`. Returns where these are now.
    ///
    /// # Errors
    /// Another run has it, or the results cannot be moved.
    pub fn take_over(
        path: PathBuf,
        named_by: &str,
        hydra: &str,
    ) -> anyhow::Result<(Self, Option<PathBuf>)> {
        let folder = Self::take(path, named_by)?;
        let aside = put_results_aside(&folder.path, &stamp(), hydra)
            .map_err(|source| StorageError::new("move the results in", &folder.path, source))?;
        Ok((folder, aside))
    }
}

/// Reads a study's description of its run.
///
/// # Errors
/// It cannot be read.
pub fn read_study_run(file: &Path) -> anyhow::Result<StudyRun> {
    let text = fs::read(file).map_err(|source| StorageError::new("read", file, source))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("`{}` does not say which run of a study this is", file.display()))
}

/// A model's name as a folder's.
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
    fn a_model_names_a_folder_that_leads_nowhere_else() {
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
    fn lists_are_written_as_hydra_writes_them() {
        assert_eq!(yaml_list(&[], ""), "[]\n");
        assert_eq!(yaml_entry("task", &[]), "    task: []\n");
        let texts = ["a=1".to_string(), "b: c".to_string()];
        assert_eq!(yaml_entry("task", &texts), "    task:\n    - a=1\n    - 'b: c'\n");
    }

    /// Without room for all, or killed before all is written, the run is none that is whole.
    #[test]
    fn a_record_is_complete_only_where_all_beside_it_is_written() {
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
    fn a_run_that_begins_has_its_settings_beside_its_record() {
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
    fn folders_in_which_nothing_was_written_are_not_left() {
        let root = tempfile::tempdir().unwrap();
        let check = |written: &str, is_left: bool| {
            let taken = RunFolder::make_in(&root.path().join("results/tiny"), "").unwrap();
            fs::write(taken.path.join(written), "").unwrap();
            let path = taken.path.clone();
            drop(taken);
            assert_eq!(path.exists(), is_left, "{written}");
            assert_eq!(root.path().join("results").exists(), is_left, "{written}");
        };
        check(NAMES_FILE, false);
        check("dlio.log", true);
        let own = root.path().join("own");
        fs::create_dir(&own).unwrap();
        drop(RunFolder::take_new(&own).unwrap());
        assert!(own.exists(), "it was there before");
    }

    #[test]
    fn a_folder_with_results_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let run_dir = folder.path().join("run");
        fs::create_dir(&run_dir).unwrap();
        let held = RunFolder::take_new(&run_dir).unwrap();
        let refused = |word: &str| {
            let error = RunFolder::take_new(&run_dir).err().unwrap();
            assert!(error.is::<Refusal>() && error.to_string().contains(word), "{error}");
        };
        refused("another run is writing");
        drop(held);
        fs::write(run_dir.join("notes.txt"), "mine").unwrap();
        drop(RunFolder::take_new(&run_dir).unwrap());
        for name in ["3_output.json", "dlio.log", file::RECORD_FILE] {
            fs::write(run_dir.join(name), "{}").unwrap();
            refused(name);
            fs::remove_file(run_dir.join(name)).unwrap();
        }
    }
}
