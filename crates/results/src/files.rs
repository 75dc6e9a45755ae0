//! The files of a study: its CSV and, next to it, the folder with its state and the lock of its runner. The contents of the state are read in
//! [`crate::state`].

use crate::file_kind::FileKind;
use crate::hook::hooks;
use crate::logs::{LOG_OF_JOB, detect_kind, import_hint};
use crate::table::Table;
use feedrate_measure::record::file::{
    RecordFileError, create_part_of, read_folder, read_text, sibling_names, sync_folder,
};
use feedrate_spec::problem::Problems;
use feedrate_spec::workload::{alternatives, similar_names};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the CSV of a study that has a separate folder.
pub const STUDY_FILE: &str = "study.csv";

/// Returns the CSV of the study at `path`, which is the CSV itself or a folder that contains a study.
pub fn study_csv(path: &Path) -> Option<PathBuf> {
    let inner = path.join(STUDY_FILE);
    let is_study = || inner.with_extension("study").is_dir() && inner.is_file();
    if path.is_file() { Some(path.into()) } else { is_study().then_some(inner) }
}

/// Asks whether a file or folder of a similar name beside a missing one was meant; `None` if nothing is missing, or nothing is similar.
pub(crate) fn similar_path(path: &Path) -> Option<String> {
    let name = path.file_name().filter(|_| !path.exists())?.to_str()?;
    let siblings = sibling_names(path);
    let similar = similar_names(name, siblings.iter().map(String::as_str)).into_iter();
    let paths: Vec<String> =
        similar.map(|name| path.with_file_name(name).display().to_string()).collect();
    let listed = alternatives(&paths.iter().map(String::as_str).collect::<Vec<_>>())?;
    Some(format!("did you mean {listed}?"))
}

/// Paths of a study's files.
#[derive(Clone, Debug)]
pub struct StudyFiles {
    /// Path of the CSV with links resolved.
    pub csv: PathBuf,
    /// Path of the CSV as the user wrote it.
    user_path: PathBuf,
    /// Folder of the state: next to the CSV, with `.study` in place of `.csv`.
    pub state: PathBuf,
}

/// Errors of reading or writing a study's files.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// An operation of the file system failed.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// Verb of the operation: read, write, lock.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a study, or not one that this version supports.
    #[error("{message}")]
    Other {
        /// The reason.
        message: String,
        /// A remedy.
        hint: String,
    },
    /// The CSV has errors.
    #[error("{0}")]
    Table(Problems),
    /// A file of the state cannot be written.
    #[error(transparent)]
    Record(#[from] RecordFileError),
    /// The CSV was copied together with the state of another study.
    #[error("the state of this study was copied from `{}`", original.display())]
    IsCopy {
        /// The CSV of the original study.
        original: PathBuf,
        /// The folder of the state.
        state: PathBuf,
    },
    /// Another runner holds the lock.
    #[error("another runner is running `{csv}`{holder}")]
    Locked {
        /// The CSV of the study.
        csv: PathBuf,
        /// The runner's process in parentheses, or empty if unknown.
        holder: String,
    },
}

impl FilesError {
    /// Returns a remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            FilesError::Other { hint, .. } => Some(hint.clone()),
            FilesError::Locked { .. } => {
                Some("wait until it ends, or stop it: that releases its lock".into())
            }
            FilesError::IsCopy { state, .. } => Some(format!(
                "remove `{}` to start the copy from the beginning, and pass another folder as `--results`",
                state.display()
            )),
            FilesError::Io { action: "read", path, .. } => {
                Some(similar_path(path).unwrap_or_else(|| {
                    "pass the CSV of a study; `feedrate study new` creates one".into()
                }))
            }
            _ => None,
        }
    }
}

/// The lock of a study's runner. Dropping it or the end of the process releases it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child process that is just being started may still share the file, and would keep the lock for a moment.
        let _ = self.file.unlock();
    }
}

