//! The files of a study: its CSV, and beside it the folder of its state, with the lock that one runner holds.

use crate::file_kind::FileKind;
use crate::hook::hooks;
use crate::table::Table;
use feedrate_measure::record::file::{RecordFileError, create_part_of, read_text, sync_folder};
use feedrate_spec::problem::Problems;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the CSV of a study that has a folder of its own.
pub const STUDY_FILE: &str = "study.csv";

/// The CSV of a study that `path` names: the file itself, or that of a folder with a study of its own.
pub fn study_csv(path: &Path) -> Option<PathBuf> {
    let inner = path.join(STUDY_FILE);
    let is_study = || inner.with_extension("study").is_dir() && inner.is_file();
    if path.is_file() { Some(path.into()) } else { is_study().then_some(inner) }
}

/// Where everything of a study lies.
#[derive(Clone, Debug)]
pub struct StudyFiles {
    /// The CSV itself, behind any link.
    pub csv: PathBuf,
    /// The CSV as the user named it.
    named: PathBuf,
    /// `<name>.study` beside it; of a name without `.csv` all of the name.
    pub state: PathBuf,
}

/// A study whose files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The file system refused.
    #[error("cannot {doing} `{path}`: {source}")]
    Io {
        /// Read, write, lock.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is no study.
    #[error("{message}")]
    Other {
        /// The kind of the file.
        message: String,
        /// A remedy.
        hint: String,
    },
    /// The CSV is wrong.
    #[error("{0}")]
    Table(Problems),
    /// A file of its state cannot be written.
    #[error(transparent)]
    Record(#[from] RecordFileError),
    /// The state beside the CSV is that of another study.
    #[error("what lies beside this study is the state of `{}`, of which it is a copy", original.display())]
    IsCopy {
        /// The CSV of the other study.
        original: PathBuf,
        /// The folder of the state.
        state: PathBuf,
    },
    /// Another runner has the lock.
    #[error("another runner is at work on `{csv}`{who}")]
    Locked {
        /// The study.
        csv: PathBuf,
        /// Its process, where it can be told.
        who: String,
    },
}

impl FilesError {
    /// A remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            FilesError::Other { hint, .. } => Some(hint.clone()),
            FilesError::Locked { .. } => {
                Some("wait for it, or end it: its lock ends with it".into())
            }
            FilesError::IsCopy { state, .. } => Some(format!(
                "remove `{}` to begin the copy anew, and give it `--results` of its own",
                state.display()
            )),
            FilesError::Io { doing: "read", .. } => {
                Some("give the CSV of a study; `feedrate study new` makes one".into())
            }
            _ => None,
        }
    }
}

/// Held by the one runner of a study; free when it is dropped or its process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that is just being started may still share the file, and would hold the lock for a moment longer.
        let _ = self.file.unlock();
    }
}

impl StudyFiles {
    /// The files of the study in this CSV or folder.
    ///
    /// # Errors
    /// There is no such file.
    pub fn new(path: &Path) -> Result<Self, FilesError> {
        let csv = &study_csv(path).unwrap_or_else(|| path.into());
        let found = fs::canonicalize(csv).map_err(failed("read", csv))?;
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        let state =
            found.with_file_name(format!("{}.study", name.strip_suffix(".csv").unwrap_or(&name)));
        Ok(StudyFiles { csv: found, named: csv.to_path_buf(), state })
    }

    /// Refuse a study of a version that kept a journal: its runs would be taken for none.
    pub(crate) fn refuse_journal(&self) -> Result<(), FilesError> {
        let journal = self.state.join("journal.jsonl");
        if !journal.exists() {
            return Ok(());
        }
        let (journal, state) = (journal.display(), self.state.display());
        Err(FilesError::Other {
            message: format!(
                "`{journal}` is of a study that an older version ran, and is not read; nothing was changed"
            ),
            hint: format!("move `{state}` and the results elsewhere to run the study anew"),
        })
    }

    /// How its runs are made.
    pub(crate) fn settings(&self) -> PathBuf {
        self.state.join("settings.json")
    }

    /// Lock that the processes of a run hold while any of them lives.
    pub fn running(&self) -> PathBuf {
        self.state.join("running")
    }

    /// The folder of one task of an attempt: its scripts, and what its processes say.
    pub fn task(&self, attempt: u64, task: &str) -> PathBuf {
        self.state.join("logs").join(format!("{attempt}-{task}"))
    }

    /// The highest attempt that has such a folder, be its results there or not.
    pub fn last_task(&self) -> u64 {
        let names = fs::read_dir(self.state.join("logs")).into_iter().flatten().flatten();
        let numbers =
            names.filter_map(|entry| entry.file_name().to_str()?.split_once('-')?.0.parse().ok());
        numbers.max().unwrap_or(0)
    }

    /// Read the CSV as it is now.
    ///
    /// # Errors
    /// It cannot be read, is wrong, or is another file that users write.
    pub fn table(&self) -> Result<Table, FilesError> {
        let text = self.text()?;
        match FileKind::from_text(&text).filter(|kind| *kind != FileKind::Study) {
            None => self.parse(&text),
            Some(other) => {
                let (message, hint) = other.instead_of(FileKind::Study, &self.named);
                Err(FilesError::Other { message, hint })
            }
        }
    }

