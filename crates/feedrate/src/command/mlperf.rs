//! Prints MLPerf Storage's requirements on a plan, and the page of `feedrate list mlperf`. The numbers are in `feedrate_spec::mlperf`.

use crate::text;
use feedrate_report::words;
use feedrate_session::mlperf::{CheckpointRequirement, Requirement};
use feedrate_spec::bundled::{self, MlperfStatus};
use feedrate_spec::mlperf::{
    CLASSES, CLOSED_KEYS, DATASET_TO_MEMORY_MIN, DatasetRequirement, OPEN_KEYS, RULES,
    STEPS_PER_EPOCH_MIN,
    rules::{self, HOST_PROCESSES_MIN},
};
use feedrate_spec::units::{self, GIB};

/// Name of the topic.
pub(super) const TOPIC: &str = "mlperf";
/// The topic in one sentence.
pub(super) const SUMMARY: &str = "MLPerf Storage's rules on dataset size, utilisation and allowed changes, and how feedrate checks them";

/// The command whose plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedCommand {
    /// `plan`, or `run` without `--rehearse`: the page ends with the commands that run the plan and the required dataset, and rehearse a submission.
    Run,
    /// `run --rehearse`, which sizes the dataset itself.
    Rehearsal,
}

/// Follows the memory of the hosts if it was not given.
const THIS_MACHINE: &str =
    ", as this machine: `feedrate plan --memory SIZE --hosts H` plans others";

/// The lines of `feedrate plan` on MLPerf Storage. `needed_bytes_per_second` is the rate at which no accelerator waits.
pub(super) fn page(
    requirement: &Requirement,
    needed_bytes_per_second: Option<f64>,
    command: PlannedCommand,
) -> String {
    let dataset = requirement.dataset;
    let rate = needed_bytes_per_second.map_or(String::new(), |needed| {
        format!(" ({})", units::bytes_per_second(needed * requirement.au_percent / 100.0))
    });
    let required = dataset.files();
    let bytes = units::bytes(dataset.bytes(required) as u64);
    let files = units::count(requirement.files);
    let files_text = match () {
        () if requirement.is_enlarged => {
            format!("the workload has {files}, too few for one step, so this plan uses more")
        }
        () if requirement.files < required => format!("this plan has {files}, too few"),
        () if requirement.steps_per_epoch < STEPS_PER_EPOCH_MIN => {
            let steps = units::counted(requirement.steps_per_epoch, "step");
            format!("this plan has {files}, but only {steps} per epoch")
        }
        () => format!("this plan has {files}, enough"),
    };
    let assumed = match requirement.hosts.memory_bytes {
        Some(_) => "",
        None => THIS_MACHINE,
    };
    let decisive = |limit| if limit == requirement.binds() { " (decisive)" } else { "" };
    let mut rows = vec![
        (
            "MLPerf Storage",
            format!(
                "requires at least {} ({bytes}) and {} % AU{rate}; {files_text}",
                units::counted(required, "file"),
                requirement.au_percent,
            ),
        ),
        (
            "",
            format!(
                "{} for {STEPS_PER_EPOCH_MIN} steps per epoch{}; {} for {DATASET_TO_MEMORY_MIN} × memory{} ({} of {}{assumed})",
                units::count(dataset.files_by_steps()),
                decisive("steps"),
                units::count(dataset.files_by_memory()),
                decisive("memory"),
                units::counted(requirement.hosts.count.into(), "host"),
                units::bytes_binary(requirement.memory_bytes),
            ),
        ),
    ];
    rows.extend(memory_note(requirement).map(|note| ("", note)));
    rows.extend(requirement.check.as_ref().map(|check| ("", words::mlperf::planned(check))));
    let page = text::rows(&rows);
    match command {
        PlannedCommand::Run => {
            let rules = format!("For MLPerf's rules:\n  {}", requirement.command);
            // An enlarged plan is that of the rules.
            let plan = if requirement.is_enlarged {
                String::new()
            } else {
                format!("To generate and run it:\n  {}\n", requirement.plan_command)
            };
            let is_planned_for_others =
                requirement.hosts.count > 1 || requirement.hosts.memory_bytes.is_some();
            let rehearsal = to_rehearse(requirement.rehearsal.as_deref(), is_planned_for_others);
            format!("{page}\n{plan}{rules}{rehearsal}")
        }
        PlannedCommand::Rehearsal => page,
    }
}

