//! The ceilings of a workload on a storage: the rate that each stage of a sample's path would reach if all other stages took no time, and the stage
//! that loses the most of the required rate. The method (differential runs) comes from DS-Analyzer (Mohan et al., VLDB 2021).
//!
//! Long because the rules for noise and for the largest drop are tested on the same ceilings.

use crate::place::{folder_and_entries, read_json};
use feedrate_measure::noise::{Noise, are_cores_busy, is_mostly_used_by_others, is_too_wide};
use feedrate_measure::stats::{Interval, mean_interval, welch_difference};
use feedrate_spec::names;
use feedrate_spec::plan::{DatasetPlan, LoaderPlan, Plan, StoragePlan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the file in the folder of a diagnosis.
pub const DIAGNOSIS_FILE: &str = "diagnosis.json";
/// Prefix of the names of folders of diagnoses.
pub const DIAGNOSIS_FOLDER: &str = "diagnose-";

names! {
    /// A stage of a sample's path, in the order in which ceilings are compared. A stage cannot deliver more than those before it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PipelineStage {
        /// Plain reads with the workload's size and concurrency.
        FileSystem = "file_system",
        /// Opening and closing files with the workload's concurrency.
        Opens = "opens",
        /// Decoding and emulated preprocessing on all workers and cores, extrapolated from a run of one worker.
        Decode = "decode",
        /// Work of the client, including decoding, extrapolated from a run of one worker. Only for workloads with a client.
        Client = "client",
        /// The whole loader, reading from the storage.
        Loader = "loader",
    }
}

impl PipelineStage {
    /// Returns the name for sentences and figures.
    pub fn title(self) -> &'static str {
        match self {
            PipelineStage::FileSystem => "file system",
            PipelineStage::Opens => "opens",
            PipelineStage::Decode => "decode",
            PipelineStage::Client => "client",
            PipelineStage::Loader => "loader",
        }
    }
}

/// Source of the bytes of plain reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadFrom {
    /// The device, bypassing the page cache with `O_DIRECT`.
    Direct,
    /// The device, since the files were evicted from the page cache.
    Cold,
    /// An emulated storage: throttle and delays apply, and the page cache is not evicted.
    Emulated,
    /// A storage without a page cache.
    Storage,
}

/// Reason why a ceiling was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotMeasured {
    /// The workload has no files on a storage.
    NoFiles,
    /// The files stay in memory.
    StaysInMemory,
    /// No operation or step finished within the time limit.
    TooSlow,
    /// Decoding takes no measurable time.
    NothingDecoded,
    /// The sizes of reads come from another measurement, which was too slow.
    SizesNotKnown,
    /// The user interrupted the diagnosis before this measurement.
    Interrupted,
}

/// The rate that one stage would reach if all other stages took no time. Unknown values are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The stage.
    pub name: PipelineStage,
    /// Rate in samples per second.
    pub samples_per_second: Option<f64>,
    /// Bytes per second that read calls return at this rate.
    pub bytes_per_second: Option<f64>,
    /// Rate in the unit of the stage: files opened per second for `opens`; samples per second of one core for `decode`, and for
    /// `client` if workers limit it.
    pub own_per_second: Option<f64>,
    /// Rate in each time slice of the measurement; `samples_per_second` is the mean.
    pub slices_samples_per_second: Vec<f64>,
    /// Duration of the measurement in seconds.
    pub measured_s: Option<f64>,
    /// Number of concurrent operations.
    pub in_flight: Option<u32>,
    /// Mean size of a read.
    pub request_bytes: Option<f64>,
    /// Source of the bytes of plain reads.
    pub read_from: Option<ReadFrom>,
    /// Busy share of all cores during the measurement, 0 to 1.
    #[serde(default)]
    pub cpu_busy_share: Option<f64>,
    /// Share of all cores that the measurement itself used, 0 to 1.
    #[serde(default)]
    pub own_cpu_share: Option<f64>,
    /// Whether a throttle, delays, preprocessing or a client are emulated in this stage. Their times do not depend on other load.
    #[serde(default)]
    pub is_emulated: bool,
    /// Reason why the ceiling was not measured.
    pub not_measured: Option<NotMeasured>,
}

/// The stage that loses the most. Losses within the noise between time slices do not count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestDrop {
    /// The stage.
    pub name: PipelineStage,
    /// Lowest of the required rate, if any, and the ceilings before this stage.
    pub from_samples_per_second: f64,
    /// Ceiling of the stage.
    pub to_samples_per_second: f64,
    /// Difference as a share of the required rate, or of the first ceiling if no rate is required.
    pub lost_percent: f64,
}

