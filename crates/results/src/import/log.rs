//! `dlio.log`, as far as no other file tells the same: where the run's folder was, when data were made, how many processes there were. Reads the beginning and the end of a long one.

use super::json::Fields;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Read of the beginning, and as much of the end.
const PART_BYTES: u64 = 32 << 10;

/// Read of a log that has to tell when blocks began.
const SPANS_BYTES_MAX: u64 = 256 << 20;

/// Facts from the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Its first time.
    pub started: Option<String>,
    /// `Running DLIO [...] with N process(es)`.
    pub processes: Option<u64>,
    /// When data generation was done.
    pub generated: Option<String>,
    /// Whether generation was begun.
    pub generates: bool,
    /// Whether training was announced, or begun.
    pub trains: bool,
    /// Samples of a file, files, batch size: `Max steps per epoch: 6 = 1 * 168 / 7 / 4`.
    pub steps_of: Option<[u64; 3]>,
    /// Reading threads of a rank, and the cores it may use, where DLIO warned that those are fewer.
    pub cores_short: Option<[u64; 2]>,
    /// Steps of an epoch: `Starting epoch 1: 6 steps expected`.
    pub steps: Option<u64>,
    /// Compute of a step as it lasted, in the mean of the last block of an epoch of rank 0, to four digits; by epoch.
    pub compute_s: BTreeMap<u32, f64>,
    /// The model, as the workload's file is called.
    pub workload: Option<String>,
    /// `Saved outputs in DIR`.
    pub folder: Option<String>,
    /// Whether its middle was not read.
    pub is_cut: bool,
    /// Whether its last line has no end.
    pub breaks_off: bool,
}

impl Log {
    /// Whether its end is not there. `is_over`: DLIO has written what it writes after the log.
    pub(super) fn is_cut_short(&self, is_over: bool) -> bool {
        self.breaks_off || (is_over && self.trains && self.folder.is_none())
    }

    /// Keep the counts of a warning of too few cores: the most that any rank had.
    fn add_warning(&mut self, text: &str) {
        let Some((before, cores)) = text.split_once(" threads for I/O but core available ") else {
            return;
        };
        let threads = before.rsplit(' ').next().and_then(|word| word.parse().ok());
        let both = threads.zip(first_number(cores)).map(<[u64; 2]>::from);
        self.cores_short = self.cores_short.max(both);
    }
}

/// `None` where there is none.
pub(super) fn read(path: &Path) -> Option<Log> {
    // A pipe would be waited for when it is opened.
    let length = std::fs::metadata(path).ok().filter(|about| about.is_file())?.len();
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    (&mut file).take(2 * PART_BYTES).read_to_end(&mut bytes).ok()?;
    let is_cut = 2 * PART_BYTES < length;
    if is_cut {
        bytes.truncate(PART_BYTES as usize);
        file.seek(SeekFrom::End(-(PART_BYTES as i64))).ok()?;
        file.take(PART_BYTES).read_to_end(&mut bytes).ok()?;
    }
    Some(Log { is_cut, ..of_text(&String::from_utf8_lossy(&bytes)) })
}

/// When rank 0 began and ended each block, as it wrote into the log, in the form of its file of that; `None` where it did not, or cannot be read.
pub(super) fn spans(path: &Path) -> Option<Fields> {
    if !path.is_file() {
        return None;
    }
    let mut lines = BufReader::new(File::open(path).ok()?.take(SPANS_BYTES_MAX));
    let (mut spans, mut epoch, mut line) = (Value::Null, None, Vec::new());
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some((time, said)) = said(&String::from_utf8_lossy(&line)) {
            add_span(&mut spans, &mut epoch, time, said);
        }
        line.clear();
    }
    spans.as_object_mut().map(std::mem::take)
}

fn add_span(spans: &mut Value, epoch: &mut Option<String>, time: &str, said: &str) {
    let words: Vec<&str> = said.split([' ', ':']).take(3).collect();
    let [begun @ ("Starting" | "Ending"), part, number] = words[..] else { return };
    let end = if begun == "Starting" { "start" } else { "end" };
    if number.parse::<u64>().is_err() {
        return;
    }
    match (part, epoch.as_deref()) {
        ("epoch", _) => {
            spans[number][end] = time.into();
            *epoch = Some(number.into());
        }
        ("block", Some(epoch)) => spans[epoch][format!("block{number}")][end] = time.into(),
        _ => {}
    }
}

/// Time and text of a line.
fn said(line: &str) -> Option<(&str, &str)> {
    let (time, said) = line.trim_end().split_once("] ")?.1.split_once(' ')?;
    (time.len() >= 19 && time.as_bytes().get(10) == Some(&b'T')).then_some((time, said))
}

