//! How the runs were made, in sentences and tables: what was the same in all, what was varied, on what, in which order, how often. Nothing is
//! said that no record holds.

use super::number::by_value;
use super::settings::ROWS;
use super::{Method, Source, Table};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED};
use feedrate_measure::record::{StudyRun, System};
use feedrate_results::runs::Settings;
use feedrate_spec::units;
use std::collections::{BTreeMap, BTreeSet};

/// What a run's record tells of how it was made.
pub(super) struct Made {
    /// An index of the sources of the report.
    pub(super) source: usize,
    pub(super) workload: String,
    /// What its replicates have in common: processes and levels of factors.
    pub(super) experiment: String,
    pub(super) started: String,
    pub(super) settings: Settings,
    /// Beside its workload.
    pub(super) overrides: Vec<String>,
    pub(super) place: Settings,
    pub(super) machines: Vec<System>,
    /// Of the machine of rank 0; of DLIO's runs of all hosts.
    pub(super) memory_bytes: Option<u64>,
    pub(super) study: Option<StudyRun>,
    /// Whether feedrate made it.
    pub(super) is_own: bool,
}

/// All of it; `runs` in the order they were started, of `sources`.
pub(super) fn methods(runs: &[Made], sources: &[Source]) -> Vec<Method> {
    let of_each = |name: &str, says: fn(&[&Made]) -> Option<String>| {
        let says = of_each_source(runs, sources, says);
        (!says.is_empty()).then(|| method(name, says))
    };
    let mut methods = vec![what(runs)];
    methods.extend(varied(runs));
    methods.extend(same(runs));
    methods.extend(of_each("Where", place));
    methods.extend(of_each("Emulated", emulated));
    methods.extend(of_each("Design", design));
    methods.extend(of_each("Order", order));
    methods.extend(of_each("Page cache", cache));
    methods.extend(checkpoints(runs));
    methods.push(numbers(runs));
    methods.push(again(runs));
    methods
}

/// What is said of the runs of each source; once where it is the same of all.
fn of_each_source(
    runs: &[Made],
    sources: &[Source],
    says: fn(&[&Made]) -> Option<String>,
) -> String {
    let mut found: Vec<(&str, String)> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let of: Vec<&Made> = runs.iter().filter(|run| run.source == index).collect();
        let says = if of.is_empty() { None } else { says(&of) };
        found.extend(says.map(|says| (source.path.as_str(), says)));
    }
    let with_runs: BTreeSet<usize> = runs.iter().map(|run| run.source).collect();
    match found.split_first() {
        Some(((_, first), rest))
            if found.len() == with_runs.len() && rest.iter().all(|(_, says)| says == first) =>
        {
            first.clone()
        }
        _ => {
            let named = found.iter().map(|(path, says)| format!("Of `{path}`: {says}"));
            named.collect::<Vec<_>>().join(" ")
        }
    }
}

fn method(name: &str, says: String) -> Method {
    Method { name: name.into(), says, commands: Vec::new() }
}

fn what(runs: &[Made]) -> Method {
    let experiments: BTreeSet<(&str, &str)> =
        runs.iter().map(|run| (run.workload.as_str(), run.experiment.as_str())).collect();
    let workloads: BTreeSet<&str> = runs.iter().map(|run| run.workload.as_str()).collect();
    let day = |run: Option<&Made>| run.map_or("", |run| run.started.as_str()).replace('T', " ");
    let cut = |text: String| text.split('.').next().unwrap_or_default().to_string();
    let says = format!(
        "{} of {} ({}), started from {} to {}.",
        units::counted(runs.len() as u64, "run"),
        units::counted(experiments.len() as u64, "experiment"),
        quoted(workloads),
        cut(day(runs.first())),
        cut(day(runs.last())),
    );
    method("Runs", says)
}

/// Settings that differ between runs of a workload.
fn varied(runs: &[Made]) -> Option<Method> {
    let mut parts = Vec::new();
    for (workload, runs) in by_workload(runs) {
        let several: Vec<String> = values(&runs)
            .into_iter()
            .filter(|(_, values)| 1 < values.len())
            .map(|(key, values)| format!("`{key}`: {}", list(&values)))
            .collect();
        if !several.is_empty() {
            parts.push(format!(
                "Of `{workload}` these differ between runs: {}.",
                several.join("; ")
            ));
        }
    }
    (!parts.is_empty()).then(|| method("Varied", parts.join(" ")))
}

