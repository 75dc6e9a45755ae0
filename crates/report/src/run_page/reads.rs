//! Writes the rows on a run's reads: sizes and order of requests, time in calls, and the number of accelerators that read each file.

use feedrate_measure::metric::{
    AMPLIFICATION, CONSECUTIVE, FILES, IN_FLIGHT, IO_TIME_PERCENT, OVERLAP, SEQUENTIAL,
    UNIQUE_BYTES,
};
use feedrate_measure::summary::Figures;
use feedrate_spec::units;

/// The rows on reads that have known values.
pub fn read_rows(figures: &Figures) -> Vec<(&'static str, String)> {
    let rows =
        [("Access", access(figures)), ("I/O calls", calls(figures)), ("Files", files(figures))];
    rows.into_iter().filter_map(|(name, row)| Some((name, row?))).collect()
}

/// Sizes and order of requests.
fn access(figures: &Figures) -> Option<String> {
    let access = figures.access.as_ref()?;
    let requests = access.request_bytes.as_ref()?;
    if access.reads == 0 {
        return None;
    }
    let common = requests.common.iter().flatten().next();
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

/// Time in calls and rates by request size, as in Darshan's summary.
fn calls(figures: &Figures) -> Option<String> {
    let access = figures.access.as_ref().filter(|access| access.reads > 0)?;
    let time = figures.value(&IO_TIME_PERCENT)?;
    let mut words = vec![format!("{} of the workers' time", IO_TIME_PERCENT.unit.text(time))];
    words.extend(figures.value(&IN_FLIGHT).map(|mean| format!("{mean:.2} reads in flight")));
    let rates = access.bytes_per_second_by_size.iter().flat_map(|rates| &rates.0);
    words.extend(rates.map(|bin| format!("{} at {}", bin.0, units::bytes_per_second(bin.1))));
    Some(words.join(" · "))
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
    format!("{:.0} %", 100.0 * share)
}
