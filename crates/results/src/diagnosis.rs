//! The ceilings of a workload on a storage: how fast each part of the way of a sample is where the others cost nothing, and the part that
//! loses the most of what is needed. Differential runs, as of DS-Analyzer (Mohan et al., VLDB 2021). No sentence.

use crate::place::{read_json, with_entries};
use feedrate_measure::stats::{Interval, mean_interval, welch_difference};
use feedrate_spec::names;
use feedrate_spec::plan::{DatasetPlan, LoaderPlan, Plan, StoragePlan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of a diagnosis.
pub const DIAGNOSIS_FILE: &str = "diagnosis.json";
/// How the names of such folders begin.
pub const DIAGNOSIS_FOLDER: &str = "diagnose-";

names! {
    /// A part of the way of a sample, in the order in which ceilings are compared: each may be no faster than those before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Rung {
        /// Plain reads of the workload's size, as many at once as it makes.
        FileSystem = "file_system",
        /// Opening and closing, as many at once as the workload does.
        Opens = "opens",
        /// Decoding and emulated preprocessing by as many workers and cores as there are, from a run of one worker.
        Decode = "decode",
        /// The client's work, in which decoding counts, from a run of one worker; only where the workload has a client.
        Client = "client",
        /// A run from the storage.
        Loader = "loader",
    }
}

impl Rung {
    /// Its name in sentences and figures.
    pub fn title(self) -> &'static str {
        match self {
            Rung::FileSystem => "file system",
            Rung::Opens => "opens",
            Rung::Decode => "decode",
            Rung::Client => "client",
            Rung::Loader => "loader",
        }
    }
}

/// Where the bytes of plain reads came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadFrom {
    /// Past the page cache, with `O_DIRECT`.
    Direct,
    /// From a page cache that was emptied of the files.
    Cold,
    /// As the files lay: throttle and delays stand for the storage.
    Emulated,
    /// There is no page cache to tell of.
    Storage,
}

/// Reason why a ceiling has no figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotMeasured {
    /// The workload has no files on a storage.
    NoFiles,
    /// The files stay in memory.
    StaysInMemory,
    /// No operation, or step, ended in its time.
    TooSlow,
    /// Nothing was decoded that takes time.
    NothingDecoded,
    /// It rests on the sizes of reads of a run that was too slow.
    SizesNotKnown,
    /// The user had had enough by then.
    Interrupted,
}

/// The rate of one part where the others cost nothing. What is not known is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The part.
    pub name: Rung,
    /// Samples that it is good for.
    pub samples_per_second: Option<f64>,
    /// Bytes that read calls return for these.
    pub bytes_per_second: Option<f64>,
    /// Opens, of [`Rung::Opens`]; samples of one core, of [`Rung::Decode`], and of [`Rung::Client`] where it is workers that hold it up.
    pub own_per_second: Option<f64>,
    /// The same of each slice, of which it is the mean.
    pub slices_samples_per_second: Vec<f64>,
    /// How long it was measured.
    pub measured_s: Option<f64>,
    /// Operations at once.
    pub in_flight: Option<u32>,
    /// Bytes of a read, on average.
    pub request_bytes: Option<f64>,
    /// Where plain reads came from.
    pub read_from: Option<ReadFrom>,
    /// Reason why there are no figures.
    pub not_measured: Option<NotMeasured>,
}

/// The part that loses the most, if slices distinguish it from noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestDrop {
    /// The part.
    pub name: Rung,
    /// The least of what is needed and of the ceilings before; of these alone where nothing is needed.
    pub from_samples_per_second: f64,
    /// Its ceiling.
    pub to_samples_per_second: f64,
    /// The difference, of what is needed, else of the first ceiling.
    pub lost_percent: f64,
}

/// Ceilings side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The workload's name.
    pub workload: String,
    /// Emulated accelerators.
    pub accelerators: u32,
    /// Samples such that no accelerator waits; `null` where nothing is computed.
    pub needed_samples_per_second: Option<f64>,
    /// Their bytes.
    pub needed_bytes_per_second: Option<f64>,
    /// By [`Rung`].
    pub ceilings: Vec<Ceiling>,
    /// `null` where no ceiling is certainly below what is needed.
    pub largest_drop: Option<LargestDrop>,
    /// Bytes that read calls return for a sample.
    pub bytes_per_sample: Option<f64>,
    /// Bytes of these that came from the device, where it tells; the page cache gave the others again.
    pub device_bytes_per_sample: Option<f64>,
    /// Files that are opened for a sample.
    pub opens_per_sample: Option<f64>,
    /// Files that were read, the first of the dataset.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Cores that decoding may use.
    pub cores: u32,
    /// How long all took, beside making the dataset.
    pub took_s: f64,
    /// When it began, in local time.
    pub started: String,
    /// The plan's files.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub dataset: DatasetPlan,
    /// The storage they lie on.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub storage: StoragePlan,
    /// The way they are read.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub loader: LoaderPlan,
}