/// Overrides that all runs of a workload share.
fn same(runs: &[Made]) -> Option<Method> {
    let mut parts = Vec::new();
    for (workload, runs) in by_workload(runs) {
        let Some((first, rest)) = runs.split_first() else { continue };
        let is_shared = |text: &&String| rest.iter().all(|run| run.overrides.contains(text));
        let shared: Vec<&str> =
            first.overrides.iter().filter(is_shared).map(String::as_str).collect();
        if !shared.is_empty() {
            parts.push(format!("All runs of `{workload}` set {}.", list(&shared)));
        }
    }
    (!parts.is_empty()).then(|| method("Overridden", parts.join(" ")))
}

fn place(runs: &[&Made]) -> Option<String> {
    let mut parts = Vec::new();
    for key in ["machine", "kernel", "file system", "device", "program"] {
        let values: BTreeSet<&str> =
            runs.iter().filter_map(|run| run.place.get(key)).map(String::as_str).collect();
        if !values.is_empty() {
            parts.push(format!("{key} {}", quoted(values)));
        }
    }
    let memory: BTreeSet<u64> = runs.iter().filter_map(|run| run.memory_bytes).collect();
    if !memory.is_empty() {
        let sizes: Vec<String> = memory.into_iter().map(units::bytes).collect();
        parts.push(format!("memory {}", sizes.join(", ")));
    }
    let mut says = Vec::new();
    if !parts.is_empty() {
        says.push(format!("On {}.", parts.join(", ")));
    }
    let is_known = |run: &&&Made| run.place.contains_key("file system");
    match runs.iter().filter(is_known).count() {
        0 => says.push("The file system is not known: no file of these results tells it.".into()),
        known if known < runs.len() => {
            let others = units::counted((runs.len() - known) as u64, "run");
            says.push(format!("Of {others} the file system is not known."));
        }
        _ => {}
    }
    Some(says.join(" "))
}

/// What makes storage slower than it is: key, and what stands before and after its value.
const EMULATED: [(&str, &str, &str); 3] = [
    ("storage.throttle_bytes_per_second", "a throttle of", "bytes/s"),
    ("storage.throttle_latency_s", "a throttle's latency of", "s for each read"),
    ("storage.delay_s", "a delay of", "s for each read"),
];

fn is_zero(text: &str) -> bool {
    text.parse() == Ok(0.0)
}

fn emulated(runs: &[&Made]) -> Option<String> {
    let values = |key: &str| -> BTreeSet<&str> {
        let of = runs.iter().filter_map(|run| run.settings.get(key).map(String::as_str));
        of.filter(|text| !is_zero(text)).collect()
    };
    let mut parts: Vec<String> = Vec::new();
    for (key, before, after) in EMULATED {
        let found = values(key);
        if !found.is_empty() {
            parts.push(format!("{before} {} {after}", quoted(found)));
        }
    }
    let kinds = values("storage.kind").into_iter().filter(|kind| ["memory", "null"].contains(kind));
    let kinds: Vec<&str> = kinds.collect();
    if !kinds.is_empty() {
        parts.push(format!("storage of kind {}, which is no device", quoted(kinds)));
    }
    let so = "These rates and waits are not those of the device.";
    (!parts.is_empty()).then(|| format!("Storage was emulated: {}. {so}", parts.join(", ")))
}

/// Everything that was asked of checkpoints, and what is nothing or off left out.
fn checkpoints(runs: &[Made]) -> Option<Method> {
    let is_of = |key: &str| {
        ["checkpoint", "workflow.checkpoint"].contains(&key) || key.starts_with("checkpoint.")
    };
    let mut parts = Vec::new();
    for (workload, runs) in by_workload(runs) {
        let known: Vec<String> = values(&runs)
            .into_iter()
            .filter(|(key, values)| is_of(key) && !values.iter().all(|value| OFF.contains(value)))
            .map(|(key, values)| format!("`{}` {}", own_key(key, &runs), list(&values)))
            .collect();
        parts.push(match known.is_empty() {
            true => format!(
                "Of `{workload}` no setting of checkpoints is known, or none was asked for."
            ),
            false => format!("Of `{workload}`: {}.", known.join(", ")),
        });
    }
    (!parts.is_empty()).then(|| method("Checkpoints", parts.join(" ")))
}

