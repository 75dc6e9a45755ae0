//! Imports logs of other programs' I/O: passes the text of their files, or the output of a program that prints them, to the reader for this kind of
//! log.

mod emulation;

pub use self::emulation::Emulation;

use crate::log_files::{detect_file_kind, log_files, open_text};
use feedrate_measure::record::file::sibling_names;
use feedrate_results::logs::{ImportedLog, Input, LogError, LogKind, LogPart};
use feedrate_spec::refusal::{Refusal, refuse};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Maximum number of files of one log.
const FILES_MAX: usize = 1000;
/// Number of bytes of a program's messages that are kept.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// Number of bytes at the start of a file that show whether it is a log of its kind.
const HEAD_BYTES: u64 = 64;
const KINDS_HINT: &str = "give the output of `strace -f -ttt -T -y -o LOG`, DFTracer's `.pfw` or `.pfw.gz`, or Darshan's `.darshan`";
const FOLDER_HINT: &str = "the names of logs in a folder end in `.strace` or `.strace.gz` (of `strace -f -ttt -T -y -o LOG`), in `.NUMBER` (of `-ff`), or in `.pfw`, `.pfw.gz` or `.darshan`; other files are given one by one";

/// Imports a log: a file, a folder with several files, or the common prefix of the files of `strace -ff`.
///
/// # Errors
/// Fails if there is no such log, or if it cannot be read.
pub fn import(path: &Path) -> anyhow::Result<ImportedLog> {
    let files = log_files(path);
    let Some(kind) = files.first().and_then(|file| detect_file_kind(file)) else {
        return Err(no_log(path, &files).into());
    };
    if files.len() > FILES_MAX {
        return refuse(
            format!("`{}` has {} files", path.display(), files.len()),
            format!("give at most {FILES_MAX} files, of a part of the job"),
        );
    }
    let imported = match kind.input {
        Input::Text => {
            let parts: io::Result<Vec<LogPart>> =
                files.iter().map(|file| open_part(file)).collect();
            parts.map_err(LogError::from).and_then(|parts| kind.import(parts))
        }
        Input::Programs(programs) => {
            // Checked first: a user should not have to install the programs to learn that the file is no log.
            for file in &files {
                check_content(kind, file)?;
            }
            return import_by_programs(kind, programs, &files);
        }
    };
    imported.map_err(|error| refusal(path, &error))
}

/// Refuses a file that is named like a log of this kind and contains something else.
fn check_content(kind: &LogKind, file: &Path) -> anyhow::Result<()> {
    let mut head = Vec::new();
    File::open(file)
        .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head))
        .map_err(|error| Refusal::without_hint(format!("`{}`: {error}", file.display())))?;
    if (kind.has_content)(&head) {
        return Ok(());
    }
    let state = if head.is_empty() { "is empty" } else { "contains something else" };
    refuse(
        format!("`{}` {state}, though it is named like a log of {}", file.display(), kind.name),
        KINDS_HINT,
    )
}

/// Refuses a path whose `files` are no log.
fn no_log(path: &Path, files: &[PathBuf]) -> Refusal {
    let name = path.display();
    let is_empty = |file: &PathBuf| file.metadata().is_ok_and(|file| file.len() == 0);
    if !files.is_empty() {
        let state = if files.iter().all(is_empty) { "is empty" } else { "is not a supported log" };
        return Refusal::new(format!("`{name}` {state}"), KINDS_HINT);
    }
    if path.is_dir() {
        return Refusal::new(format!("`{name}` contains no supported log"), FOLDER_HINT);
    }
    let others = sibling_names(path);
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let message = format!("`{name}` does not exist");
    Refusal::unknown_name(message, &wanted, others.iter().map(String::as_str), KINDS_HINT)
}

fn refusal(path: &Path, error: &LogError) -> anyhow::Error {
    Refusal::new(format!("`{}`: {error}", path.display()), error.hint()).into()
}

fn open_part(file: &Path) -> io::Result<LogPart<'static>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(LogPart { name, text: open_text(file)? })
}

/// Python script that prints a log if Darshan's programs are not installed.
const DARSHAN_SCRIPT: &str = include_str!("darshan.py");

/// A program that prints a log.
struct Printer {
    name: String,
    child: Child,
    messages: JoinHandle<String>,
}

impl Printer {
    /// Starts `program` with these arguments and the log. Its working directory is `/`, because Python would import modules from the current
    /// folder, which is not trusted.
    fn start(program: &str, arguments: &[&str], log: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).arg(std::path::absolute(log)?).current_dir("/");
        command.stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stderr = child.stderr.take();
        let messages = std::thread::Builder::new().spawn(move || {
            let mut text = String::new();
            if let Some(stderr) = &mut stderr {
                // After an error, only the messages are missing.
                let _ = stderr.take(MESSAGE_BYTES_MAX).read_to_string(&mut text);
                let _ = io::copy(stderr, &mut io::sink());
            }
            text
        })?;
        Ok(Printer { name: program.into(), child, messages })
    }

    /// Returns the printed text.
    fn output(&mut self) -> Option<LogPart<'static>> {
        let text = self.child.stdout.take()?;
        Some(LogPart { name: self.name.clone(), text: Box::new(BufReader::new(text)) })
    }

    /// Waits for the end of the program. Returns a message if it failed.
    fn wait(mut self) -> Option<String> {
        let has_failed = !self.child.wait().is_ok_and(|status| status.success());
        let text = self.messages.join().unwrap_or_default();
        let last_line = text.lines().rev().find(|line| !line.trim().is_empty());
        let reason = last_line.unwrap_or("no message").trim();
        has_failed.then(|| format!("`{}` failed: {reason}", self.name))
    }
}

/// Imports a log with the programs that print it, or with Python if they are not installed.
fn import_by_programs(
    kind: &LogKind,
    programs: &[&str],
    files: &[PathBuf],
) -> anyhow::Result<ImportedLog> {
    let mut printers = Vec::new();
    for file in files {
        let started = programs.iter().map(|program| Printer::start(program, &[], file));
        match started.collect::<io::Result<Vec<Printer>>>() {
            Ok(started) => printers.extend(started),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let python = Printer::start("python3", &["-c", DARSHAN_SCRIPT], file);
                printers.push(python.map_err(|_| programs_missing(programs))?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let parts = printers.iter_mut().filter_map(Printer::output).collect();
    let imported = kind.import(parts);
    let failed: Vec<String> = printers.into_iter().filter_map(Printer::wait).collect();
    let path = files.first().map_or(Path::new(""), PathBuf::as_path);
    match failed.first() {
        Some(message) if message.contains("No module named 'darshan'") => {
            Err(programs_missing(programs))
        }
        Some(message) => refuse(format!("`{}`: {message}", path.display()), "give a complete log"),
        None => imported.map_err(|error| refusal(path, &error)),
    }
}

fn programs_missing(programs: &[&str]) -> anyhow::Error {
    Refusal::new(
        format!("this log is read by {}, which are not in PATH", programs.join(" and ")),
        "install Darshan's utilities (`darshan-util`, by Spack, conda or your distribution), or `pip install darshan` for `python3`",
    )
    .into()
}
