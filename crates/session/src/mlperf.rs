//! Applies MLPerf Storage's rules to a plan: the required size of its dataset, or the memory that its checkpoints need. The rules are in
//! [`feedrate_spec::mlperf`].

use crate::dataset;
use crate::request::Request;
use crate::resolve::{Resolved, mlperf_status, resolve_named};
use feedrate_results::run::MlperfCheck;
use feedrate_run::system;
use feedrate_spec::bundled::MlperfStatus;
use feedrate_spec::escape::bash_command;
use feedrate_spec::mlperf::rules::HOST_PROCESSES_MIN;
use feedrate_spec::mlperf::{
    DATASET_TO_MEMORY_MIN, DatasetRequirement, STEPS_PER_EPOCH_MIN, find_rule,
};
use feedrate_spec::plan::{Cache, Estimate, Plan};
use feedrate_spec::workload::{overridden_key, override_without_secret};
use schemars::JsonSchema;
use serde::Serialize;

/// Key of the number of training files.
pub(crate) const FILES_KEY: &str = "dataset.num_files_train";

/// The hosts of the accelerators.
#[derive(Clone, Copy, Debug)]
pub struct Hosts {
    /// Memory of each host; `None` for this machine's memory.
    pub memory_bytes: Option<u64>,
    /// Number of hosts.
    pub count: u32,
}

/// The requirements of MLPerf Storage for a plan.
pub struct Requirement {
    /// Minimum utilisation.
    pub au_percent: f64,
    /// Facts that determine the required dataset.
    pub dataset: DatasetRequirement,
    /// The hosts of the accelerators.
    pub hosts: Hosts,
    /// Memory of a host.
    pub memory_bytes: u64,
    /// Number of files of the workload.
    pub files: u64,
    /// Whether the plan has more files than the workload, which has too few for one step.
    pub is_enlarged: bool,
    /// Number of steps per epoch of the plan.
    pub steps_per_epoch: u64,
    /// The command that runs the plan itself.
    pub plan_command: String,
    /// The command that runs the workload with enough files.
    pub command: String,
    /// The command that rehearses a submission; `None` for a workload that cannot be submitted.
    pub rehearsal: Option<String>,
    /// The outcomes of the rules, as far as the plan decides them.
    pub check: Option<MlperfCheck>,
}

/// The memory that the checkpoints of a plan need, and the rules of MLPerf Storage.
#[derive(Serialize, JsonSchema)]
pub struct CheckpointRequirement {
    /// Bytes of a checkpoint.
    pub bytes: u64,
    /// Bytes of the rank that writes the most.
    pub rank_bytes_max: u64,
    /// Number of ranks that write.
    pub ranks: u64,
    /// Number of ranks of the host with the most.
    pub host_ranks: u64,
    /// Memory that these ranks need for a checkpoint, if each rank holds its part.
    pub host_bytes: u64,
    /// Memory of a host.
    pub host_memory_bytes: u64,
    /// Whether the memory of a host is assumed to be this machine's, because `--memory` is not given.
    pub host_memory_is_assumed: bool,
    /// Number of hosts.
    pub hosts: u32,
    /// Minimum number of hosts with enough memory, of which each has the number of ranks that the rules require; `null` if there is none.
    pub hosts_min: Option<u64>,
    /// The command that rehearses a submission; `null` for a workload that cannot be submitted.
    pub rehearsal: Option<String>,
    /// The outcomes of the rules, as far as the plan decides them.
    pub rules: MlperfCheck,
}

impl CheckpointRequirement {
    /// Applies the rules. Returns `None` for a workload without rules, for one that trains, or if the memory is unknown.
    pub fn new(plan: &Plan, request: &Request, hosts: Hosts) -> Option<Self> {
        let checkpoint = plan.checkpoint.as_ref().filter(|_| plan.is_checkpoint_only())?;
        let memory_bytes = hosts.memory_bytes.or_else(system::memory_bytes)?;
        let ranks = checkpoint.state.writers();
        let host_ranks = ranks.div_ceil(hosts.count.into());
        Some(CheckpointRequirement {
            bytes: checkpoint.total_bytes,
            rank_bytes_max: checkpoint.rank_bytes_max,
            ranks,
            host_ranks,
            host_bytes: checkpoint.rank_bytes_max.saturating_mul(host_ranks),
            host_memory_bytes: memory_bytes,
            host_memory_is_assumed: hosts.memory_bytes.is_none(),
            hosts: hosts.count,
            hosts_min: hosts_min(ranks, checkpoint.rank_bytes_max, memory_bytes),
            rehearsal: rehearsal(request, plan, "checkpoint.checkpoint_folder=DIR"),
            rules: check(plan, request, hosts, memory_bytes)?,
        })
    }
}

