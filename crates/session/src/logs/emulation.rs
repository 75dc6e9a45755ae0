//! Writes a workload that emulates the job of a log, and lists the assumptions about values that the log lacks.

use crate::catalog::{catalog, estimate};
use crate::folder::FoundFolder;
use crate::request::Request;
use crate::resolve::{WorkloadSource, resolve_source};
use feedrate_measure::metric::{CONSECUTIVE, SEQUENTIAL};
use feedrate_measure::record::FileMembers;
use feedrate_measure::summary::Figures;
use feedrate_results::logs::{ImportedLog, LogJob};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::{PIECE_BYTES, RECORDED_EPOCHS_MAX, RECORDED_STEPS_MAX};
use feedrate_spec::units;
use feedrate_spec::workload::{EPOCHS_MAX, yaml_text};
use serde::Serialize;

/// Alternative extensions of formats: (extension, format).
const EXTENSION_ALIASES: [(&str, &str); 6] = [
    ("jpg", "jpeg"),
    ("h5", "hdf5"),
    ("hdf", "hdf5"),
    ("tfrecords", "tfrecord"),
    ("tsv", "csv"),
    ("jsonl", "json"),
];
/// Format for files of an unknown format.
const PLAIN: &str = "raw";
/// Maximum `reader.transfer_size`.
const TRANSFER_MAX: u64 = 64 << 20;
/// Minimum share of consecutive reads in a stream.
const STREAM_SHARE_MIN: f64 = 0.5;
/// Minimum share of forward reads in ordered reads.
const ORDERED_SHARE_MIN: f64 = 0.9;
/// Number of times the sample size is corrected to match the log's file size.
const LENGTH_CORRECTIONS: usize = 2;
/// Largest relative difference between the requests per file of the job and of its emulation.
const REQUESTS_TOLERANCE: f64 = 0.25;
/// Largest relative difference between the sizes of the job's files and of the files given for them.
const FILE_SIZE_TOLERANCE: f64 = 0.05;
/// Batches that PyTorch's loader reads ahead for each worker by default (`prefetch_factor`).
const PREFETCH_FACTOR: u64 = 2;

const LARGE_REQUESTS: &str = "  requests: large\n";
const LIBRARY_REQUESTS: &str = "  requests: library\n";
const ONE_FILE_BATCHES: &str =
    "batches of one file: the gaps after all files are alike, so decoding counts as compute";

/// A workload that emulates the job of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Emulation {
    /// Text of the workload.
    pub yaml: String,
    /// The assumptions about values that are not in the log.
    pub assumed: Vec<String>,
}

/// The samples of the emulated files.
struct LogSamples {
    format: &'static str,
    files: u64,
    per_file: u64,
    batch: u64,
    /// Size of a sample, if one read reads a sample.
    read_bytes: Option<u64>,
}

impl Emulation {
    /// Emulates the log called `name`. `found` describes the files that the job read, if they are known.
    ///
    /// # Errors
    /// Fails if the workload cannot be planned.
    pub fn new(name: &str, log: &ImportedLog, found: Option<&FoundFolder>) -> anyhow::Result<Self> {
        let mut assumed = Vec::new();
        let figures = Figures::from_reads_only(&log.record);
        let is_stream = figures.value(&CONSECUTIVE).is_none_or(|share| share >= STREAM_SHARE_MIN);
        let (samples, dataset) = match found {
            Some(found) => (found_samples(&log.job, found, &mut assumed), found.dataset()),
            None => generated_dataset(name, log, is_stream, &mut assumed)?,
        };
        let yaml = workload_text(name, log, &dataset, &samples, is_stream, &mut assumed);
        Ok(Emulation { yaml: header_comment(name, log, &assumed) + &yaml, assumed })
    }
}