impl Ceiling {
    /// Without figures.
    pub fn not_measured(name: Rung, why: NotMeasured) -> Self {
        Ceiling {
            name,
            samples_per_second: None,
            bytes_per_second: None,
            own_per_second: None,
            slices_samples_per_second: Vec::new(),
            measured_s: None,
            in_flight: None,
            request_bytes: None,
            read_from: None,
            not_measured: Some(why),
        }
    }

    /// Student's interval of the mean over slices; `None` of a single one.
    pub fn interval(&self) -> Option<Interval> {
        mean_interval(&self.slices_samples_per_second, CONFIDENCE)
    }

    /// Whether it is slower than `other` beyond noise (Welch).
    fn is_below(&self, other: &Ceiling) -> bool {
        let [own, faster] = [self, other].map(|ceiling| &ceiling.slices_samples_per_second);
        let by = welch_difference(own, faster).and_then(|by| by.interval(CONFIDENCE));
        by.is_some_and(|by| 0.0 < by.low)
    }
}

/// Share of such intervals that hold the mean.
const CONFIDENCE: f64 = 0.95;

/// Ceilings that may be compared, of those that are known, and those that may not: the loader, which does all that they do, was faster
/// beyond noise, as out of a cache. It may well be faster than a slow client: a run that time cuts short has read ahead of it.
pub fn comparable(ceilings: &[Ceiling]) -> (Vec<&Ceiling>, Vec<&Ceiling>) {
    let known: Vec<&Ceiling> =
        ceilings.iter().filter(|of| of.samples_per_second.is_some()).collect();
    let loader = known.iter().copied().find(|ceiling| ceiling.name == Rung::Loader);
    let is_passed = |ceiling: &&Ceiling| {
        ceiling.name != Rung::Client && loader.is_some_and(|loader| ceiling.is_below(loader))
    };
    let (passed, compared) = known.iter().copied().partition(is_passed);
    (compared, passed)
}

/// The part at which the least of all before falls the most, of falls that are no noise; `None` where none falls below what is needed.
pub fn largest_drop(ceilings: &[Ceiling], needed: Option<f64>) -> Option<LargestDrop> {
    let (known, _) = comparable(ceilings);
    let mut before = if needed.is_none() { known.first().copied() } else { None };
    let all = needed.or_else(|| before?.samples_per_second).filter(|all| *all > 0.0)?;
    let (mut from, mut largest) = (all, None::<LargestDrop>);
    for of in known {
        let is_below = match before {
            Some(before) => of.is_below(before),
            // What is needed has no noise.
            None => of.interval().is_some_and(|own| own.high < from),
        };
        let (true, Some(to)) = (is_below, of.samples_per_second) else { continue };
        let lost_percent = 100.0 * (from - to) / all;
        let (name, from_samples_per_second, to_samples_per_second) = (of.name, from, to);
        let own =
            LargestDrop { name, from_samples_per_second, to_samples_per_second, lost_percent };
        let is_larger = largest.map_or(0.0, |of| of.lost_percent) < lost_percent;
        largest = if is_larger { Some(own) } else { largest };
        (from, before) = (to, Some(of));
    }
    largest
}

