//! Results of another config than the one beside them.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, RunDoubt, Severity};
use crate::import::{Asked, Imported};
use crate::run::Loaded;
use crate::setting::Setting;
use feedrate_measure::facts::Facts;
use feedrate_spec::units::{self, MIB};
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
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let mut seen = Vec::new();
        no_counts(imported, &mut seen);
        counts(imported, &mut seen);
        steps(loaded, imported, &mut seen);
        compute(imported, &mut seen);
        sizes(imported, &mut seen);
        overrides(imported, &mut seen);
        folder(loaded, &mut seen);
        (!seen.is_empty()).then(|| Facts::new().with("contradictions", seen))
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_good(root, ".hydra/config.yaml", "files_train: 1120", "files_train: 2240")
    },
};

/// Counts that no run can have had.
fn no_counts(imported: &Imported, seen: &mut Vec<String>) {
    let config = &imported.config;
    if !imported.trains() || imported.record.epochs.is_empty() {
        return;
    }
    let has_dims = config.has("dataset.record_dims");
    for key in COUNTS {
        let is_length = key.starts_with("dataset.record_length");
        if is_length && has_dims {
            continue;
        }
        let can_be = |number: f64| number >= 1.0 || (is_length && number > 0.0);
        let number = config.number(&[key]).filter(|number| can_be(*number) && *number < COUNT_MAX);
        if let (Some(text), None) = (config.text(&[key]), number) {
            seen.push(format!("`{key}` is `{text}` in the config, which no run has"));
        }
    }
}

fn counts(imported: &Imported, seen: &mut Vec<String>) {
    let config = &imported.config;
    let asked = Asked::new(config);
    let logged = imported.log.steps_of.map(|[.., batch]| batch);
    if let (Some(asked), Some(logged)) = (asked.batch_size, logged)
        && asked != logged
    {
        seen.push(format!("batch: {asked} in the config, {logged} in `dlio.log`"));
    }
    let Some(reported) = &imported.reported else { return };
    let mut check = |what: &str, asked: Option<u64>, told: Option<u64>| {
        if let (Some(asked), Some(told)) = (asked, told)
            && asked != told
        {
            seen.push(format!("{what}: {asked} in the config, {told} in `summary.json`"));
        }
    };
    check("training files", asked.files, reported.count("num_files_train"));
    check("samples per file", asked.samples_per_file, reported.count("num_samples_per_file"));
    if imported.trains() {
        check("epochs", asked.epochs, reported.count("epochs"));
    }
    let (last, told) = (imported.ranks.last(), reported.count("num_accelerators"));
    if let (Some(last), Some(told)) = (last, told)
        && told <= u64::from(*last)
    {
        seen.push(format!(
            "`summary.json` is of {told} accelerators, and there are files of rank {last}"
        ));
    }
    if let (Some(told), Some(logged)) = (told, imported.log.processes)
        && told != logged
    {
        seen.push(format!("`summary.json` is of {told} accelerators, `dlio.log` of {logged}"));
    }
    let listed = reported.list("train_au_percentage").map(|list| list.len() as u64);
    if let (Some(listed), Some(epochs)) = (listed, reported.count("epochs"))
        && listed != epochs
    {
        seen.push(format!("`summary.json` has {epochs} epochs and {listed} utilisations"));
    }
}

fn steps(loaded: &Loaded, imported: &Imported, seen: &mut Vec<String>) {
    let plan = &loaded.record.plan;
    let ranks = imported.ranks_expected.unwrap_or(plan.accelerators);
    let asked = Asked::new(&imported.config);
    let Asked {
        files: Some(files), samples_per_file: Some(samples), batch_size: Some(batch), ..
    } = asked
    else {
        return;
    };
    let Some(expected) = asked.steps(&imported.config, ranks) else { return };
    if imported.ranks.is_empty() || loaded.run.steps == 0 {
        return;
    }
    let counts: Vec<u64> = imported
        .record
        .epochs
        .iter()
        .flat_map(|epoch| &epoch.accelerators)
        .map(|accelerator| accelerator.steps())
        .collect();
    let wrong = counts.iter().filter(|steps| **steps != expected).count();
    if let (true, Some(other)) = (wrong > 0, counts.iter().find(|steps| **steps != expected)) {
        seen.push(format!(
            "{files} files × {samples} samples ÷ (batch {batch} × {ranks} ranks) make {expected} steps an epoch, and {wrong} of {} epochs of ranks have others, as {other}",
            counts.len(),
        ));
    }
}