/// Chooses samples like the log's, and the section of a generated dataset with files as large as the log's.
fn generated_dataset(
    name: &str,
    log: &ImportedLog,
    is_stream: bool,
    assumed: &mut Vec<String>,
) -> anyhow::Result<(LogSamples, String)> {
    let format = choose_format(&log.job, assumed);
    let entry = catalog().format(format).map(|entry| entry.member);
    if entry.is_some_and(|member| member.has(Ability::EncodesSamples)) {
        assumed.push(
            "pictures of the job's file size; their dimensions, so the cost of decoding, are unknown: judge only the storage by this workload, or give the job's files by `--data`"
                .into(),
        );
    }
    let unique = log.record.epochs[0].files_read.as_ref().map(|files| files.unique_bytes);
    let file_bytes = unique.map_or(log.job.file_bytes, |bytes| bytes as f64 / log.job.files as f64);
    let samples = choose_samples(&log.job, file_bytes, format, is_stream, assumed);
    let mut length = log.job.file_bytes / samples.per_file as f64;
    for _ in 0..LENGTH_CORRECTIONS {
        let dataset = dataset_section(name, &log.job, format, &samples, length);
        let yaml = workload_text(name, log, &dataset, &samples, is_stream, &mut Vec::new());
        let source = WorkloadSource { name: name.into(), file: format!("{name}.yaml"), yaml };
        let resolved = resolve_source(&source, &Request::for_workload(name))?;
        let estimate = estimate(&resolved.plan);
        if estimate.file_bytes > 0 {
            let mean_bytes = estimate.file_bytes as f64 / estimate.files.max(1) as f64;
            length = (length * log.job.file_bytes / mean_bytes).max(1.0);
        }
    }
    let dataset = dataset_section(name, &log.job, format, &samples, length);
    Ok((samples, dataset))
}

/// Returns the format of the job's files.
fn choose_format(job: &LogJob, assumed: &mut Vec<String>) -> &'static str {
    let alternative = EXTENSION_ALIASES.iter().find(|(extension, _)| *extension == job.extension);
    let name = alternative.map_or(job.extension.as_str(), |(_, format)| format);
    let formats = catalog().formats;
    let matching = formats.iter().find(|format| {
        format.member.name == name || (format.extension == name && !name.is_empty())
    });
    if let Some(format) = matching {
        return format.member.name;
    }
    let example = job.example.to_ascii_lowercase();
    let (format, reason) = if example.contains("tfrecord") || example.contains("-of-") {
        ("tfrecord", "by their names")
    } else {
        (PLAIN, "plain bytes")
    };
    assumed.push(format!("the format of files such as `{}`: `{format}`, {reason}", job.example));
    format
}

/// Chooses the number of samples in a file and in a batch.
fn choose_samples(
    job: &LogJob,
    file_bytes: f64,
    format: &'static str,
    is_stream: bool,
    assumed: &mut Vec<String>,
) -> LogSamples {
    let entry = catalog().format(format).map(|entry| entry.member);
    // A file of an unknown format may have any ability.
    let may_have = |ability| entry.is_none_or(|format| format.has(ability));
    let has_many_samples =
        may_have(Ability::KeepsOpen) && !(may_have(Ability::NeedsPlan) && is_stream);
    let batch_files = job.batch.and_then(|batch| batch.files);
    if !has_many_samples || batch_files.is_some() {
        let batch = batch_files.unwrap_or(1);
        match batch_files {
            Some(1) => assumed.push(ONE_FILE_BATCHES.into()),
            Some(_) => {}
            None => assumed.push("batches are unknown: batches of one file".into()),
        }
        return LogSamples { format, files: job.files, per_file: 1, batch, read_bytes: None };
    }
    let has = |ability| entry.is_some_and(|member| member.has(ability));
    let reads_samples = !is_stream || has(Ability::RandomAccess) && !has(Ability::HoldsFiles);
    let usual_read_bytes = job.read_bytes.unwrap_or(job.file_bytes as u64).max(1);
    let (sample, batch, assumption) = match job.batch {
        Some(batch) if !reads_samples || job.read_bytes.is_none() => (
            batch.bytes,
            1,
            format!(
                "the sizes of samples in a file are unknown: one sample for each batch of {} (`--data` detects the sizes)",
                units::bytes(batch.bytes)
            ),
        ),
        Some(batch) => {
            let batch_size = (batch.bytes as f64 / usual_read_bytes as f64).round().max(1.0) as u64;
            (
                usual_read_bytes,
                batch_size,
                format!(
                    "samples of {}, the most frequent size of reads",
                    units::bytes(usual_read_bytes)
                ),
            )
        }
        None => (
            usual_read_bytes,
            1,
            match job.read_bytes {
                Some(read) => format!(
                    "samples and batches are unknown: one for each read of {}",
                    units::bytes(read)
                ),
                None => "samples and batches are unknown: one for each file".into(),
            },
        ),
    };
    assumed.push(assumption);
    let is_one_read = reads_samples && job.read_bytes == Some(sample);
    let samples_bytes = if is_one_read { file_bytes } else { job.file_bytes };
    let per_file = (samples_bytes / sample.max(1) as f64).round().max(1.0) as u64;
    let read_bytes = is_one_read.then_some(sample);
    LogSamples { format, files: job.files, per_file, batch, read_bytes }
}

