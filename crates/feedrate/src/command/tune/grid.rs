//! Settings that `feedrate tune` may run: all levels of the keys that a record foretells, and single changes of those that it does not.

use feedrate_results::replan::Replan;
use feedrate_session::catalog;
use feedrate_session::template::{ACCELERATORS_KEY, RunTemplate};
use feedrate_spec::plan::Plan;

/// Keys that are tuned, with the levels that are tried beside that of the workload.
pub(super) const TUNED: [TunedKey; 5] = [
    TunedKey {
        key: "reader.read_threads",
        levels: &["1", "2", "4", "8", "16", "32", "64"],
        is_foretold: true,
    },
    TunedKey { key: "reader.prefetch_size", levels: &["2", "4", "8"], is_foretold: true },
    TunedKey {
        key: "reader.transfer_size",
        levels: &["256KiB", "1MiB", "4MiB"],
        is_foretold: true,
    },
    TunedKey { key: "storage.engine", levels: &["psync", "mmap", "direct"], is_foretold: false },
    TunedKey { key: "dataset.format", levels: &["npz", "hdf5", "tfrecord"], is_foretold: false },
];

/// A key, and its levels.
pub(super) struct TunedKey {
    pub(super) key: &'static str,
    levels: &'static [&'static str],
    /// Whether a record tells what it does.
    is_foretold: bool,
}

/// A setting that may be run.
#[derive(Clone, Debug)]
pub(super) struct TuneSetting {
    pub(super) overrides: Vec<String>,
    pub(super) plan: Plan,
    pub(super) cost: SettingCost,
}

/// Order of what settings take: another dataset, threads, another engine, keys to set, memory of the loaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SettingCost {
    pub(super) is_other_dataset: bool,
    pub(super) threads: u64,
    pub(super) is_other_engine: bool,
    pub(super) keys: usize,
    pub(super) memory_bytes: u64,
}

/// All settings.
pub(super) struct TuneGrid {
    /// The workload as it is.
    pub(super) own: TuneSetting,
    /// Others that a record foretells, the cheapest first.
    pub(super) foretold: Vec<TuneSetting>,
    /// Changes of one key that no record foretells.
    pub(super) unforetold: Vec<String>,
    /// Changes of the format, of which the client's costs are not known.
    pub(super) left_out: Vec<String>,
    /// The highest utilisation that the client alone leaves an accelerator with any setting; `None` of an ideal one.
    pub(super) client_leaves_percent: Option<f64>,
}

impl TuneGrid {
    /// Settings of the keys that are `asked` for, else of all, that differ from each other and can be planned.
    pub(super) fn new(asked: &[String], of: &RunTemplate) -> Self {
        let is_asked = |key: &&TunedKey| asked.is_empty() || asked.iter().any(|of| of == key.key);
        let keys: Vec<&TunedKey> = TUNED.iter().filter(is_asked).collect();
        let plan = of.unchanged.plan.clone();
        let own =
            TuneSetting { cost: SettingCost::new(&plan, &plan, 0), plan, overrides: Vec::new() };
        let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
        for key in keys.iter().filter(|key| key.is_foretold) {
            let more = combinations.iter().flat_map(|before| {
                key.changes().map(|change| [before.clone(), vec![change]].concat())
            });
            let more: Vec<_> = more.collect();
            combinations.extend(more);
        }
        let settings =
            combinations.iter().filter_map(|of_keys| TuneSetting::new(of_keys, of, &own.plan));
        let mut settings: Vec<TuneSetting> = settings.collect();
        settings.sort_by_key(|of| of.cost);
        let mut foretold: Vec<TuneSetting> = Vec::new();
        for setting in settings {
            if !foretold.iter().chain([&own]).any(|known| known.plan.loader == setting.plan.loader)
            {
                foretold.push(setting);
            }
        }
        let changes = keys.iter().filter(|key| !key.is_foretold).flat_map(|key| key.changes());
        let is_fixed = of.unchanged.workload.dataset_foreign;
        let is_change = |change: &String| {
            let plan = of.plan(std::slice::from_ref(change));
            plan.is_some_and(|plan| {
                plan.storage.engine != own.plan.storage.engine
                    || (!is_fixed && plan.dataset != own.plan.dataset)
            })
        };
        let is_left_out = |change: &String| {
            let plan = of.plan(std::slice::from_ref(change));
            plan.is_some_and(|plan| !own.plan.knows_client_of(&plan))
        };
        let (left_out, unforetold) = changes.filter(is_change).partition(is_left_out);
        let all = foretold.iter().chain([&own]);
        let client_leaves_percent =
            all.filter_map(|setting| setting.client_leaves_percent(of)).reduce(f64::max);
        TuneGrid { own, foretold, unforetold, left_out, client_leaves_percent }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        1 + self.foretold.len() + self.unforetold.len()
    }
}

impl TunedKey {
    fn changes(&self) -> impl Iterator<Item = String> {
        self.levels.iter().map(|level| format!("{}={level}", self.key))
    }
}

impl TuneSetting {
    /// `None` where it cannot be planned.
    pub(super) fn new(overrides: &[String], of: &RunTemplate, own: &Plan) -> Option<Self> {
        let plan = of.plan(overrides)?;
        let cost = SettingCost::new(&plan, own, overrides.len());
        Some(TuneSetting { overrides: overrides.to_vec(), plan, cost })
    }

    /// The highest utilisation that the client alone leaves one accelerator.
    pub(super) fn client_leaves_percent(&self, of: &RunTemplate) -> Option<f64> {
        of.resolve(&at(&self.overrides, Some(1))).ok()?.client_leaves_percent()
    }
}

impl SettingCost {
    fn new(plan: &Plan, own: &Plan, keys: usize) -> Self {
        SettingCost {
            is_other_dataset: plan.dataset != own.dataset,
            threads: u64::from(plan.loader.workers) * u64::from(plan.accelerators),
            is_other_engine: plan.storage.engine != own.storage.engine,
            keys,
            memory_bytes: catalog::estimate(plan).loader_memory_bytes as u64,
        }
    }
}

/// Overrides, with so many accelerators.
pub(super) fn at(overrides: &[String], accelerators: Option<u64>) -> Vec<String> {
    let number = accelerators.map(|number| format!("{ACCELERATORS_KEY}{number}"));
    overrides.iter().cloned().chain(number).collect()
}
