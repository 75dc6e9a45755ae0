//! Names and numbers of runs within an index. Runs of the same name that are not replicates, because of an edited config or another machine, are
//! distinguished: their differences become varied parameters. Replicates and the order of execution are numbered.

use crate::relations::most_common;
use crate::run::{FolderNames, Run, factor, group_runs};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of differences that are named. Runs with more differences get a number instead.
const NAMED_MAX: usize = 3;

/// Factors and levels that distinguish a run from other runs of the same name.
type Differences = Vec<(String, String)>;

/// Adds differences in settings or host to the varied parameters of runs with the same name. Runs with the usual settings of their workload stay
/// unchanged.
pub(super) fn distinguish(runs: &mut [Run]) {
    let mut changes: Vec<(usize, Differences)> = Vec::new();
    let studies = group_runs(runs, Run::is_result, Run::study_key);
    for members in group_runs(runs, Run::is_result, Run::experiment_key).into_values() {
        let study = &studies[&runs[members[0]].study_key()];
        let keys = differing_keys(runs, &members);
        let usual: BTreeMap<&str, Option<String>> = keys
            .iter()
            .map(|key| {
                let usual = majority_value(runs, study, key);
                (&**key, usual.or_else(|| majority_value(runs, &members, key)))
            })
            .collect();
        let all: Vec<Differences> =
            members.iter().map(|&index| unusual_levels(&runs[index], &usual)).collect();
        let distinct: BTreeSet<&Differences> = all.iter().collect();
        for (&index, differences) in members.iter().zip(&all) {
            if differences.is_empty() {
                continue;
            }
            let number = distinct.iter().filter(|other| **other < differences).count() + 1;
            let is_short = differences.len() <= NAMED_MAX;
            let numbered = vec![("config".into(), number.to_string())];
            changes.push((index, if is_short { differences.clone() } else { numbered }));
        }
    }
    for (index, differences) in changes {
        add_parameters(&mut runs[index], differences);
    }
}

/// Overrides, and all settings except names.
type Content<'a> = (&'a [String], Vec<(&'a str, &'a str)>);

/// A new name of a workload, and the `model` setting that goes with it.
type NewName = (String, Option<String>);

/// Gives workloads that were used under several names the name that was used first. Two names belong to the same workload if a run of each has the
/// same overrides and settings.
pub(super) fn join_workloads(runs: &mut [Run]) {
    let mut order: Vec<usize> =
        (0..runs.len()).filter(|&index| runs[index].has_settings()).collect();
    order.sort_by(|&a, &b| runs[a].start_key().cmp(&runs[b].start_key()));
    let mut firsts: BTreeMap<Content<'_>, &Run> = BTreeMap::new();
    let mut renamed: BTreeMap<String, NewName> = BTreeMap::new();
    for &index in &order {
        let run = &runs[index];
        let settings = run.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let settings = settings.filter(|(key, _)| !NAME_KEYS.contains(key)).collect();
        let overrides = run.study.as_ref().map_or(&run.overrides, |study| &study.overrides);
        let first = *firsts.entry((overrides, settings)).or_insert(run);
        let new_name = final_name(&renamed, &first.workload).to_string();
        let old_name = final_name(&renamed, &run.workload).to_string();
        if new_name != old_name {
            renamed.insert(old_name, (new_name, first.settings.get("model").cloned()));
        }
    }
    for index in order {
        let run = &mut runs[index];
        while let Some((workload, model)) = renamed.get(&run.workload) {
            run.workload.clone_from(workload);
            run.settings.insert("workload".into(), workload.clone());
            if let Some(model) = model {
                run.settings.insert("model".into(), model.clone());
            }
        }
    }
}

/// Keys of settings that name a workload.
const NAME_KEYS: [&str; 2] = ["workload", "model"];

/// Follows renames to the final name.
fn final_name<'a>(renamed: &'a BTreeMap<String, NewName>, name: &'a str) -> &'a str {
    renamed.get(name).map_or(name, |(next, _)| final_name(renamed, next))
}

/// Completes missing settings in submissions. All runs of a submitted system have the same settings, but the config of some may be missing.
pub(super) fn complete_settings(runs: &mut [Run]) {
    let systems = group_runs(
        runs,
        |run| run.submission.is_some() && run.is_result(),
        |run| (run.study_key(), run.accelerators),
    );
    for members in systems.into_values().collect::<Vec<_>>() {
        let fullest = members.iter().max_by_key(|&&index| runs[index].settings.len());
        let Some(&fullest) = fullest else { continue };
        let settings = runs[fullest].settings.clone();
        let read_threads = runs[fullest].read_threads;
        for &index in &members {
            let run = &mut runs[index];
            if run.settings.iter().all(|(key, value)| settings.get(key) == Some(value)) {
                run.settings.clone_from(&settings);
                run.read_threads = run.read_threads.or(read_threads);
            }
        }
    }
}

/// Returns the levels of a run that differ from the usual values.
fn unusual_levels(run: &Run, usual: &BTreeMap<&str, Option<String>>) -> Differences {
    let differences = usual.iter().filter_map(|(key, usual)| {
        let level = value(run, key).filter(|value| usual.as_ref() != Some(value))?;
        Some((factor(key).to_string(), level))
    });
    differences.collect()
}