/// Returns the samples of files that were examined.
fn found_samples(job: &LogJob, found: &FoundFolder, assumed: &mut Vec<String>) -> LogSamples {
    if job.files != found.files {
        assumed.push(format!(
            "the job read {}, and the folder has {}",
            units::counted(job.files, "file"),
            units::count(found.files)
        ));
    }
    let found_bytes = found.bytes as f64 / found.files.max(1) as f64;
    if FILE_SIZE_TOLERANCE < (found_bytes / job.file_bytes.max(1.0) - 1.0).abs() {
        assumed.push(format!(
            "the job's files have {} on average in the log, and those of the folder {}",
            units::bytes(job.file_bytes as u64),
            units::bytes(found_bytes as u64)
        ));
    }
    assumed.extend(found.members.as_ref().and_then(unread_members));
    if job.batch.is_some_and(|batch| batch.files == Some(1)) {
        assumed.push(ONE_FILE_BATCHES.into());
    }
    let sample = (found.bytes as f64 / found.samples.max(1) as f64).max(1.0);
    let known_batch = job.batch.map(|batch| match batch.files {
        Some(files) => files * found.samples_per_file,
        None => (batch.bytes as f64 / sample).round() as u64,
    });
    let batch = known_batch.unwrap_or_else(|| {
        assumed.push("batches are unknown: batches of one sample".into());
        1
    });
    LogSamples {
        format: found.format,
        files: found.files,
        per_file: found.samples_per_file,
        batch,
        read_bytes: None,
    }
}

/// Describes the members of files that are not read although the job may have read them; `None` if all are read.
fn unread_members(found: &FileMembers) -> Option<String> {
    let [read, unread]: [Vec<String>; 2] = [true, false].map(|is_read| {
        let members = found.members.iter().filter(|member| member.is_read == is_read);
        members.map(|member| format!("`{}`", member.name)).collect()
    });
    let others = match (&unread[..], found.unlisted) {
        ([], 0) => return None,
        ([first], 0) => first.clone(),
        ([..], unlisted) => format!("{} others", unread.len() as u64 + unlisted),
    };
    Some(format!("the job read only {} of each file, not {others} (`members`)", read.join(", ")))
}

/// Writes the section `dataset` of the workload.
fn dataset_section(
    name: &str,
    job: &LogJob,
    format: &str,
    samples: &LogSamples,
    length: f64,
) -> String {
    let LogSamples { files, per_file, read_bytes, .. } = samples;
    let mut yaml = format!(
        "dataset:\n  data_folder: {folder}\n  format: {format}\n  num_files_train: {files}\n  \
         num_samples_per_file: {per_file}\n",
        folder = yaml_text(&format!("data/{name}")),
    );
    if let Some(bytes) = read_bytes {
        return yaml + &format!("  record_dims: [{bytes}]\n  record_element_type: uint8\n");
    }
    yaml += &format!("  record_length_bytes: {length:.0}\n");
    let stdev = job.file_bytes_stdev / *per_file as f64;
    if stdev >= 0.01 * length {
        yaml += &format!("  record_length_bytes_stdev: {stdev:.0}\n");
    }
    yaml
}