/// The number of files for the memory in GiB, if it was given in GB and `mlpstorage` would read the same number as GiB.
fn memory_note(requirement: &Requirement) -> Option<String> {
    let gb = requirement.hosts.memory_bytes.filter(|bytes| bytes.is_multiple_of(GB))? / GB;
    let memory_bytes = gb.checked_mul(GIB as u64)?.saturating_mul(requirement.hosts.count.into());
    let files = DatasetRequirement { memory_bytes, ..requirement.dataset }.files();
    (files != requirement.dataset.files()).then(|| {
        let files = units::counted(files, "file");
        format!("as GiB, like mlpstorage's `--client-host-memory-in-gb {gb}`: {files}")
    })
}

const GB: u64 = 1_000_000_000;

/// The command of a rehearsal, which runs on this machine even if the hosts of the plan are others.
fn to_rehearse(command: Option<&str>, is_planned_for_others: bool) -> String {
    let place = if is_planned_for_others { " on one host with this machine's memory" } else { "" };
    command
        .map_or(String::new(), |command| format!("\nTo rehearse a submission{place}:\n  {command}"))
}

/// The lines of `feedrate plan` on MLPerf Storage's checkpoints.
pub(super) fn checkpoint_page(
    requirement: &CheckpointRequirement,
    command: PlannedCommand,
) -> String {
    let needed = units::bytes(requirement.host_bytes);
    let CheckpointRequirement { host_bytes, host_memory_bytes, .. } = *requirement;
    let hosts = match requirement.hosts {
        1 => "on its host".into(),
        hosts => format!("on each of {hosts} hosts"),
    };
    let has = units::bytes_binary(host_memory_bytes);
    let assumed = if requirement.host_memory_is_assumed { THIS_MACHINE } else { "" };
    let is_enough = host_bytes <= host_memory_bytes;
    let relation = if is_enough { "of" } else { "more than its" };
    let hosts_min = match requirement.hosts_min {
        _ if is_enough => String::new(),
        Some(hosts) => format!("; {} of this memory suffice", units::counted(hosts, "host")),
        None => format!(
            "; no number of hosts with more than {} ranks each has enough memory",
            HOST_PROCESSES_MIN - 1
        ),
    };
    let ranks = units::counted(requirement.host_ranks, "rank");
    let rank_bytes = units::bytes(requirement.rank_bytes_max);
    let memory = format!(
        "a checkpoint needs {needed} of memory {hosts} ({ranks} of at most {rank_bytes}), {relation} {has}{assumed}{hosts_min}"
    );
    let page =
        text::rows(&[("MLPerf Storage", memory), ("", words::mlperf::planned(&requirement.rules))]);
    match command {
        PlannedCommand::Run => {
            let is_planned_for_others =
                requirement.hosts > 1 || !requirement.host_memory_is_assumed;
            page + &to_rehearse(requirement.rehearsal.as_deref(), is_planned_for_others)
        }
        PlannedCommand::Rehearsal => page,
    }
}

/// A topic, or a word of it.
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) summary: String,
    /// The editions of a rule, and the remedy; empty for other words.
    pub(super) notes: String,
}

