//! `feedrate import`: the access pattern of a log, and the workload that emulates it.

use crate::exit::Exit;
use crate::{messages, text};
use clap::Args;
use feedrate_measure::metric::{LOGICAL_BYTES, Quantiles};
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::summary::Figures;
use feedrate_report::output::{OpenObject, Schema};
use feedrate_report::run_page;
use feedrate_results::logs::{ImportedLog, LogJob, Lost};
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
Logs are what `strace -f -ttt -T -y -o LOG COMMAND` writes (with `-ff`, give the LOG that the names of its files begin with), DFTracer's \
`.pfw` and `.pfw.gz`, Darshan's `.darshan` (needs `darshan-parser` and `darshan-dxt-parser`, or Python's `darshan`), or a folder with \
those of one job. Of the files that were read, those with the most common ending by bytes are taken for the data.

Examples:
  feedrate import train.strace -o job.yaml
  feedrate import job.darshan --data /mnt/fs/images -o job.yaml")]
pub(super) struct ImportArguments {
    /// The I/O log of a job.
    log: PathBuf,
    /// Write the workload that emulates the job to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder of the job's files: the workload then reads these.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// A file is so many times as long as what was read of those of a log, if parts of them are missing there.
const LONGER: f64 = 2.0;
/// Files that are not taken, of so many endings told.
const LEFT_OUT_MAX: usize = 4;

/// Read a log, and say what it tells.
pub(super) fn import(arguments: &ImportArguments) -> anyhow::Result<Exit> {
    let log = logs::import(&arguments.log)?;
    let names = tempfile::tempdir()?;
    let found = arguments.data.as_ref();
    let found = found.map(|folder| folder::scan(folder, &names.path().join(NAMES_FILE)));
    let emulation = Emulation::new(&name_of(&arguments.log), &log, found.transpose()?.as_ref())?;
    if let Some(file) = &arguments.output {
        write_output(file, emulation.yaml.as_bytes(), Some(arguments.force))?;
    }
    let figures = Figures::from_reads_only(&log.record);
    if arguments.json {
        let output = ImportOutput {
            log: &arguments.log,
            kind: log.kind,
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
            lost: lost(&log),
        };
        messages::print_json(Schema::Import, &output)?;
    } else {
        messages::print_page(&page(arguments, &log, &emulation, &figures))?;
    }
    Ok(Exit::Fine)
}

/// A name for the workload.
fn name_of(log: &Path) -> String {
    let stem = log.file_stem().map_or("", |stem| stem.to_str().unwrap_or_default());
    let kept = |char: char| char.is_alphanumeric() || "-_.".contains(char);
    let name: String =
        stem.chars().map(|char| if kept(char) { char } else { '_' }).take(60).collect();
    let name = name.trim_end_matches(".pfw").trim_matches('.').to_string();
    if name.is_empty() { "log".into() } else { name }
}

/// Output of `import --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ImportOutput<'a> {
    /// The log.
    log: &'a Path,
    /// Its kind: `strace`, `darshan`, `dftracer`.
    kind: &'static str,
    /// The job, as far as the log shows it.
    job: &'a LogJob,
    /// Time between its first and its last call.
    duration_s: f64,
    /// Sizes and order of reads.
    access: Option<OpenObject>,
    /// Bytes that were read.
    bytes: Option<u64>,
    /// Latencies.
    latency: ImportedLatency,
    /// The workload as YAML.
    workload: &'a str,
    /// Values that the log does not show.
    assumed: &'a [String],
    /// Facts of the log that no workload can express.
    lost: Vec<String>,
}

/// Latencies of calls; `null` where they were not timed.
#[derive(Serialize, JsonSchema)]
struct ImportedLatency {
    /// Opens.
    open: Option<Quantiles>,
    /// Reads.
    read: Option<Quantiles>,
}

fn page(
    arguments: &ImportArguments,
    log: &ImportedLog,
    emulation: &Emulation,
    figures: &Figures,
) -> String {
    let mut parts = vec![head(log), text::rows(&run_page::read_rows(figures))];
    let lists = [("Taken", &emulation.assumed), ("Lost", &lost(log))];
    for (title, lines) in lists.into_iter().filter(|of| !of.1.is_empty()) {
        let lines = lines.iter().map(|line| format!("\n  {line}"));
        parts.push(format!("{title}:{}", lines.collect::<String>()));
    }
    parts.push(match &arguments.output {
        Some(file) => format!("Workload: {0}, run it by `feedrate run {0}`", file.display()),
        None => "The workload that emulates it: `-o FILE`".into(),
    });
    parts.join("\n")
}

fn head(log: &ImportedLog) -> String {
    let LogJob { extension, files, file_bytes, ranks, readers, epochs, folder, .. } = &log.job;
    let mut words = vec![format!(
        "{} {} of {} in the mean, in {}",
        units::count(*files),
        if extension.is_empty() { "files" } else { extension },
        units::bytes(*file_bytes as u64),
        if folder.is_empty() { "." } else { folder },
    )];
    let readers = match (log.job.trains_and_reads, readers) {
        (Some(true), _) => "by the thread that trains".to_string(),
        (_, Some(readers)) => format!("{} at a time", units::counted(*readers, "reader")),
        (_, None) => "readers not told apart".into(),
    };
    words.push(format!(
        "{}, {readers}; read {} in {}",
        units::counted(*ranks, "rank"),
        match epochs {
            None => "how often is not told,".into(),
            Some(1) => "once".into(),
            Some(epochs) => units::counted(*epochs, "time"),
        },
        units::seconds(log.record.epochs[0].end_ns as f64 / 1e9),
    ));
    if let Some(batch) = log.job.batch {
        let files = batch.files.map(|files| format!("{} or ", units::counted(files, "file")));
        words.push(format!(
            "batches of {}{}",
            files.unwrap_or_default(),
            units::bytes(batch.bytes)
        ));
    }
    let compute = log.job.compute_ns.map(|ns| units::seconds(ns as f64 / 1e9));
    words.push(match compute {
        Some(compute) => {
            format!("compute at most about {compute} a step (estimated from gaps between reads)")
        }
        None => "compute time unknown".into(),
    });
    format!("{}: {}", log.kind, words.join("\n  "))
}

fn lost(log: &ImportedLog) -> Vec<String> {
    let of = |lost: &Lost| format!("{} {}", units::counted(lost.count, lost.noun), lost.why);
    let mut lines: Vec<String> = log.lost.iter().map(of).collect();
    if log.job.mapped_bytes > 0 {
        lines.push(format!(
            "{} mapped into memory: which of them were read is not in the log",
            units::bytes(log.job.mapped_bytes)
        ));
    }
    lines.extend(unseen(log));
    let others = log.job.left_out.iter().filter(|other| other.bytes > 0);
    let others: Vec<String> = others
        .map(|other| {
            let name = if other.extension.is_empty() { "no ending" } else { &other.extension };
            format!(
                "{} ({}, {})",
                name,
                units::counted(other.files, "file"),
                units::bytes(other.bytes)
            )
        })
        .collect();
    if !others.is_empty() {
        let more = others.len().saturating_sub(LEFT_OUT_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let told = others[..others.len().min(LEFT_OUT_MAX)].join(", ");
        lines.push(format!("files of other endings: {told}{more}"));
    }
    lines
}

/// A file that is there, where it is longer than what a log of Darshan, which knows no lengths, has of it.
fn unseen(log: &ImportedLog) -> Option<String> {
    let LogJob { folder, example, file_bytes, .. } = &log.job;
    let there = std::fs::metadata(Path::new(folder).join(example)).ok()?.len();
    (log.kind == "darshan" && there as f64 > LONGER * file_bytes).then(|| {
        format!(
            "`{example}` has {}, the log {} a file: if all was read, as numpy does by a copy of the descriptor, only strace tells",
            units::bytes(there),
            units::bytes(*file_bytes as u64)
        )
    })
}
