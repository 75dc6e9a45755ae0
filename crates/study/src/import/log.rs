//! What `dlio.log` tells that no other file does: where the run's folder was, when data were made, how many processes there were. Reads the beginning and the end of a long one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Read of the beginning, and as much of the end.
const PART_BYTES: u64 = 32 << 10;

/// What was found.
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
    /// Samples of a file, files, batch size: `Max steps per epoch: 6 = 1 * 168 / 7 / 4`.
    pub steps_of: Option<[u64; 3]>,
    /// `Saved outputs in DIR`.
    pub folder: Option<String>,
    /// Whether its middle was not read.
    pub is_cut: bool,
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

fn of_text(text: &str) -> Log {
    let mut log = Log::default();
    for line in text.lines() {
        let Some((_, said)) = line.split_once("] ") else { continue };
        let Some((time, said)) = said.split_once(' ') else { continue };
        if time.len() < 19 || time.as_bytes().get(10) != Some(&b'T') {
            continue;
        }
        log.started.get_or_insert_with(|| time.to_string());
        if said.starts_with("Running DLIO [") {
            log.processes = said.rsplit_once(" with ").and_then(|(_, n)| first_number(n));
        } else if said.starts_with("Starting data generation") {
            log.generates = true;
        } else if said.starts_with("Generation done") {
            log.generated = Some(time.to_string());
        } else if let Some(steps) = said.strip_prefix("Max steps per epoch: ") {
            log.steps_of = steps_of(steps);
        } else if let Some(folder) = said.strip_prefix("Saved outputs in ") {
            log.folder = Some(folder.trim().to_string());
        }
    }
    log
}

fn first_number(text: &str) -> Option<u64> {
    text.split(' ').next()?.parse().ok()
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
                steps_of: Some([1, 168, 7]),
                folder: Some("/scratch/a b/hydra_log/w/1".into()),
                is_cut: false,
            }
        );
        assert_eq!(of_text("\u{fffd}[] ]"), Log::default());
    }
}