fn workload_text(
    name: &str,
    log: &ImportedLog,
    dataset: &str,
    samples: &LogSamples,
    is_stream: bool,
    assumed: &mut Vec<String>,
) -> String {
    let job = &log.job;
    let all_samples = samples.files * samples.per_file;
    let reads_all = job.ranks_each >= Some(job.ranks as f64);
    // With fewer samples than ranks, some ranks would have none.
    let ranks = if reads_all { job.ranks } else { job.ranks.clamp(1, all_samples.max(1)) };
    if ranks < job.ranks {
        let [ranks, job_ranks] = [ranks, job.ranks].map(|count| units::counted(count, "rank"));
        assumed.push(format!(
            "{ranks} instead of the job's {job_ranks}, because there are too few samples"
        ));
    }
    let mut yaml = format!(
        "model:\n  name: {name}\n\nframework: pytorch\naccelerators: {ranks}\n\nworkflow:\n  train: True\n\n\
         {dataset}",
        name = yaml_text(name),
    );
    let readers = match (job.trains_and_reads, job.readers) {
        (Some(true), _) => 0,
        (_, Some(readers)) => readers,
        (_, None) => {
            assumed.push("reading threads are unknown: one".into());
            1
        }
    };
    let splits = is_stream && readers > 1 && job.ranks_each <= Some(1.0);
    if samples.per_file > 1 && splits && samples.files >= readers * ranks {
        yaml += "  split: shards\n";
    }
    yaml += &format!(
        "\nreader:\n  data_loader: pytorch\n  batch_size: {}\n  read_threads: {readers}\n",
        samples.batch.min(if reads_all { all_samples } else { all_samples / ranks }).max(1)
    );
    if 1 < readers {
        let prefetch = PREFETCH_FACTOR.saturating_mul(readers);
        assumed.push(format!("{prefetch} batches are read ahead, as PyTorch does by default"));
        yaml += &format!("  prefetch_size: {prefetch}\n");
    }
    // The transfer size matters only for samples that take several reads.
    yaml += &match (job.read_bytes, samples.read_bytes) {
        (Some(bytes), None) if library_fits_better(log, samples, bytes) => LIBRARY_REQUESTS.into(),
        (Some(bytes), None) => format!("  transfer_size: {}\n", bytes.min(TRANSFER_MAX)),
        (_, Some(_)) => LARGE_REQUESTS.into(),
        (None, None) => requests_setting(log, samples, assumed).into(),
    };
    match job.is_shuffled {
        Some(true) => yaml += "  file_shuffle: seed\n",
        Some(false) => {}
        None if job.files > 1 => {
            assumed.push("the order of files is unknown: by their names".into())
        }
        None => {}
    }
    let is_in_order =
        Figures::from_reads_only(&log.record).value(&SEQUENTIAL) >= Some(ORDERED_SHARE_MIN);
    if samples.per_file > 1 && !is_stream && !is_in_order {
        yaml += "  sample_shuffle: seed\n";
    }
    yaml += &shared_reads_setting(job, ranks, assumed);
    let epochs = job.epochs.unwrap_or_else(|| {
        assumed.push("the number of epochs is unknown: one".into());
        1
    });
    let steps = all_samples / (samples.batch * ranks).max(1);
    let epochs_max = (RECORDED_EPOCHS_MAX / ranks)
        .min(RECORDED_STEPS_MAX / (steps * ranks).max(1))
        .clamp(1, EPOCHS_MAX.into());
    if epochs_max < epochs {
        let [most, epochs] = [epochs_max, epochs].map(units::count);
        assumed.push(format!(
            "{most} epochs, the most of such a workload: the job read each byte {epochs} times"
        ));
    }
    yaml += &format!("\ntrain:\n  epochs: {}\n", epochs.clamp(1, epochs_max));
    match job.compute_ns {
        Some(ns) => yaml += &format!("  computation_time: {:.6}\n", ns as f64 / 1e9),
        None => assumed
            .push("compute time is unknown: without `--compute TIME`, `feedrate run` measures the loader's ceiling (`feedrate.watch` in the training loop measures the time)".into()),
    }
    if is_mapped(log) {
        yaml += "\nstorage:\n  engine: mmap\n";
    }
    yaml
}