/// The ceilings of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// Name of the workload.
    pub workload: String,
    /// Number of emulated accelerators.
    pub accelerators: u32,
    /// Rate at which no accelerator waits; `null` if the workload has no compute.
    pub needed_samples_per_second: Option<f64>,
    /// The required rate in bytes per second.
    pub needed_bytes_per_second: Option<f64>,
    /// Ceilings of the stages, in the order of the path: file system, opens, decode, client, loader.
    pub ceilings: Vec<Ceiling>,
    /// The largest drop; `null` if no ceiling is significantly below the required rate, or if the measurement is too noisy.
    pub largest_drop: Option<LargestDrop>,
    /// The reason why no largest drop is named; `null` if the ceilings are precise enough.
    #[serde(default)]
    pub noise: Option<Noise>,
    /// Bytes that read calls return for a sample.
    pub bytes_per_sample: Option<f64>,
    /// Bytes read from the device for a sample, if it reports them. The remaining bytes came from the page cache.
    pub device_bytes_per_sample: Option<f64>,
    /// Number of files opened for a sample.
    pub opens_per_sample: Option<f64>,
    /// Number of files read, from the start of the dataset.
    pub files: u64,
    /// Size of these files.
    pub file_bytes: u64,
    /// Number of cores available for decoding.
    pub cores: u32,
    /// Duration of the diagnosis in seconds, without the generation of the dataset.
    pub took_s: f64,
    /// Local time of the start.
    pub started: String,
    /// Plan of the dataset.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub dataset: DatasetPlan,
    /// Plan of the storage.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub storage: StoragePlan,
    /// Plan of the loader.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub loader: LoaderPlan,
}

impl Ceiling {
    /// Creates a ceiling that was not measured.
    pub fn not_measured(name: PipelineStage, why: NotMeasured) -> Self {
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
            cpu_busy_share: None,
            own_cpu_share: None,
            is_emulated: false,
            not_measured: Some(why),
        }
    }

    /// Returns Student's interval of the mean over slices; `None` for a single slice.
    pub fn interval(&self) -> Option<Interval> {
        mean_interval(&self.slices_samples_per_second, CONFIDENCE)
    }

    /// Returns whether load on the cores may have lowered the rate. Emulated times do not depend on it.
    pub fn may_be_slowed_by_busy_cores(&self) -> bool {
        !self.is_emulated && self.may_wait_for_cores()
    }

    /// Returns whether the stage may have waited for a core. Decoding and the client take processor time, so their measurements may keep the
    /// cores busy themselves.
    fn may_wait_for_cores(&self) -> bool {
        let takes_cores = matches!(self.name, PipelineStage::Decode | PipelineStage::Client);
        self.has_busy_cores() && (!takes_cores || self.is_slowed_by_others())
    }

    /// Returns whether other processes kept the cores busy.
    fn is_slowed_by_others(&self) -> bool {
        self.has_busy_cores() && is_mostly_used_by_others(self.own_cpu_share, self.cpu_busy_share)
    }

    fn has_busy_cores(&self) -> bool {
        self.cpu_busy_share.is_some_and(are_cores_busy)
    }

    /// Returns whether the ceiling may be below the required rate: a slice is, and the interval contains lower rates. Without a required rate,
    /// every ceiling counts.
    fn may_miss(&self, needed: Option<f64>) -> bool {
        let low = self.interval().map(|interval| interval.low).or(self.samples_per_second);
        needed.is_none_or(|needed| {
            low.is_none_or(|low| low < needed)
                && self.slices_samples_per_second.iter().any(|slice| *slice < needed)
        })
    }

    /// Returns whether the ceiling is significantly lower than `other` (Welch's test).
    fn is_below(&self, other: &Ceiling) -> bool {
        let lower = &self.slices_samples_per_second;
        let higher = &other.slices_samples_per_second;
        let difference = welch_difference(lower, higher);
        let interval = difference.and_then(|difference| difference.interval(CONFIDENCE));
        interval.is_some_and(|interval| 0.0 < interval.low)
    }
}

/// Confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Splits the measured ceilings into comparable and incomparable ones. A stage is incomparable if the loader, which includes it, was significantly
/// faster, for example because of a cache. This rule does not apply to the client: the loader may have read ahead of a slow client, so its rate can
/// exceed the client's.
pub fn split_comparable(ceilings: &[Ceiling]) -> (Vec<&Ceiling>, Vec<&Ceiling>) {
    let measured: Vec<&Ceiling> =
        ceilings.iter().filter(|ceiling| ceiling.samples_per_second.is_some()).collect();
    let loader = measured.iter().copied().find(|ceiling| ceiling.name == PipelineStage::Loader);
    let is_exceeded = |ceiling: &&Ceiling| {
        ceiling.name != PipelineStage::Client
            && loader.is_some_and(|loader| ceiling.is_below(loader))
    };
    let (exceeded, compared) = measured.iter().copied().partition(is_exceeded);
    (compared, exceeded)
}

/// Finds the reason why no stage must be named as the bottleneck: a stage that may miss the required rate has a wide interval, or may have
/// waited for a core. Noise of an emulated rate does not hide the emulated limit.
pub fn noise(ceilings: &[Ceiling], needed: Option<f64>) -> Option<Noise> {
    let (compared, _) = split_comparable(ceilings);
    // Decoding that keeps all cores busy also slows the loader, which contains it.
    let drop = largest_drop_of(&compared, needed).map(|drop| drop.name);
    let is_named = |name| drop.is_none_or(|drop| drop == name);
    // An emulated client takes processor time, also in the loader that contains it.
    let takes_real_time = |ceiling: &Ceiling| match ceiling.name {
        PipelineStage::Client => true,
        PipelineStage::Loader if ceiling.is_emulated => ceiling.is_slowed_by_others(),
        _ => !ceiling.is_emulated,
    };
    let is_candidate = |ceiling: &&&Ceiling| takes_real_time(ceiling) && ceiling.may_miss(needed);
    let mut candidates = compared.iter().filter(is_candidate);
    let is_busy = candidates.clone().any(|ceiling| {
        let is_loader = ceiling.name == PipelineStage::Loader;
        ceiling.may_wait_for_cores() && (!is_loader || is_named(ceiling.name))
    });
    let is_wide = candidates.any(|ceiling| ceiling.interval().as_ref().is_some_and(is_too_wide));
    match (is_busy, is_wide) {
        (true, _) => Some(Noise::BusyCores),
        (false, true) => Some(Noise::WideInterval),
        (false, false) => None,
    }
}

/// Finds the stage with the largest significant drop below the lowest ceiling before it and the required rate. `None` if there is no such drop,
/// or if the ceilings are too noisy.
pub fn largest_drop(ceilings: &[Ceiling], needed: Option<f64>) -> Option<LargestDrop> {
    let (compared, _) = split_comparable(ceilings);
    if noise(ceilings, needed).is_some() {
        return None;
    }
    largest_drop_of(&compared, needed)
}

fn largest_drop_of(compared: &[&Ceiling], needed: Option<f64>) -> Option<LargestDrop> {
    // The ceiling from which the next drop is measured; `None` while drops are measured from the required rate.
    let mut lowest = if needed.is_none() { compared.first().copied() } else { None };
    let base = needed.or_else(|| lowest?.samples_per_second).filter(|rate| *rate > 0.0)?;
    let mut from = base;
    let mut largest = None::<LargestDrop>;
    for &ceiling in compared {
        let is_below = match lowest {
            Some(lowest) => ceiling.is_below(lowest),
            // The required rate is exact.
            None => ceiling.interval().is_some_and(|interval| interval.high < from),
        };
        let (true, Some(to)) = (is_below, ceiling.samples_per_second) else { continue };
        let lost_percent = 100.0 * (from - to) / base;
        if largest.map_or(0.0, |drop| drop.lost_percent) < lost_percent {
            largest = Some(LargestDrop {
                name: ceiling.name,
                from_samples_per_second: from,
                to_samples_per_second: to,
                lost_percent,
            });
        }
        from = to;
        lowest = Some(ceiling);
    }
    largest
}

