//! `feedrate import`: reads the I/O log of a real job, prints whether I/O is its problem and its access pattern, and writes a workload that
//! emulates it.

use crate::exit::Exit;
use crate::{messages, text};
use clap::Args;
use feedrate_measure::metric::{LOGICAL_BYTES, Quantiles, counters_of_run};
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::summary::Figures;
use feedrate_report::output::{OpenObject, Schema};
use feedrate_report::run_page;
use feedrate_report::words::io_answer;
use feedrate_results::logs::{ImportedLog, IoAnswer, LogJob, Lost};
use feedrate_session::folder;
use feedrate_session::logs::{self, Emulation};
use feedrate_session::output::write_output;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `feedrate import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Logs may come from `strace -f -ttt -T -y -o LOG COMMAND` (with `-ff`, give the common prefix LOG of the files), DFTracer (`.pfw`, `.pfw.gz`) \
or Darshan (`.darshan`; needs `darshan-parser` and `darshan-dxt-parser`, or Python's `darshan`). A folder may hold the logs of one job. \
The files of one extension are taken as the dataset: the extension with the most bytes read.

Examples:
  feedrate import train.strace -o job.yaml
  feedrate import job.darshan --data /mnt/fs/images -o job.yaml")]
pub(super) struct ImportArguments {
    /// I/O log of a job.
    log: PathBuf,
    /// Write the workload that emulates the job to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder of the job's files, for a workload that reads them instead of generated files.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Ratio of a file's actual size to the logged bytes per file. Above it, the log probably misses reads.
const MISSING_READS_RATIO: f64 = 2.0;
/// Maximum number of other file extensions that are listed.
const OTHER_EXTENSIONS_MAX: usize = 4;

/// Reads a log, and prints its access pattern.
pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<Exit> {
    let log = logs::import(&arguments.log)?;
    let names = tempfile::tempdir()?;
    let found = arguments.data.as_ref();
    let found = found.map(|folder| folder::scan(folder, &names.path().join(NAMES_FILE), &[]));
    let emulation =
        Emulation::new(&workload_name(&arguments.log), &log, found.transpose()?.as_ref())?;
    if let Some(file) = &arguments.output {
        write_output(file, emulation.yaml.as_bytes(), Some(arguments.force))?;
    }
    let figures = Figures::from_reads_only(&log.record);
    if arguments.json {
        let output = ImportOutput {
            log: &arguments.log,
            kind: log.kind,
            answer: &log.answer,
            job: &log.job,
            duration_s: log.record.epochs[0].end_ns as f64 / 1e9,
            access: serde_json::to_value(&figures)?["access"].as_object().cloned(),
            bytes: figures.value(&LOGICAL_BYTES).map(|bytes| bytes as u64),
            latency: ImportedLatency {
                open: figures.open_latency.clone(),
                read: figures.read_latency.clone(),
            },
            workload: &emulation.yaml,
            assumed: &emulation.assumed,
            lost: lost_facts(&log),
        };
        messages::print_json(Schema::Import, &output)?;
    } else {
        messages::print_page(&page(arguments, &log, &emulation, &figures))?;
    }
    Ok(Exit::Fine)
}

/// Name for the workload, from the file name of the log.
fn workload_name(log: &Path) -> String {
    let stem = log.file_stem().map_or("", |stem| stem.to_str().unwrap_or_default());
    let is_kept = |char: char| char.is_alphanumeric() || "-_.".contains(char);
    let name: String =
        stem.chars().map(|char| if is_kept(char) { char } else { '_' }).take(60).collect();
    let name = name.trim_end_matches(".pfw").trim_end_matches(".strace");
    let name = name.trim_matches('.').to_string();
    if name.is_empty() { "log".into() } else { name }
}

/// Output of `import --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ImportOutput<'a> {
    /// Path of the log.
    log: &'a Path,
    /// Kind of the log: `strace`, `darshan` or `dftracer`.
    kind: &'static str,
    /// Whether I/O is the problem of the job.
    answer: &'a IoAnswer,
    /// The properties of the job that the log shows.
    job: &'a LogJob,
    /// Time between the first and the last call, in seconds.
    duration_s: f64,
    /// Sizes and order of the reads.
    access: Option<OpenObject>,
    /// Bytes that were read.
    bytes: Option<u64>,
    /// Latencies of calls.
    latency: ImportedLatency,
    /// The workload as YAML.
    workload: &'a str,
    /// Values that are assumed, since the log does not show them.
    assumed: &'a [String],
    /// Facts of the log that no workload can express.
    lost: Vec<String>,
}

/// Latencies of calls; `null` if the log has no times.
#[derive(Serialize, JsonSchema)]
struct ImportedLatency {
    /// Latencies of opens.
    open: Option<Quantiles>,
    /// Latencies of reads.
    read: Option<Quantiles>,
}

fn page(
    arguments: &ImportArguments,
    log: &ImportedLog,
    emulation: &Emulation,
    figures: &Figures,
) -> String {
    let mut parts = io_answer::lines(&log.answer);
    if let (Some(first), Some(percent)) = (parts.first_mut(), log.unreadable_percent) {
        *first += &format!("; {percent:.0} % of the log's calls could not be read");
    }
    if let Some(first) = parts.first_mut().filter(|_| log.is_cut) {
        *first += "; the log is cut off";
    }
    let before = log.before_ns.map(|ns| {
        ("Start-up", format!("{} until the first data file", units::seconds(ns as f64 / 1e9)))
    });
    let latency = run_page::latency_line(figures).map(|line| ("Read latency", line));
    let reads = run_page::log_read_rows(
        figures,
        &counters_of_run(&log.record).access,
        log.answer.read_bytes,
        &averaged_readers(&log.job),
    );
    let rows: Vec<_> = before.into_iter().chain(latency).chain(reads).collect();
    parts.extend([head(log), text::rows(&rows)]);
    let lists = [("Assumed", &emulation.assumed), ("Lost", &lost_facts(log))];
    for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        let indented: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        parts.push(format!("{title}:{indented}"));
    }
    parts.push(match &arguments.output {
        Some(file) => {
            let compute = if log.job.compute_ns.is_some() { "" } else { " --compute TIME" };
            let batch = if log.job.batch.is_some() { "" } else { " reader.batch_size=N" };
            format!("Workload: {0}, run it by `feedrate run {0}{compute}{batch}`", file.display())
        }
        None => "To write a workload that emulates the job, add `-o FILE`".into(),
    });
    parts.join("\n")
}

