//! Reads facts from `dlio.log` that no other file has, such as the run's original folder, the time of data generation and the number of
//! processes. Only the beginning and the end of a long log are read.

use super::json::Fields;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Number of bytes to read from the beginning, and from the end, of a log.
const PART_BYTES: u64 = 32 << 10;

/// Size limit of a log that is read for the times of blocks.
const SPANS_BYTES_MAX: u64 = 256 << 20;

/// Facts from the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Time of its first line.
    pub started: Option<String>,
    /// Number of processes, from `Running DLIO [...] with N process(es)`.
    pub processes: Option<u64>,
    /// Time at which data generation finished.
    pub generated: Option<String>,
    /// Whether data generation started.
    pub generates: bool,
    /// Whether training was announced or started.
    pub trains: bool,
    /// Counts from which DLIO computed the number of steps of an epoch.
    pub step_counts: Option<StepCounts>,
    /// Number of reading threads of a rank and of the cores available to it, from DLIO's warning about too few cores.
    pub cores_short: Option<[u64; 2]>,
    /// Number of steps of an epoch, from `Starting epoch 1: 6 steps expected`.
    pub steps: Option<u64>,
    /// Mean measured compute time of a step in the last block of each epoch, by epoch; of rank 0, with four digits.
    pub compute_s: BTreeMap<u32, f64>,
    /// Name of the workload's file without its extension.
    pub workload: Option<String>,
    /// Result folder, from `Saved outputs in DIR`.
    pub folder: Option<String>,
    /// Whether the middle of the log was skipped.
    pub has_gap: bool,
    /// Whether the last line has no line end.
    pub ends_mid_line: bool,
}

/// The counts in `Max steps per epoch: 6 = 1 * 168 / 7 / 4`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCounts {
    pub samples_per_file: u64,
    pub files: u64,
    pub batch_size: u64,
}

impl Log {
    /// Returns whether the end of the log is missing. `has_rank_files` is set if DLIO wrote the files that follow the log's last line.
    pub(super) fn is_cut_short(&self, has_rank_files: bool) -> bool {
        self.ends_mid_line || (has_rank_files && self.trains && self.folder.is_none())
    }

    /// Reads a warning about too few cores and keeps the highest counts of any rank.
    fn add_warning(&mut self, text: &str) {
        let Some((before, cores)) = text.split_once(" threads for I/O but core available ") else {
            return;
        };
        let threads = before.rsplit(' ').next().and_then(|word| word.parse().ok());
        let both = threads.zip(first_number(cores)).map(<[u64; 2]>::from);
        self.cores_short = self.cores_short.max(both);
    }
}

/// Reads a log; `None` if it is missing or unreadable.
pub(super) fn read(path: &Path) -> Option<Log> {
    // Opening a pipe would block.
    let length = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?.len();
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    (&mut file).take(2 * PART_BYTES).read_to_end(&mut bytes).ok()?;
    let has_gap = 2 * PART_BYTES < length;
    if has_gap {
        bytes.truncate(PART_BYTES as usize);
        file.seek(SeekFrom::End(-(PART_BYTES as i64))).ok()?;
        file.take(PART_BYTES).read_to_end(&mut bytes).ok()?;
    }
    Some(Log { has_gap, ..parse(&String::from_utf8_lossy(&bytes)) })
}

/// Reads the start and end times of rank 0's blocks from a log, in the structure of `0_per_epoch_stats.json`. `None` if the log has none or is
/// unreadable.
pub(super) fn spans(path: &Path) -> Option<Fields> {
    if !path.is_file() {
        return None;
    }
    let mut lines = BufReader::new(File::open(path).ok()?.take(SPANS_BYTES_MAX));
    let mut spans = Value::Null;
    let mut epoch = None;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some((time, message)) = time_and_message(&String::from_utf8_lossy(&line)) {
            add_span(&mut spans, &mut epoch, time, message);
        }
        line.clear();
    }
    spans.as_object_mut().map(std::mem::take)
}

fn add_span(spans: &mut Value, epoch: &mut Option<String>, time: &str, message: &str) {
    let words: Vec<&str> = message.split([' ', ':']).take(3).collect();
    let [verb @ ("Starting" | "Ending"), unit, number] = words[..] else { return };
    let end = if verb == "Starting" { "start" } else { "end" };
    if number.parse::<u64>().is_err() {
        return;
    }
    match (unit, epoch.as_deref()) {
        ("epoch", _) => {
            spans[number][end] = time.into();
            *epoch = Some(number.into());
        }
        ("block", Some(epoch)) => spans[epoch][format!("block{number}")][end] = time.into(),
        _ => {}
    }
}

/// Splits a line into its time and its message.
fn time_and_message(line: &str) -> Option<(&str, &str)> {
    let (time, message) = line.trim_end().split_once("] ")?.1.split_once(' ')?;
    (time.len() >= 19 && time.as_bytes().get(10) == Some(&b'T')).then_some((time, message))
}