impl Diagnosis {
    /// That of a folder; `None` where there is none that can be read.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(DIAGNOSIS_FILE))
    }

    /// The newest of a run of this plan: in its folder, or beside it.
    pub fn beside(run_dir: &Path, plan: &Plan) -> Option<Self> {
        let around = run_dir.parent().into_iter();
        let around = around.flat_map(|around| with_entries(around, DIAGNOSIS_FOLDER));
        let all = std::iter::once(run_dir.to_path_buf()).chain(around);
        let found = all.filter_map(|folder| Diagnosis::read(&folder)).filter(|of| of.is_of(plan));
        found.max_by(|a, b| a.started.cmp(&b.started))
    }

    /// Whether runs of `plan` read the same in the same way. Compute and number of steps may differ.
    fn is_of(&self, plan: &Plan) -> bool {
        self.accelerators == plan.accelerators
            && self.dataset == plan.dataset
            && self.storage == plan.storage
            && self.loader == plan.loader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(rates: [Option<f64>; 5]) -> Vec<Ceiling> {
        let all = Rung::ALL.into_iter().zip(rates);
        let mut ceilings = Vec::new();
        for (name, samples_per_second) in all {
            let none = Ceiling::not_measured(name, NotMeasured::NoFiles);
            let slices = samples_per_second.map(|rate| [0.99, 1.0, 1.01].map(|of| of * rate));
            let slices_samples_per_second = slices.into_iter().flatten().collect();
            ceilings.push(Ceiling { samples_per_second, slices_samples_per_second, ..none });
        }
        ceilings
    }

    /// Name, from, to and percentage.
    #[track_caller]
    fn check(
        rates: [Option<f64>; 5],
        needed: Option<f64>,
        expected: Option<(Rung, f64, f64, f64)>,
    ) {
        let drop = largest_drop(&ceilings(rates), needed);
        let told = drop.map(|of| {
            (of.name, of.from_samples_per_second, of.to_samples_per_second, of.lost_percent)
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn the_largest_drop_is_the_step_that_costs_most_of_what_is_needed() {
        let ladder = [900.0, 400.0, 300.0, 250.0, 150.0].map(Some);
        check(ladder, Some(1000.0), Some((Rung::Opens, 900.0, 400.0, 50.0)));
        check(ladder, Some(340.0), Some((Rung::Loader, 250.0, 150.0, 500.0 / 17.0)));
        // The file system alone is far too slow, so later parts do not matter.
        check(ladder, Some(5000.0), Some((Rung::FileSystem, 5000.0, 900.0, 82.0)));
        check(ladder, Some(150.0), None);
        // Without a need the first ceiling is all there is to lose.
        check(ladder, None, Some((Rung::Opens, 900.0, 400.0, 500.0 / 9.0)));
        let unknown = [None, Some(400.0), Some(300.0), Some(100.0), Some(90.0)];
        check(unknown, Some(500.0), Some((Rung::Client, 300.0, 100.0, 40.0)));
        check([None; 5], Some(500.0), None);
        check([None; 5], None, None);
    }

    /// The loader does what its parts do, so a part that was slower has measured something else.
    #[test]
    fn a_part_that_the_loader_passed_is_not_compared() {
        let mut rates = [300.0, 2000.0, 900.0, 800.0, 850.0].map(Some);
        check(rates, Some(1000.0), Some((Rung::Decode, 1000.0, 900.0, 10.0)));
        let all = ceilings(rates);
        let (compared, passed) = comparable(&all);
        assert!(compared.iter().all(|of| of.name != Rung::FileSystem));
        assert_eq!(passed.iter().map(|of| of.name).collect::<Vec<_>>(), [Rung::FileSystem]);
        // Within noise it is a ceiling still.
        rates[4] = Some(303.0);
        check(rates, Some(1000.0), Some((Rung::FileSystem, 1000.0, 300.0, 70.0)));
    }

    #[test]
    fn noise_is_no_drop() {
        let mut all = ceilings([2000.0, 2000.0, 900.0, 890.0, 880.0].map(Some));
        let drop = |all: &[Ceiling], needed| largest_drop(all, needed).map(|of| of.name);
        assert_eq!(
            drop(&all, Some(895.0)),
            None,
            "900 is not below it, and the others are not below 900"
        );
        assert_eq!(drop(&all, Some(1200.0)), Some(Rung::Decode));
        // A single slice has no interval.
        for of in &mut all {
            of.slices_samples_per_second.truncate(1);
        }
        assert_eq!(drop(&all, Some(1200.0)), None);
        assert_eq!(drop(&all, None), None);
    }

    #[test]
    fn a_diagnosis_is_found_beside_runs_that_read_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let plan = feedrate_measure::example::plan(2, 8);
        let of = |started: &str| Diagnosis {
            workload: plan.workload.clone(),
            accelerators: 2,
            needed_samples_per_second: None,
            needed_bytes_per_second: None,
            ceilings: ceilings([None; 5]),
            largest_drop: None,
            bytes_per_sample: None,
            device_bytes_per_sample: None,
            opens_per_sample: None,
            files: 1,
            file_bytes: 1,
            cores: 2,
            took_s: 1.0,
            started: started.into(),
            dataset: plan.dataset.clone(),
            storage: plan.storage.clone(),
            loader: plan.loader.clone(),
        };
        let run_dir = folder.path().join("run");
        assert_eq!(Diagnosis::beside(&run_dir, &plan), None);
        for name in ["1", "2"] {
            let own = folder.path().join(format!("{DIAGNOSIS_FOLDER}{name}"));
            std::fs::create_dir(&own).unwrap();
            let text = serde_json::to_string(&of(name)).unwrap();
            std::fs::write(own.join(DIAGNOSIS_FILE), text).unwrap();
        }
        assert_eq!(Diagnosis::beside(&run_dir, &plan), Some(of("2")));
        let mut other = plan.clone();
        other.loader.workers += 1;
        assert_eq!(Diagnosis::beside(&run_dir, &other), None);
        let longer = plan.train.epochs + 1;
        other = plan.clone();
        other.train.epochs = longer;
        assert!(Diagnosis::beside(&run_dir, &other).is_some());
    }
}
