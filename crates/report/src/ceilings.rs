//! Renders diagnoses as text for terminals, plots and reports. Decides nothing.

use feedrate_measure::noise::Noise;
#[cfg(test)]
use feedrate_results::diagnosis::largest_drop;
use feedrate_results::diagnosis::{
    Ceiling, Diagnosis, NotMeasured, PipelineStage, ReadFrom, split_comparable,
};
use feedrate_spec::units;
use std::cmp::Ordering::Equal;

/// Names the part with the largest drop, or states that no drop exceeds the noise.
pub fn answer(diagnosis: &Diagnosis) -> String {
    let rate = |samples: f64| units::per_second(samples, "samples");
    if let Some(noise) = diagnosis.noise {
        return noise_text(diagnosis, noise);
    }
    match (diagnosis.largest_drop, diagnosis.needed_samples_per_second) {
        (Some(drop), needed) => {
            let to = units::per_second(drop.to_samples_per_second, "");
            let to = to.trim_end_matches(" /s");
            let from = rate(drop.from_samples_per_second);
            let beside = match needed {
                Some(needed) if needed == drop.from_samples_per_second => " needed".to_string(),
                Some(needed) => format!(" before it; {} are needed", rate(needed)),
                None => " before it".into(),
            };
            let slowest = slowest_part(diagnosis).filter(|part| part.name != drop.name);
            let slowest = slowest.map_or(String::new(), |part| format!("; {}", slowest_text(part)));
            format!("the largest drop is at {}: {to} of {from}{beside}{slowest}", drop.name.title())
        }
        (None, needed) => {
            let Some(slowest) = slowest_part(diagnosis) else {
                return "no part was measured".into();
            };
            let slowest = slowest_text(slowest);
            let Some(needed) = needed else { return format!("no drop; {slowest}") };
            let (known, _) = split_comparable(&diagnosis.ceilings);
            let is_fed = known.iter().all(|ceiling| reaches(ceiling, needed));
            let needed = rate(needed);
            if is_fed {
                let mut ceilings = diagnosis.ceilings.iter();
                let has_client = ceilings.any(|ceiling| ceiling.name == PipelineStage::Client);
                let client = if has_client { "" } else { "; your own code is not measured yet" };
                return format!("every part reaches the {needed} needed; {slowest}{client}");
            }
            format!(
                "no certain drop: {needed} are needed, and {slowest}, which is within the noise of the measurement; try a longer `--budget` or a quieter machine"
            )
        }
    }
}

/// The reason why no part is named. Noise only makes parts look slower, so storage that reaches the needed rate is ruled out nevertheless.
fn noise_text(diagnosis: &Diagnosis, noise: Noise) -> String {
    let (reason, remedy) = match noise {
        Noise::BusyCores => (
            "the cores were busy, and parts may have waited for them",
            "repeat it on an idle machine",
        ),
        Noise::WideInterval => (
            "a rate varied by more than half of its value",
            "repeat it with a longer `--budget` or on a quieter machine",
        ),
    };
    let says = fast_storage(diagnosis).unwrap_or_else(|| "the bottleneck is unknown".into());
    format!("{says}: {reason}; {remedy}")
}

/// States that the storage reaches the needed rate in every measurement, and names the parts that may not; `None` if it may not.
fn fast_storage(diagnosis: &Diagnosis) -> Option<String> {
    let needed = diagnosis.needed_samples_per_second?;
    let (known, _) = split_comparable(&diagnosis.ceilings);
    let storage_stages = [PipelineStage::FileSystem, PipelineStage::Opens];
    let (storage, others): (Vec<&Ceiling>, Vec<&Ceiling>) =
        known.into_iter().partition(|ceiling| storage_stages.contains(&ceiling.name));
    let is_read = storage.iter().any(|ceiling| ceiling.name == PipelineStage::FileSystem);
    if !is_read || !storage.iter().all(|ceiling| reaches(ceiling, needed)) {
        return None;
    }
    let rates = storage.iter().flat_map(|ceiling| &ceiling.slices_samples_per_second);
    let lowest = rates.copied().reduce(f64::min)?;
    let open: Vec<&str> = others
        .iter()
        .filter(|ceiling| !reaches(ceiling, needed))
        .map(|ceiling| ceiling.name.title())
        .collect();
    Some(format!(
        "not the storage, which delivers at least {:.0} where {} are needed; unknown for {}",
        lowest,
        units::per_second(needed, "samples"),
        open.join(" and ")
    ))
}