fn parse(text: &str) -> Log {
    let ends_mid_line = !text.is_empty() && !text.ends_with('\n');
    let mut log = Log { ends_mid_line, ..Log::default() };
    for line in text.lines() {
        if let Some(warning) = line.strip_prefix("[WARNING] ") {
            log.add_warning(warning);
            continue;
        }
        let Some((time, message)) = time_and_message(line) else { continue };
        log.started.get_or_insert_with(|| time.to_string());
        if message.starts_with("Running DLIO ") {
            let tasks = message.split_once(']');
            log.trains = tasks.is_some_and(|(tasks, _)| tasks.contains("Training"));
            log.processes = message.split_once(" with ").and_then(|(_, n)| first_number(n));
        } else if message.starts_with("Starting data generation") {
            log.generates = true;
        } else if message.starts_with("Generation done") {
            log.generated = Some(time.to_string());
        } else if let Some(epoch) = message.strip_prefix("Starting epoch ") {
            log.trains = true;
            log.steps = log.steps.or_else(|| steps_expected(epoch));
        } else if let Some((prefix, compute)) =
            message.split_once("Computation time per step (second): ")
        {
            let epoch = prefix.strip_prefix("Epoch ").and_then(first_number);
            let compute_s = compute.split("+/-").next().and_then(|mean| mean.parse().ok());
            log.compute_s.extend(epoch.and_then(|epoch| u32::try_from(epoch).ok()).zip(compute_s));
        } else if let Some(file) = message.strip_prefix("Reading workload YAML config file '") {
            let name = file.split('\'').next().map(Path::new).and_then(Path::file_stem);
            log.workload = name.map(|name| name.to_string_lossy().into_owned());
        } else if let Some(steps) = message.strip_prefix("Max steps per epoch: ") {
            log.step_counts = step_counts(steps);
        } else if let Some(folder) = message.strip_prefix("Saved outputs in ") {
            // Older DLIO appends the position in its source code to each line.
            let folder = folder.rsplit_once(" [/").map_or(folder, |(folder, _)| folder);
            log.folder = Some(folder.trim().to_string());
        }
    }
    log
}

/// Parses the leading number, such as `1` in `1: 6 steps expected`.
fn first_number(text: &str) -> Option<u64> {
    text.split([' ', ':']).next()?.parse().ok()
}

/// Parses `6` in `1: 6 steps expected` or `1: Overriding number of steps to 6.`
fn steps_expected(epoch: &str) -> Option<u64> {
    let (_, steps) = epoch.split_once(": ")?;
    let steps = steps.strip_prefix("Overriding number of steps to ").unwrap_or(steps);
    steps.split([' ', '.']).next()?.parse().ok()
}

/// Parses `6 = 1 * 168 / 7 / 4 (…)`.
fn step_counts(text: &str) -> Option<StepCounts> {
    let (_, formula) = text.split_once(" = ")?;
    let mut numbers = formula.split([' ', '*', '/']).filter_map(|word| word.parse().ok());
    Some(StepCounts {
        samples_per_file: numbers.next()?,
        files: numbers.next()?,
        batch_size: numbers.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_a_log() {
        let log = parse(
            "[OUTPUT] 2025-11-30T18:54:19.911321 Running DLIO [Generating data & Training] with 4 process(es)\n\
             [OUTPUT] 2025-11-30T18:54:19.916563 Starting data generation\n\
             [OUTPUT] 2025-11-30T18:55:51.260074 Generation done\n\
             [OUTPUT] 2025-11-30T18:56:06.933268 Max steps per epoch: 6 = 1 * 168 / 7 / 4 (samples per file)\n\
             [OUTPUT] 2025-11-30T18:56:06.943268 Starting epoch 1: 6 steps expected\n\
             [OUTPUT] 2025-11-30T18:57:06.943268 Epoch 1 - Block 1 [Training] Computation time per step (second): 0.3234+/-0.0001 (set value: {'mean': 0.323})\n\
             [OUTPUT] 2025-11-30T18:58:04.718260 Saved outputs in /scratch/a b/hydra_log/w/1\n\
             [METRIC] ======\n\n[OUTPUT] x\n",
        );
        assert_eq!(
            log,
            Log {
                started: Some("2025-11-30T18:54:19.911321".into()),
                processes: Some(4),
                generated: Some("2025-11-30T18:55:51.260074".into()),
                generates: true,
                trains: true,
                step_counts: Some(StepCounts { samples_per_file: 1, files: 168, batch_size: 7 }),
                cores_short: None,
                steps: Some(6),
                compute_s: BTreeMap::from([(1, 0.3234)]),
                workload: None,
                folder: Some("/scratch/a b/hydra_log/w/1".into()),
                has_gap: false,
                ends_mid_line: false,
            }
        );
        assert_eq!(parse("\u{fffd}[] ]\n"), Log::default());
        let older = parse(
            "[INFO] 2023-08-04T13:34:31.581901 Reading workload YAML config file '/x/workload/unet3d.yaml' [/x/src/dlio_benchmark.py:107]\n\
             [INFO] 2023-08-04T13:34:31.681901 Running DLIO with 8 process(es) [/x/src/dlio_benchmark.py:105]\n\
             [INFO] 2023-08-04T13:34:32.049260 Max steps per epoch: 292 = 1 * 1171 / 4 / 1 (samples per file) [/x/y.py:275]\n\
             [INFO] 2023-08-04T14:07:52.8 Saved outputs in /scratch/r [/x/y.py:1]\n",
        );
        let counts = StepCounts { samples_per_file: 1, files: 1171, batch_size: 4 };
        assert_eq!((older.processes, older.step_counts), (Some(8), Some(counts)));
        assert_eq!(older.folder.as_deref(), Some("/scratch/r"));
        assert_eq!(older.workload.as_deref(), Some("unet3d"));
        assert_eq!(steps_expected("3: Overriding number of steps to 40. [/x/y.py:1]"), Some(40));
    }

    #[test]
    fn counts_of_core_warnings_are_kept() {
        let short = "Running DLIO with 4 threads for I/O but core available 1 are insufficient and can lead to lower performance.";
        let log = parse(&format!(
            "[OUTPUT] 2025-11-30T18:54:19.911321 Running DLIO [Training] with 8 process(es)\n\
             [WARNING] {short}\n[WARNING] {short}\n\
             [WARNING] 2025-11-30T18:54:20.911321 {short}\n\
             [WARNING] more files than requested\n",
        ));
        assert_eq!((log.cores_short, log.processes), (Some([4, 1]), Some(8)));
    }
}