/// Returns the least number of hosts with equal numbers of ranks whose memory holds them.
fn hosts_min(ranks: u64, rank_bytes: u64, memory_bytes: u64) -> Option<u64> {
    (1..=ranks / HOST_PROCESSES_MIN)
        .find(|hosts| ranks.is_multiple_of(*hosts) && ranks / hosts * rank_bytes <= memory_bytes)
}

/// Returns the command that rehearses a submission of the workload, with `folder` for its data unless the request has a folder. `None` for a
/// workload that cannot be submitted.
fn rehearsal(request: &Request, plan: &Plan, folder: &str) -> Option<String> {
    let can_submit =
        matches!(mlperf_status(request)?, MlperfStatus::Official | MlperfStatus::Chosen(_));
    let key = folder.split_once('=').map(|(key, _)| key);
    let is_given = |given: &String| key == Some(overridden_key(given));
    let has_folder = request.data.is_some()
        || request.overrides.iter().any(is_given)
        || key.is_none() && dataset::is_remote(plan);
    let folder = if has_folder { "" } else { folder };
    let more = ["--rehearse"].into_iter().chain(folder.split_whitespace());
    can_submit.then(|| run_command(&without_files(request), more))
}

/// Returns the request at full size, without the number of files.
fn without_files(request: &Request) -> Request {
    let mut changed = Request { scale: 1.0, ..request.clone() };
    changed.overrides.retain(|given| overridden_key(given) != FILES_KEY);
    changed
}

/// Judges a plan. `memory_bytes` is the memory of a host.
pub(crate) fn check(
    plan: &Plan,
    request: &Request,
    hosts: Hosts,
    memory_bytes: u64,
) -> Option<MlperfCheck> {
    let count = u64::from(hosts.count);
    MlperfCheck::for_plan(plan, &request.overrides, memory_bytes.saturating_mul(count), count)
}

/// The requirements of MLPerf Storage for a workload, and whether a plan meets them.
#[derive(Serialize, JsonSchema)]
pub struct MlperfOutput {
    /// Minimum number of files.
    pub files_min: u64,
    /// Bytes of this number of files.
    pub bytes_min: f64,
    /// Minimum number of files for the steps of an epoch.
    pub files_for_steps: u64,
    /// Minimum number of files for the memory of the hosts.
    pub files_for_memory: u64,
    /// The requirement with the larger number of files: `steps` or `memory`.
    pub binds: &'static str,
    /// Minimum number of steps per epoch.
    pub steps_per_epoch_min: u64,
    /// Minimum ratio of the dataset to the memory of all hosts.
    pub memory_times_min: u64,
    /// Memory of a host.
    pub host_memory_bytes: u64,
    /// Whether the memory of a host is assumed to be this machine's, because `--memory` is not given.
    pub host_memory_is_assumed: bool,
    /// Number of hosts.
    pub hosts: u32,
    /// Minimum utilisation.
    pub au_min_percent: f64,
    /// Whether the plan has enough files and steps.
    pub dataset_is_large_enough: bool,
    /// The command that runs the workload with enough files.
    pub command: String,
    /// The outcomes of the rules, as far as the plan decides them.
    pub rules: Option<MlperfCheck>,
}

impl Requirement {
    /// Applies the rules. Returns `None` for a workload without rules, or if the memory is unknown. `workload_files` is the workload's number
    /// of files, if the plan has another one.
    pub fn new(
        plan: &Plan,
        request: &Request,
        hosts: Hosts,
        workload_files: Option<u64>,
    ) -> Option<Self> {
        let (rule, _) = find_rule(&plan.workload, Some(plan.train.compute.mean_s()))?;
        if plan.is_checkpoint_only() {
            return None;
        }
        let is_full_scale = request.scale == 1.0;
        let memory_bytes = hosts.memory_bytes.or_else(system::memory_bytes)?;
        let dataset = DatasetRequirement {
            memory_bytes: memory_bytes.saturating_mul(hosts.count.into()),
            accelerators: plan.accelerators,
            batch_size: plan.loader.batch_size,
            // The command runs at full scale, where files may differ from the plan's.
            samples_per_file: if is_full_scale {
                plan.dataset.samples_per_file
            } else {
                rule.samples_per_file
            },
            record_bytes: if is_full_scale { plan.dataset.record_bytes } else { rule.record_bytes },
        };
        Some(Requirement {
            au_percent: rule.au_percent,
            dataset,
            hosts,
            memory_bytes,
            files: workload_files.unwrap_or(plan.dataset.files_train),
            is_enlarged: workload_files.is_some(),
            steps_per_epoch: plan.train.steps_per_epoch,
            plan_command: plan_command(request, plan),
            command: mlperf_command(request, plan, dataset.files()),
            rehearsal: rehearsal(request, plan, "--data DIR"),
            check: check(plan, request, hosts, memory_bytes),
        })
    }

