//! Writes the rows on a run's reads: sizes and order of requests, time in calls, and the number of accelerators that read each file.

use feedrate_measure::metric::{
    AMPLIFICATION, CONSECUTIVE, FILES, IN_FLIGHT, IO_TIME_PERCENT, OVERLAP, SEQUENTIAL,
    UNIQUE_BYTES,
};
use feedrate_measure::record::access::{Access, BIN_NAMES};
use feedrate_measure::summary::Figures;
use feedrate_spec::units;

/// The rows on reads that have known values.
pub fn read_rows(figures: &Figures) -> Vec<(&'static str, String)> {
    rows(figures, None, calls(figures, &IoTimeWords { owner: "the workers' time", in_flight: "" }))
}

/// The rows on the reads of a log, with all sizes. `read_bytes` is the mean size of reads that returned data, if it is known, and `readers`
/// names those over which times are averaged, such as `2 readers`.
pub fn log_read_rows(
    figures: &Figures,
    counts: &Access,
    read_bytes: Option<f64>,
    readers: &str,
) -> Vec<(&'static str, String)> {
    let owner = format!("the whole time, mean of {readers}");
    let words = IoTimeWords { owner: &owner, in_flight: ", pauses included" };
    rows(figures, log_sizes(counts, read_bytes), calls(figures, &words))
}

/// Words that say which time a share of calls refers to.
struct IoTimeWords<'a> {
    owner: &'a str,
    /// Addition to the mean number of reads in flight.
    in_flight: &'static str,
}

fn rows(
    figures: &Figures,
    sizes: Option<String>,
    calls: Option<String>,
) -> Vec<(&'static str, String)> {
    let rows = [
        ("Access", access(figures, sizes)),
        ("I/O calls", calls),
        ("Read rates", rates_by_size(figures)),
        ("Files", files(figures)),
    ];
    rows.into_iter().filter_map(|(name, row)| Some((name, row?))).collect()
}

/// Reads by size: `800 reads of 1K-10K bytes (7 % of bytes) · 800 of 10K-100K (93 %) · 800 at the end of a file`. `None` if the number of reads
/// without data, or of bytes by size, is unknown.
fn log_sizes(counts: &Access, read_bytes: Option<f64>) -> Option<String> {
    let bytes: u64 = counts.size_bytes.iter().sum();
    let data_reads = (bytes as f64 / read_bytes?).round() as u64;
    let empty_reads = counts.reads().checked_sub(data_reads)?;
    let mut sizes = counts.sizes;
    sizes[0] = sizes[0].checked_sub(empty_reads)?;
    let bins = BIN_NAMES.iter().zip(sizes).zip(counts.size_bytes);
    let bins = bins.filter(|((_, reads), _)| 0 < *reads).zip(0..);
    let mut words: Vec<String> = bins
        .map(|(((name, reads), bin_bytes), index)| {
            let [noun, unit, of_bytes] =
                if index == 0 { [" reads", " bytes", " of bytes"] } else { ["", "", ""] };
            let part = share(bin_bytes as f64 / bytes as f64);
            format!("{}{noun} of {name}{unit} ({part}{of_bytes})", units::count(reads))
        })
        .collect();
    if words.is_empty() {
        return None;
    }
    if 0 < empty_reads {
        words.push(format!("{} at the end of a file", units::count(empty_reads)));
    }
    Some(words.join(" · "))
}

/// Sizes and order of requests. `sizes` replaces the most common size.
fn access(figures: &Figures, sizes: Option<String>) -> Option<String> {
    let access = figures.access.as_ref()?;
    let requests = access.request_bytes.as_ref()?;
    if access.reads == 0 {
        return None;
    }
    // A read at the end of a file returns nothing.
    let common = requests.common.iter().flatten().find(|size| size.bytes > 0);
    let common = common.map(|size| (size.count as f64 / access.reads as f64, size.bytes));
    let mut words = match (sizes, common) {
        (Some(sizes), _) => vec![sizes],
        (None, Some((part, bytes))) if part >= 0.01 => {
            vec![format!("{} of reads {}", share(part), units::bytes(bytes))]
        }
        // Without a common size, all sizes are rare.
        (None, _) => vec!["reads of many sizes".into()],
    };
    for (name, metric) in [("sequential", &SEQUENTIAL), ("consecutive", &CONSECUTIVE)] {
        words.extend(figures.value(metric).map(|value| format!("{name} {}", share(value))));
    }
    words.extend(figures.value(&FILES).map(|files| FILES.unit.text(files) + " per accelerator"));
    let amplification = figures.value(&AMPLIFICATION);
    words.extend(
        amplification.map(|ratio| format!("{ratio:.2} bytes read per byte of decoded data")),
    );
    Some(words.join(" · "))
}

