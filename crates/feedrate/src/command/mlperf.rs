//! MLPerf Storage's rules: what they require of a plan, and the page of `feedrate list mlperf`. The numbers are those of `feedrate_spec::mlperf`.

use crate::text;
use feedrate_run::system;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, resolve_named};
use feedrate_spec::escape::bash_word;
use feedrate_spec::mlperf::{
    CLOSED_KEYS, DatasetRequirement, MEMORY_TIMES_MIN, OPEN_KEYS, RULES, STEPS_PER_EPOCH_MIN,
    find_rule,
};
use feedrate_spec::plan::Plan;
use feedrate_spec::units;
use feedrate_spec::workload::overridden_key;
use schemars::JsonSchema;
use serde::Serialize;

/// Name of the topic.
pub(super) const TOPIC: &str = "mlperf";
/// The topic in one sentence.
pub(super) const SUMMARY: &str = "MLPerf Storage's rules: the size of the dataset, the utilisation, what may be changed, and how they are checked here";

/// The key that the size of a dataset is set by.
const FILES_KEY: &str = "dataset.num_files_train";

/// The hosts that the accelerators are to run on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hosts {
    /// Memory of each; this machine's where nobody says.
    pub(super) memory_bytes: Option<u64>,
    pub(super) count: u32,
}

/// The rules held to a plan.
pub(super) struct Requirement {
    au_percent: f64,
    dataset: DatasetRequirement,
    hosts: Hosts,
    memory_bytes: u64,
    files: u64,
    /// The plan has more files than the workload, whose own are too few for one step.
    is_enlarged: bool,
    steps_per_epoch: u64,
    command: String,
}

/// MLPerf Storage's rules for a workload, and whether a plan keeps them.
#[derive(Serialize, JsonSchema)]
pub(super) struct MlperfOutput {
    /// Fewest files that the rules allow.
    files_min: u64,
    /// Their bytes.
    bytes_min: f64,
    /// Fewest files for the steps of an epoch.
    files_for_steps: u64,
    /// Fewest files for the memory of the hosts.
    files_for_memory: u64,
    /// The larger of both: `steps` or `memory`.
    binds: &'static str,
    /// Fewest steps of an epoch.
    steps_per_epoch_min: u64,
    /// Size of the dataset in memories of all hosts, at least.
    memory_times_min: u64,
    /// Memory of a host.
    host_memory_bytes: u64,
    /// Whether that is this machine's, for lack of `--memory`.
    host_memory_is_assumed: bool,
    /// Hosts.
    hosts: u32,
    /// Least utilisation.
    au_min_percent: f64,
    /// Whether the plan has enough files and steps.
    dataset_is_large_enough: bool,
    /// The command that runs the workload with enough files.
    command: String,
}

impl Requirement {
    /// `None` of a workload without rules, or of a machine whose memory is not known. `own_files` is the workload's number of files
    /// where the plan has another one.
    pub(super) fn new(
        plan: &Plan,
        request: &Request,
        hosts: Hosts,
        own_files: Option<u64>,
    ) -> Option<Self> {
        let (rule, _) = find_rule(&plan.workload, Some(plan.train.compute.mean_s()))?;
        if plan.is_checkpoint_only() {
            return None;
        }
        let is_whole = request.scale == 1.0;
        let memory_bytes = hosts.memory_bytes.or_else(system::memory_bytes)?;
        let dataset = DatasetRequirement {
            memory_bytes: memory_bytes.saturating_mul(hosts.count.into()),
            accelerators: plan.accelerators,
            batch_size: plan.loader.batch_size,
            // A shrunk plan has other files than the command makes.
            samples_per_file: if is_whole {
                plan.dataset.samples_per_file
            } else {
                rule.samples_per_file
            },
            record_bytes: if is_whole { plan.dataset.record_bytes } else { rule.record_bytes },
        };
        Some(Requirement {
            au_percent: rule.au_percent,
            dataset,
            hosts,
            memory_bytes,
            files: own_files.unwrap_or(plan.dataset.files_train),
            is_enlarged: own_files.is_some(),
            steps_per_epoch: plan.train.steps_per_epoch,
            command: command(request, dataset.files()),
        })
    }

