//! Tells runs apart that have one name and are no replicates: a config that was edited between runs, another machine. What they differ in becomes
//! part of what was varied. Numbers replicates, and runs in the order of running.

use crate::relations::most_common;
use crate::run::{FolderNames, Run, factor, grouped};
use std::collections::{BTreeMap, BTreeSet};

/// Differences that a name has, at most; of more it has a number.
const NAMED_MAX: usize = 3;

/// Factors and levels that set a run apart.
type Differences = Vec<(String, String)>;

/// Runs of one name that differ in settings or host get names of their own; those that are as most of their workload keep it.
pub(super) fn tell_apart(runs: &mut [Run]) {
    let mut named: Vec<(usize, Differences)> = Vec::new();
    let studies = grouped(runs, Run::is_result, Run::study_key);
    for members in grouped(runs, Run::is_result, Run::experiment_key).into_values() {
        let study = &studies[&runs[members[0]].study_key()];
        let keys = differing(runs, &members);
        let usual: BTreeMap<&str, Option<String>> = keys
            .iter()
            .map(|key| (&**key, most(runs, study, key).or_else(|| most(runs, &members, key))))
            .collect();
        let own: Vec<Differences> =
            members.iter().map(|&index| unusual(&runs[index], &usual)).collect();
        let kinds: BTreeSet<&Differences> = own.iter().collect();
        for (&index, own) in members.iter().zip(&own).filter(|(_, own)| !own.is_empty()) {
            let number = kinds.iter().filter(|other| **other < own).count() + 1;
            let numbered = vec![("config".into(), number.to_string())];
            named.push((index, if own.len() <= NAMED_MAX { own.clone() } else { numbered }));
        }
    }
    named.into_iter().for_each(|(index, own)| add(&mut runs[index], own));
}

/// Overrides, and settings but for names.
type Content<'a> = (&'a [String], Vec<(&'a str, &'a str)>);

/// Names of one workload become the one that was used first: two are of one where a run of each
/// overrides the same and has the same settings.
pub(super) fn join(runs: &mut [Run]) {
    let mut order: Vec<usize> = (0..runs.len()).filter(|&at| runs[at].tells_settings()).collect();
    order.sort_by(|&a, &b| runs[a].by_start().cmp(&runs[b].by_start()));
    let mut firsts: BTreeMap<Content<'_>, &Run> = BTreeMap::new();
    let mut joined: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    for &at in &order {
        let run = &runs[at];
        let settings = run.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let settings = settings.filter(|(key, _)| !NAMES.contains(key)).collect();
        let asked = run.study.as_ref().map_or(&run.overrides, |study| &study.overrides);
        let first = *firsts.entry((asked, settings)).or_insert(run);
        let [to, from] = [first, run].map(|of| last(&joined, &of.workload).to_string());
        if to != from {
            joined.insert(from, (to, first.settings.get("model").cloned()));
        }
    }
    for at in order {
        let run = &mut runs[at];
        while let Some((name, model)) = joined.get(&run.workload) {
            run.workload.clone_from(name);
            let names = [("workload", Some(name)), ("model", model.as_ref())];
            for (key, name) in names.into_iter().filter_map(|(key, name)| Some((key, name?))) {
                run.settings.insert(key.into(), name.clone());
            }
        }
    }
}

/// Settings that name a workload.
const NAMES: [&str; 2] = ["workload", "model"];

/// The name that a name became in the end.
fn last<'a>(joined: &'a BTreeMap<String, (String, Option<String>)>, name: &'a str) -> &'a str {
    joined.get(name).map_or(name, |(next, _)| last(joined, next))
}

/// In a submission all runs of a system are alike: what one does not tell, as its config is not there, another does.
pub(super) fn complete(runs: &mut [Run]) {
    let alike = grouped(
        runs,
        |run| run.submission.is_some() && run.is_result(),
        |run| (run.study_key(), run.accelerators),
    );
    for members in alike.into_values().collect::<Vec<_>>() {
        let fullest = members.iter().max_by_key(|&&index| runs[index].settings.len());
        let Some(&fullest) = fullest else { continue };
        let (settings, read_threads) = (runs[fullest].settings.clone(), runs[fullest].read_threads);
        for &index in &members {
            let run = &mut runs[index];
            if run.settings.iter().all(|(key, value)| settings.get(key) == Some(value)) {
                run.settings.clone_from(&settings);
                run.read_threads = run.read_threads.or(read_threads);
            }
        }
    }
}