fn compute(imported: &Imported, seen: &mut Vec<String>) {
    if let Some((asked_s, middle_s)) = imported.other_compute_s() {
        seen.push(format!(
            "compute of a step: {} in the config, {} in the steps",
            units::seconds(asked_s),
            units::seconds(middle_s)
        ));
    }
}

/// The summary's two rates are a record length apart.
fn sizes(imported: &Imported, seen: &mut Vec<String>) {
    let Some(reported) = &imported.reported else { return };
    let nominal = imported.record.plan.dataset.record_bytes;
    let samples = reported.metric("train_throughput_mean_samples_per_second");
    let mib = reported.metric("train_io_mean_MB_per_second");
    let (Some(samples), Some(mib)) = (samples.filter(|rate| *rate != 0.0), mib) else { return };
    let used = mib * MIB / samples;
    // Making data in the same process is a doubt of its own.
    let is_known = imported.config.is_known() && nominal > 0.0 && !imported.generates();
    if is_known && (used / nominal - 1.0).abs() > RATE_TOLERANCE {
        seen.push(format!(
            "the reported rates are {used:.0} bytes a sample apart, the config has {nominal:.0}"
        ));
    }
}

/// Hydra writes what it was given beside what came of it.
fn overrides(imported: &Imported, seen: &mut Vec<String>) {
    let given = imported.config.overrides.as_deref().unwrap_or_default();
    if !imported.config.is_known() {
        return;
    }
    for text in given {
        let set = text.trim_start_matches('+').strip_prefix("workload.");
        let Some((key, value)) = set.and_then(|set| set.split_once('=')) else { continue };
        let (key, value) = (key.trim(), value.trim().trim_matches(['\'', '"']));
        let Some(found) = imported.config.text(&[key]) else { continue };
        let number = |text: &str| text.parse::<f64>().ok();
        let same = match (number(value), number(&found)) {
            (Some(a), Some(b)) => a == b,
            _ => value.eq_ignore_ascii_case(&found),
        };
        if !same {
            seen.push(format!("the override `{text}`, and `{found}` in the config"));
        }
    }
}

/// `4_batch_size_1` holds runs of 4 accelerators with that batch size.
fn folder(loaded: &Loaded, seen: &mut Vec<String>) {
    let run = loaded.run;
    let names = crate::run::FolderNames::new(&run.path);
    if let (Some(named), Some(found)) = (names.processes(), run.accelerators)
        && named != found
    {
        seen.push(format!("the folder's name says {named} accelerators, the files {found}"));
    }
    let of_name = names.varied(&[], None);
    let is_named = of_name.0 != "processes" && !run.overrides.is_empty();
    let name = Path::new(&run.path).parent().and_then(Path::file_name);
    let name = name.unwrap_or_default().to_string_lossy();
    if is_named && !run.overrides.iter().any(|text| is_in_name(text, &name)) {
        seen.push(format!(
            "the folder `{name}` says {} {}, the overrides {} {}",
            of_name.0, of_name.1, run.parameter, run.value
        ));
    }
}

/// Whether a folder's name has the override: it may have several, one after another.
fn is_in_name(text: &str, name: &str) -> bool {
    let Ok(Setting { key, value: Some(value) }) = Setting::parse(text) else { return false };
    let key = key.rsplit('.').next().unwrap_or_default();
    let name = name.to_ascii_lowercase().replace('=', "_");
    let part = format!("_{key}_{value}").to_ascii_lowercase();
    let ends = |at: usize| !name[at + part.len()..].starts_with(|c: char| c.is_alphanumeric());
    name.match_indices(&part).any(|(at, _)| ends(at))
}