fn of_text(text: &str) -> Log {
    let breaks_off = !text.is_empty() && !text.ends_with('\n');
    let mut log = Log { breaks_off, ..Log::default() };
    for line in text.lines() {
        if let Some(warning) = line.strip_prefix("[WARNING] ") {
            log.add_warning(warning);
            continue;
        }
        let Some((time, said)) = said(line) else { continue };
        log.started.get_or_insert_with(|| time.to_string());
        if said.starts_with("Running DLIO ") {
            log.trains = said.split_once(']').is_some_and(|(what, _)| what.contains("Training"));
            log.processes = said.split_once(" with ").and_then(|(_, n)| first_number(n));
        } else if said.starts_with("Starting data generation") {
            log.generates = true;
        } else if said.starts_with("Generation done") {
            log.generated = Some(time.to_string());
        } else if let Some(epoch) = said.strip_prefix("Starting epoch ") {
            log.trains = true;
            log.steps = log.steps.or_else(|| steps_expected(epoch));
        } else if let Some((of, compute)) = said.split_once("Computation time per step (second): ")
        {
            let epoch = of.strip_prefix("Epoch ").and_then(first_number);
            let compute_s = compute.split("+/-").next().and_then(|mean| mean.parse().ok());
            log.compute_s.extend(epoch.and_then(|epoch| u32::try_from(epoch).ok()).zip(compute_s));
        } else if let Some(file) = said.strip_prefix("Reading workload YAML config file '") {
            let name = file.split('\'').next().map(Path::new).and_then(Path::file_stem);
            log.workload = name.map(|name| name.to_string_lossy().into_owned());
        } else if let Some(steps) = said.strip_prefix("Max steps per epoch: ") {
            log.steps_of = steps_of(steps);
        } else if let Some(folder) = said.strip_prefix("Saved outputs in ") {
            // Older DLIO ends each line with where in its source it stands.
            let folder = folder.rsplit_once(" [/").map_or(folder, |(folder, _)| folder);
            log.folder = Some(folder.trim().to_string());
        }
    }
    log
}

/// `1` of `1: 6 steps expected`.
fn first_number(text: &str) -> Option<u64> {
    text.split([' ', ':']).next()?.parse().ok()
}

/// `6` of `1: 6 steps expected` and of `1: Overriding number of steps to 6.`
fn steps_expected(epoch: &str) -> Option<u64> {
    let (_, steps) = epoch.split_once(": ")?;
    let steps = steps.strip_prefix("Overriding number of steps to ").unwrap_or(steps);
    steps.split([' ', '.']).next()?.parse().ok()
}

/// `6 = 1 * 168 / 7 / 4 (…)`.
fn steps_of(text: &str) -> Option<[u64; 3]> {
    let (_, right) = text.split_once(" = ")?;
    let mut numbers = right.split([' ', '*', '/']).filter_map(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_tells_is_found() {
        let log = of_text(
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
                steps_of: Some([1, 168, 7]),
                cores_short: None,
                steps: Some(6),
                compute_s: BTreeMap::from([(1, 0.3234)]),
                workload: None,
                folder: Some("/scratch/a b/hydra_log/w/1".into()),
                is_cut: false,
                breaks_off: false,
            }
        );
        assert_eq!(of_text("\u{fffd}[] ]\n"), Log::default());
        let older = of_text(
            "[INFO] 2023-08-04T13:34:31.581901 Reading workload YAML config file '/x/workload/unet3d.yaml' [/x/src/dlio_benchmark.py:107]\n\
             [INFO] 2023-08-04T13:34:31.681901 Running DLIO with 8 process(es) [/x/src/dlio_benchmark.py:105]\n\
             [INFO] 2023-08-04T13:34:32.049260 Max steps per epoch: 292 = 1 * 1171 / 4 / 1 (samples per file) [/x/y.py:275]\n\
             [INFO] 2023-08-04T14:07:52.8 Saved outputs in /scratch/r [/x/y.py:1]\n",
        );
        assert_eq!((older.processes, older.steps_of), (Some(8), Some([1, 1171, 4])));
        assert_eq!(older.folder.as_deref(), Some("/scratch/r"));
        assert_eq!(older.workload.as_deref(), Some("unet3d"));
        assert_eq!(steps_expected("3: Overriding number of steps to 40. [/x/y.py:1]"), Some(40));
    }

    #[test]
    fn cores_of_warnings_are_counted() {
        let short = "Running DLIO with 4 threads for I/O but core available 1 are insufficient and can lead to lower performance.";
        let log = of_text(&format!(
            "[OUTPUT] 2025-11-30T18:54:19.911321 Running DLIO [Training] with 8 process(es)\n\
             [WARNING] {short}\n[WARNING] {short}\n\
             [WARNING] 2025-11-30T18:54:20.911321 {short}\n\
             [WARNING] more files than requested\n",
        ));
        assert_eq!((log.cores_short, log.processes), (Some([4, 1]), Some(8)));
    }
}