    /// Returns the rate at which no accelerator waits with the required dataset; `None` without compute. If sizes are drawn, its mean is close to that
    /// of the distribution, while the few files of a plan may be larger.
    pub fn needed_bytes_per_second(&self, estimate: &Estimate) -> Option<f64> {
        let (least, most) = estimate.sample_bytes_range;
        let is_drawn = least < most && estimate.sample_bytes_mean > 0.0;
        let ratio =
            if is_drawn { self.dataset.record_bytes / estimate.sample_bytes_mean } else { 1.0 };
        Some(estimate.needed_bytes_per_second? * ratio)
    }

    /// Whether the plan has enough files and steps.
    fn is_met(&self) -> bool {
        self.dataset.files() <= self.files && STEPS_PER_EPOCH_MIN <= self.steps_per_epoch
    }

    /// Returns the requirement with the larger dataset: `steps` or `memory`.
    pub fn binds(&self) -> &'static str {
        if self.dataset.files_by_memory() <= self.dataset.files_by_steps() {
            "steps"
        } else {
            "memory"
        }
    }

    /// Returns the output for `plan --json`.
    pub fn output(&self) -> MlperfOutput {
        MlperfOutput {
            files_min: self.dataset.files(),
            bytes_min: self.dataset.bytes(self.dataset.files()),
            files_for_steps: self.dataset.files_by_steps(),
            files_for_memory: self.dataset.files_by_memory(),
            binds: self.binds(),
            steps_per_epoch_min: STEPS_PER_EPOCH_MIN,
            memory_times_min: DATASET_TO_MEMORY_MIN,
            host_memory_bytes: self.memory_bytes,
            host_memory_is_assumed: self.hosts.memory_bytes.is_none(),
            hosts: self.hosts.count,
            au_min_percent: self.au_percent,
            dataset_is_large_enough: self.is_met(),
            command: self.command.clone(),
            rules: self.check.clone(),
        }
    }
}

/// Enlarges a dataset that is too small for one step of all accelerators. Returns the request with the required number of files, and the
/// workload's number. Returns `None` if the user gave the size of the dataset, or if the plan fails for another reason.
pub fn enlarge_dataset(request: &Request, hosts: Hosts) -> Option<(Request, u64)> {
    let is_given = request.overrides.iter().any(|given| overridden_key(given) == FILES_KEY);
    if is_given || request.scale != 1.0 {
        return None;
    }
    // Only the generation of a dataset can be planned without enough samples for a step.
    let generation = Request { generate_only: true, ..request.clone() };
    let Resolved { workload, plan, .. } = resolve_named(&generation).ok()?;
    if workload.dataset_foreign || 0 < plan.train.steps_per_epoch {
        return None;
    }
    let files = Requirement::new(&plan, request, hosts, None)?.dataset.files();
    let mut enlarged = request.clone();
    enlarged.overrides.push(format!("{FILES_KEY}={files}"));
    Some((enlarged, plan.dataset.files_train))
}

/// Returns the command that runs `request` with a dataset of `files` files, without its pages in the cache where there is one.
fn mlperf_command(request: &Request, plan: &Plan, files: u64) -> String {
    let cache = if dataset::is_remote(plan) { Cache::AsIs } else { Cache::Cold };
    let mut changed = Request { cache, ..without_files(request) };
    changed.overrides.push(format!("{FILES_KEY}={files}"));
    plan_command(&changed, plan)
}

/// Returns the command that runs `request`, with a folder for its data if it needs one.
fn plan_command(request: &Request, plan: &Plan) -> String {
    let is_in_folder = !dataset::is_remote(plan) && request.data.is_none();
    let folder = is_in_folder.then_some(["--data", "DIR"]);
    run_command(request, folder.into_iter().flatten().chain(request.cache_option()))
}

