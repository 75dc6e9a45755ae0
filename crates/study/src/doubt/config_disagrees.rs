//! What was asked for is not what the results are of.

use super::{Check, Doubt, Severity, found, some_of};
use crate::case::Loaded;
use crate::import::Imported;
use crate::setting::Setting;
use std::path::Path;

/// Share by which a rate may miss samples × record length.
const RATE_TOLERANCE: f64 = 0.005;
const MIB: f64 = (1u64 << 20) as f64;

pub(super) static DOUBT: Doubt = Doubt {
    name: "config_disagrees",
    severity: Severity::Invalid,
    meaning: "Config, overrides, folder and result files say different things of the same run: the results may be of another config.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported.as_ref()?;
        let mut seen = Vec::new();
        counts(imported, &mut seen);
        steps(loaded, imported, &mut seen);
        sizes(imported, &mut seen);
        overrides(imported, &mut seen);
        folder(loaded, &mut seen);
        if seen.is_empty() {
            return None;
        }
        found(
            some_of(&seen, 5),
            "find out which of them is right before using any figure; folders may have been mixed up",
        )
    }),
};

fn counts(imported: &Imported, seen: &mut Vec<String>) {
    let Some(reported) = &imported.reported else { return };
    let config = &imported.config;
    let mut check = |what: &str, asked: Option<u64>, told: Option<u64>| {
        if let (Some(asked), Some(told)) = (asked, told)
            && asked != told
        {
            seen.push(format!("{what}: {asked} in the config, {told} in `summary.json`"));
        }
    };
    check(
        "training files",
        config.count(&["dataset.num_files_train"], 8),
        reported.count("num_files_train"),
    );
    let per_file = config.count(&["dataset.num_samples_per_file"], 1);
    check("samples per file", per_file, reported.count("num_samples_per_file"));
    if imported.trains() {
        check("epochs", config.count(&["train.epochs"], 1), reported.count("epochs"));
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

/// Files × samples ÷ (batch × ranks), rounded down, is what DLIO runs.
fn steps(loaded: &Loaded, imported: &Imported, seen: &mut Vec<String>) {
    let plan = &loaded.record.plan;
    let expected = plan.train.steps_per_epoch;
    if !imported.config.is_known() || imported.ranks.is_empty() || loaded.case.steps == 0 {
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
            "{} files × {} samples ÷ (batch {} × {} ranks) make {expected} steps an epoch, and {wrong} of {} epochs of ranks have others, as {other}",
            plan.dataset.files_train,
            plan.dataset.samples_per_file,
            plan.loader.batch_size,
            imported.ranks_expected.unwrap_or(plan.accelerators),
            counts.len(),
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
    let case = &loaded.case;
    let names = crate::case::Names::of(&case.path);
    if let (Some(named), Some(found)) = (names.processes(), case.accelerators)
        && named != found
    {
        seen.push(format!("the folder's name says {named} accelerators, the files {found}"));
    }
    let of_name = names.varied(&[], None);
    let is_named = of_name.0 != "processes" && !case.overrides.is_empty();
    let name = Path::new(&case.path).parent().and_then(Path::file_name);
    let name = name.unwrap_or_default().to_string_lossy();
    if is_named && !case.overrides.iter().any(|text| is_in_name(text, &name)) {
        seen.push(format!(
            "the folder `{name}` says {} {}, the overrides {} {}",
            of_name.0, of_name.1, case.parameter, case.value
        ));
    }
}

/// Of several overrides a folder may name some, in any way of writing them one after another.
fn is_in_name(text: &str, name: &str) -> bool {
    let Ok(Setting { key, value: Some(value) }) = Setting::parse(text) else { return false };
    let key = key.rsplit('.').next().unwrap_or_default();
    let name = name.to_ascii_lowercase().replace('=', "_");
    let part = format!("_{key}_{value}").to_ascii_lowercase();
    let ends = |at: usize| !name[at + part.len()..].starts_with(|c: char| c.is_alphanumeric());
    name.match_indices(&part).any(|(at, _)| ends(at))
}
