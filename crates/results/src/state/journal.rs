//! The journal's file: a line of JSON an event, only ever added to, each on the disk before anything follows from it.

use super::event::Event;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A journal that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused.
    #[error("cannot {doing} the journal `{path}`: {source}")]
    Io {
        /// Open, read, write.
        doing: &'static str,
        /// Of the journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no event, and is not the last.
    #[error("line {line} of the journal `{path}` is no event: {reason}")]
    Broken {
        /// Of the journal.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    end: u64,
}

impl Journal {
    /// Open or make the journal at `path`, and read what it says. A last line that was not finished is taken back.
    ///
    /// # Errors
    /// The file cannot be read or written, or is no journal.
    pub fn open(path: &Path) -> Result<(Self, Vec<Event>), JournalError> {
        let io = |doing| move |source| JournalError::Io { doing, path: path.to_path_buf(), source };
        let options =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options().map_err(io("open"))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io("read"))?;
        let (events, end) = parse(path, &text)?;
        file.set_len(end).map_err(io("write"))?;
        Ok((Journal { file, path: path.to_path_buf(), end }, events))
    }

    /// What a journal says, without the right to add to it. Nothing where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is no journal.
    pub fn read(path: &Path) -> Result<Vec<Event>, JournalError> {
        match std::fs::read(path) {
            Ok(text) => Ok(parse(path, &text)?.0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(JournalError::Io { doing: "read", path: path.into(), source }),
        }
    }

    /// Add an event; when this returns it is on the disk. What could only be written in part is taken back.
    ///
    /// # Errors
    /// It could not be written.
    pub fn add(&mut self, event: &Event) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(event).map_err(|error| self.failed(error.into()))?;
        line.push(b'\n');
        let written = self
            .file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.write_all(&line))
            .and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Where this fails too, the next who opens the journal takes it back.
            let _ = self.file.set_len(self.end);
            return Err(self.failed(source));
        }
        self.end += line.len() as u64;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::Io { doing: "write", path: self.path.clone(), source }
    }
}

/// Events, and where the last whole line ends.
fn parse(path: &Path, text: &[u8]) -> Result<(Vec<Event>, u64), JournalError> {
    let mut events = Vec::new();
    let mut end = 0;
    for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        let event = serde_json::from_slice(line).map_err(|error| JournalError::Broken {
            path: path.to_path_buf(),
            line: number + 1,
            reason: error.to_string(),
        })?;
        events.push(event);
        end += line.len() as u64;
    }
    Ok((events, end))
}