/// Time in calls.
fn calls(figures: &Figures, words: &IoTimeWords) -> Option<String> {
    figures.access.as_ref().filter(|access| access.reads > 0)?;
    let time = figures.value(&IO_TIME_PERCENT)?;
    let IoTimeWords { owner, in_flight } = words;
    let share = format!("{} of {owner}", IO_TIME_PERCENT.unit.text(time));
    let mean = figures.value(&IN_FLIGHT);
    let mean = mean.map(|mean| format!("{mean:.2} reads in flight{in_flight}"));
    Some([share].into_iter().chain(mean).collect::<Vec<String>>().join(" · "))
}

/// Rates by request size, as in Darshan's summary: `reads of 0-100 bytes 260 kB/s · 1K-10K 39 MB/s`.
fn rates_by_size(figures: &Figures) -> Option<String> {
    let rates = figures.access.as_ref()?.bytes_per_second_by_size.as_ref()?;
    let rates = rates.0.iter().filter(|bin| bin.1 > 0.0).zip(0..);
    let rates = rates.map(|(bin, index)| {
        let [before, unit] = if index == 0 { ["reads of ", " bytes"] } else { ["", ""] };
        format!("{before}{}{unit} {}", bin.0, units::bytes_per_second(bin.1))
    });
    let rates: Vec<String> = rates.collect();
    (!rates.is_empty()).then(|| rates.join(" · "))
}

/// Files by the number of accelerators that read them.
fn files(figures: &Figures) -> Option<String> {
    let by_ranks = figures.access.as_ref()?.files_by_ranks.as_ref()?;
    let files: u64 = by_ranks.iter().map(|part| part.files).sum();
    let bytes = figures.value(&UNIQUE_BYTES).filter(|&bytes| bytes > 0.0)?;
    let readers = by_ranks.iter().map(|part| match units::counted(part.ranks, "accelerator") {
        ranks if part.files == files => format!("each read by {ranks}"),
        ranks => format!("{} read by {ranks}", units::count(part.files)),
    });
    let readers: Vec<String> = readers.collect();
    let bytes = UNIQUE_BYTES.unit.text(bytes);
    let mut words =
        vec![format!("{bytes} of {}", units::counted(files, "file")), readers.join(", ")];
    let overlap = figures.value(&OVERLAP).filter(|&part| part > 0.0);
    words.extend(overlap.map(|part| format!("{} of these bytes by several", share(part))));
    Some(words.join(" · "))
}

fn share(share: f64) -> String {
    let percent = 100.0 * share;
    if 0.0 < percent && percent < 0.5 { "< 1 %".into() } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::record::access::ReadPosition;
    use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, IoCounters, Record};

    #[test]
    fn sizes_of_logged_reads_have_their_share_of_bytes() {
        let mut counts = Access::default();
        for bytes in [4096, 55_000, 0, 4096, 55_000, 0] {
            counts.count_read(bytes, ReadPosition::Consecutive);
        }
        assert_eq!(
            log_sizes(&counts, Some(118_192.0 / 4.0)).as_deref(),
            Some(
                "2 reads of 1K-10K bytes (7 % of bytes) · 2 of 10K-100K (93 %) · 2 at the end of a file"
            )
        );
        assert_eq!(log_sizes(&counts, None), None, "Darshan's counters lack single reads");
        assert_eq!(log_sizes(&Access::default(), Some(9.0)), None);
    }

    #[test]
    fn shares_of_logs_say_which_time_they_refer_to() {
        let mut record = Record::default();
        record.plan.accelerators = 1;
        record.plan.loader.workers = 2;
        let io = IoCounters { reads: 1, read_ns: 100, read_bytes: 9, ..IoCounters::default() };
        let accelerators = vec![AcceleratorEpoch { io, ..AcceleratorEpoch::default() }];
        record.epochs.push(EpochRecord { end_ns: 100, accelerators, ..EpochRecord::default() });
        let figures = Figures::from_reads_only(&record);
        let row = |rows: Vec<(&str, String)>| {
            rows.into_iter().find(|(name, _)| *name == "I/O calls").unwrap().1
        };
        assert_eq!(
            row(log_read_rows(&figures, &Access::default(), None, "2 readers")),
            "50.0 % of the whole time, mean of 2 readers · 1.00 reads in flight, pauses included"
        );
        assert_eq!(row(read_rows(&figures)), "50.0 % of the workers' time · 1.00 reads in flight");
    }
}
