//! The answer and the names of a diagnosis, the same for terminals, plots and reports. Decides nothing.

#[cfg(test)]
use feedrate_results::diagnosis::largest_drop;
use feedrate_results::diagnosis::{Ceiling, Diagnosis, NotMeasured, ReadFrom, Rung, comparable};
use feedrate_spec::units;
use std::cmp::Ordering::Equal;

/// `the largest drop is at file system: …`, or that there is none that is no noise.
pub fn answer(of: &Diagnosis) -> String {
    let rate = |samples: f64| units::per_second(samples, "samples");
    match (of.largest_drop, of.needed_samples_per_second) {
        (Some(drop), needed) => {
            let to = units::per_second(drop.to_samples_per_second, "");
            let to = to.trim_end_matches(" /s");
            let from = rate(drop.from_samples_per_second);
            let beside = match needed {
                Some(needed) if needed == drop.from_samples_per_second => {
                    " that are needed".to_string()
                }
                Some(needed) => format!(" before it; {} are needed", rate(needed)),
                None => " before it".into(),
            };
            let slowest = least_part(of).filter(|one| one.name != drop.name);
            let least = slowest.map_or(String::new(), |one| format!("; {}", least(one)));
            format!("the largest drop is at {}: {to} of {from}{beside}{least}", drop.name.title())
        }
        (None, needed) => {
            let Some(slowest) = least_part(of) else { return "no part was measured".into() };
            let Some(needed) = needed else { return format!("no drop; {}", least(slowest)) };
            let is_fed = comparable(&of.ceilings).0.iter().all(|one| suffices(one, needed));
            let needed = rate(needed);
            if is_fed {
                let has_client = of.ceilings.iter().any(|one| one.name == Rung::Client);
                let own = if has_client { "" } else { "; your own code is not measured yet" };
                return format!(
                    "every part gives the {needed} that are needed; {}{own}",
                    least(slowest)
                );
            }
            format!(
                "no drop that is certain: {needed} are needed, and {}, which its slices do not tell from it; a longer `--budget` does, or a quieter machine",
                least(slowest)
            )
        }
    }
}

fn least(part: &Ceiling) -> String {
    let samples = part.samples_per_second;
    let samples = samples.map_or_else(String::new, |rate| units::per_second(rate, "samples"));
    format!("the least of all parts is {}, {samples}", part.name.title())
}

/// Whether each of its slices gave what is needed.
fn suffices(one: &Ceiling, needed: f64) -> bool {
    one.samples_per_second.is_some_and(|mean| needed <= mean)
        && one.slices_samples_per_second.iter().all(|slice| needed <= *slice)
}

/// The slowest part; the loader, which does what all parts do, only where nothing else is known.
fn least_part(of: &Diagnosis) -> Option<&Ceiling> {
    let (known, _) = comparable(&of.ceilings);
    let parts = known.iter().copied().filter(|ceiling| ceiling.name != Rung::Loader);
    parts
        .min_by(|a, b| a.samples_per_second.partial_cmp(&b.samples_per_second).unwrap_or(Equal))
        .or(known.last().copied())
}

/// The sense of the largest drop, and what to try; `None` without.
pub fn meaning(of: &Diagnosis) -> Option<&'static str> {
    Some(match of.largest_drop?.name {
        Rung::FileSystem => {
            "the storage is too slow for reads of this size, so many at once: more workers, larger reads, or a faster storage"
        }
        Rung::Opens => "opening files takes the time: fewer and larger files",
        Rung::Decode => {
            "decoding takes the time: more workers while cores are idle, a format that decodes faster"
        }
        Rung::Client => {
            "the job's own code takes the time: less of it for each sample, more workers while cores are idle"
        }
        Rung::Loader => {
            "no part alone: each worker reads, decodes and hands over in turn; more workers while cores are idle"
        }
    })
}

/// Sentence on parts that the loader passed; `None` without.
pub fn passed(of: &Diagnosis) -> Option<String> {
    let (_, passed) = comparable(&of.ceilings);
    let names: Vec<&str> = passed.iter().map(|one| one.name.title()).collect();
    (!names.is_empty())
        .then(|| format!("Not compared: {}; the loader was faster", names.join(", ")))
}