fn slowest_text(part: &Ceiling) -> String {
    let samples = part.samples_per_second;
    let samples = samples.map_or_else(String::new, |rate| units::per_second(rate, "samples"));
    format!("the slowest part is {}, {samples}", part.name.title())
}

/// Whether the mean and every slice of a ceiling reach the needed rate.
fn reaches(ceiling: &Ceiling, needed: f64) -> bool {
    ceiling.samples_per_second.is_some_and(|mean| needed <= mean)
        && ceiling.slices_samples_per_second.iter().all(|slice| needed <= *slice)
}

/// The slowest part. The loader combines all parts, so it counts only if no other part is known.
fn slowest_part(diagnosis: &Diagnosis) -> Option<&Ceiling> {
    let (known, _) = split_comparable(&diagnosis.ceilings);
    let parts = known.iter().copied().filter(|ceiling| ceiling.name != PipelineStage::Loader);
    parts
        .min_by(|a, b| a.samples_per_second.partial_cmp(&b.samples_per_second).unwrap_or(Equal))
        .or(known.last().copied())
}

/// The meaning of the largest drop and what to try; `None` if there is no drop.
pub fn meaning(diagnosis: &Diagnosis) -> Option<&'static str> {
    Some(match diagnosis.largest_drop?.name {
        PipelineStage::FileSystem => {
            "the storage is too slow at this read size and concurrency: use more workers, larger reads or faster storage"
        }
        PipelineStage::Opens => "opening files takes the time: use fewer and larger files",
        PipelineStage::Decode => {
            "decoding takes the time: use more workers while cores are idle, or a format that decodes faster"
        }
        PipelineStage::Client => {
            "the job's own code takes the time: do less for each sample, or use more workers while cores are idle"
        }
        PipelineStage::Loader => {
            "no single part is the cause, as each worker reads, decodes and hands over in turn: use more workers while cores are idle"
        }
    })
}

/// A sentence on parts that were slower than the whole loader; `None` if there are none.
pub fn parts_not_compared(diagnosis: &Diagnosis) -> Option<String> {
    let (_, passed) = split_comparable(&diagnosis.ceilings);
    let names: Vec<&str> = passed.iter().map(|ceiling| ceiling.name.title()).collect();
    (!names.is_empty())
        .then(|| format!("Not compared: {}, as the loader was faster", names.join(", ")))
}

/// The conditions of a ceiling's measurement in a few words, or the reason why it was not measured.
pub fn measurement_conditions(ceiling: &Ceiling) -> String {
    if let Some(why) = ceiling.not_measured {
        return not_measured(why).into();
    }
    let per_second = || {
        let rate = ceiling.own_per_second;
        rate.map(|rate| units::per_second(rate, "").replace(" /s", "/s"))
    };
    let of_a_core = || per_second().map(|rate| format!("{rate} per core"));
    let in_flight = |noun: &str| ceiling.in_flight.map(|count| units::counted(count.into(), noun));
    let parts = match ceiling.name {
        PipelineStage::FileSystem => [
            ceiling.request_bytes.map(|bytes| units::bytes_binary(bytes as u64)),
            in_flight("thread"),
            ceiling.read_from.and_then(read_from).map(str::to_string),
        ],
        PipelineStage::Opens => [
            per_second(),
            in_flight("thread"),
            ceiling.read_from.and_then(read_from).map(str::to_string),
        ],
        PipelineStage::Decode => [of_a_core(), None, None],
        PipelineStage::Client => {
            [of_a_core().or(Some("the training's process".into())), None, None]
        }
        PipelineStage::Loader => [in_flight("worker"), None, None],
    };
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn read_from(from: ReadFrom) -> Option<&'static str> {
    match from {
        ReadFrom::Direct => Some("O_DIRECT"),
        ReadFrom::Cold => Some("cold"),
        ReadFrom::Emulated => Some("emulated"),
        ReadFrom::Storage => None,
    }
}

fn not_measured(why: NotMeasured) -> &'static str {
    match why {
        NotMeasured::NoFiles => "no files on storage",
        NotMeasured::StaysInMemory => "files stay in memory",
        NotMeasured::TooSlow => "nothing finished in time",
        NotMeasured::NothingDecoded => "nothing is decoded",
        NotMeasured::SizesNotKnown => "read sizes unknown",
        NotMeasured::Interrupted => "interrupted",
    }
}