impl StudyFiles {
    /// Locates the files of the study at `path`, a CSV or a folder that contains a study.
    ///
    /// # Errors
    /// The CSV does not exist.
    pub fn new(path: &Path) -> Result<Self, FilesError> {
        let user_path = study_csv(path).unwrap_or_else(|| path.into());
        let csv = fs::canonicalize(&user_path).map_err(io_error("read", &user_path))?;
        let name = csv.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".csv").unwrap_or(&name);
        let state = csv.with_file_name(format!("{stem}.study"));
        Ok(StudyFiles { csv, user_path, state })
    }

    /// Refuses a study of an older version, which kept a journal: its finished runs would be missed.
    pub(crate) fn refuse_journal(&self) -> Result<(), FilesError> {
        let journal = self.state.join("journal.jsonl");
        if !journal.exists() {
            return Ok(());
        }
        Err(FilesError::Other {
            message: format!(
                "`{}` is from an older version and cannot be read; nothing was changed",
                journal.display()
            ),
            hint: format!(
                "move `{}` and the results elsewhere to run the study from the beginning",
                self.state.display()
            ),
        })
    }

    /// Returns the path of the file with [`crate::state::StudySettings`].
    pub(crate) fn settings(&self) -> PathBuf {
        self.state.join("settings.json")
    }

    /// Returns the path of the lock that every process of a run holds.
    pub fn running_lock(&self) -> PathBuf {
        self.state.join("running")
    }

    /// Returns the folder for the scripts and the output of one task of an attempt.
    pub fn task_folder(&self, attempt: u64, task: &str) -> PathBuf {
        self.state.join("logs").join(format!("{attempt}-{task}"))
    }

    /// Returns the highest number of an attempt that has a task folder, whether or not its results still exist.
    pub fn last_attempt_with_task(&self) -> u64 {
        let names = read_folder(self.state.join("logs")).into_iter().flatten().flatten();
        let numbers =
            names.filter_map(|entry| entry.file_name().to_str()?.split_once('-')?.0.parse().ok());
        numbers.max().unwrap_or(0)
    }

    /// Reads the CSV.
    ///
    /// # Errors
    /// The CSV cannot be read, has errors, or is a file of another kind.
    pub fn table(&self) -> Result<Table, FilesError> {
        let text = self.text()?;
        match FileKind::from_text(&text).filter(|kind| *kind != FileKind::Study) {
            None => self.parse(&text).map_err(|error| self.log_error(&text).unwrap_or(error)),
            Some(other) => {
                let (message, hint) = other.mismatch(FileKind::Study, &self.user_path);
                Err(FilesError::Other { message, hint })
            }
        }
    }

    /// Returns an error that names the command for logs if the text is a log. A comment in a study may look like a line of a log.
    fn log_error(&self, text: &str) -> Option<FilesError> {
        let name = self.csv.file_name()?.to_string_lossy();
        detect_kind(&name, text).map(|_| FilesError::Other {
            message: format!("`{}` is {LOG_OF_JOB}", self.user_path.display()),
            hint: import_hint(&self.user_path),
        })
    }

    fn text(&self) -> Result<String, FilesError> {
        // Opening a pipe would block.
        let text = match self.csv.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a file")),
            _ => read_text(&self.csv),
        };
        text.map_err(io_error("read", &self.csv))
    }

    fn parse(&self, text: &str) -> Result<Table, FilesError> {
        Table::parse(&self.csv.display().to_string(), text).map_err(FilesError::Table)
    }

    /// Reads the commands of the study's hooks, by hook name.
    ///
    /// # Errors
    /// The CSV cannot be read, or a hook has two commands.
    pub fn hooks(&self) -> Result<BTreeMap<String, String>, FilesError> {
        hooks(&self.csv.display().to_string(), &self.text()?).map_err(FilesError::Table)
    }

    /// Applies `edit` to the CSV and syncs the result to disk. `edit` returns whether it changed the table. If the user saves the CSV
    /// meanwhile, `edit` is applied again to the saved version.
    ///
    /// # Errors
    /// The CSV cannot be read or written, or has errors. The old CSV then remains.
    pub fn edit_table(&self, mut edit: impl FnMut(&mut Table) -> bool) -> Result<(), FilesError> {
        loop {
            let text = self.text()?;
            let mut table = self.parse(&text)?;
            if !edit(&mut table) || self.replace(&text, &table.text())? {
                return Ok(());
            }
        }
    }

    /// Replaces the CSV atomically. Returns `false` if its text is no longer `before`.
    fn replace(&self, before: &str, after: &str) -> Result<bool, FilesError> {
        let write_error = io_error("write", &self.csv);
        let (file, part) = create_part_of(&self.csv).map_err(&write_error)?;
        let replaced = self.write_and_rename(file, &part, before, after);
        if !matches!(replaced, Ok(true)) {
            let _ = fs::remove_file(&part);
        }
        replaced.map_err(write_error)
    }

    fn write_and_rename(
        &self,
        mut file: File,
        part: &Path,
        before: &str,
        after: &str,
    ) -> io::Result<bool> {
        file.write_all(after.as_bytes())?;
        file.set_permissions(fs::metadata(&self.csv)?.permissions())?;
        file.sync_all()?;
        // Compared only after syncing, because the user may save an edit while the file is synced.
        if fs::read(&self.csv)? != before.as_bytes() {
            return Ok(false);
        }
        fs::rename(part, &self.csv)?;
        sync_folder(self.csv.parent().unwrap_or(Path::new(".")))?;
        Ok(true)
    }

    /// Returns whether a runner holds the lock.
    pub fn is_locked(&self) -> bool {
        let file = File::open(self.state.join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Takes the lock of the study's runner and creates the folder of its logs.
    ///
    /// # Errors
    /// Another runner holds the lock, the file system fails, or a file of the state is a link.
    pub fn lock(&self) -> Result<Lock, FilesError> {
        let logs = self.state.join("logs");
        self.refuse_links(&logs)?;
        fs::create_dir_all(&logs).map_err(io_error("make", &logs))?;
        let path = self.state.join("lock");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(io_error("lock", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => String::new(),
                    id => format!(" (process {id})"),
                };
                return Err(FilesError::Locked { csv: self.csv.clone(), holder });
            }
        }
        // The content is only for the message above; the kernel keeps the lock.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { file })
    }

    /// Refuses links among the files of the state. The folder is not trusted, and writing through a link could damage other files.
    fn refuse_links(&self, logs: &Path) -> Result<(), FilesError> {
        let lock = self.state.join("lock");
        let written = [self.state.clone(), logs.into(), lock, self.running_lock(), self.settings()];
        let Some(link) = written.iter().find(|path| path.is_symlink()) else { return Ok(()) };
        Err(FilesError::Other {
            message: format!("`{}` is a link, which is not followed", link.display()),
            hint: "remove the link, or replace it by its target".into(),
        })
    }
}

