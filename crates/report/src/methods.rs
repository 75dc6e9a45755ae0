//! Describes in sentences and tables how runs were made: shared and varied settings, machines, order, replicates. States only facts from records.
//!
//! Long because it holds every sentence of the methods with what it states.

use crate::report::{Method, ReportedRun, Source};
use crate::table::ReportTable;
use crate::words::number::list;
use crate::words::schedule::schedule;
use feedrate_measure::doubt::INCOMPLETE_RUN;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED};
use feedrate_results::place::INCOMPLETE;
use feedrate_results::run::{ROWS, Reason};
use feedrate_results::setting::compare_levels;
use feedrate_spec::escape::bash_word;
use feedrate_spec::plan::{LoaderPlan, Shuffle};
use feedrate_spec::units::{self, counted};
use std::collections::{BTreeMap, BTreeSet};

type Runs<'r, 'a> = &'r [&'a ReportedRun];

/// The runs that methods describe.
struct DescribedRuns<'r, 'a> {
    /// Used runs, in the order of their start.
    used: Runs<'r, 'a>,
    /// All runs that trained, used or not.
    trained: Runs<'r, 'a>,
    sources: &'r [Source],
    /// The order that the study's CSV declares.
    declared_order: Option<&'r str>,
}

/// A name with its sentences; `None` if there is nothing to say.
type MethodRow = (&'static str, fn(&DescribedRuns) -> Option<String>);

/// All methods in reading order.
const METHODS: [MethodRow; 10] = [
    ("Runs", |runs| join([extent(runs.used)].into_iter().chain(interrupted(runs.trained)), " ")),
    ("Varied", |runs| for_workloads(runs.used, varied)),
    ("Overridden", |runs| for_workloads(runs.used, overridden)),
    ("Where", |runs| for_sources(runs.used, runs.sources, machines)),
    ("Emulated", |runs| for_sources(runs.used, runs.sources, emulated)),
    ("Design", |runs| for_sources(runs.trained, runs.sources, design)),
    ("Order", |runs| {
        let declared =
            runs.declared_order.map(|order| format!("As the study's CSV declares: {order}."));
        let ordered = for_sources(runs.trained, runs.sources, order);
        join(declared.into_iter().chain(ordered), " ")
    }),
    ("Seeds", |runs| seeds(runs.used)),
    ("Page cache", |runs| for_sources(runs.used, runs.sources, cache)),
    ("Numbers", |runs| Some(numbers(runs.used))),
];

/// The methods of the used runs. `trained`: all runs that trained, used or not; `declared_order`: the order that the study's CSV declares.
pub(super) fn methods(
    used: Runs,
    trained: Runs,
    sources: &[Source],
    declared_order: Option<&str>,
) -> Vec<Method> {
    if used.is_empty() {
        return Vec::new();
    }
    let runs = DescribedRuns { used, trained, sources, declared_order };
    let rows = METHODS.iter().filter_map(|(name, says)| {
        Some(Method { name: (*name).into(), says: says(&runs)?, commands: Vec::new() })
    });
    rows.chain([repeat_commands(used)]).collect()
}

/// Joins the parts; `None` if there are none.
fn join(parts: impl IntoIterator<Item = String>, between: &str) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().collect();
    (!parts.is_empty()).then(|| parts.join(between))
}

/// Settings that replicates share.
fn experiment(run: &ReportedRun) -> (&str, Option<u32>, &BTreeMap<String, String>) {
    (&run.run.workload, run.run.accelerators, &run.factors)
}

/// A sentence about the runs of each source, or one sentence if all are equal.
fn for_sources(runs: Runs, sources: &[Source], says: fn(Runs) -> Option<String>) -> Option<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut count = 0;
    for (index, source) in sources.iter().enumerate() {
        let source_runs: Vec<_> = runs.iter().copied().filter(|run| run.source == index).collect();
        if !source_runs.is_empty() {
            count += 1;
            found.extend(says(&source_runs).map(|says| (source.path.as_str(), says)));
        }
    }
    let (_, first) = found.first()?;
    if found.len() == count && found.iter().all(|(_, says)| says == first) {
        return Some(first.clone());
    }
    join(found.iter().map(|(path, says)| format!("`{path}`: {says}")), " ")
}

