//! `feedrate bench-crc`: the rate of the checksum alone, in cache, for the benchmarks' arithmetic.

use crate::cli::BenchArguments;
use crate::exit::Exit;
use crate::messages;
use std::time::{Duration, Instant};

/// The piece that readers check at once.
const PIECE_BYTES: usize = feedrate_spec::plan::PIECE_BYTES as usize;

/// Measure, and print one JSON object.
pub(crate) fn crc(arguments: &BenchArguments) -> anyhow::Result<Exit> {
    let piece: Vec<u8> = (0..PIECE_BYTES).map(|i| (i * 31) as u8).collect();
    let limit = Duration::from_secs_f64(arguments.seconds.clamp(0.01, 3600.0));
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes: u64 = 0;
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..64 {
            hasher.update(&piece);
            bytes += PIECE_BYTES as u64;
        }
    }
    let rate = bytes as f64 / start.elapsed().as_secs_f64();
    let crc32 = hasher.finalize();
    messages::print(serde_json::json!({ "bytes_per_second": rate, "crc32": crc32 }));
    Ok(Exit::Fine)
}