/// Returns the command `feedrate run` for `request` without secrets, followed by `more`.
fn run_command<'a>(request: &Request, more: impl IntoIterator<Item = &'a str>) -> String {
    let mut shown = request.clone();
    shown.overrides.iter_mut().for_each(|given| *given = override_without_secret(given));
    let mut words = vec!["feedrate".to_string(), "run".to_string()];
    words.extend(shown.data_arguments());
    let count = request.accelerators.iter();
    words.extend(count.flat_map(|count| ["-n".to_string(), count.to_string()]));
    words.extend(more.into_iter().map(str::to_string));
    bash_command(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::result_folder::hydra_text;
    use feedrate_measure::dlio::{self, Invocation};
    use feedrate_measure::record::file::NewFiles;
    use feedrate_measure::record::{RECORD_VERSION, Record, file};
    use feedrate_results::load_run;
    use feedrate_spec::bundled::{Bundled, WORKLOADS};
    use feedrate_spec::workload::{Strictness, parse};

    #[test]
    fn bundled_workloads_of_mlperf_match_the_rules() {
        let mut found = 0;
        let is_mlperf = |bundled: &&Bundled| bundled.summary().starts_with("MLPerf Storage's");
        for bundled in WORKLOADS.iter().filter(is_mlperf) {
            let (workload, _) = parse(bundled.name, bundled.yaml, &[], Strictness::Error).unwrap();
            let compute_s = Some(workload.train_computation_time.mean_s());
            let Some((rule, step)) = find_rule(bundled.name, compute_s) else {
                assert!(bundled.name.starts_with("llama3"), "{}", bundled.name);
                continue;
            };
            found += 1;
            let bundled_sizes = (workload.dataset_num_samples_per_file, workload.reader_batch_size);
            let required_sizes = (rule.samples_per_file, step.batch_size);
            assert!(rule.formats.contains(&&*workload.dataset_format), "{}", bundled.name);
            assert_eq!(bundled_sizes, required_sizes, "{}", bundled.name);
            assert_eq!(compute_s, Some(step.compute_s), "{}", bundled.name);
            assert_eq!(workload.dataset_record_length_bytes, rule.record_bytes, "{}", bundled.name);
        }
        assert_eq!(found, 17);
    }

    /// Batch × bytes ÷ compute time. Sizes of unet3d and cosmoflow vary, so their mean needs many files.
    #[test]
    fn bundled_workloads_of_mlperf_need_the_official_rates() {
        let mut found = 0;
        for bundled in WORKLOADS.iter().filter(|bundled| bundled.status.is_some()) {
            let mut request = Request::for_workload(bundled.name);
            if bundled.name.starts_with("unet3d") {
                request.overrides.push(format!("{FILES_KEY}=28000"));
            }
            let Resolved { plan, .. } = resolve_named(&request).unwrap();
            let compute_s = Some(plan.train.compute.mean_s());
            let Some((rule, step)) = find_rule(bundled.name, compute_s) else { continue };
            found += 1;
            let needed = catalog::estimate(&plan).needed_bytes_per_second.unwrap();
            let rate = needed / f64::from(plan.accelerators);
            let official = step.batch_size as f64 * rule.record_bytes / step.compute_s;
            let name = bundled.name;
            assert!((rate / official - 1.0).abs() < 0.01, "{name}: {rate} instead of {official}");
        }
        assert!(14 <= found, "{found}");
        for (name, official) in [
            ("unet3d_b200", 6.3e9),
            ("retinanet_b200", 163e6),
            ("flux_b200", 76.9e6),
            ("dlrm_b200", 33.2e9),
        ] {
            let (rule, step) = find_rule(name, None).unwrap();
            let rate = step.batch_size as f64 * rule.record_bytes / step.compute_s;
            assert!((rate / official - 1.0).abs() < 0.01, "{name}: {rate}");
        }
    }

    /// Otherwise every run of such a workload would be invalid.
    #[test]
    fn no_record_contradicts_the_settings_written_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut runs = 0..;
        let mut check = |name: &str, overrides: &[&str], scale: f64| {
            let mut request = Request { scale, ..Request::for_workload(name) };
            request.overrides = overrides.iter().map(ToString::to_string).collect();
            let Resolved { plan, workload, .. } = resolve_named(&request).unwrap();
            let run = folder.path().join(format!("{:?}", runs.next()));
            let mut typed = vec![format!("workload={name}")];
            typed.extend(request.overrides);
            let hydra = hydra_text(&typed, &[], name, &workload, &run, ".hydra");
            let invocation =
                Invocation { subfolder: ".hydra".into(), hydra, ..Invocation::default() };
            std::fs::create_dir_all(&run).unwrap();
            let record = Record { version: RECORD_VERSION, plan, ..Record::default() };
            let mut files = NewFiles::new(&run);
            file::write_to(&mut files, &record).unwrap();
            dlio::write_log(&mut files, &record, &invocation).unwrap();
            files.publish().unwrap();
            assert!(run.join(".hydra/config.yaml").is_file());
            let found = load_run(&run).unwrap().contradictions;
            assert_eq!(found, [], "{name} {overrides:?} {scale}");
        };
        for bundled in WORKLOADS {
            let files = "dataset.num_files_train=28000";
            let is_sized = bundled.status.is_some() && !bundled.name.starts_with("llama3");
            check(bundled.name, &[files][..usize::from(is_sized)], 1.0);
            if is_sized {
                check(bundled.name, &[files], 0.5);
            }
        }
        let long = format!("dataset.data_folder='{}'", "a folder ".repeat(20));
        let secret = "storage.storage_options={key: '${oc.env:PATH}'}";
        for typed in [
            &["reader.batch_size=1_2", "train.computation_time=4.755e-2"][..],
            &["reader.batch_size=0x18", "reader.sample_shuffle=off"],
            &["data_reader.batch_size=12", "dataset.record_length=1000"],
            &["++workload.reader={batch_size: 12, read_threads: 3}"],
            &["~train.epochs", "train.seed=9007199254740993"],
            &["~workload.reader.batch_size"],
            &["dataset.file_prefix=a\\=b", "reader.read_threads=0"],
            &["dataset.data_folder='it\\'s'"],
            &[&long],
            &["dataset.data_folder='\\${x}'"],
            &["train.computation_time={type: normal, mean: 0.1, stdev: 0.01}"],
            &["train.computation_time_stdev=0.01"],
            &["reader.batch_size='${workload.reader.read_threads}'"],
            &[secret, "checkpoint.checkpoint_folder='${oc.env:PATH}'"],
            &["accelerators=2", "dataset.scaling=weak"],
        ] {
            let typed = [&["dataset.num_files_train=28000"], typed].concat();
            check("retinanet_b200", &typed, 1.0);
        }
    }

    #[test]
    fn the_least_number_of_hosts_holds_equal_parts() {
        // 512 ranks of 13.2 GB: 20 fit into 256 GiB, so 32 hosts have 16 each.
        assert_eq!(hosts_min(512, 13_200_000_000, 256 << 30), Some(32));
        assert_eq!(hosts_min(8, 1, 1 << 30), Some(1));
        assert_eq!(hosts_min(8, 1 << 40, 1 << 30), None);
    }

    #[test]
    fn a_plan_of_checkpoints_has_the_memory_of_each_host_and_the_rules() {
        let check = |hosts: u32, memory_bytes: u64, overrides: &[&str]| {
            let mut request = Request::for_workload("llama3_70b");
            request.overrides = overrides.iter().map(ToString::to_string).collect();
            let Resolved { plan, .. } = resolve_named(&request).unwrap();
            let hosts = Hosts { memory_bytes: Some(memory_bytes), count: hosts };
            let found = CheckpointRequirement::new(&plan, &request, hosts).unwrap();
            let rules = found.rules.rules.iter().filter(|rule| rule.keeps != Some(true));
            let rules: Vec<_> = rules.map(|rule| (rule.name, rule.keeps)).collect();
            (found.host_ranks, found.host_bytes, rules)
        };
        // 64 ranks of 15,287,602,688 B; ten checkpoints of 978.4 GB are 4.45 times the memory.
        let expected = (8, 8 * 15_287_602_688, Vec::new());
        assert_eq!(check(8, 256 << 30, &[]), expected);
        let expected = (3, 3 * 15_287_602_688, vec![("processes per host", Some(false))]);
        assert_eq!(check(22, 64 << 30, &[]), expected);
        let (.., rules) = check(8, 1 << 40, &["checkpoint.fsync=false"]);
        let broken = ["fsync", "changed settings"].map(|name| (name, Some(false)));
        assert_eq!(rules, [&[("written ÷ memory", None)], &broken[..]].concat());
    }
}