    fn keeps(&self) -> bool {
        self.dataset.files() <= self.files && STEPS_PER_EPOCH_MIN <= self.steps_per_epoch
    }

    /// The larger of both demands.
    fn binds(&self) -> &'static str {
        if self.dataset.files_by_memory() <= self.dataset.files_by_steps() {
            "steps"
        } else {
            "memory"
        }
    }

    /// `needed_bytes_per_second` is what accelerators need that never wait.
    pub(super) fn page(&self, needed_bytes_per_second: Option<f64>) -> String {
        let of = self.dataset;
        let rate = needed_bytes_per_second.map_or(String::new(), |needed| {
            format!(" ({})", units::bytes_per_second(needed * self.au_percent / 100.0))
        });
        let [all, by_steps, by_memory] = [of.files(), of.files_by_steps(), of.files_by_memory()];
        let bytes = units::bytes(of.bytes(all) as u64);
        let files = units::count(self.files);
        let has = match () {
            () if self.is_enlarged => {
                format!("the workload has {files}, too few for one step, so this plan has more")
            }
            () if self.files < all => format!("this plan has {files}, too few"),
            () if self.steps_per_epoch < STEPS_PER_EPOCH_MIN => {
                let steps = units::counted(self.steps_per_epoch, "step");
                format!("this plan has {files}, but {steps} an epoch")
            }
            () => format!("this plan has {files}, enough"),
        };
        let assumed = match self.hosts.memory_bytes {
            Some(_) => "",
            None => ", assumed as this machine's: `--memory`, `--hosts`",
        };
        let [steps_bind, memory_binds] =
            ["steps", "memory"].map(|one| if one == self.binds() { ", which binds" } else { "" });
        let rows = [
            (
                "MLPerf Storage",
                format!(
                    "asks for at least {} ({bytes}) and {} % AU{rate}; {has}",
                    units::counted(all, "file"),
                    self.au_percent,
                ),
            ),
            (
                "",
                format!(
                    "{} for {STEPS_PER_EPOCH_MIN} steps an epoch{steps_bind}; {} for {MEMORY_TIMES_MIN} × memory{memory_binds} ({} of {}{assumed})",
                    units::count(by_steps),
                    units::count(by_memory),
                    units::counted(self.hosts.count.into(), "host"),
                    units::bytes_binary(self.memory_bytes),
                ),
            ),
        ];
        format!("{}\nTo make and run it:\n  {}", text::rows(&rows), self.command)
    }

    /// For `plan --json`.
    pub(super) fn output(&self) -> MlperfOutput {
        MlperfOutput {
            files_min: self.dataset.files(),
            bytes_min: self.dataset.bytes(self.dataset.files()),
            files_for_steps: self.dataset.files_by_steps(),
            files_for_memory: self.dataset.files_by_memory(),
            binds: self.binds(),
            steps_per_epoch_min: STEPS_PER_EPOCH_MIN,
            memory_times_min: MEMORY_TIMES_MIN,
            host_memory_bytes: self.memory_bytes,
            host_memory_is_assumed: self.hosts.memory_bytes.is_none(),
            hosts: self.hosts.count,
            au_min_percent: self.au_percent,
            dataset_is_large_enough: self.keeps(),
            command: self.command.clone(),
        }
    }
}

/// The arguments with as many files as the rules require, and the workload's own number of files, where these are too few for one step of
/// all accelerators. `None` where the user gave the size of the dataset, or another reason stops the plan.
pub(super) fn with_enough_files(request: &Request, hosts: Hosts) -> Option<(Request, u64)> {
    let is_given = request.overrides.iter().any(|given| overridden_key(given) == FILES_KEY);
    if is_given || request.scale != 1.0 {
        return None;
    }
    // Generating a dataset needs no step.
    let unread = Request { generate_only: true, ..request.clone() };
    let Resolved { workload, plan, .. } = resolve_named(&unread).ok()?;
    if workload.dataset_foreign || 0 < plan.train.steps_per_epoch {
        return None;
    }
    let files = Requirement::new(&plan, request, hosts, None)?.dataset.files();
    let mut enough = request.clone();
    enough.overrides.push(format!("{FILES_KEY}={files}"));
    Some((enough, plan.dataset.files_train))
}