/// A diagnosis of a workload that needs 1000 samples/s.
#[cfg(test)]
pub(crate) fn example(workload: &str) -> Diagnosis {
    use feedrate_results::diagnosis::{
        Ceiling, NotMeasured, PipelineStage, ReadFrom, largest_drop,
    };
    let rates = [Some(310.0), Some(290.0), None, Some(250.0)];
    let mut ceilings = Vec::new();
    let without_client =
        PipelineStage::ALL.into_iter().filter(|name| *name != PipelineStage::Client);
    for (name, rate) in without_client.zip(rates) {
        let none = Ceiling::not_measured(name, NotMeasured::NothingDecoded);
        let measured = Ceiling {
            samples_per_second: rate,
            slices_samples_per_second: rate.map_or_else(Vec::new, |rate| vec![rate; 2]),
            measured_s: Some(4.0),
            own_per_second: (name == PipelineStage::Opens).then_some(145.0),
            in_flight: Some(4),
            request_bytes: (name == PipelineStage::FileSystem).then_some(4_194_304.0),
            read_from: (name == PipelineStage::FileSystem).then_some(ReadFrom::Direct),
            cpu_busy_share: Some(0.3),
            own_cpu_share: Some(0.2),
            not_measured: None,
            ..none.clone()
        };
        ceilings.push(if rate.is_some() { measured } else { none });
    }
    Diagnosis {
        workload: workload.into(),
        accelerators: 2,
        needed_samples_per_second: Some(1000.0),
        needed_bytes_per_second: None,
        largest_drop: largest_drop(&ceilings, Some(1000.0)),
        noise: None,
        ceilings,
        bytes_per_sample: None,
        device_bytes_per_sample: None,
        opens_per_sample: Some(0.5),
        files: 64,
        file_bytes: 1 << 28,
        cores: 2,
        took_s: 42.0,
        started: "2026-11-22T12:00:00.000000".into(),
        dataset: Default::default(),
        storage: Default::default(),
        loader: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_names_the_drop_the_needed_rate_and_the_slowest_part() {
        let mut diagnosis = example("w");
        assert_eq!(
            answer(&diagnosis),
            "the largest drop is at file system: 310 of 1000 samples/s needed; the slowest part is opens, 290 samples/s"
        );
        diagnosis.largest_drop = largest_drop(&diagnosis.ceilings[..2], None);
        let first = "the largest drop is at opens: 290 of 310 samples/s before it; 1000 samples/s are needed";
        assert_eq!(answer(&diagnosis), first);
        diagnosis.largest_drop = None;
        let expected = "no certain drop: 1000 samples/s are needed, and the slowest part is opens, 290 samples/s";
        let uncertain = answer(&diagnosis);
        assert!(uncertain.starts_with(expected));
        diagnosis.needed_samples_per_second = Some(200.0);
        let fed =
            "every part reaches the 200 samples/s needed; the slowest part is opens, 290 samples/s";
        assert_eq!(answer(&diagnosis), format!("{fed}; your own code is not measured yet"));
        diagnosis.ceilings[1].slices_samples_per_second = vec![100.0, 480.0];
        assert!(answer(&diagnosis).starts_with("no certain drop: 200"), "{}", answer(&diagnosis));
        diagnosis.noise = Some(Noise::WideInterval);
        assert!(answer(&diagnosis).starts_with("the bottleneck is unknown: a rate varied"));
        diagnosis.noise = Some(Noise::BusyCores);
        diagnosis.ceilings[1].slices_samples_per_second = vec![290.0, 480.0];
        diagnosis.ceilings[3].slices_samples_per_second = vec![100.0, 400.0];
        let cleared = "not the storage, which delivers at least 290 where 200 samples/s are needed; unknown for loader: the cores were busy";
        assert!(answer(&diagnosis).starts_with(cleared), "{}", answer(&diagnosis));
        diagnosis.noise = None;
        diagnosis.ceilings.clear();
        assert_eq!(answer(&diagnosis), "no part was measured");
    }

    #[test]
    fn conditions_of_a_measurement_take_a_few_words() {
        let diagnosis = example("w");
        let texts: Vec<String> = diagnosis.ceilings.iter().map(measurement_conditions).collect();
        let expected =
            ["4 MiB, 4 threads, O_DIRECT", "145/s, 4 threads", "nothing is decoded", "4 workers"];
        assert_eq!(texts, expected);
    }
}