/// Of runs of DLIO the key that DLIO has.
fn own_key<'a>(key: &'a str, runs: &[&Made]) -> &'a str {
    let row = ROWS.iter().find(|(_, plan, dlio, _)| *plan == key && !dlio.is_empty());
    row.filter(|_| !runs.iter().any(|run| run.is_own)).map_or(key, |(_, _, dlio, _)| dlio)
}

/// How settings say that something is not asked for.
const OFF: [&str; 4] = ["false", "False", "null", "none"];

fn design(runs: &[&Made]) -> Option<String> {
    let studies: BTreeSet<&str> = runs
        .iter()
        .filter_map(|run| run.study.as_ref())
        .map(|study| study.study.as_str())
        .collect();
    let alone = runs.iter().filter(|run| run.study.is_none()).count();
    let mut parts = Vec::new();
    if !studies.is_empty() {
        parts.push(format!("Runs of the study {}.", quoted(studies)));
        if alone > 0 {
            parts.push(format!("{} of no study.", units::counted(alone as u64, "run")));
        }
    }
    let mut sizes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for run in runs {
        *sizes.entry((&run.workload, &run.experiment)).or_default() += 1;
    }
    let (least, most) = (sizes.values().min()?, sizes.values().max()?);
    parts.push(match (least, most) {
        (1, 1) => "No experiment was repeated: no difference can be told from noise.".into(),
        (a, b) if a == b => format!("Each experiment was run {a} times."),
        (a, b) => format!("Experiments were run {a} to {b} times."),
    });
    let blocks: BTreeSet<u32> = runs.iter().filter_map(|run| run.study.as_ref()?.block).collect();
    if 1 < blocks.len() {
        parts.push(format!("They were made in {} blocks.", blocks.len()));
    }
    Some(parts.join(" "))
}

/// Whether replicates were made right after one another.
fn order(runs: &[&Made]) -> Option<String> {
    let same = |pair: &[&Made]| {
        (&pair[0].workload, &pair[0].experiment) == (&pair[1].workload, &pair[1].experiment)
    };
    let neighbours = runs.windows(2).filter(|pair| same(pair)).count();
    let experiments: BTreeSet<_> =
        runs.iter().map(|run| (&run.workload, &run.experiment)).collect();
    let repeats = runs.len() - experiments.len();
    let says = match (repeats, neighbours) {
        (0, _) => "Each experiment was run once, one after another.".into(),
        (repeats, n) if n == repeats && 1 < experiments.len() => {
            "All runs of an experiment were made one after another: what drifted meanwhile cannot be told from an effect.".into()
        }
        (repeats, n) => format!(
            "Experiments were interleaved: {n} of {} followed a run of the same experiment.",
            units::counted(repeats as u64, "repeated run")
        ),
    };
    Some(says)
}

fn cache(runs: &[&Made]) -> Option<String> {
    let values: BTreeSet<&str> =
        runs.iter().filter_map(|run| run.settings.get("train.cache")).map(String::as_str).collect();
    let says: Vec<&str> = values
        .iter()
        .map(|value| match *value {
            "cold" => "The dataset was dropped from the page cache before each epoch, which was checked.",
            "warm" => "The dataset was read into the page cache before the first epoch, which was checked.",
            _ => "The page cache was left as it was: what it holds of the dataset is not read from the device.",
        })
        .collect();
    let several = if 1 < values.len() { "Runs differ in this. " } else { "" };
    (!says.is_empty()).then(|| format!("{several}{}", says.join(" ")))
}

fn numbers(runs: &[Made]) -> Method {
    let definitions = [&AU_WINDOWED, &AU_ALL_STEPS, &AU_SUSTAINED]
        .map(|metric| format!("`{}`: {}", metric.label(), metric.meaning()));
    let estimated = match runs.iter().all(|run| run.is_own) {
        true => "",
        false => {
            "DLIO counts no bytes: what its runs read, marked ≈, is samples times the mean size of those that its generator draws. "
        }
    };
    let says = format!(
        "A run is one value; its epochs are repeated measures and make no interval narrower. Percentages have their mean, rates their geometric mean; \
         intervals are of 95 % (Student's t, of rates on the scale of logarithms, of percentages on that of the logit). MB is 10^6 bytes, MiB 2^20. {estimated}{}",
        definitions.join(" ")
    );
    method("Numbers", says)
}

