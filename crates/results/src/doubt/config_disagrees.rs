//! Results of another config than the one beside them.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::{AskedCounts, Config, Imported};
use crate::run::{Activity, FolderNames, Run};
use crate::setting::Setting;
use feedrate_spec::units;
use std::path::Path;

/// No run has less than one of these; of the record's length any part will do.
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

/// Share by which a rate may miss samples × record length.
const RATE_TOLERANCE: f64 = 0.005;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "config_disagrees",
        severity: Severity::Invalid,
        meaning: "Config, overrides, folder and result files say different things of the same run: the results may be of another config.",
        evidence: "{contradictions:.5}",
        advice: "find out which of them is right before using any figure; folders may have been mixed up",
    },
    check: Check::OfImport(|run, imported| {
        let config = &imported.config;
        let mut seen = impossible_counts(imported);
        seen.extend(other_counts(imported));
        seen.extend(other_steps(run, imported));
        seen.extend(imported.other_compute_s().map(|(asked_s, middle_s)| {
            let [asked, middle] = [asked_s, middle_s].map(units::seconds);
            format!("compute of a step: {asked} in the config, {middle} in the steps")
        }));
        seen.extend(other_sizes(imported));
        let overrides = config.overrides.iter().flatten();
        seen.extend(overrides.filter_map(|text| lost_override(config, text)));
        seen.extend(other_folder(run));
        Facts::listed("contradictions", seen)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good(root, ".hydra/config.yaml", "files_train: 1120", "files_train: 2240")
    },
};

/// Counts that no run can have had.
fn impossible_counts(imported: &Imported) -> Vec<String> {
    let config = &imported.config;
    if !imported.trains() || imported.epochs().is_empty() {
        return Vec::new();
    }
    let impossible = COUNTS.iter().filter_map(|key| {
        let is_length = key.starts_with("dataset.record_length");
        let least = if is_length { f64::MIN_POSITIVE } else { 1.0 };
        let number = config.number(&[key]);
        let is_possible = number.is_some_and(|number| (least..COUNT_MAX).contains(&number))
            || (is_length && config.has("dataset.record_dims"));
        let text = config.text(&[key])?;
        (!is_possible).then(|| format!("`{key}` is `{text}` in the config, which no run has"))
    });
    impossible.collect()
}

/// Counts that two files tell differently.
fn other_counts(imported: &Imported) -> Vec<String> {
    let asked = AskedCounts::new(&imported.config);
    let reported = imported.reported.as_ref();
    let told = |key: &str| reported.and_then(|reported| reported.count(key));
    let epochs = if imported.trains() { asked.epochs } else { None };
    let logged = imported.log.steps_of.map(|[.., batch]| batch);
    let summary = "summary.json";
    let mut seen = Vec::new();
    for (what, asked, told, file) in [
        ("batch", asked.batch_size, logged, "dlio.log"),
        ("training files", asked.files, told("num_files_train"), summary),
        ("samples per file", asked.samples_per_file, told("num_samples_per_file"), summary),
        ("epochs", epochs, told("epochs"), summary),
    ] {
        if let (Some(asked), Some(told)) = (asked, told)
            && asked != told
        {
            seen.push(format!("{what}: {asked} in the config, {told} in `{file}`"));
        }
    }
    if let Some(told) = told("num_accelerators") {
        let of = format!("`summary.json` is of {told} accelerators");
        let last = imported.ranks.last().filter(|last| told <= u64::from(**last));
        seen.extend(last.map(|last| format!("{of}, and there are files of rank {last}")));
        let logged = imported.log.processes.filter(|logged| *logged != told);
        seen.extend(logged.map(|logged| format!("{of}, `dlio.log` of {logged}")));
    }
    let listed = reported.and_then(|reported| reported.list("train_au_percentage"));
    if let (Some(listed), Some(epochs)) = (listed.map(|list| list.len() as u64), told("epochs"))
        && listed != epochs
    {
        seen.push(format!("`summary.json` has {epochs} epochs and {listed} utilisations"));
    }
    seen
}

fn other_steps(run: &Run, imported: &Imported) -> Option<String> {
    let ranks = imported.ranks_expected.unwrap_or(imported.plan.accelerators);
    let asked = AskedCounts::new(&imported.config);
    let (files, samples, batch) = (asked.files?, asked.samples_per_file?, asked.batch_size?);
    let expected = asked.steps(&imported.config, ranks)?;
    let accelerators = imported.epochs().iter().flat_map(|epoch| &epoch.accelerators);
    let counts: Vec<u64> = accelerators.map(|accelerator| accelerator.steps()).collect();
    let wrong: Vec<&u64> = counts.iter().filter(|steps| **steps != expected).collect();
    let other = wrong.first()?;
    let told = format!(
        "{files} files × {samples} samples ÷ (batch {batch} × {ranks} ranks) make {expected} steps an epoch, and {} of {} epochs of ranks have others, as {other}",
        wrong.len(),
        counts.len(),
    );
    (run.steps > 0).then_some(told)
}

/// The summary's two rates are a record length apart.
fn other_sizes(imported: &Imported) -> Option<String> {
    let nominal = imported.plan.dataset.record_bytes;
    let used = imported.reported.as_ref()?.sample_bytes()?;
    // Making data in the same process is a doubt of its own.
    let is_known = imported.config.is_known() && nominal > 0.0 && !imported.generates();
    (is_known && (used / nominal - 1.0).abs() > RATE_TOLERANCE).then(|| {
        format!(
            "the reported rates are {used:.0} bytes a sample apart, the config has {nominal:.0}"
        )
    })
}

/// Hydra writes what it was given beside what came of it.
fn lost_override(config: &Config, text: &str) -> Option<String> {
    let (key, value) = text.trim_start_matches('+').strip_prefix("workload.")?.split_once('=')?;
    let value = value.trim().trim_matches(['\'', '"']);
    let found = config.text(&[key.trim()])?;
    let is_same = match (value.parse::<f64>(), found.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => value.eq_ignore_ascii_case(&found),
    };
    (!is_same).then(|| format!("the override `{text}`, and `{found}` in the config"))
}

/// `4_batch_size_1` holds runs of 4 accelerators with that batch size.
fn other_folder(run: &Run) -> Vec<String> {
    let names = FolderNames::new(&run.path);
    let mut seen = Vec::new();
    // Any number of ranks makes the dataset of an experiment.
    if let (Some(named), Some(found)) = (names.processes(), run.accelerators)
        && named != found
        && run.activity != Activity::Generation
    {
        seen.push(format!("the folder's name says {named} accelerators, the files {found}"));
    }
    let (parameter, value) = names.varied(&[], &[], None);
    let name = run.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let is_named = parameter != "processes" && !run.overrides.is_empty();
    if is_named && !run.overrides.iter().any(|text| is_in_name(text, &name)) {
        seen.push(format!(
            "the folder `{name}` says {parameter} {value}, the overrides {} {}",
            run.parameter, run.value
        ));
    }
    seen
}

/// Whether a folder's name has the override: it may have several, one after another.
fn is_in_name(text: &str, name: &str) -> bool {
    let Ok(Setting { key, value: Some(value) }) = Setting::parse(text) else { return false };
    let key = key.rsplit('.').next().unwrap_or_default();
    let name = name.to_ascii_lowercase().replace('=', "_");
    let part = format!("_{key}_{value}").to_ascii_lowercase();
    let mut behind = name.match_indices(&part).map(|(at, _)| &name[at + part.len()..]);
    behind.any(|rest| !rest.starts_with(char::is_alphanumeric))
}
