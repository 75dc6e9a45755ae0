//! Writes the latencies of a run: a line, a table of percentiles, and a histogram of the reads.

use crate::document::Block;
use crate::table::ReportTable;
use crate::text;
use feedrate_measure::histogram::Histogram;
use feedrate_measure::metric::Quantiles;
use feedrate_measure::summary::{Figures, Summary};
use feedrate_spec::units;

/// Longest bar of the histogram, in characters.
const BAR_LENGTH: u64 = 40;

/// The latency of reads in a line; `None` if nothing was read, or if it is unknown.
pub fn latency_line(figures: &Figures) -> Option<String> {
    let reads = figures.read_latency.as_ref()?;
    let text = units::seconds;
    Some(format!(
        "p50 {} · p99 {} · p99.9 {} · max {} of {} reads",
        text(reads.p50_s?),
        text(reads.p99_s?),
        text(reads.p999_s?),
        text(reads.max_s?),
        units::count(reads.count),
    ))
}

/// The table of percentiles, and the histogram of the latencies of `reads`; empty if nothing was read, or if they are unknown.
pub(super) fn latency_blocks(summary: &Summary, reads: &Histogram) -> Vec<Block> {
    let figures = &summary.figures;
    if figures.read_latency.as_ref().is_none_or(|reads| reads.count == 0) {
        return Vec::new();
    }
    let first_byte = summary.transfers.as_ref().map(|transfers| &transfers.first_byte);
    vec![Block::Table(percentiles(figures, first_byte)), Block::Table(histogram(reads))]
}

/// Percentiles of opens, of the first bytes of an object store's responses, of reads and of samples, as in fio.
fn percentiles(figures: &Figures, first_byte: Option<&Quantiles>) -> ReportTable {
    let calls = [
        ("open", figures.open_latency.as_ref()),
        ("first byte", first_byte),
        ("read", figures.read_latency.as_ref()),
        ("sample", figures.sample_latency.as_ref()),
    ];
    let counted = calls.into_iter().filter_map(|(name, quantiles)| {
        Some((name, quantiles.filter(|quantiles| quantiles.count > 0)?))
    });
    let rows = counted.map(|(name, quantiles)| {
        let Quantiles { p50_s, p90_s, p99_s, p999_s, p9999_s, max_s, .. } = quantiles;
        let values = [p50_s, p90_s, p99_s, p999_s, p9999_s, max_s];
        let values = values.map(|value| text::known(*value, units::seconds));
        [name.to_string(), units::count(quantiles.count)].into_iter().chain(values)
    });
    let header = ["Latency", "Count", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "Max"];
    ReportTable::from_text("", header, rows)
}

/// Shares of the reads between the limits 1, 2 and 5 times the powers of ten.
fn histogram(reads: &Histogram) -> ReportTable {
    let bins = bins(&reads.counts());
    let total: u64 = bins.iter().map(|bin| bin.reads).sum();
    let most = bins.iter().map(|bin| bin.reads).max().unwrap_or(0).max(1);
    let rows = bins.iter().map(|bin| {
        // A bin with reads has a bar.
        let length = (bin.reads * BAR_LENGTH).div_ceil(most);
        [
            format!("up to {}", units::seconds(bin.limit_ns as f64 / 1e9)),
            units::count(bin.reads),
            format!("{:.1} %", 100.0 * bin.reads as f64 / total as f64),
            "#".repeat(length as usize),
        ]
    });
    ReportTable::from_text("", ["Read took about", "Reads", "Share", ""], rows)
}

/// Reads that took no longer than `limit_ns`, but longer than the limit of the bin before, to one sixteenth of a latency.
#[derive(Debug, PartialEq)]
struct Bin {
    limit_ns: u64,
    reads: u64,
}

/// Counts durations by the smallest limit that they do not exceed, from the first bin with reads to the last.
fn bins(counts: &[(u64, u64)]) -> Vec<Bin> {
    let mut limits = (0..19).flat_map(|power| [1, 2, 5].map(|factor| factor * 10_u64.pow(power)));
    let mut bins: Vec<Bin> = Vec::new();
    for &(ns, reads) in counts {
        let is_within = |bin: &Bin| ns <= bin.limit_ns;
        while !bins.last().is_some_and(is_within) {
            let limit_ns = limits.next().unwrap_or(u64::MAX);
            if !bins.is_empty() || ns <= limit_ns {
                bins.push(Bin { limit_ns, reads: 0 });
            }
        }
        if let Some(bin) = bins.last_mut() {
            bin.reads += reads;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_lie_between_the_first_and_the_last_read() {
        let bin = |limit_ns, reads| Bin { limit_ns, reads };
        assert_eq!(bins(&[]), []);
        assert_eq!(bins(&[(1, 4)]), [bin(1, 4)]);
        assert_eq!(
            bins(&[(150, 1), (190, 2), (201, 3), (1500, 4)]),
            [bin(200, 3), bin(500, 3), bin(1000, 0), bin(2000, 4)]
        );
        assert_eq!(bins(&[(u64::MAX, 1)]), [bin(u64::MAX, 1)]);
    }

    #[test]
    fn the_longest_bar_has_the_most_reads_and_a_rare_one_is_seen() {
        let mut reads = Histogram::new();
        (0..1000).for_each(|_| reads.record(1_500_000));
        reads.record(9_000_000);
        let table = histogram(&reads);
        let rows: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        let full = "#".repeat(40);
        assert_eq!(
            rows,
            [
                ["up to 2 ms", "1,000", "99.9 %", &full],
                ["up to 5 ms", "0", "0.0 %", ""],
                ["up to 10 ms", "1", "0.1 %", "#"],
            ]
        );
    }
}
