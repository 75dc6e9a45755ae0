//! Tells runs apart that have one name and are no replicates: a config that was edited between runs, another machine. What they differ in becomes
//! part of what was varied.

use crate::run::{FolderNames, Run, factor};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Differences that a name has, at most; of more it has a number.
const NAMED_MAX: usize = 3;

/// Source, workload, accelerators, parameter, value.
type Name = (String, String, Option<u32>, String, String);

fn name_of(run: &Run) -> Name {
    let (source, workload) = (run.source.clone(), run.workload.clone());
    (source, workload, run.accelerators, run.parameter.clone(), run.value.clone())
}

fn by_name(runs: &[Run]) -> BTreeMap<Name, Vec<usize>> {
    let mut groups: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.is_result()) {
        groups.entry(name_of(run)).or_default().push(index);
    }
    groups
}

/// Runs of one name that differ in settings or host get names of their own; those that are as most of their workload keep it.
pub(super) fn tell_apart(runs: &mut [Run]) {
    let mut studies: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.is_result()) {
        studies.entry((run.source.clone(), run.workload.clone())).or_default().push(index);
    }
    let mut known: HashMap<(String, String, String), Option<String>> = HashMap::new();
    for ((source, workload, ..), members) in by_name(runs) {
        let keys = differing(runs, &members);
        if keys.is_empty() {
            continue;
        }
        let study = &studies[&(source.clone(), workload.clone())];
        let mut usual = |key: &String| {
            let of_study = (source.clone(), workload.clone(), key.clone());
            let of_study = known.entry(of_study).or_insert_with(|| most(runs, study, key));
            (key.clone(), of_study.clone().or_else(|| most(runs, &members, key)))
        };
        let usual: BTreeMap<String, Option<String>> = keys.iter().map(&mut usual).collect();
        // What a run has, of what it does not share with most.
        let own = |index: usize| -> Vec<(String, String)> {
            let of = |key: &String| {
                let value = value(&runs[index], key)?;
                let is_usual = usual[key].as_ref() == Some(&value);
                (!is_usual).then(|| (factor(key).to_string(), value))
            };
            keys.iter().filter_map(of).collect()
        };
        let named: Vec<(usize, Vec<(String, String)>)> =
            members.iter().map(|&index| (index, own(index))).collect();
        let mut kinds: Vec<&Vec<(String, String)>> = named.iter().map(|(_, own)| own).collect();
        kinds.sort();
        kinds.dedup();
        let number = |own| kinds.iter().position(|kind| *kind == own).unwrap_or(0);
        let names: Vec<(usize, Vec<(String, String)>)> = named
            .iter()
            .filter(|(_, own)| !own.is_empty())
            .map(|(index, own)| match own.len() {
                0..=NAMED_MAX => (*index, own.clone()),
                _ => (*index, vec![("config".into(), (number(own) + 1).to_string())]),
            })
            .collect();
        names.into_iter().for_each(|(index, own)| add(&mut runs[index], own));
    }
}

fn add(run: &mut Run, own: Vec<(String, String)>) {
    if run.parameter == "processes" {
        (run.parameter, run.value) = (String::new(), String::new());
    }
    for (key, value) in own {
        let comma = if run.parameter.is_empty() { "" } else { "," };
        run.parameter.push_str(&format!("{comma}{key}"));
        run.value.push_str(&format!("{comma}{value}"));
    }
}

/// Settings, host and number of hosts that are not the same in all; where one of them is not known nothing is said.
fn differing(runs: &[Run], members: &[usize]) -> Vec<String> {
    let known = |index: &&usize| is_known(&runs[**index]);
    let of_settings = members.iter().filter(known).flat_map(|index| runs[*index].settings.keys());
    let keys: BTreeSet<&str> = of_settings.map(String::as_str).chain(["host", "hosts"]).collect();
    let differs = |key: &&str| {
        let mut values = members.iter().filter_map(|index| value(&runs[*index], key));
        values.next().is_some_and(|first| values.any(|other| other != first))
    };
    keys.into_iter().filter(differs).map(str::to_string).collect()
}

/// Whether its config is: of one without, only workload and accelerators are.
fn is_known(run: &Run) -> bool {
    run.settings.keys().any(|key| !["workload", "accelerators"].contains(&key.as_str()))
}

/// `None` where it is not known; `unset` of a config that does not have it.
fn value(run: &Run, key: &str) -> Option<String> {
    match key {
        "host" => run.hostname.clone(),
        "hosts" => run.hosts.map(|count| count.to_string()),
        key if is_known(run) => {
            Some(run.settings.get(key).cloned().unwrap_or_else(|| "unset".into()))
        }
        _ => None,
    }
}

/// The value that more than half of `members` have.
fn most(runs: &[Run], members: &[usize], key: &str) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for index in members {
        if let Some(value) = value(&runs[*index], key) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let all: usize = counts.values().sum();
    counts.into_iter().find(|(_, count)| all < 2 * count).map(|(value, _)| value)
}

/// Number the runs of each experiment in the order they were started, where a study did not give each a number of its own.
pub(super) fn number_replicates(runs: &mut [Run]) {
    for mut members in by_name(runs).into_values() {
        let numbers: BTreeSet<u32> =
            members.iter().filter_map(|index| runs[*index].replicate).collect();
        if numbers.len() == members.len() {
            continue;
        }
        members.sort_by(|a, b| {
            let key = |index: usize| (runs[index].dataset_use.started_us, &runs[index].path);
            key(*a).cmp(&key(*b))
        });
        for (number, index) in (1..).zip(members) {
            runs[index].replicate = Some(number);
        }
    }
}

/// Name the parameter that was varied: overrides that all runs of a source and workload share are not, where those runs differ.
pub(super) fn name_varied(runs: &mut [Run]) {
    let mut studies: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        studies.entry((run.source.clone(), run.workload.clone())).or_default().push(index);
    }
    for members in studies.into_values() {
        let of_results = members.iter().map(|&index| &runs[index]).filter(|run| run.is_result());
        let told = of_results.map(|run| (run.accelerators, &run.overrides));
        let told: Vec<(Option<u32>, &Vec<String>)> = told.collect();
        let Some((first, rest)) = told.split_first() else { continue };
        if rest.iter().all(|other| other == first) {
            continue;
        }
        let is_shared = |text: &&String| rest.iter().all(|(_, others)| others.contains(text));
        let shared: Vec<String> = first.1.iter().filter(is_shared).cloned().collect();
        for &index in &members {
            let run = &mut runs[index];
            (run.parameter, run.value) = FolderNames::new(&run.path).varied_beside(
                &run.overrides,
                &shared,
                run.accelerators,
            );
        }
    }
}
