//! The config contradicts the results next to it.

#[cfg(test)]
use super::tests;
use super::{Check, Facts, RunDoubt};
use crate::import::{ConfiguredCounts, Imported};
use crate::run::{FolderNames, Run};
use crate::setting::Setting;
use feedrate_measure::doubt::CONFIG_DISAGREES_KIND;
use feedrate_spec::units;
use std::path::Path;

/// Counts that must be at least 1 in every run. Record lengths only need to be positive.
const COUNTS: [&str; 7] = [
    "dataset.num_files_train",
    "dataset.num_samples_per_file",
    "dataset.record_length_bytes",
    "dataset.record_length",
    "data_reader.batch_size",
    "reader.batch_size",
    "train.epochs",
];
const COUNT_MAX: f64 = 1e15;

/// Allowed relative difference between the sample size computed from the reported rates and the configured record length.
const RATE_TOLERANCE: f64 = 0.005;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: CONFIG_DISAGREES_KIND,
    check: Check::Import(|run, imported| {
        let mut contradictions = impossible_counts(imported);
        contradictions.extend(different_counts(imported));
        contradictions.extend(different_steps(run, imported));
        contradictions.extend(imported.mismatched_compute().map(|times| {
            let configured = units::seconds(times.configured_s);
            let median = units::seconds(times.median_s);
            format!("compute of a step: {configured} in the config, {median} in the steps")
        }));
        contradictions.extend(different_sample_size(imported));
        contradictions.extend(imported.machine_contradictions.iter().cloned());
        contradictions.extend(different_folder_name(run));
        Facts::from_list("contradictions", contradictions)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good_run(root, ".hydra/config.yaml", "files_train: 1120", "files_train: 2240")
    },
};

/// Lists configured counts that no run can have.
fn impossible_counts(imported: &Imported) -> Vec<String> {
    let config = &imported.config;
    if !imported.trains() || imported.epochs().is_empty() {
        return Vec::new();
    }
    let impossible = COUNTS.iter().filter_map(|key| {
        let is_length = key.starts_with("dataset.record_length");
        let min = if is_length { f64::MIN_POSITIVE } else { 1.0 };
        let number = config.number(&[key]);
        let is_possible = number.is_some_and(|number| (min..COUNT_MAX).contains(&number))
            || (is_length && config.has("dataset.record_dims"));
        let text = config.text(&[key])?;
        (!is_possible).then(|| format!("`{key}` is `{text}` in the config, which is impossible"))
    });
    impossible.collect()
}

/// Lists counts that differ between two files.
fn different_counts(imported: &Imported) -> Vec<String> {
    let configured = ConfiguredCounts::new(&imported.config);
    let summary = imported.reported.as_ref();
    let reported = |key: &str| summary.and_then(|summary| summary.count(key));
    // Checkpoints alone need no files, so a config without their number does not mean DLIO's default.
    let trained = |count: Option<u64>| count.filter(|_| imported.trains());
    let logged_batch = imported.log.step_counts.map(|counts| counts.batch_size);
    let summary_name = "summary.json";
    let comparisons = [
        ("batch", configured.batch_size, logged_batch, "dlio.log"),
        ("training files", trained(configured.files), reported("num_files_train"), summary_name),
        (
            "samples per file",
            trained(configured.samples_per_file),
            reported("num_samples_per_file"),
            summary_name,
        ),
        ("epochs", trained(configured.epochs), reported("epochs"), summary_name),
    ];
    let mut differences = Vec::new();
    for (quantity, configured, actual, file) in comparisons {
        if let (Some(configured), Some(actual)) = (configured, actual)
            && configured != actual
        {
            differences
                .push(format!("{quantity}: {configured} in the config, {actual} in `{file}`"));
        }
    }
    if let Some(accelerators) = reported("num_accelerators") {
        let prefix = format!("`summary.json` has {accelerators} accelerators");
        let last_rank = imported.ranks.last().filter(|rank| accelerators <= u64::from(**rank));
        differences
            .extend(last_rank.map(|rank| format!("{prefix}, but there are files of rank {rank}")));
        let processes = imported.log.processes.filter(|processes| *processes != accelerators);
        differences
            .extend(processes.map(|processes| format!("{prefix}, but `dlio.log` has {processes}")));
    }
    let utilisations = summary.and_then(|summary| summary.list("train_au_percentage"));
    let utilisations = utilisations.map(|list| list.len() as u64);
    if let (Some(utilisations), Some(epochs)) = (utilisations, reported("epochs"))
        && utilisations != epochs
    {
        differences
            .push(format!("`summary.json` has {epochs} epochs but {utilisations} utilisations"));
    }
    differences
}

/// Describes epochs whose number of steps differs from the configured one.
fn different_steps(run: &Run, imported: &Imported) -> Option<String> {
    if run.steps == 0 {
        return None;
    }
    let ranks = imported.ranks_expected.unwrap_or(imported.plan.accelerators);
    let configured = ConfiguredCounts::new(&imported.config);
    let files = configured.files?;
    let samples = configured.samples_per_file?;
    let batch = configured.batch_size?;
    let expected = configured.steps(&imported.config, ranks)?;
    let accelerators = imported.epochs().iter().flat_map(|epoch| &epoch.accelerators);
    let counts: Vec<u64> = accelerators.map(|accelerator| accelerator.steps()).collect();
    let different: Vec<&u64> = counts.iter().filter(|steps| **steps != expected).collect();
    let example = different.first()?;
    Some(format!(
        "{files} files × {samples} samples ÷ (batch {batch} × {ranks} ranks) give {expected} steps per epoch, but {} of {} epochs of ranks have another number, such as {example}",
        different.len(),
        counts.len(),
    ))
}

/// Compares the configured record length with the ratio of the summary's throughputs in bytes and in samples.
fn different_sample_size(imported: &Imported) -> Option<String> {
    let configured = imported.plan.dataset.record_bytes;
    let reported = imported.reported.as_ref()?.sample_bytes()?;
    // The doubt `generated_in_same_process` covers runs that generate their dataset.
    let is_known = imported.config.is_known() && configured > 0.0 && !imported.generates();
    (is_known && (reported / configured - 1.0).abs() > RATE_TOLERANCE).then(|| {
        format!(
            "the reported rates imply samples of {reported:.0} bytes, but the config has {configured:.0}"
        )
    })
}

/// Compares the run with the settings in the name of its folder: `4_batch_size_1` should have that batch size. The number before them may be the
/// number of a job or of an experiment.
fn different_folder_name(run: &Run) -> Option<String> {
    let names = FolderNames::new(&run.path);
    let (parameter, value) = names.varied_parameters(&[], &[], None);
    let name = run.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let is_named = parameter != "processes" && !run.overrides.is_empty();
    (is_named && !run.overrides.iter().any(|text| is_in_name(text, &name))).then(|| {
        format!(
            "the folder `{name}` says {parameter} {value}, the overrides say {} {}",
            run.parameter, run.value
        )
    })
}

/// Returns whether a folder's name contains an override. A name may contain several overrides.
fn is_in_name(text: &str, name: &str) -> bool {
    let Ok(Setting { key, value: Some(value) }) = Setting::parse(text) else { return false };
    let leaf = key.rsplit('.').next().unwrap_or_default();
    let part = format!("_{leaf}_{value}").to_ascii_lowercase();
    let name = name.to_ascii_lowercase().replace('=', "_");
    let mut rests = name.match_indices(&part).map(|(start, _)| &name[start + part.len()..]);
    rests.any(|rest| !rest.starts_with(char::is_alphanumeric))
}