    fn text(&self) -> Result<String, FilesError> {
        // Its state lies beside it: a pipe is none, and would be waited for.
        let text = match self.csv.metadata() {
            Ok(about) if !about.is_file() => Err(io::Error::other("it is no file")),
            _ => read_text(&self.csv),
        };
        text.map_err(failed("read", &self.csv))
    }

    fn parse(&self, text: &str) -> Result<Table, FilesError> {
        Table::parse(&self.csv.display().to_string(), text).map_err(FilesError::Table)
    }

    /// The commands of the study's hooks, by name.
    ///
    /// # Errors
    /// The CSV cannot be read, or its hooks are wrong.
    pub fn hooks(&self) -> Result<BTreeMap<String, String>, FilesError> {
        hooks(&self.csv.display().to_string(), &self.text()?).map_err(FilesError::Table)
    }

    /// Edit the CSV as it is now, unless `edit` says that nothing is to be changed. What the user saves meanwhile stays: the edit is
    /// made in that again. It is on the disk when this returns.
    ///
    /// # Errors
    /// It cannot be read or written, or is wrong. The old one is still there.
    pub fn edit_table(&self, mut edit: impl FnMut(&mut Table) -> bool) -> Result<(), FilesError> {
        loop {
            let text = self.text()?;
            let mut table = self.parse(&text)?;
            if !edit(&mut table) || self.replace(&text, &table.text())? {
                return Ok(());
            }
        }
    }

    /// Replace the CSV in one step; `false` where it is not `before` any more.
    fn replace(&self, before: &str, after: &str) -> Result<bool, FilesError> {
        let failed = failed("write", &self.csv);
        let (file, part) = create_part_of(&self.csv).map_err(&failed)?;
        let written = self.replace_by(file, &part, before, after);
        if !matches!(written, Ok(true)) {
            let _ = fs::remove_file(&part);
        }
        written.map_err(failed)
    }

    fn replace_by(
        &self,
        mut file: File,
        part: &Path,
        before: &str,
        after: &str,
    ) -> io::Result<bool> {
        file.write_all(after.as_bytes())?;
        file.set_permissions(fs::metadata(&self.csv)?.permissions())?;
        file.sync_all()?;
        // Last of all: syncing takes long enough to save an edit in.
        if fs::read(&self.csv)? != before.as_bytes() {
            return Ok(false);
        }
        fs::rename(part, &self.csv)?;
        sync_folder(self.csv.parent().unwrap_or(Path::new(".")))?;
        Ok(true)
    }

    /// Whether a runner is at work.
    pub fn is_locked(&self) -> bool {
        let file = File::open(self.state.join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Become the one runner of the study.
    ///
    /// # Errors
    /// There is another, the file system refused, or a file of the state is a link.
    pub fn lock(&self) -> Result<Lock, FilesError> {
        let logs = self.state.join("logs");
        self.refuse_links(&logs)?;
        fs::create_dir_all(&logs).map_err(failed("make", &logs))?;
        let path = self.state.join("lock");
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed("lock", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let who = match holder.trim() {
                    "" => String::new(),
                    id => format!(" (process {id})"),
                };
                return Err(FilesError::Locked { csv: self.csv.clone(), who });
            }
        }
        // Only for the message above: the lock is the kernel's.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { file })
    }

    /// Refuse a state that would be written elsewhere: the folder may come from others.
    fn refuse_links(&self, logs: &Path) -> Result<(), FilesError> {
        let (lock, running, settings) = (self.state.join("lock"), self.running(), self.settings());
        let written = [&self.state, logs, &lock, &running, &settings];
        let Some(link) = written.into_iter().find(|path| path.is_symlink()) else { return Ok(()) };
        Err(FilesError::Other {
            message: format!("`{}` is a link, and is not followed", link.display()),
            hint: "remove the link, or move what it names in its place".into(),
        })
    }
}

/// The error of `doing` something with a file or folder.
pub(crate) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> FilesError + use<> {
    let path = path.to_path_buf();
    move |source| FilesError::Io { doing, path: path.clone(), source }
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
    fn one_runner_at_a_time() {
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
    fn a_pipe_is_no_study_and_is_not_waited_for() {
        let (_folder, files) = study("");
        fs::remove_file(&files.csv).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&files.csv).status();
        assert!(made.unwrap().success());
        assert!(files.table().unwrap_err().to_string().contains("it is no file"));
    }

    fn mark_first(table: &mut Table) -> bool {
        table.mark(0, true);
        true
    }

    #[test]
    fn what_the_user_saves_while_a_mark_is_written_stays() {
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
    fn a_spreadsheets_mark_at_the_start_of_the_csv_stays() {
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
    fn a_link_in_the_state_of_a_study_is_refused_and_not_written_through() {
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
    fn a_study_that_is_not_there_is_named() {
        let error = StudyFiles::new(Path::new("no/such.csv")).unwrap_err();
        assert!(error.to_string().contains("cannot read `no/such.csv`"), "{error}");
        assert!(error.hint().unwrap().contains("study new"));
    }
}
