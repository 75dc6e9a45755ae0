//! What runs were asked for, by one set of keys whoever ran them: those of our plan, or DLIO's where the plan has none. Which of them are factors.

pub(super) use feedrate_results::run::ROWS;
use feedrate_results::run::{Run, Settings, factor};
use std::collections::{BTreeMap, BTreeSet};

/// Of a run that anybody made: what was asked for, and where it ran.
pub(super) fn settings(run: &Run) -> Settings {
    let mut settings = run.settings.clone();
    let places = [("host", run.hostname.clone()), ("hosts", run.hosts.map(|n| n.to_string()))];
    settings.extend(places.into_iter().filter_map(|(key, value)| Some((key.into(), value?))));
    settings
}

/// What runs of a workload differ in: for each run the level of each factor. Of settings that always change together the first is kept,
/// those of [`ROWS`] before others; what a run has not is `unset`.
pub(super) fn factors(runs: &[&Settings]) -> Vec<BTreeMap<String, String>> {
    let place = |key: &str| ROWS.iter().position(|(_, plan, ..)| *plan == key);
    let keys: BTreeSet<&str> = runs.iter().flat_map(|run| run.keys().map(String::as_str)).collect();
    let mut keys: Vec<&str> = keys.into_iter().collect();
    keys.sort_by_key(|key| place(key).unwrap_or(ROWS.len()));
    let mut levels: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); runs.len()];
    let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
    for key in keys {
        let of: Vec<&str> =
            runs.iter().map(|run| run.get(key).map_or("unset", String::as_str)).collect();
        // Which runs are alike, whatever the levels are called.
        let alike: Vec<usize> = of
            .iter()
            .map(|level| of.iter().position(|other| other == level).unwrap_or(0))
            .collect();
        if alike.iter().all(|first| *first == 0) || !known.insert(alike) {
            continue;
        }
        for (levels, level) in levels.iter_mut().zip(of) {
            levels.insert(factor(key).into(), level.into());
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_what_differs_once() {
        let run = |batch: &str, format: &str, threads: Option<&str>| {
            let mut settings = Settings::from([
                ("loader.batch_size".to_string(), batch.to_string()),
                ("dataset.format".into(), format.into()),
                ("dataset.encoding".into(), format!("of {format}")),
                ("model".into(), "m".into()),
            ]);
            settings.extend(threads.map(|threads| ("x.threads".into(), threads.into())));
            settings
        };
        let runs = [run("1", "npz", Some("2")), run("2", "npz", None), run("2", "png", None)];
        let found = factors(&runs.iter().collect::<Vec<_>>());
        let text: Vec<String> = found.iter().map(|levels| format!("{levels:?}")).collect();
        assert_eq!(text[0], r#"{"batch_size": "1", "format": "npz"}"#);
        assert_eq!(text[2], r#"{"batch_size": "2", "format": "png"}"#);
    }
}