impl Diagnosis {
    /// Reads the diagnosis in a folder; `None` if it is missing or cannot be parsed.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(DIAGNOSIS_FILE))
    }

    /// Finds the newest diagnosis that holds for a run of `plan`, in the run's folder or next to it.
    pub fn find_for_run(run_dir: &Path, plan: &Plan) -> Option<Self> {
        let parent = run_dir.parent().into_iter();
        let siblings = parent.flat_map(|parent| folder_and_entries(parent, DIAGNOSIS_FOLDER));
        let folders = std::iter::once(run_dir.to_path_buf()).chain(siblings);
        folders
            .filter_map(|folder| Diagnosis::read(&folder))
            .filter(|diagnosis| diagnosis.holds_for(plan))
            .max_by(|a, b| a.started.cmp(&b.started))
    }

    /// Returns whether the diagnosis holds for runs of `plan`: they read the same dataset in the same way. Compute and number of steps may differ.
    fn holds_for(&self, plan: &Plan) -> bool {
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
        let all = PipelineStage::ALL.into_iter().zip(rates);
        let mut ceilings = Vec::new();
        for (name, samples_per_second) in all {
            let empty = Ceiling::not_measured(name, NotMeasured::NoFiles);
            let slices =
                samples_per_second.map(|rate| [0.99, 1.0, 1.01].map(|factor| factor * rate));
            let slices_samples_per_second = slices.into_iter().flatten().collect();
            ceilings.push(Ceiling { samples_per_second, slices_samples_per_second, ..empty });
        }
        ceilings
    }

    /// Checks the stage, the rates and the percentage of the largest drop.
    #[track_caller]
    fn check(
        rates: [Option<f64>; 5],
        needed: Option<f64>,
        expected: Option<(PipelineStage, f64, f64, f64)>,
    ) {
        let drop = largest_drop(&ceilings(rates), needed);
        let found = drop.map(|drop| {
            let LargestDrop { from_samples_per_second, to_samples_per_second, .. } = drop;
            (drop.name, from_samples_per_second, to_samples_per_second, drop.lost_percent)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_largest_drop_is_the_stage_that_loses_most_of_the_required_rate() {
        let rates = [900.0, 400.0, 300.0, 250.0, 150.0].map(Some);
        check(rates, Some(1000.0), Some((PipelineStage::Opens, 900.0, 400.0, 50.0)));
        check(rates, Some(340.0), Some((PipelineStage::Loader, 250.0, 150.0, 500.0 / 17.0)));
        // The file system alone is far too slow, so later stages do not matter.
        check(rates, Some(5000.0), Some((PipelineStage::FileSystem, 5000.0, 900.0, 82.0)));
        check(rates, Some(150.0), None);
        // Without a required rate, losses are shares of the first ceiling.
        check(rates, None, Some((PipelineStage::Opens, 900.0, 400.0, 500.0 / 9.0)));
        let unknown = [None, Some(400.0), Some(300.0), Some(100.0), Some(90.0)];
        check(unknown, Some(500.0), Some((PipelineStage::Client, 300.0, 100.0, 40.0)));
        check([None; 5], Some(500.0), None);
        check([None; 5], None, None);
    }

    /// The loader includes all stages, so a stage that was slower was measured under other conditions.
    #[test]
    fn a_stage_that_is_slower_than_the_loader_is_not_compared() {
        let mut rates = [300.0, 2000.0, 900.0, 800.0, 850.0].map(Some);
        check(rates, Some(1000.0), Some((PipelineStage::Decode, 1000.0, 900.0, 10.0)));
        let all = ceilings(rates);
        let (compared, exceeded) = split_comparable(&all);
        assert!(compared.iter().all(|ceiling| ceiling.name != PipelineStage::FileSystem));
        let exceeded_names: Vec<PipelineStage> =
            exceeded.iter().map(|ceiling| ceiling.name).collect();
        assert_eq!(exceeded_names, [PipelineStage::FileSystem]);
        // A difference within noise does not matter.
        rates[4] = Some(303.0);
        check(rates, Some(1000.0), Some((PipelineStage::FileSystem, 1000.0, 300.0, 70.0)));
    }

    #[test]
    fn noise_is_not_a_drop() {
        let mut all = ceilings([2000.0, 2000.0, 900.0, 890.0, 880.0].map(Some));
        let drop = |all: &[Ceiling], needed| largest_drop(all, needed).map(|drop| drop.name);
        assert_eq!(
            drop(&all, Some(895.0)),
            None,
            "900 is not below 895, and the others are not below 900"
        );
        assert_eq!(drop(&all, Some(1200.0)), Some(PipelineStage::Decode));
        // A single slice has no interval.
        for ceiling in &mut all {
            ceiling.slices_samples_per_second.truncate(1);
        }
        assert_eq!(drop(&all, Some(1200.0)), None);
        assert_eq!(drop(&all, None), None);
    }

    #[test]
    fn nothing_is_named_if_a_ceiling_is_too_noisy() {
        let drop = |all: &[Ceiling]| largest_drop(all, Some(1000.0)).map(|drop| drop.name);
        let mut all = ceilings([5000.0, 5000.0, 400.0, 400.0, 390.0].map(Some));
        assert_eq!(drop(&all), Some(PipelineStage::Decode));
        // The interval of opens is wide, but all of its slices reach the required rate.
        all[1].slices_samples_per_second = vec![1100.0, 5000.0, 8900.0];
        assert_eq!(drop(&all), Some(PipelineStage::Decode));
        all[1].slices_samples_per_second = vec![900.0, 5000.0, 9100.0];
        assert_eq!((drop(&all), noise(&all, Some(1000.0))), (None, Some(Noise::WideInterval)));
        all[1].is_emulated = true;
        assert_eq!(drop(&all), Some(PipelineStage::Decode));
        // Without a required rate, every ceiling counts.
        all[1].is_emulated = false;
        all[1].slices_samples_per_second = vec![4400.0, 5000.0, 5600.0];
        assert_eq!(noise(&all, None), Some(Noise::WideInterval));
    }

    #[test]
    fn nothing_is_named_if_the_cores_were_busy() {
        let check = |index: usize, own: f64, expected: Option<Noise>| {
            let mut all = ceilings([600.0, 500.0, 400.0, 400.0, 390.0].map(Some));
            all[index].cpu_busy_share = Some(0.99);
            all[index].own_cpu_share = Some(own);
            assert_eq!(noise(&all, Some(1000.0)), expected, "{index}, {own}");
            all[index].is_emulated = true;
            assert_eq!(noise(&all, Some(1000.0)), None, "{index}, {own}");
        };
        check(0, 0.9, Some(Noise::BusyCores));
        check(1, 0.1, Some(Noise::BusyCores));
        check(2, 0.1, Some(Noise::BusyCores));
        // The measurement itself decoded on all cores, which also slows the loader.
        check(2, 0.9, None);
        check(4, 0.9, None);
        // The work of a client is emulated, but takes processor time.
        let with_client = |own| {
            let mut all = ceilings([5000.0, 5000.0, 5000.0, 400.0, 5000.0].map(Some));
            all[3].is_emulated = true;
            (all[3].cpu_busy_share, all[3].own_cpu_share) = (Some(0.98), Some(own));
            assert_eq!(all[3].name, PipelineStage::Client);
            noise(&all, Some(1000.0))
        };
        assert_eq!(with_client(0.46), Some(Noise::BusyCores));
        assert_eq!(with_client(0.9), None);
        let mut all = ceilings([5000.0, 5000.0, 5000.0, 347.0, 130.0].map(Some));
        all[4].is_emulated = true;
        (all[4].cpu_busy_share, all[4].own_cpu_share) = (Some(0.99), Some(0.13));
        assert_eq!(noise(&all, Some(533.0)), Some(Noise::BusyCores));
        all[4].own_cpu_share = Some(0.9);
        assert_eq!(noise(&all, Some(533.0)), None);
    }

    #[test]
    fn a_diagnosis_is_found_for_runs_that_read_the_same_dataset_in_the_same_way() {
        let folder = tempfile::tempdir().unwrap();
        let plan = feedrate_measure::example::plan(2, 8);
        let diagnosis = |started: &str| Diagnosis {
            workload: plan.workload.clone(),
            accelerators: 2,
            needed_samples_per_second: None,
            needed_bytes_per_second: None,
            ceilings: ceilings([None; 5]),
            largest_drop: None,
            noise: None,
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
        assert_eq!(Diagnosis::find_for_run(&run_dir, &plan), None);
        for name in ["1", "2"] {
            let sibling = folder.path().join(format!("{DIAGNOSIS_FOLDER}{name}"));
            std::fs::create_dir(&sibling).unwrap();
            let text = serde_json::to_string(&diagnosis(name)).unwrap();
            std::fs::write(sibling.join(DIAGNOSIS_FILE), text).unwrap();
        }
        assert_eq!(Diagnosis::find_for_run(&run_dir, &plan), Some(diagnosis("2")));
        let mut other = plan.clone();
        other.loader.workers += 1;
        assert_eq!(Diagnosis::find_for_run(&run_dir, &other), None);
        let longer = plan.train.epochs + 1;
        other = plan.clone();
        other.train.epochs = longer;
        assert!(Diagnosis::find_for_run(&run_dir, &other).is_some());
    }
}