/// A sentence about each workload.
fn for_workloads(runs: Runs, says: fn(&str, Runs) -> Option<String>) -> Option<String> {
    let parts = by_workload(runs).into_iter();
    join(parts.filter_map(|(workload, runs)| says(workload, &runs)), " ")
}

/// The numbers of runs and experiments, and their first and last start.
fn extent(runs: Runs) -> String {
    let experiments: BTreeSet<_> = runs.iter().map(|run| experiment(run)).collect();
    let workloads: BTreeSet<&str> = runs.iter().map(|run| run.run.workload.as_str()).collect();
    let start = |run: Option<&&ReportedRun>| {
        let started = run.and_then(|run| run.run.started.as_deref()).unwrap_or_default();
        started.split('.').next().unwrap_or_default().replace('T', " ")
    };
    format!(
        "{} of {} ({}), started from {} to {}.",
        counted(runs.len() as u64, "run"),
        counted(experiments.len() as u64, "experiment"),
        quoted(workloads),
        start(runs.first()),
        start(runs.last())
    )
}

/// The number of runs that were interrupted; `None` if there were none.
fn interrupted(trained: Runs) -> Option<String> {
    let is_interrupted = |run: &&&ReportedRun| match &run.run.unusable {
        Some(Reason::PutAside(folder)) => folder == INCOMPLETE,
        Some(Reason::Invalid { doubt, .. }) => doubt == INCOMPLETE_RUN,
        _ => false,
    };
    let count = trained.iter().filter(is_interrupted).count();
    let were = if count == 1 { "was" } else { "were" };
    let runs = counted(count as u64, "further run");
    (0 < count).then(|| format!("{runs} {were} interrupted and not used."))
}

/// Settings that differ between runs of a workload.
fn varied(workload: &str, runs: Runs) -> Option<String> {
    let several = values(runs).into_iter().filter(|(_, values)| 1 < values.len());
    let several = join(several.map(|(key, values)| format!("`{key}`: {}", quoted(values))), "; ")?;
    Some(format!("Settings of `{workload}` that differ between runs: {several}."))
}

/// Overrides that all runs of a workload share.
fn overridden(workload: &str, runs: Runs) -> Option<String> {
    let (first, rest) = runs.split_first()?;
    let shared = first.run.overrides.iter();
    let shared = shared.filter(|text| rest.iter().all(|run| run.run.overrides.contains(text)));
    let shared = quoted(shared.map(String::as_str));
    (!shared.is_empty()).then(|| format!("All runs of `{workload}` set {shared}."))
}

/// The machines, kernels and file systems of runs.
fn machines(runs: Runs) -> Option<String> {
    let facts = ["machine", "kernel", "file system", "device", "program"].map(|key| {
        let values = runs.iter().filter_map(|run| run.run.place.get(key)).map(String::as_str);
        let values = quoted(values.collect::<BTreeSet<_>>());
        (!values.is_empty()).then(|| format!("{key} {values}"))
    });
    let sizes: BTreeSet<u64> = runs.iter().filter_map(|run| run.run.memory_bytes).collect();
    let memory = join(sizes.into_iter().map(units::bytes), ", ");
    let memory = memory.map(|sizes| format!("memory {sizes}"));
    let facts = join(facts.into_iter().flatten().chain(memory), ", ");
    let known = runs.iter().filter(|run| run.run.place.contains_key("file system")).count();
    let unknown = counted((runs.len() - known) as u64, "run");
    let unknown = match known {
        0 => Some("The file system is unknown, as these results do not name it.".to_string()),
        known if known < runs.len() => Some(format!("The file system of {unknown} is unknown.")),
        _ => None,
    };
    join(facts.map(|facts| format!("On {facts}.")).into_iter().chain(unknown), " ")
}