fn again(runs: &[Made]) -> Method {
    let mut commands = Vec::new();
    for run in runs.iter().filter(|run| run.is_own) {
        let command = match &run.study {
            Some(study) => format!("feedrate study run {}", shell(&study.study)),
            None => {
                let accelerators = run.settings.get("accelerators").map_or("1", String::as_str);
                format!("feedrate run {} -n {accelerators}", shell(&run.workload))
            }
        };
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let is_own = |run: &Made| run.is_own;
    let mut says = Vec::new();
    if runs.iter().any(is_own) {
        says.push(match runs.iter().any(|run| run.is_own && run.study.is_none()) {
            true => "All settings of a run are in its record under `plan`; these commands name the workload only.",
            false => "All settings of a run are in its record, under `plan` and `study`.",
        });
    }
    if !runs.iter().all(is_own) {
        says.push("What runs of DLIO were asked for is in the folder that Hydra left in theirs (`.hydra` or `dlio_config`).");
    }
    Method { name: "Again".into(), says: says.join(" "), commands }
}

/// A word of a shell.
fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:%@=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The settings of each workload, one column each.
pub(super) fn configuration(runs: &[Made]) -> Table {
    let workloads = by_workload(runs);
    let known: Vec<BTreeMap<&str, Vec<&str>>> =
        workloads.values().map(|runs| values(runs)).collect();
    let row = |&(name, key, ..): &(&str, &str, &str, &str)| {
        let cells: Vec<String> = known
            .iter()
            .map(|of| of.get(key).map_or(String::new(), |all| all.join(", ")))
            .collect();
        // A throttle or delay of nothing is none.
        let is_of_emulated = EMULATED.iter().any(|(of, ..)| *of == key);
        let says = |cell: &String| !(cell.is_empty() || is_of_emulated && is_zero(cell));
        cells.iter().any(says).then(|| std::iter::once(name.to_string()).chain(cells).collect())
    };
    Table {
        title: "Workflow configuration".into(),
        columns: std::iter::once("Setting".to_string())
            .chain(workloads.keys().map(|name| (*name).to_string()))
            .collect(),
        rows: ROWS.iter().filter_map(row).collect(),
    }
}

/// Component and specification of each machine, once.
pub(super) fn setups(runs: &[Made]) -> Vec<Table> {
    let mut setups: Vec<Table> = Vec::new();
    for machine in runs.iter().flat_map(|run| &run.machines) {
        // Free space changes with every run, and is none of the machine's parts.
        let part = |(name, of): &(String, String)| {
            let kept: Vec<&str> = of.split(", ").filter(|word| !word.ends_with(" free")).collect();
            vec![name.clone(), kept.join(", ")]
        };
        let table = Table {
            title: format!("Experimental setup: {}", machine.hostname),
            columns: vec!["Component".into(), "Specification".into()],
            rows: machine.components.iter().map(part).collect(),
        };
        if !setups.contains(&table) {
            setups.push(table);
        }
    }
    setups
}

fn by_workload(runs: &[Made]) -> BTreeMap<&str, Vec<&Made>> {
    let mut found: BTreeMap<&str, Vec<&Made>> = BTreeMap::new();
    for run in runs {
        found.entry(&run.workload).or_default().push(run);
    }
    found
}

/// Every value of every setting. What only some runs have is `-` in the others.
fn values<'a>(runs: &[&'a Made]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let keys: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.settings.keys().map(String::as_str)).collect();
    let of = |key| {
        let values: BTreeSet<&str> =
            runs.iter().map(|run| run.settings.get(key).map_or("-", String::as_str)).collect();
        let mut values: Vec<&str> = values.into_iter().collect();
        values.sort_by(|a, b| by_value(a, b));
        (key, values)
    };
    keys.into_iter().map(of).collect()
}

fn quoted<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    list(&values.into_iter().collect::<Vec<_>>())
}

fn list(values: &[&str]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}
