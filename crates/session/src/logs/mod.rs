//! Reads logs of other programs' I/O: finds their files, and passes their text, or what a program prints of them, to the reader of their
//! kind.

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

/// Bytes of a log from which its kind is recognised.
const HEAD_BYTES: u64 = 64 << 10;
/// Files of one log.
const FILES_MAX: usize = 1000;
/// Bytes of a program's messages that are kept.
const MESSAGES_BYTES: u64 = 4 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Read a log: a file, a folder of several, or the name that the files of `strace -ff` begin with.
pub fn import(path: &Path) -> anyhow::Result<ImportedLog> {
    let files = files_of(path);
    let Some(kind) = files.first().and_then(|file| kind_of_file(file)) else {
        let is_there = !files.is_empty() || path.exists();
        return refuse(
            if is_there {
                format!("`{}` is no log that can be read", path.display())
            } else {
                format!("`{}` is not there", path.display())
            },
            "give what `strace -f -ttt -T -y -o LOG` wrote, DFTracer's `.pfw` or `.pfw.gz`, or Darshan's `.darshan`",
        );
    };
    if files.len() > FILES_MAX {
        return refuse(
            format!("`{}` has {} files", path.display(), files.len()),
            format!("give those of a part of the job, {FILES_MAX} at most"),
        );
    }
    let read = match kind.input {
        Input::Text => {
            let parts: io::Result<Vec<LogPart>> = files.iter().map(|file| part(file)).collect();
            parts.map_err(LogError::from).and_then(|parts| kind.import(parts))
        }
        Input::Programs(programs) => return read_by_programs(kind, programs, &files),
    };
    read.map_err(|error| refusal(path, &error))
}

/// Whether it is a log, and no result.
pub fn is_log(path: &Path) -> bool {
    files_of(path).first().and_then(|file| kind_of_file(file)).is_some()
}

fn refusal(path: &Path, error: &LogError) -> anyhow::Error {
    Refusal::new(format!("`{}`: {error}", path.display()), error.hint()).into()
}

/// In the order of their names.
fn files_of(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.into()];
    }
    let (folder, start) = if path.is_dir() {
        (path, None)
    } else {
        (path.parent().unwrap_or(Path::new("")), path.file_name().and_then(|name| name.to_str()))
    };
    if start.is_none() && !path.is_dir() {
        return Vec::new();
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_part = |name: &str| {
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let is_number = !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_digit());
        match start {
            Some(start) => is_number && stem == start,
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

fn kind_of_file(file: &Path) -> Option<&'static LogKind> {
    let mut head = Vec::new();
    // The readable beginning of a damaged file suffices.
    let _ = text_of(file).ok()?.take(HEAD_BYTES).read_to_end(&mut head);
    detect_kind(&file.file_name()?.to_string_lossy(), &String::from_utf8_lossy(&head))
}

/// The text of a file, which gzip may have compressed.
fn text_of(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut bytes = BufReader::new(File::open(file)?);
    if bytes.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(bytes))));
    }
    Ok(Box::new(bytes))
}

fn part(file: &Path) -> io::Result<LogPart<'static>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(LogPart { name, text: text_of(file)? })
}

/// Prints the contents of a log where its own programs are not there.
const DARSHAN_SCRIPT: &str = include_str!("darshan.py");

/// A program that prints a log.
struct Printer {
    name: String,
    child: Child,
    words: JoinHandle<String>,
}

impl Printer {
    /// Start `program` with these arguments, the last of which is a log. It starts in the root folder: Python imports modules
    /// from the working directory, which may come from others.
    fn start(program: &str, arguments: &[&str], log: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).arg(std::path::absolute(log)?).current_dir("/");
        command.stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut words = child.stderr.take();
        let words = std::thread::spawn(move || {
            let mut first = String::new();
            if let Some(words) = &mut words {
                // A failure only loses the messages.
                let _ = words.take(MESSAGES_BYTES).read_to_string(&mut first);
                let _ = io::copy(words, &mut io::sink());
            }
            first
        });
        Ok(Printer { name: program.into(), child, words })
    }

    fn part(&mut self) -> Option<LogPart<'static>> {
        let text = self.child.stdout.take()?;
        Some(LogPart { name: self.name.clone(), text: Box::new(BufReader::new(text)) })
    }

    /// Its last word, where it failed.
    fn end(mut self) -> Option<String> {
        let failed = !self.child.wait().is_ok_and(|status| status.success());
        let words = self.words.join().unwrap_or_default();
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word");
        failed.then(|| format!("`{}` failed: {}", self.name, last.trim()))
    }
}

fn read_by_programs(
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
                printers.push(python.map_err(|_| absent(kind, programs))?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let parts = printers.iter_mut().filter_map(Printer::part).collect();
    let imported = kind.import(parts);
    let failed: Vec<String> = printers.into_iter().filter_map(Printer::end).collect();
    let path = files.first().map_or(Path::new(""), PathBuf::as_path);
    match failed.first() {
        Some(word) if word.contains("No module named 'darshan'") => Err(absent(kind, programs)),
        Some(word) => refuse(format!("`{}`: {word}", path.display()), "give a log that is whole"),
        None => imported.map_err(|error| refusal(path, &error)),
    }
}

fn absent(kind: &LogKind, programs: &[&str]) -> anyhow::Error {
    Refusal::new(
        format!("logs of {} are read by {}, which are not in PATH", kind.name, programs.join(" and ")),
        "install Darshan's utilities (`darshan-util`, by Spack, conda or your distribution), or `pip install darshan` for `python3`",
    )
    .into()
}