const BYTES_PER_SECOND: &str = "bytes/s";

/// Settings that slow the storage down, with the words before and after their value.
const EMULATED: [(&str, &str, &str); 6] = [
    ("storage.throttle_bytes_per_second", "a throttle of", BYTES_PER_SECOND),
    ("storage.throttle_latency_s", "a throttle's latency of", "s for each read"),
    ("storage.throttle_concurrency", "a throttle of", "reads at a time"),
    ("storage.delay_s", "a delay of", "s for each operation"),
    ("storage.open_delay_s", "a delay of", "s for each open"),
    ("storage.read_delay_s", "a delay of", "s for each read"),
];

fn is_zero(text: &str) -> bool {
    text.parse() == Ok(0.0)
}

/// The most important conditions of runs: the state of the page cache and emulated storage, with the number of runs if only some have a condition.
pub(super) fn conditions(runs: Runs) -> Vec<String> {
    let caches = distinct_values("train.cache", runs).into_iter().map(|cache| {
        let state = match cache {
            "cold" => "cold",
            "warm" => "warm",
            _ => "left as it was",
        };
        format!("{state}{}", in_runs("train.cache", &[cache].into(), runs))
    });
    let caches: Vec<String> = caches.collect();
    let emulated = emulation(runs);
    let cache = (!caches.is_empty()).then(|| format!("page cache {}", list(&caches)));
    let storage = join(emulated, ", ").map(|parts| format!("emulated storage: {parts}"));
    cache.into_iter().chain(storage).collect()
}

/// The number of runs with one of these values: ` in 3 of 4 runs`; empty if all runs have one.
fn in_runs(key: &str, values: &BTreeSet<&str>, runs: Runs) -> String {
    let has_value = |run: &&&ReportedRun| {
        run.run.settings.get(key).is_some_and(|value| values.contains(value.as_str()))
    };
    let count = runs.iter().filter(has_value).count();
    if count == runs.len() { String::new() } else { format!(" in {count} of {} runs", runs.len()) }
}

/// The emulation of storage in words: `a throttle of 400 MB/s`.
fn emulation(runs: Runs) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for (key, before, after) in EMULATED {
        let mut found = distinct_values(key, runs);
        found.retain(|text| !is_zero(text));
        if found.is_empty() {
            continue;
        }
        let mut values: Vec<&str> = found.iter().copied().collect();
        values.sort_by(|a, b| compare_levels(a, b));
        let rates: Option<Vec<String>> =
            values.iter().map(|text| Some(units::bytes_per_second(text.parse().ok()?))).collect();
        let says = match rates {
            Some(rates) if after == BYTES_PER_SECOND => format!("{before} {}", rates.join(" or ")),
            _ => format!("{before} {} {after}", quoted(values)),
        };
        parts.push(says + &in_runs(key, &found, runs));
    }
    let without_device: Vec<_> = runs.iter().copied().filter(|run| run.run.has_no_device).collect();
    let kinds = distinct_values("storage.kind", &without_device);
    if !kinds.is_empty() {
        let count = in_runs("storage.kind", &kinds, runs);
        parts.push(format!("storage of kind {}, which is not a device{count}", quoted(kinds)));
    }
    parts
}

fn emulated(runs: Runs) -> Option<String> {
    let parts = emulation(runs);
    let warning = "Rates and waits are not those of the device.";
    (!parts.is_empty()).then(|| format!("Storage was emulated: {}. {warning}", parts.join(", ")))
}

/// The distinct schedules of checkpoints.
fn schedules(runs: Runs) -> Vec<String> {
    let all: BTreeSet<String> =
        runs.iter().filter_map(|run| run.run.checkpoints.as_ref()).map(schedule).collect();
    all.into_iter().collect()
}