/// Names the readers of a job over which times are averaged: `2 readers`, or its ranks if the log does not distinguish readers.
fn averaged_readers(job: &LogJob) -> String {
    match job.readers {
        Some(readers) => units::counted(job.ranks.saturating_mul(readers), "reader"),
        None => units::counted(job.ranks, "rank"),
    }
}

fn head(log: &ImportedLog) -> String {
    let LogJob { extension, files, file_bytes, ranks, readers, epochs, folder, .. } = &log.job;
    let with_extension =
        if extension.is_empty() { String::new() } else { format!("`.{extension}` ") };
    let mut words = vec![format!(
        "{} of {} on average, in {}",
        units::counted(*files, &format!("{with_extension}file")),
        units::bytes(*file_bytes as u64),
        if folder.is_empty() { "." } else { folder },
    )];
    let readers = match (log.job.trains_and_reads, readers) {
        (Some(true), _) => "by the thread that trains".to_string(),
        (_, Some(readers)) => format!("{} at a time", units::counted(*readers, "reader")),
        (_, None) => "number of readers unknown".into(),
    };
    words.push(format!(
        "{}, {readers}; read {} in {}{}",
        units::counted(*ranks, "rank"),
        match epochs {
            None => "an unknown number of times".into(),
            Some(1) => "once".into(),
            Some(epochs) => units::counted(*epochs, "time"),
        },
        units::seconds(log.record.epochs[0].end_ns as f64 / 1e9),
        rates(log),
    ));
    if let Some(batch) = log.job.batch {
        let files = batch.files.map(|files| format!("{} or ", units::counted(files, "file")));
        words.push(format!(
            "batches of {}{}",
            files.unwrap_or_default(),
            units::bytes(batch.bytes)
        ));
    }
    let seconds = |ns: u64| units::seconds(ns as f64 / 1e9);
    words.push(match (log.job.compute_ns, log.job.compute_max_ns) {
        (Some(ns), _) => {
            let compute = seconds(ns);
            format!("compute at most about {compute} per step (estimated from gaps between reads)")
        }
        (None, Some(ns)) => format!("compute unknown, at most {} per step", seconds(ns)),
        (None, None) => "compute time unknown".into(),
    });
    format!("{}: {}", log.kind, words.join("\n  "))
}

/// The mean rates from the first call on a data file to the last: ` at 13.4 MB/s, 226 files/s`. Empty without times.
fn rates(log: &ImportedLog) -> String {
    let seconds = log.record.epochs[0].end_ns as f64 / 1e9;
    let bytes = counters_of_run(&log.record).read_bytes as f64;
    if seconds <= 0.0 || bytes <= 0.0 {
        return String::new();
    }
    let files = log.job.epochs.map(|epochs| log.job.files as f64 * epochs as f64 / seconds);
    // Large files are not read whole one by one, so that their rate says nothing.
    let files = files.filter(|rate| 1.0 <= *rate);
    let files = files.map(|rate| format!(", {} files/s", units::count(rate.round() as u64)));
    format!(" at {}{}", units::bytes_per_second(bytes / seconds), files.unwrap_or_default())
}

/// Facts of the log that the workload cannot express.
fn lost_facts(log: &ImportedLog) -> Vec<String> {
    let text = |lost: &Lost| format!("{} {}", units::counted(lost.count, lost.noun), lost.why);
    let mut lines: Vec<String> = log.lost.iter().map(text).collect();
    if log.job.mapped_bytes > 0 {
        lines.push(format!(
            "{} mapped into memory: the log does not show which of them were read",
            units::bytes(log.job.mapped_bytes)
        ));
    }
    lines.extend(missing_reads_note(log));
    let others = log.job.left_out.iter().filter(|other| other.bytes > 0);
    let others: Vec<String> = others
        .map(|other| {
            let name = if other.extension.is_empty() { "none" } else { &other.extension };
            format!(
                "{} ({}, {})",
                name,
                units::counted(other.files, "file"),
                units::bytes(other.bytes)
            )
        })
        .collect();
    if !others.is_empty() {
        let shown = others.len().min(OTHER_EXTENSIONS_MAX);
        let more = match others.len() - shown {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = others[..shown].join(", ");
        lines.push(format!("files with other extensions: {shown}{more}"));
    }
    lines
}

/// Reports that a Darshan log probably misses reads. Darshan logs no file sizes, so an existing file of the job is compared with its reads.
fn missing_reads_note(log: &ImportedLog) -> Option<String> {
    let LogJob { folder, example, file_bytes, .. } = &log.job;
    let size = std::fs::metadata(Path::new(folder).join(example)).ok()?.len();
    (log.kind == "darshan" && size as f64 > MISSING_READS_RATIO * file_bytes).then(|| {
        format!(
            "`{example}` has {}, but the log has {} per file: Darshan misses reads through a duplicated descriptor, as in numpy; use strace",
            units::bytes(size),
            units::bytes(*file_bytes as u64)
        )
    })
}