/// The levels of a run that most do not have.
fn unusual(run: &Run, usual: &BTreeMap<&str, Option<String>>) -> Differences {
    let own = usual.iter().filter_map(|(key, usual)| {
        let value = value(run, key).filter(|value| usual.as_ref() != Some(value))?;
        Some((factor(key).to_string(), value))
    });
    own.collect()
}

fn add(run: &mut Run, own: Differences) {
    if run.parameter == "processes" {
        (run.parameter, run.value) = (String::new(), String::new());
    }
    for (key, value) in own {
        let comma = if run.parameter.is_empty() { "" } else { "," };
        run.parameter += &format!("{comma}{key}");
        run.value += &format!("{comma}{value}");
    }
}

/// Settings, host and number of hosts that are not the same in all; where one of them is not known nothing is said.
fn differing(runs: &[Run], members: &[usize]) -> Vec<String> {
    let known = members.iter().map(|&index| &runs[index]).filter(|run| is_known(run));
    let settings = known.flat_map(|run| run.settings.keys().map(String::as_str));
    // Which host of a submitted system has rank 0 is chance.
    let is_submitted = members.iter().any(|&index| runs[index].submission.is_some());
    let places: &[&str] = if is_submitted { &["hosts"] } else { &["host", "hosts"] };
    let mut keys: BTreeSet<&str> = settings.chain(places.iter().copied()).collect();
    keys.retain(|key| {
        let values = members.iter().filter_map(|&index| value(&runs[index], key));
        1 < values.collect::<BTreeSet<String>>().len()
    });
    keys.into_iter().map(str::to_string).collect()
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
        key => {
            let value = run.settings.get(key).cloned();
            is_known(run).then(|| value.unwrap_or_else(|| "unset".into()))
        }
    }
}

/// The value that more than half of `members` have.
fn most(runs: &[Run], members: &[usize], key: &str) -> Option<String> {
    let values: Vec<String> =
        members.iter().filter_map(|&index| value(&runs[index], key)).collect();
    let (value, count) = most_common(values.iter().map(String::as_str))?;
    (values.len() < 2 * count).then(|| value.to_string())
}

/// Number the runs of each experiment in the order they were started, where a study did not give each a number of its own.
pub(super) fn number_replicates(runs: &mut [Run]) {
    let experiments = grouped(runs, Run::is_result, Run::experiment_key);
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

/// The place of each run with results in the order of running, within its source: its study's, or where a run has none, by when they were started. `None` where
/// that is not known.
pub(super) fn number_order(runs: &mut [Run]) {
    let sources = grouped(runs, Run::has_result, |run| run.source.as_str());
    for mut members in sources.into_values().collect::<Vec<_>>() {
        let of_study = members.iter().map(|&index| runs[index].study.as_ref()?.order);
        if let Some(orders) = of_study.collect::<Option<Vec<u32>>>() {
            members.iter().zip(orders).for_each(|(&at, order)| runs[at].order = Some(order));
            continue;
        }
        members.retain(|&index| runs[index].started.is_some());
        members.sort_by_cached_key(|&at| (runs[at].started.clone(), runs[at].path.clone()));
        (1..).zip(members).for_each(|(order, index)| runs[index].order = Some(order));
    }
}

/// Name the parameter that was varied: overrides that all runs of a source and workload share are not, where those runs differ.
pub(super) fn name_varied(runs: &mut [Run]) {
    let studies = grouped(runs, |_| true, Run::study_key);
    for members in studies.into_values().collect::<Vec<_>>() {
        let is_submission = runs[members[0]].submission.is_some();
        // One without overrides may have lost its config: in a submission all runs of a system are alike.
        let results = members.iter().map(|&index| &runs[index]);
        let results =
            results.filter(|run| run.is_result() && !(is_submission && run.overrides.is_empty()));
        let told: Vec<(Option<u32>, &Vec<String>)> =
            results.map(|run| (run.accelerators, &run.overrides)).collect();
        let Some((first, rest)) = told.split_first() else { continue };
        // There nothing is varied.
        if !is_submission && rest.iter().all(|other| other == first) {
            continue;
        }
        let mut shared = first.1.clone();
        shared.retain(|text| rest.iter().all(|(_, others)| others.contains(text)));
        for &index in &members {
            let run = &mut runs[index];
            (run.parameter, run.value) =
                FolderNames::new(&run.path).varied(&run.overrides, &shared, run.accelerators);
        }
    }
}