/// The studies of runs, and the number of replicates.
fn design(runs: Runs) -> Option<String> {
    let studies = runs.iter().filter_map(|run| run.run.study.as_ref());
    let names: BTreeSet<&str> = studies.clone().map(|study| study.study.as_str()).collect();
    let alone = runs.len() - studies.clone().count();
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(format!("Runs of the study {}.", quoted(names)));
        if alone > 0 {
            parts.push(format!("{} outside of a study.", counted(alone as u64, "run")));
        }
    }
    let mut sizes: BTreeMap<_, u64> = BTreeMap::new();
    runs.iter().for_each(|run| *sizes.entry(experiment(run)).or_default() += 1);
    parts.push(match (sizes.values().min()?, sizes.values().max()?) {
        (1, 1) => {
            "No experiment was repeated, so differences cannot be distinguished from noise.".into()
        }
        (a, b) if a == b => format!("Each experiment was run {a} times."),
        (a, b) => format!("Experiments were run {a} to {b} times."),
    });
    let blocks: BTreeSet<u32> = studies.filter_map(|study| study.block).collect();
    if 1 < blocks.len() {
        parts.push(format!("They were made in {} blocks.", blocks.len()));
    }
    Some(parts.join(" "))
}

/// Whether replicates were run one directly after another.
fn order(runs: Runs) -> Option<String> {
    if runs.iter().any(|run| run.run.started.is_none()) {
        return Some("The order of runs is unknown.".into());
    }
    let pairs = runs.windows(2);
    let neighbours = pairs.filter(|pair| experiment(pair[0]) == experiment(pair[1])).count();
    let experiments: BTreeSet<_> = runs.iter().map(|run| experiment(run)).collect();
    let repeats = runs.len() - experiments.len();
    Some(match (repeats, neighbours) {
        (0, _) => "Each experiment was run once, one after another.".into(),
        (repeats, n) if n == repeats && experiments.len() == 1 => {
            "All runs are of one experiment, one after another.".into()
        }
        (repeats, n) if n == repeats => {
            "All runs of an experiment were made one after another, so a drift cannot be distinguished from an effect.".into()
        }
        (_, 0) => {
            "Experiments were interleaved: no repeated run followed a run of the same experiment.".into()
        }
        (repeats, n) => {
            let repeats = counted(repeats as u64, "repeated run");
            format!("{n} of {repeats} followed a run of the same experiment, the others one of another.")
        }
    })
}

/// The seeds of sample orders, if all records were kept.
fn seeds(runs: Runs) -> Option<String> {
    let plans: Vec<_> =
        runs.iter().filter_map(|run| Some(&run.run.record.as_ref()?.plan)).collect();
    if plans.is_empty() || plans.len() < runs.len() {
        return None;
    }
    let is_shuffled = |loader: &LoaderPlan| {
        let shuffles = [loader.file_shuffle, loader.sample_shuffle];
        loader.shuffles_in_buffer || shuffles.iter().any(|&shuffle| shuffle != Shuffle::Off)
    };
    let shuffled = plans.iter().map(|plan| &plan.loader).filter(|loader| is_shuffled(loader));
    let shuffled: Vec<&LoaderPlan> = shuffled.collect();
    let subject = match plans.len() - shuffled.len() {
        0 => "Runs",
        all if all == plans.len() => {
            return Some("Samples were read in file order (no shuffle).".into());
        }
        _ => "Runs that shuffle",
    };
    let seeds: BTreeSet<u64> = shuffled.iter().map(|loader| loader.order_seed).collect();
    Some(match seeds.first() {
        Some(seed) if seeds.len() == 1 => {
            let all = if shuffled.len() == plans.len() { "All runs" } else { subject };
            format!("{all} read their samples in the order of seed `{seed}` (`train.seed`).")
        }
        _ => format!(
            "{subject} read their samples in orders of {} seeds (`train.seed`); each record has its seed as `plan.loader.order_seed`.",
            seeds.len()
        ),
    })
}

/// The state of the page cache.
fn cache(runs: Runs) -> Option<String> {
    let says = distinct_values("train.cache", runs).into_iter().map(|value| match value {
        "cold" => "The dataset was dropped from the page cache before each epoch, which was checked.",
        "warm" => "The dataset was read into the page cache before the first epoch, which was checked.",
        _ => "The page cache was left as it was: cached parts of the dataset were not read from the device.",
    });
    let says: Vec<&str> = says.collect();
    let several = if 1 < says.len() { "Runs differ in this. " } else { "" };
    (!says.is_empty()).then(|| format!("{several}{}", says.join(" ")))
}

