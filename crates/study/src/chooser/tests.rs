//! Tests of choosers with invented histories. A new chooser, as after a kill, must make the same choices.

use super::*;
use crate::search::{Goal, SearchTarget};
use feedrate_analysis::trial::Outcome;
use feedrate_results::setting::Setting;

/// Numbers of accelerators. Eight files are enough for two accelerators, and larger numbers need files in proportion.
#[derive(Clone, Debug)]
struct FakeRange {
    files: u64,
    client_limit: u64,
}

impl NumberRange for FakeRange {
    fn max(&self) -> u64 {
        self.files / 4
    }

    fn row(&self, number: u64) -> Option<Row> {
        let mut row = Row::new("w", number as u32);
        row.settings.push(Setting::new("dataset.num_files_train", self.files.to_string()));
        Some(row)
    }

    fn describe(&self, number: u64) -> String {
        format!("{number} accelerators")
    }

    fn number(&self, row: &Row) -> Option<u64> {
        Some(row.accelerators.into())
    }

    fn client_limit(&self, number: u64) -> Option<f64> {
        (self.client_limit < number).then_some(10.0)
    }

    fn grow(&mut self, earlier_row: Option<&Row>) -> bool {
        let files = earlier_row.and_then(|row| row.settings[0].value.as_ref()?.parse().ok());
        self.files = files.unwrap_or(self.files * 4);
        true
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

fn done(row: Row, response: &Metric, value: Option<f64>) -> PastRun {
    let observation =
        value.map_or_else(Observation::default, |value| Observation::with_value(response, value));
    let measured = FinishedRun { seconds: 2.0, observation, ..FinishedRun::default() };
    PastRun { row: Row { done: true, ..row }, state: RunState::Done(Box::new(measured)) }
}

/// Runs all rows that a chooser selects, with `value` as their result. Asserts that a new chooser for each row makes the same choices.
fn choose<C: Chooser>(
    chooser: impl Fn() -> C,
    history: &mut History,
    value: impl Fn(&Row) -> Option<f64>,
) -> C {
    let mut kept = chooser();
    loop {
        let mut rebuilt = chooser();
        let next = rebuilt.next(history);
        assert_eq!(next, kept.next(history), "a kill changes the choice");
        let Some(row) = next else { return rebuilt };
        assert!(history.rows().all(|known| known.key() != row.key()), "{row:?} was run");
        let value = value(&row);
        history.runs.push(done(row, rebuilt.response().unwrap(), value));
        assert!(history.runs.len() < 200);
    }
}

fn scale(runs_max: u64, budget_s: f64, client_limit: u64) -> ScaleSearch<FakeRange> {
    let goal = Goal { threshold: 90.0, from: 1, max: 0, find: SearchTarget::Largest };
    let range = FakeRange { files: 8, client_limit };
    ScaleSearch::new(goal, &AU_ALL_STEPS, ScaleLimits { runs_max, budget_s }, range)
}

fn utilisation_with_knee(knee: u32) -> impl Fn(&Row) -> Option<f64> {
    move |row| Some((90.0 * (f64::from(knee) + 0.5) / f64::from(row.accelerators)).min(100.0))
}

#[test]
fn a_search_over_growing_datasets_finds_the_knee_after_any_kill() {
    for knee in [1, 2, 3, 8, 37] {
        let mut history = History::default();
        let chooser =
            choose(|| scale(40, 1e9, u64::MAX), &mut history, utilisation_with_knee(knee));
        let found = chooser.runs(&history).search.bounds();
        assert_eq!((found.certain, found.fails), (Some(knee.into()), Some(u64::from(knee) + 1)));
        assert_eq!(chooser.end(&history), ScaleEnd::Decided);
    }
}

#[test]
fn limits_end_a_search_and_larger_limits_resume_it() {
    let mut history = History::default();
    let ended =
        choose(|| scale(3, 1e9, u64::MAX), &mut history, utilisation_with_knee(6)).end(&history);
    assert_eq!((history.runs.len(), ended), (3, ScaleEnd::OutOfRuns));
    // Each run takes 2 s.
    let ended =
        choose(|| scale(20, 13.0, u64::MAX), &mut history, utilisation_with_knee(6)).end(&history);
    assert_eq!((history.runs.len() <= 6, ended), (true, ScaleEnd::OutOfTime));
    let chooser = choose(|| scale(20, 1e9, u64::MAX), &mut history, utilisation_with_knee(6));
    assert_eq!(chooser.runs(&history).search.bounds().certain, Some(6));
}

#[test]
fn a_search_continues_with_the_dataset_from_before_a_kill() {
    let mut history = History::default();
    choose(|| scale(5, 1e9, u64::MAX), &mut history, utilisation_with_knee(3));
    history.runs.retain(|past| {
        past.row.accelerators <= 2 && past.row.settings[0].value == Some("8".into())
    });
    let files = Setting::new("dataset.num_files_train", "16");
    let started = Row { settings: vec![files], ..Row::new("w", 2) };
    history.runs.push(PastRun { row: started.clone(), state: RunState::Pending });
    let mut chooser = scale(20, 1e9, u64::MAX);
    assert_eq!(chooser.next(&history).unwrap().settings, started.settings);
    assert_eq!(chooser.range().files, 16);
}

#[test]
fn only_invalid_runs_of_the_unchanged_workload_are_repeated() {
    let invalid = |row: Row| {
        let mut observation = Observation::with_value(&AU_ALL_STEPS, 99.0);
        observation.invalid_reason = Some("memory".into());
        let measured = FinishedRun { observation, ..FinishedRun::default() };
        PastRun { row, state: RunState::Done(Box::new(measured)) }
    };
    let change = candidate(&["reader.read_threads=4".into()]).row.unwrap();
    let found = [Row::new("w", 1), change].map(|row| trials(1e9).is_invalid(&invalid(row)));
    assert_eq!(found, [true, false]);
}

#[test]
fn numbers_limited_by_the_client_need_no_run() {
    let mut history = History::default();
    let chooser = choose(|| scale(20, 1e9, 2), &mut history, |_| Some(99.0));
    let found = chooser.runs(&history).search.bounds();
    assert_eq!((found.certain, found.fails), (Some(2), Some(3)));
    assert!(history.rows().all(|row| row.accelerators <= 2));
}

#[test]
fn a_run_without_a_value_ends_a_search() {
    let mut history = History::default();
    let ended = choose(|| scale(20, 1e9, 9), &mut history, |_| None).end(&history);
    assert_eq!((history.runs.len(), ended), (1, ScaleEnd::NoValue { number: 1 }));
    history.runs[0].state = RunState::Failed("no space".into());
    let mut chooser = scale(20, 1e9, 9);
    assert_eq!(chooser.next(&history), None);
    let failed = ScaleEnd::Failed { run: 1, number: 1, reason: "no space".into() };
    assert_eq!(chooser.end(&history), failed);
    // A restarted runner makes a failed row pending again.
    history.runs[0].state = RunState::Pending;
    assert_eq!(chooser.next(&history).unwrap().key(), history.runs[0].row.key());
}

#[test]
fn rows_of_a_search_are_named_by_their_number() {
    let search = scale(20, 1e9, 9);
    let row = search.range().row(4).unwrap();
    assert_eq!(search.label(&row, 3).unwrap(), "run 3: 4 accelerators");
    assert_eq!([89.9, 90.0].map(|au| search.verdict(au).unwrap()), ["below 90 %", "reaches 90 %"]);
}

fn candidate(change: &[String]) -> Candidate {
    let parsed = change.iter().map(|text| Setting::parse(text).unwrap()).collect();
    let row = Row { settings: parsed, ..Row::new("w", 1) };
    Candidate { row: Some(row), change: change.to_vec(), ..Candidate::default() }
}

fn trials(budget_s: f64) -> Trials<'static> {
    let changes = ["reader.read_threads=4", "reader.prefetch_size=8", "reader.batch_size=1"];
    let changes = changes.map(|change| candidate(&[change.to_string()]));
    let skipped = Candidate { skip_reason: Some("no room".into()), ..Candidate::default() };
    let changes = [Vec::from(changes), vec![skipped]].concat();
    Trials::new(Row::new("w", 1), changes, UTILISATION, budget_s, candidate)
}

/// Utilisation with noise of half a point.
fn noisy_utilisation(row: &Row) -> Option<f64> {
    let has = |key: &str| row.settings.iter().any(|setting| setting.key == key);
    let gain_if = |key: &str, gain: f64| if has(key) { gain } else { 0.0 };
    let gain = gain_if("reader.read_threads", 30.0)
        + gain_if("reader.prefetch_size", 20.0)
        + gain_if("reader.batch_size", -25.0);
    Some(40.0 + gain + 0.5 * f64::from(row.replicate? % 3))
}

#[test]
fn changes_are_tried_in_turns_then_the_best_two_together_after_any_kill() {
    let mut history = History::default();
    let mut chooser = choose(|| trials(1e9), &mut history, noisy_utilisation);
    let outcomes = [1, 2, 3, 4, 5].map(|index| chooser.outcome(&history, BASELINE, index));
    let expected =
        [Outcome::Helps, Outcome::Helps, Outcome::Hurts, Outcome::NotTried, Outcome::Helps];
    assert_eq!(outcomes, expected);
    assert_eq!((chooser.combination(), chooser.best(&history)), (Some(5), Some(5)));
    assert!(!chooser.is_out_of_time(&history));
    assert_eq!(chooser.trial(&history, 4).skip_reason.as_deref(), Some("no room"));
    let first: Vec<String> = history.rows().take(5).map(|row| row.key().0).collect();
    assert!(first[0] == first[4].replace("|2", "|1"), "the baseline leads each turn: {first:?}");
}

#[test]
fn trials_end_with_the_budget_or_when_the_workload_fails() {
    let mut history = History::default();
    let mut chooser = choose(|| trials(9.0), &mut history, noisy_utilisation);
    assert!(history.runs.len() == 4 && chooser.is_out_of_time(&history));
    assert_eq!(chooser.outcome(&history, BASELINE, 1), Outcome::NotDecided);
    let state = RunState::Failed("no such file".into());
    let mut history = History { runs: vec![PastRun { row: Row::new("w", 1), state }] };
    assert_eq!(trials(1e9).next(&history), None);
    // A change that failed is not tried again.
    history.runs[0].state = done(Row::new("w", 1), &AU_ALL_STEPS, Some(40.0)).state;
    let state = RunState::Failed("no such engine".into());
    history
        .runs
        .push(PastRun { row: candidate(&["reader.read_threads=4".into()]).row.unwrap(), state });
    choose(|| trials(1e9), &mut history, noisy_utilisation);
    assert!(
        history
            .rows()
            .filter(|row| row.settings.len() == 1)
            .all(|row| { row.replicate.is_none() || row.settings[0].key != "reader.read_threads" })
    );
}

#[test]
fn warm_ups_run_first_and_do_not_count() {
    let mut runs = RepeatedRuns::new(&Row::new("w", 1), 2, 2);
    let mut history = History::default();
    let mut labels = Vec::new();
    while let Some(row) = runs.next(&history) {
        labels.extend(runs.label(&row, history.runs.len() + 1));
        history.runs.push(done(row, &AU_ALL_STEPS, Some(1.0)));
    }
    assert_eq!(labels, ["warm-up 1 of 2", "warm-up 2 of 2", "run 1 of 2", "run 2 of 2"]);
    assert_eq!((runs.finished(&history), runs.counted_run_dirs(&history).len()), (4, 2));
}

#[test]
fn a_rehearsal_makes_its_runs_in_order_until_one_fails() {
    let mut runs = RepeatedRuns::for_submission(&Row::new("w", 1), 3, true);
    let mut history = History::default();
    let warm_up = runs.next(&history).unwrap();
    assert_eq!(runs.label(&warm_up, 1).as_deref(), Some("warm-up"));
    history.runs.push(done(warm_up, &AU_ALL_STEPS, Some(1.0)));
    let first = runs.next(&history).unwrap();
    assert_eq!(runs.label(&first, 2).as_deref(), Some("run 1 of 2"));
    history.runs.push(PastRun { row: first, state: RunState::Failed("no space".into()) });
    assert_eq!(runs.next(&history), None);
    assert_eq!(runs.failure(&history), Some(("run 1 of 2".into(), "no space")));
    assert_eq!(runs.finished(&history), 1);
}