/// Appends differences to the varied parameters of a run.
fn add_parameters(run: &mut Run, differences: Differences) {
    if run.parameter == "processes" {
        run.parameter.clear();
        run.value.clear();
    }
    for (key, value) in differences {
        let comma = if run.parameter.is_empty() { "" } else { "," };
        run.parameter += &format!("{comma}{key}");
        run.value += &format!("{comma}{value}");
    }
}

/// Returns the keys of settings, and `host` and `hosts`, that have several known values among the members.
fn differing_keys(runs: &[Run], members: &[usize]) -> Vec<String> {
    let known = members.iter().map(|&index| &runs[index]).filter(|run| has_config(run));
    let settings = known.flat_map(|run| run.settings.keys().map(String::as_str));
    // The host with rank 0 is arbitrary in submitted systems.
    let is_submitted = members.iter().any(|&index| runs[index].submission.is_some());
    let host_keys: &[&str] = if is_submitted { &["hosts"] } else { &["host", "hosts"] };
    let mut keys: BTreeSet<&str> = settings.chain(host_keys.iter().copied()).collect();
    keys.retain(|key| {
        let values = members.iter().filter_map(|&index| value(&runs[index], key));
        1 < values.collect::<BTreeSet<String>>().len()
    });
    keys.into_iter().map(str::to_string).collect()
}

/// Returns whether the config of a run is known. Without one, the settings have only the workload and the number of accelerators.
fn has_config(run: &Run) -> bool {
    run.settings.keys().any(|key| !["workload", "accelerators"].contains(&key.as_str()))
}

/// Returns the value of a key: `unset` if the config does not contain it, `None` if there is no config.
fn value(run: &Run, key: &str) -> Option<String> {
    match key {
        "host" => run.hostname.clone(),
        "hosts" => run.hosts.map(|count| count.to_string()),
        key => {
            let setting = run.settings.get(key).cloned();
            has_config(run).then(|| setting.unwrap_or_else(|| "unset".into()))
        }
    }
}

/// Returns the value that more than half of the members with a known value have.
fn majority_value(runs: &[Run], members: &[usize], key: &str) -> Option<String> {
    let values: Vec<String> =
        members.iter().filter_map(|&index| value(&runs[index], key)).collect();
    let (value, count) = most_common(values.iter().map(String::as_str))?;
    (values.len() < 2 * count).then(|| value.to_string())
}

/// Numbers the runs of each experiment in the order of their starts, unless a study has given each a distinct number.
pub(super) fn number_replicates(runs: &mut [Run]) {
    let experiments = group_runs(runs, Run::is_result, Run::experiment_key);
    for mut members in experiments.into_values().collect::<Vec<_>>() {
        let numbers: BTreeSet<u32> =
            members.iter().filter_map(|index| runs[*index].replicate).collect();
        if numbers.len() == members.len() {
            continue;
        }
        members.sort_by_cached_key(|&index| {
            (runs[index].dataset_use.started_us, runs[index].path.clone())
        });
        for (number, index) in (1..).zip(members) {
            runs[index].replicate = Some(number);
        }
    }
}

/// Numbers the runs with results of each source in the order of execution: by the study's order, or by start time if a run has none. Runs without a
/// start time get no number.
pub(super) fn number_order(runs: &mut [Run]) {
    let sources = group_runs(runs, Run::has_result, |run| run.source.as_str());
    for mut members in sources.into_values().collect::<Vec<_>>() {
        let study_orders = members.iter().map(|&index| runs[index].study.as_ref()?.order);
        if let Some(orders) = study_orders.collect::<Option<Vec<u32>>>() {
            for (&index, order) in members.iter().zip(orders) {
                runs[index].order = Some(order);
            }
            continue;
        }
        members.retain(|&index| runs[index].started.is_some());
        members
            .sort_by_cached_key(|&index| (runs[index].started.clone(), runs[index].path.clone()));
        (1..).zip(members).for_each(|(order, index)| runs[index].order = Some(order));
    }
}

/// Sets the varied parameter of each run. Overrides that all runs of a source and workload share do not count as varied, unless no run differs from
/// the others.
pub(super) fn name_varied_parameters(runs: &mut [Run]) {
    let studies = group_runs(runs, |_| true, Run::study_key);
    for members in studies.into_values().collect::<Vec<_>>() {
        let is_submission = runs[members[0]].submission.is_some();
        // All runs of a submitted system have the same overrides; a run without any may have lost its config.
        let is_counted =
            |run: &&Run| run.is_result() && !(is_submission && run.overrides.is_empty());
        let results = members.iter().map(|&index| &runs[index]).filter(is_counted);
        let variants: Vec<(Option<u32>, &Vec<String>)> =
            results.map(|run| (run.accelerators, &run.overrides)).collect();
        let Some((first, rest)) = variants.split_first() else { continue };
        if !is_submission && rest.iter().all(|other| other == first) {
            continue;
        }
        let mut shared = first.1.clone();
        shared.retain(|text| rest.iter().all(|(_, others)| others.contains(text)));
        for &index in &members {
            let run = &mut runs[index];
            (run.parameter, run.value) = FolderNames::new(&run.path).varied_parameters(
                &run.overrides,
                &shared,
                run.accelerators,
            );
        }
    }
}