/// The definitions of numbers and intervals.
fn numbers(runs: Runs) -> String {
    let definitions = [&AU_WINDOWED, &AU_ALL_STEPS, &AU_SUSTAINED]
        .map(|metric| format!("`{}`: {} ({}).", metric.label(), metric.definition, metric.source));
    let mut estimated = "";
    if !runs.iter().all(|run| run.run.is_from_feedrate()) {
        estimated = "DLIO counts no bytes, so the bytes that its runs read, marked ≈, are the number of samples times the generator's mean sample size. ";
    }
    format!(
        "Each run counts as one value; its epochs are repeated measures and make no interval narrower. Means are geometric for rates and arithmetic for \
         percentages; intervals are of 95 % (Student's t on the logarithmic scale for rates; for percentages with mean p, standard deviation s and \
         n values logit(p) ± t·s ÷ (√n·p·(1 − p)), the delta method); \
         p values of several comparisons are corrected by Holm's method. MB is 10^6 bytes, MiB 2^20. {estimated}{}",
        definitions.join(" ")
    )
}

/// The commands that repeat the runs.
fn repeat_commands(runs: Runs) -> Method {
    let (feedrate_runs, others): (Vec<&ReportedRun>, Vec<_>) =
        runs.iter().copied().partition(|run| run.run.is_from_feedrate());
    let mut commands = Vec::new();
    for run in &feedrate_runs {
        let setting = |key: &str| run.run.settings.get(key).map(String::as_str);
        let cache = setting("train.cache").filter(|cache| ["cold", "warm"].contains(cache));
        let cache = |option: &str| cache.map_or(String::new(), |cache| format!(" {option}{cache}"));
        let command = match &run.run.study {
            Some(study) => {
                format!("feedrate study run {}{}", bash_word(&study.study), cache("--cache "))
            }
            None => {
                let accelerators = setting("accelerators").unwrap_or("1");
                let workload = bash_word(&run.run.workload);
                format!("feedrate run {workload} -n {accelerators}{}", cache("--"))
            }
        };
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let is_of_study = feedrate_runs.iter().all(|run| run.run.study.is_some());
    let settings = if is_of_study {
        "All settings of a run are in its record, under `plan` and `study`."
    } else {
        "All settings of a run are in its record under `plan`; these commands name only the workload."
    };
    let configs = "The settings of DLIO's runs are in their folders, where Hydra wrote them (`.hydra` or `dlio_config`).";
    let says = [(settings, feedrate_runs.is_empty()), (configs, others.is_empty())];
    let says = says.into_iter().filter(|(_, has_none)| !has_none).map(|(says, _)| says.to_string());
    Method { name: "Again".into(), says: join(says, " ").unwrap_or_default(), commands }
}

/// The row for checkpoints, which shows their schedule.
const CHECKPOINTS: &str = "Checkpoints";
const CHECKPOINT_FORMAT: &str = "checkpoint.format";

/// Values of checkpoint settings that are not configured.
const OFF: [&str; 4] = ["false", "False", "null", "none"];

/// The table of settings, with a column for each workload.
pub(super) fn configuration(runs: Runs) -> ReportTable {
    let workloads = by_workload(runs);
    let known: Vec<BTreeMap<&str, Vec<&str>>> =
        workloads.values().map(|runs| values(runs)).collect();
    let is_other = |(key, values): &(&&str, &Vec<&str>)| {
        let is_on = values.iter().any(|value| !OFF.contains(value));
        key.starts_with("checkpoint.") && is_on && ROWS.iter().all(|(_, known, _)| known != *key)
    };
    let others = known.iter().flatten().filter(is_other).map(|(key, _)| *key);
    let others: BTreeSet<&str> = others.collect();
    let rows = ROWS.iter().map(|(name, key, _)| (*name, *key));
    let rows = rows.chain(others.into_iter().map(|key| (key, key))).filter_map(|(name, key)| {
        let cells = known.iter().zip(workloads.values()).map(|(settings, runs)| {
            let Some(values) = settings.get(key) else { return String::new() };
            let schedules = if name == CHECKPOINTS { schedules(runs) } else { Vec::new() };
            let values = values.join(", ");
            match (schedules.is_empty(), key == CHECKPOINT_FORMAT) {
                (true, _) => values,
                (false, true) => format!("{}; as {values}", schedules.join(" or ")),
                (false, false) => schedules.join(" or "),
            }
        });
        let cells: Vec<String> = cells.collect();
        // A throttle or delay of 0 is off.
        let is_emulated = EMULATED.iter().any(|(emulated, ..)| *emulated == key);
        let is_known = |cell: &String| !(cell.is_empty() || is_emulated && is_zero(cell));
        let row: Vec<String> =
            std::iter::once(name.to_string()).chain(cells.iter().cloned()).collect();
        cells.iter().any(is_known).then_some(row)
    });
    let columns = std::iter::once("Setting").chain(workloads.keys().copied());
    ReportTable::from_text("Workflow configuration", columns, rows)
}

/// A table of components for each distinct machine.
pub(super) fn setups(runs: Runs) -> Vec<ReportTable> {
    let mut setups: Vec<ReportTable> = Vec::new();
    for machine in runs.iter().flat_map(|run| &run.run.machines) {
        let rows = machine.components.iter().map(|(name, specification)| {
            // Free space changes with every run, and is not part of the machine.
            let kept = specification.split(", ").filter(|word| !word.ends_with(" free"));
            let size = |word| str::split_once(word, " free of ").map_or(word, |(_, size)| size);
            let kept: Vec<&str> = kept.map(size).collect();
            vec![name.clone(), kept.join(", ")]
        });
        let title = format!("Experimental setup: {}", machine.hostname);
        let table = ReportTable::from_text(title, ["Component", "Specification"], rows);
        if !setups.contains(&table) {
            setups.push(table);
        }
    }
    setups
}

fn by_workload<'a>(runs: Runs<'_, 'a>) -> BTreeMap<&'a str, Vec<&'a ReportedRun>> {
    let mut found: BTreeMap<&str, Vec<&ReportedRun>> = BTreeMap::new();
    for &run in runs {
        found.entry(&run.run.workload).or_default().push(run);
    }
    found
}

