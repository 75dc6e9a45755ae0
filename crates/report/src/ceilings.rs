//! The answer and the names of a diagnosis, the same for terminals, plots and reports. Decides nothing.

#[cfg(test)]
use feedrate_results::diagnosis::largest_drop;
use feedrate_results::diagnosis::{Ceiling, Diagnosis, NotMeasured, ReadFrom, Rung, comparable};
use feedrate_spec::units;

/// `file system is the largest drop: …`, or that there is none.
pub fn answer(of: &Diagnosis) -> String {
    if of.ceilings.iter().any(|one| one.not_measured == Some(NotMeasured::Interrupted)) {
        return "interrupted: the largest drop is not known".into();
    }
    let needed = of.needed_samples_per_second;
    let rate = |samples: f64| units::per_second(samples, "samples");
    match (of.largest_drop, needed) {
        (Some(drop), needed) => {
            let to = units::per_second(drop.to_samples_per_second, "");
            let to = to.trim_end_matches(" /s");
            let from = rate(drop.from_samples_per_second);
            let beside = match needed {
                Some(needed) if needed == drop.from_samples_per_second => {
                    " that are needed".to_string()
                }
                Some(needed) => format!(" before it; {} are needed", rate(needed)),
                None => " before it; nothing is computed, so nothing is needed".into(),
            };
            let least = least(of).filter(|one| one.0 != drop.name);
            let least = least.map_or(String::new(), |one| {
                format!("; the least of all parts is {}, {}", name(one.0), rate(one.1))
            });
            format!("the largest drop is at {}: {to} of {from}{beside}{least}", name(drop.name))
        }
        (None, Some(needed)) => match least(of) {
            Some(least) => format!(
                "no drop: {} are needed, and the least of all parts is {}, {}",
                rate(needed),
                name(least.0),
                rate(least.1)
            ),
            None => "no part was measured".into(),
        },
        (None, None) => "no drop, and nothing is computed, so nothing is needed".into(),
    }
}

/// The slowest part; runs of all parts together are none.
fn least(of: &Diagnosis) -> Option<(Rung, f64)> {
    let parts = comparable(&of.ceilings).into_iter();
    let parts = parts.filter(|one| !matches!(one.0, Rung::LoaderWarm | Rung::Loader));
    parts.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Sentence on a device that reads through it passed; `None` without.
pub fn passed(of: &Diagnosis) -> Option<&'static str> {
    let is_of_device = |name: Rung| name == Rung::Device;
    let mut known = of.ceilings.iter().filter(|one| one.samples_per_second.is_some());
    let is_passed = known.any(|one| is_of_device(one.name))
        && !comparable(&of.ceilings).iter().any(|one| is_of_device(one.0));
    is_passed.then_some("The device is not compared: the file system was faster, as out of a cache")
}

/// `file system`.
pub fn name(rung: Rung) -> &'static str {
    match rung {
        Rung::Device => "device",
        Rung::FileSystem => "file system",
        Rung::Opens => "opens",
        Rung::LoaderNull => "loader, null storage",
        Rung::Decode => "decode",
        Rung::Client => "client",
        Rung::LoaderWarm => "loader, page cache",
        Rung::Loader => "loader, this storage",
    }
}

/// How a ceiling was measured, in a few words, or why it was not.
pub fn how(of: &Ceiling) -> String {
    if let Some(why) = of.not_measured {
        return not_measured(why).into();
    }
    let own = |what: &str| of.own_per_second.map(|rate| units::per_second(rate, what));
    let in_flight = |what: &str| of.in_flight.map(|number| units::counted(number.into(), what));
    let parts = match of.name {
        Rung::Device | Rung::FileSystem => [
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
        Rung::LoaderNull | Rung::LoaderWarm | Rung::Loader => [in_flight("worker"), None, None],
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
        NotMeasured::NoPageCache => "no page cache",
        NotMeasured::NotKept => "too large for memory",
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
    let rates = [Some(900.0), Some(310.0), Some(290.0), Some(1e6), None, Some(800.0), Some(250.0)];
    let mut ceilings = Vec::new();
    let of_ideal_client = Rung::ALL.into_iter().filter(|name| *name != Rung::Client);
    for (name, rate) in of_ideal_client.zip(rates) {
        let none = Ceiling::not_measured(name, NotMeasured::NothingDecoded);
        let measured = Ceiling {
            samples_per_second: rate,
            measured_s: Some(4.0),
            own_per_second: (name == Rung::Opens).then_some(145.0),
            in_flight: Some(if name == Rung::Device { 16 } else { 4 }),
            request_bytes: (name == Rung::Device).then_some(4_194_304.0),
            read_from: (name == Rung::Device).then_some(ReadFrom::Direct),
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
            "the largest drop is at file system: 310 of 900 samples/s before it; 1000 samples/s are needed; the least of all parts is opens, 290 samples/s"
        );
        of.largest_drop = largest_drop(&of.ceilings[..1], of.needed_samples_per_second);
        let told = answer(&of);
        let first = "the largest drop is at device: 900 of 1000 samples/s that are needed; ";
        assert!(told.starts_with(first), "{told}");
        of.largest_drop = None;
        let told = "no drop: 1000 samples/s are needed, and the least of all parts is opens, 290 samples/s";
        assert_eq!(answer(&of), told);
        of.ceilings.clear();
        assert_eq!(answer(&of), "no part was measured");
    }

    #[test]
    fn how_a_ceiling_was_measured_fits_beside_it() {
        let of = example("w");
        let told: Vec<String> = of.ceilings.iter().map(how).collect();
        assert_eq!(told[0], "4 MiB, 16 threads, O_DIRECT");
        assert_eq!(told[2], "145/s, 4 threads");
        assert_eq!(told[4], "nothing is decoded");
        assert_eq!(told[6], "4 workers");
    }
}
