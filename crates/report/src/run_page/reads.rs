//! Writes the rows on a run's reads: sizes and order of requests, time in calls, and the number of accelerators that read each file.

use feedrate_measure::metric::{
    AMPLIFICATION, CONSECUTIVE, FILES, IN_FLIGHT, IO_TIME_PERCENT, OVERLAP, SEQUENTIAL,
    UNIQUE_BYTES,
};
use feedrate_measure::summary::Figures;
use feedrate_spec::units;

/// The rows on reads that have known values.
pub fn read_rows(figures: &Figures) -> Vec<(&'static str, String)> {
    let rows = [
        ("Access", access(figures)),
        ("I/O calls", calls(figures)),
        ("Read rates", rates_by_size(figures)),
        ("Files", files(figures)),
    ];
    rows.into_iter().filter_map(|(name, row)| Some((name, row?))).collect()
}

/// Sizes and order of requests.
fn access(figures: &Figures) -> Option<String> {
    let access = figures.access.as_ref()?;
    let requests = access.request_bytes.as_ref()?;
    if access.reads == 0 {
        return None;
    }
    // A read at the end of a file returns nothing.
    let common = requests.common.iter().flatten().find(|size| size.bytes > 0);
    let mut words = match common.map(|size| (size.count as f64 / access.reads as f64, size.bytes)) {
        Some((part, bytes)) if part >= 0.01 => {
            vec![format!("{} of reads {}", share(part), units::bytes(bytes))]
        }
        // Without a common size, all sizes are rare.
        _ => vec!["reads of many sizes".into()],
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
fn calls(figures: &Figures) -> Option<String> {
    figures.access.as_ref().filter(|access| access.reads > 0)?;
    let time = figures.value(&IO_TIME_PERCENT)?;
    let mut words = vec![format!("{} of the workers' time", IO_TIME_PERCENT.unit.text(time))];
    words.extend(figures.value(&IN_FLIGHT).map(|mean| format!("{mean:.2} reads in flight")));
    Some(words.join(" · "))
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
