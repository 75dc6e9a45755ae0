//! Imports logs of other programs' I/O. Finds the files of a log, and passes their text, or the output of a program that prints them, to the
//! reader for this kind of log.

mod emulation;

pub use self::emulation::Emulation;

use feedrate_results::logs::{ImportedLog, Input, LogError, LogKind, LogPart, detect_kind};
use feedrate_spec::refusal::{Refusal, refuse};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Number of bytes at the start of a log that are searched for its kind.
const HEAD_BYTES: u64 = 64 << 10;
/// Maximum number of files of one log.
const FILES_MAX: usize = 1000;
/// Number of bytes of a program's messages that are kept.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// First bytes of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Imports a log: a file, a folder with several files, or the common prefix of the files of `strace -ff`.
///
/// # Errors
/// Fails if there is no such log, or if it cannot be read.
pub fn import(path: &Path) -> anyhow::Result<ImportedLog> {
    let files = log_files(path);
    let Some(kind) = files.first().and_then(|file| detect_file_kind(file)) else {
        let exists = !files.is_empty() || path.exists();
        return refuse(
            if exists {
                format!("`{}` is not a supported log", path.display())
            } else {
                format!("`{}` does not exist", path.display())
            },
            "give the output of `strace -f -ttt -T -y -o LOG`, DFTracer's `.pfw` or `.pfw.gz`, or Darshan's `.darshan`",
        );
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
        Input::Programs(programs) => return import_by_programs(kind, programs, &files),
    };
    imported.map_err(|error| refusal(path, &error))
}

/// Whether a path is a log, rather than a result.
pub fn is_log(path: &Path) -> bool {
    log_files(path).first().and_then(|file| detect_file_kind(file)).is_some()
}

fn refusal(path: &Path, error: &LogError) -> anyhow::Error {
    Refusal::new(format!("`{}`: {error}", path.display()), error.hint()).into()
}

/// Returns the files of a log, sorted by name.
fn log_files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.into()];
    }
    let (parent, prefix) = if path.is_dir() {
        (path, None)
    } else {
        (path.parent().unwrap_or(Path::new("")), path.file_name().and_then(|name| name.to_str()))
    };
    if prefix.is_none() && !path.is_dir() {
        return Vec::new();
    }
    let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_part = |name: &str| {
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let is_number =
            !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_digit());
        match prefix {
            Some(prefix) => is_number && stem == prefix,
            None => {
                is_number || [".darshan", ".pfw", ".pfw.gz"].iter().any(|end| name.ends_with(end))
            }
        }
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<PathBuf> =
        names.filter(|name| is_part(name)).map(|name| folder.join(name)).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

fn detect_file_kind(file: &Path) -> Option<&'static LogKind> {
    let mut head = Vec::new();
    // The readable start of a damaged file is enough.
    let _ = open_text(file).ok()?.take(HEAD_BYTES).read_to_end(&mut head);
    detect_kind(&file.file_name()?.to_string_lossy(), &String::from_utf8_lossy(&head))
}

/// Opens the text of a file, which may be compressed by gzip.
fn open_text(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut bytes = BufReader::new(File::open(file)?);
    if bytes.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(bytes))));
    }
    Ok(Box::new(bytes))
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
        let messages = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(stderr) = &mut stderr {
                // After an error, only the messages are missing.
                let _ = stderr.take(MESSAGE_BYTES_MAX).read_to_string(&mut text);
                let _ = io::copy(stderr, &mut io::sink());
            }
            text
        });
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
                printers.push(python.map_err(|_| programs_missing(kind, programs))?);
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
            Err(programs_missing(kind, programs))
        }
        Some(message) => refuse(format!("`{}`: {message}", path.display()), "give a complete log"),
        None => imported.map_err(|error| refusal(path, &error)),
    }
}

fn programs_missing(kind: &LogKind, programs: &[&str]) -> anyhow::Error {
    Refusal::new(
        format!("logs of {} need {}, which are not in PATH", kind.name, programs.join(" and ")),
        "install Darshan's utilities (`darshan-util`, by Spack, conda or your distribution), or `pip install darshan` for `python3`",
    )
    .into()
}