/// How a ceiling was measured, in a few words, or why it was not.
pub fn how(of: &Ceiling) -> String {
    if let Some(why) = of.not_measured {
        return not_measured(why).into();
    }
    let own = |what: &str| of.own_per_second.map(|rate| units::per_second(rate, what));
    let in_flight = |what: &str| of.in_flight.map(|number| units::counted(number.into(), what));
    let parts = match of.name {
        Rung::FileSystem => [
            of.request_bytes.map(|bytes| units::bytes_binary(bytes as u64)),
            in_flight("thread"),
            of.read_from.and_then(read_from).map(str::to_string),
        ],
        Rung::Opens => [
            own("").map(|rate| rate.replace(" /s", "/s")),
            in_flight("thread"),
            of.read_from.and_then(read_from).map(str::to_string),
        ],
        Rung::Decode => {
            [own("").map(|rate| format!("a core {}", rate.replace(" /s", "/s"))), None, None]
        }
        Rung::Client => {
            let of_core = own("").map(|rate| format!("a core {}", rate.replace(" /s", "/s")));
            [of_core.or(Some("the training's process".into())), None, None]
        }
        Rung::Loader => [in_flight("worker"), None, None],
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
        NotMeasured::NoFiles => "no files on a storage",
        NotMeasured::StaysInMemory => "files stay in memory",
        NotMeasured::TooSlow => "nothing ended in time",
        NotMeasured::NothingDecoded => "nothing is decoded",
        NotMeasured::SizesNotKnown => "read sizes unknown",
        NotMeasured::Interrupted => "interrupted",
    }
}

/// A diagnosis of a workload that needs 1000 samples/s.
#[cfg(test)]
pub(crate) fn example(workload: &str) -> Diagnosis {
    use feedrate_results::diagnosis::{Ceiling, NotMeasured, ReadFrom, Rung, largest_drop};
    let rates = [Some(310.0), Some(290.0), None, Some(250.0)];
    let mut ceilings = Vec::new();
    let of_ideal_client = Rung::ALL.into_iter().filter(|name| *name != Rung::Client);
    for (name, rate) in of_ideal_client.zip(rates) {
        let none = Ceiling::not_measured(name, NotMeasured::NothingDecoded);
        let measured = Ceiling {
            samples_per_second: rate,
            slices_samples_per_second: rate.map_or_else(Vec::new, |rate| vec![rate; 2]),
            measured_s: Some(4.0),
            own_per_second: (name == Rung::Opens).then_some(145.0),
            in_flight: Some(4),
            request_bytes: (name == Rung::FileSystem).then_some(4_194_304.0),
            read_from: (name == Rung::FileSystem).then_some(ReadFrom::Direct),
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
    fn the_answer_names_the_drop_what_is_needed_and_the_slowest_part() {
        let mut of = example("w");
        assert_eq!(
            answer(&of),
            "the largest drop is at file system: 310 of 1000 samples/s that are needed; the least of all parts is opens, 290 samples/s"
        );
        of.largest_drop = largest_drop(&of.ceilings[..2], None);
        let first = "the largest drop is at opens: 290 of 310 samples/s before it; 1000 samples/s are needed";
        assert_eq!(answer(&of), first);
        of.largest_drop = None;
        let told = "no drop: 1000 samples/s are needed, and the least of all parts is opens, 290 samples/s";
        let uncertain = answer(&of);
        assert!(uncertain.starts_with(&told.replace("no drop", "no drop that is certain")));
        of.needed_samples_per_second = Some(200.0);
        let fed = "every part gives the 200 samples/s that are needed; the least of all parts is opens, 290 samples/s";
        assert_eq!(answer(&of), format!("{fed}; your own code is not measured yet"));
        of.ceilings[1].slices_samples_per_second = vec![100.0, 480.0];
        assert!(answer(&of).starts_with("no drop that is certain: 200"), "{}", answer(&of));
        of.ceilings.clear();
        assert_eq!(answer(&of), "no part was measured");
    }

    #[test]
    fn how_a_ceiling_was_measured_fits_beside_it() {
        let of = example("w");
        let told: Vec<String> = of.ceilings.iter().map(how).collect();
        let expected =
            ["4 MiB, 4 threads, O_DIRECT", "145/s, 4 threads", "nothing is decoded", "4 workers"];
        assert_eq!(told, expected);
    }
}
