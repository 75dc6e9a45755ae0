//! MLPerf Storage's rules: what they require of a plan, and the page of `feedrate list mlperf`. The numbers are those of `feedrate_spec::mlperf`.

use crate::text;
use feedrate_session::mlperf::Requirement;
use feedrate_spec::mlperf::{CLOSED_KEYS, MEMORY_TIMES_MIN, OPEN_KEYS, RULES, STEPS_PER_EPOCH_MIN};
use feedrate_spec::units;

/// Name of the topic.
pub(super) const TOPIC: &str = "mlperf";
/// The topic in one sentence.
pub(super) const SUMMARY: &str = "MLPerf Storage's rules: the size of the dataset, the utilisation, what may be changed, and how they are checked here";

/// The lines of `feedrate plan`. `needed_bytes_per_second` is what accelerators need that never wait.
pub(super) fn page(requirement: &Requirement, needed_bytes_per_second: Option<f64>) -> String {
    let dataset = requirement.dataset;
    let rate = needed_bytes_per_second.map_or(String::new(), |needed| {
        format!(" ({})", units::bytes_per_second(needed * requirement.au_percent / 100.0))
    });
    let [all, by_steps, by_memory] =
        [dataset.files(), dataset.files_by_steps(), dataset.files_by_memory()];
    let bytes = units::bytes(dataset.bytes(all) as u64);
    let files = units::count(requirement.files);
    let has = match () {
        () if requirement.is_enlarged => {
            format!("the workload has {files}, too few for one step, so this plan has more")
        }
        () if requirement.files < all => format!("this plan has {files}, too few"),
        () if requirement.steps_per_epoch < STEPS_PER_EPOCH_MIN => {
            let steps = units::counted(requirement.steps_per_epoch, "step");
            format!("this plan has {files}, but {steps} an epoch")
        }
        () => format!("this plan has {files}, enough"),
    };
    let assumed = match requirement.hosts.memory_bytes {
        Some(_) => "",
        None => ", assumed as this machine's: `--memory`, `--hosts`",
    };
    let [steps_bind, memory_binds] = ["steps", "memory"]
        .map(|limit| if limit == requirement.binds() { ", which binds" } else { "" });
    let rows = [
        (
            "MLPerf Storage",
            format!(
                "asks for at least {} ({bytes}) and {} % AU{rate}; {has}",
                units::counted(all, "file"),
                requirement.au_percent,
            ),
        ),
        (
            "",
            format!(
                "{} for {STEPS_PER_EPOCH_MIN} steps an epoch{steps_bind}; {} for {MEMORY_TIMES_MIN} × memory{memory_binds} ({} of {}{assumed})",
                units::count(by_steps),
                units::count(by_memory),
                units::counted(requirement.hosts.count.into(), "host"),
                units::bytes_binary(requirement.memory_bytes),
            ),
        ),
    ];
    format!("{}\nTo make and run it:\n  {}", text::rows(&rows), requirement.command)
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