/// The topic, the statuses of its workloads, and its rules by their numbers.
pub(super) fn topics() -> Vec<Topic> {
    let topic = |name, summary: String| Topic { name, summary, notes: String::new() };
    let status = |name, status: MlperfStatus| {
        topic(name, format!("Status in MLPerf Storage. {}", status.sentence()))
    };
    let mut topics = vec![
        topic(TOPIC, SUMMARY.into()),
        status("official", MlperfStatus::Official),
        status("whatif", MlperfStatus::WhatIf),
        status("chosen", MlperfStatus::Chosen("the named figures")),
    ];
    for rule in &rules::TABLE {
        let (number, official) = rule.id.split_once(' ').unwrap_or((rule.id, ""));
        let editions: Vec<&str> = rule.editions.iter().map(|edition| edition.name()).collect();
        let requires = rule.requires().map_or(String::new(), |requires| format!(" ({requires})"));
        let judged = format!("{}{requires}", rule.name);
        match topics.iter_mut().find(|known| known.name == number) {
            Some(known) => {
                known.summary += &format!(", {judged}");
                if !known.notes.contains(rule.advice) {
                    known.notes += &format!("; {}", rule.advice);
                }
            }
            None => topics.push(Topic {
                name: number,
                summary: format!("Rule {official} of MLPerf Storage: {judged}"),
                notes: format!("{}; if it is broken: {}", editions.join(", "), rule.advice),
            }),
        }
    }
    topics
}

/// Rules that feedrate does not check.
const NOT_CHECKED: &str = "2.1 names of folders and files; 3.3.4, 3.3.5 and 3.3.7 number, access and equality of the hosts; 3.4.2 and 4.4.2 results on another file system; 3.6.1 code; 4.3.4 memory of the accelerators; 4.7.2 to 4.7.4 duration and remapping; runs reproducible within 5 %";

/// The page of the topic.
pub(super) fn topic() -> String {
    let au = RULES.iter().map(|rule| format!("{} {} %", rule.model, rule.au_percent));
    let au = au.collect::<Vec<_>>().join(", ");
    let steps = RULES.iter().map(|rule| {
        let steps = rule.steps.iter().map(|step| {
            let compute = format!("{} s", step.compute_s);
            let name = format!("{}_{}", rule.model, step.accelerator);
            let guess = match bundled::find(&name).and_then(|workload| workload.status) {
                Some(MlperfStatus::Chosen(_)) => " (a guess: the official one is not public)",
                _ => "",
            };
            format!("{} {compute} per batch of {}{guess}", step.accelerator, step.batch_size)
        });
        format!("{}: {}", rule.model, steps.collect::<Vec<_>>().join(", "))
    });
    let steps = steps.collect::<Vec<_>>().join("\n");
    let rules = rules::TABLE.iter().map(|rule| {
        let editions: Vec<&str> = rule.editions.iter().map(|edition| edition.name()).collect();
        format!("{}: {} ({})", rule.id, rule.name, editions.join(", "))
    });
    let rules = rules.collect::<Vec<_>>().join("\n");
    let classes = CLASSES.each_ref().map(|class| class.id);
    text::rows(&[
        (TOPIC, "MLPerf Storage's rules, releases 0.5 to 3.0, as far as feedrate checks them".into()),
        ("dataset", format!("at least {DATASET_TO_MEMORY_MIN} × the memory of all client hosts, and at least {STEPS_PER_EPOCH_MIN} steps per epoch, whichever is larger")),
        ("AU", format!("minimum of compute ÷ time without the first step (au_windowed): {au}")),
        ("may change", format!("closed division: {}", CLOSED_KEYS.join(", "))),
        ("", format!("open division: also {}", OPEN_KEYS.join(", "))),
        ("fixed", "everything else: sample size, batch size, compute time per step".into()),
        ("", steps),
        ("rules", rules),
        ("classes", format!("runs with the same official class are comparable: {}", classes.join(", "))),
        ("rounding", "as in the official tools, a dataset may be 1 % too small, and steps per epoch are rounded down; keys that these tools set are no change".into()),
        ("runs", "in a row: a warm-up and five that count (3.0), or five (1.0 and 2.0)".into()),
        ("not checked", NOT_CHECKED.into()),
        ("before", "`feedrate plan W -n N --memory SIZE --hosts H`: required rate, dataset size, command".into()),
        ("measure", "`feedrate scale W --cold --data DIR`: number of accelerators that the storage feeds".into()),
        ("check", "`feedrate analyze FOLDER`: whether results follow the rules".into()),
        ("submit", "with the official benchmark; feedrate only prepares and checks".into()),
    ])
}