/// The command that runs `request` with a dataset of `files` files.
fn command(request: &Request, files: u64) -> String {
    let mut changed = Request { scale: 1.0, ..request.clone() };
    changed.overrides.retain(|given| overridden_key(given) != FILES_KEY);
    changed.overrides.push(format!("{FILES_KEY}={files}"));
    let count = request.accelerators.map(|count| ["-n".to_string(), count.to_string()]);
    let folder = request.data.is_none().then(|| ["--data".to_string(), "DIR".to_string()]);
    let words = changed.data_arguments().into_iter().chain(count.into_iter().flatten());
    let words = words.chain(folder.into_iter().flatten());
    let words: Vec<String> = words.map(|word| bash_word(&word)).collect();
    format!("feedrate run {} --cold", words.join(" "))
}

/// All of the topic.
pub(super) fn topic() -> String {
    let au = RULES.iter().map(|rule| format!("{} {} %", rule.model, rule.au_percent));
    let au = au.collect::<Vec<_>>().join(", ");
    let steps = RULES.iter().map(|rule| {
        let steps = rule.steps.iter().map(|step| {
            let compute = units::seconds(step.compute_s);
            format!("{} {compute} a batch of {}", step.accelerator, step.batch_size)
        });
        format!("{}: {}", rule.model, steps.collect::<Vec<_>>().join(", "))
    });
    let steps = steps.collect::<Vec<_>>().join("\n");
    text::rows(&[
        (TOPIC, "MLPerf Storage's rules, releases 0.5 to 3.0, as far as feedrate holds plans and runs to them".into()),
        ("dataset", format!("at least {MEMORY_TIMES_MIN} × the memory of all client hosts, and at least {STEPS_PER_EPOCH_MIN} steps an epoch: the larger binds")),
        ("AU", format!("compute ÷ time without the first step (au_windowed), at least: {au}")),
        ("may change", format!("closed: {}", CLOSED_KEYS.join(", "))),
        ("", format!("open: these, and {}", OPEN_KEYS.join(", "))),
        ("fixed", "all else: sample size, batch and compute time of a step".into()),
        ("", steps),
        ("rounding", "published results keep the rules with 1 % less dataset, and with the steps of a number of files rounded down, as the official tools do; what these set themselves is no change".into()),
        ("runs", "five in a row, reproducible within 5 %; results on another file system (not checked here)".into()),
        ("before", "`feedrate plan W -n N --memory SIZE --hosts H`: required rate, size of the dataset, command".into()),
        ("measure", "`feedrate scale W --cold --data DIR`: accelerators that this storage feeds".into()),
        ("check", "`feedrate analyze FOLDER`: results of others, held to the rules in one line".into()),
        ("submit", "with the official benchmark: feedrate prepares and checks".into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_session::bundled::WORKLOADS;
    use feedrate_spec::workload::{Strictness, parse};

    /// The workloads that are bundled are those of the rules.
    #[test]
    fn bundled_workloads_of_mlperf_are_as_its_rules_have_them() {
        let mut found = 0;
        for bundled in WORKLOADS.iter().filter(|of| of.summary().starts_with("MLPerf Storage's")) {
            let (workload, _) = parse(bundled.name, bundled.yaml, &[], Strictness::Error).unwrap();
            let compute_s = Some(workload.train_computation_time.mean_s());
            let Some((rule, step)) = find_rule(bundled.name, compute_s) else {
                assert!(bundled.name.starts_with("llama3"), "{}", bundled.name);
                continue;
            };
            found += 1;
            let own = (workload.dataset_num_samples_per_file, workload.reader_batch_size);
            let asked = (rule.samples_per_file, step.batch_size);
            assert!(rule.formats.contains(&&*workload.dataset_format), "{}", bundled.name);
            assert_eq!(own, asked, "{}", bundled.name);
            assert_eq!(compute_s, Some(step.compute_s), "{}", bundled.name);
            assert_eq!(workload.dataset_record_length_bytes, rule.record_bytes, "{}", bundled.name);
        }
        assert_eq!(found, 14);
    }
}