/// Returns a conversion of I/O errors that adds the action and the path.
pub(crate) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl Fn(io::Error) -> FilesError + use<> {
    let path = path.to_path_buf();
    move |source| FilesError::Io { action, path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(text: &str) -> (tempfile::TempDir, StudyFiles) {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("study.csv");
        fs::write(&csv, text).unwrap();
        let files = StudyFiles::new(&csv).unwrap();
        (folder, files)
    }

    #[test]
    fn only_one_runner_holds_the_lock() {
        let (_folder, files) = study("model,processes,run\n");
        let lock = files.lock().unwrap();
        let error = files.lock().unwrap_err();
        assert!(
            error.to_string().contains(&format!("(process {})", std::process::id())),
            "{error}"
        );
        drop(lock);
        files.lock().unwrap();
    }

    #[test]
    fn a_pipe_is_refused_without_blocking() {
        let (_folder, files) = study("");
        fs::remove_file(&files.csv).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&files.csv).status();
        assert!(made.unwrap().success());
        assert!(files.table().unwrap_err().to_string().contains("it is not a file"));
    }

    fn mark_first(table: &mut Table) -> bool {
        table.mark(0, true);
        true
    }

    #[test]
    fn edits_that_the_user_saves_meanwhile_are_kept() {
        let (folder, files) = study("model,processes,run\nw,1,N\n");
        let mut edits = ["model,processes,run\nw,1,N\nw,2,N\n"].into_iter();
        let mut marks = 0;
        let marked = files.edit_table(|table| {
            marks += 1;
            for text in edits.by_ref() {
                fs::write(&files.csv, text).unwrap();
            }
            mark_first(table)
        });
        marked.unwrap();
        assert_eq!(fs::read_to_string(&files.csv).unwrap(), "model,processes,run\nw,1,Y\nw,2,N\n");
        assert_eq!(marks, 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part of a file is left");
    }

    #[test]
    fn a_byte_order_mark_is_kept() {
        let (_folder, files) = study("\u{feff}model,processes,run\r\nw,1,N\r\n");
        files.edit_table(mark_first).unwrap();
        let marked = fs::read_to_string(&files.csv).unwrap();
        assert_eq!(marked, "\u{feff}model,processes,run\r\nw,1,Y\r\n");
    }

    #[test]
    fn the_csv_behind_a_link_is_replaced_and_the_link_stays() {
        let (folder, files) = study("model,processes,run\nw,1,N\n");
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink(&files.csv, &link).unwrap();
        let files = StudyFiles::new(&link).unwrap();
        files.edit_table(mark_first).unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "model,processes,run\nw,1,Y\n");
        assert!(link.is_symlink());
    }

    #[test]
    fn links_in_the_state_are_refused_and_not_written_through() {
        for name in ["", "lock", "running", "logs", "settings.json"] {
            let (folder, files) = study("model,processes,run\n");
            let victim = folder.path().join("victim");
            fs::write(&victim, "text").unwrap();
            let link =
                files.state.components().chain(Path::new(name).components()).collect::<PathBuf>();
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&victim, &link).unwrap();
            let error = files.lock().unwrap_err();
            assert!(
                error.to_string().contains(&format!("`{}` is a link", link.display())),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&victim).unwrap(), "text", "{name}");
        }
    }

    #[test]
    fn a_missing_study_is_named_in_the_error() {
        let error = StudyFiles::new(Path::new("no/such.csv")).unwrap_err();
        assert!(error.to_string().contains("cannot read `no/such.csv`"), "{error}");
        assert!(error.hint().unwrap().contains("study new"));
    }
}
