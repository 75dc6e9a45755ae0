//! `feedrate bench-crc`: measures the rate of a checksum on cached data. The benchmarks subtract its cost.

use crate::exit::Exit;
use crate::messages;
use clap::{Args, ValueEnum};
use feedrate_report::output::Schema;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// `feedrate bench-crc`.
#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    /// Duration of the measurement in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Checksum to measure.
    #[arg(long, value_enum, default_value_t = Checksum::Crc32)]
    checksum: Checksum,
}

/// Checksums used by file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Checksum {
    /// CRC-32, used by zip and npz.
    Crc32,
    /// CRC-32C, used by TFRecord.
    Crc32c,
}

/// Bytes that a reader checks at a time.
const PIECE_BYTES: usize = feedrate_spec::plan::PIECE_BYTES as usize;

/// Measures the checksum's rate and prints one JSON object.
pub(crate) fn crc(arguments: &BenchArguments) -> anyhow::Result<Exit> {
    let piece: Vec<u8> = (0..PIECE_BYTES).map(|i| (i * 31) as u8).collect();
    let limit = Duration::from_secs_f64(arguments.seconds.clamp(0.01, 3600.0));
    let (rate, crc) = match arguments.checksum {
        Checksum::Crc32 => {
            let mut hasher = crc32fast::Hasher::new();
            let rate = bytes_per_second(limit, || hasher.update(&piece));
            (rate, hasher.finalize())
        }
        Checksum::Crc32c => {
            let mut crc = 0;
            let rate = bytes_per_second(limit, || crc = crc32c::crc32c_append(crc, &piece));
            (rate, crc)
        }
    };
    messages::print_json(Schema::Bench, &BenchOutput { bytes_per_second: rate, crc })?;
    Ok(Exit::Fine)
}

/// Output of `bench-crc`.
#[derive(Serialize, JsonSchema)]
pub(super) struct BenchOutput {
    /// Rate of the checksum.
    bytes_per_second: f64,
    /// The checksum. It is printed so that the compiler cannot drop its computation.
    crc: u32,
}

/// Rate of `check`, which processes one piece per call.
fn bytes_per_second(limit: Duration, mut check: impl FnMut()) -> f64 {
    let mut bytes: u64 = 0;
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..64 {
            check();
            bytes += PIECE_BYTES as u64;
        }
    }
    bytes as f64 / start.elapsed().as_secs_f64()
}