/// Chooses the requests of a job whose reads have no typical size: large ones, or those of the format's library.
fn requests_setting(
    log: &ImportedLog,
    samples: &LogSamples,
    assumed: &mut Vec<String>,
) -> &'static str {
    let file_bytes = log.job.file_bytes;
    let Some(job_requests) = job_requests(log) else {
        return LARGE_REQUESTS;
    };
    let is_similar = |requests: u64| requests_error(requests, job_requests) <= REQUESTS_TOLERANCE;
    let piece_bytes = catalog().format(samples.format).and_then(|format| format.piece_bytes);
    let large_requests = |parts: u64| {
        let part_bytes = file_bytes / parts.max(1) as f64;
        parts * ((part_bytes / piece_bytes.unwrap_or(PIECE_BYTES) as f64).ceil() as u64).max(1)
    };
    if [1, samples.per_file].into_iter().any(|parts| is_similar(large_requests(parts))) {
        return LARGE_REQUESTS;
    }
    if library_requests(log, samples).is_some_and(is_similar) {
        return LIBRARY_REQUESTS;
    }
    assumed.push(format!(
        "large requests, about {} for a file; the job made {job_requests:.1}",
        units::count(large_requests(1))
    ));
    LARGE_REQUESTS
}

/// Whether the requests of the format's library are as many for a file as the job's, and requests of `transfer_bytes` are not.
fn library_fits_better(log: &ImportedLog, samples: &LogSamples, transfer_bytes: u64) -> bool {
    let Some((job, library)) = job_requests(log).zip(library_requests(log, samples)) else {
        return false;
    };
    let transfers = (log.job.file_bytes / transfer_bytes.max(1) as f64).ceil() as u64;
    let error = requests_error(library, job);
    error <= REQUESTS_TOLERANCE && error < requests_error(transfers, job)
}

/// Returns the mean number of requests that the job made for a file; `None` if it is unknown.
fn job_requests(log: &ImportedLog) -> Option<f64> {
    log.answer.read_bytes.map(|bytes| log.job.file_bytes / bytes)
}

/// Returns the number of requests that the format's library makes for a file of one sample.
fn library_requests(log: &ImportedLog, samples: &LogSamples) -> Option<u64> {
    let library = catalog().format(samples.format).and_then(|format| format.library);
    let library = library.filter(|_| samples.per_file == 1);
    library.map(|library| library.requests().file_requests(log.job.file_bytes as u64))
}

/// Returns the relative difference of a number of requests from the job's.
fn requests_error(requests: u64, job_requests: f64) -> f64 {
    (requests as f64 / job_requests - 1.0).abs()
}

/// Writes the setting for samples that several ranks read; empty if there are none.
fn shared_reads_setting(job: &LogJob, ranks: u64, assumed: &mut Vec<String>) -> String {
    let Some(readers) = job.ranks_each.filter(|readers| ranks > 1 && *readers > 1.0) else {
        return String::new();
    };
    let (assumption, yaml) = if readers >= ranks as f64 {
        ("all ranks read the same".into(), "  file_access: same\n".into())
    } else {
        let share = readers - 1.0;
        let text = format!("{:.1} % of the files are read by a second rank too", 100.0 * share);
        (text, format!("  reread_share: {share:.4}\n"))
    };
    assumed.push(format!(
        "it is unknown whether ranks share reads or epochs repeat them: in each epoch, {assumption}"
    ));
    yaml
}

/// Whether the job mapped more bytes than it read.
fn is_mapped(log: &ImportedLog) -> bool {
    let io = feedrate_measure::metric::counters_of_run(&log.record);
    log.job.mapped_bytes > io.read_bytes
}

/// Writes the comment at the start of the workload.
fn header_comment(name: &str, log: &ImportedLog, assumed: &[String]) -> String {
    let mut text =
        format!("# The I/O of `{}`, from a log of {}.\n", name.escape_default(), log.kind);
    if log.job.compute_ns.is_some() {
        text += "# The compute time is estimated from the gaps between reads, and includes other work of the training thread.\n";
    }
    for assumption in assumed {
        text += &format!("# Assumed: {}.\n", comment_text(assumption));
    }
    text + "\n"
}

/// Escapes line ends and other control characters. Quotes stay as they are.
fn comment_text(text: &str) -> String {
    let escaped = |char: char| match char {
        '\'' | '"' | '\\' => char.to_string(),
        _ => char.escape_debug().to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests;