/// The distinct values of a setting in runs that have it.
fn distinct_values<'a>(key: &str, runs: Runs<'_, 'a>) -> BTreeSet<&'a str> {
    runs.iter().filter_map(|run| run.run.settings.get(key)).map(String::as_str).collect()
}

/// The distinct values of every setting. Runs without a setting count as `-`.
fn values<'a>(runs: Runs<'_, 'a>) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in runs.iter().flat_map(|run| run.run.settings.keys()) {
        values.entry(key).or_default();
    }
    for (key, values) in &mut values {
        let levels = runs.iter().map(|run| run.run.settings.get(*key).map_or("-", String::as_str));
        *values = levels.collect::<BTreeSet<_>>().into_iter().collect();
        values.sort_by(|a, b| compare_levels(a, b));
    }
    values
}

fn quoted<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::run::{CheckpointSchedule, Run};

    #[test]
    fn the_row_of_checkpoints_has_schedule_and_format() {
        let run = Run {
            workload: "w".into(),
            settings: [(CHECKPOINT_FORMAT.to_string(), "pt".to_string())].into(),
            checkpoints: Some(CheckpointSchedule {
                after_epoch: 1,
                epochs_between: 1,
                ..CheckpointSchedule::default()
            }),
            ..Run::default()
        };
        let run = ReportedRun { run, ..ReportedRun::default() };
        let table = configuration(&[&run]);
        let cells: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        assert_eq!(cells, [["Checkpoints", "after epoch 1, then after each; as pt"]]);
    }
}
