//! The largest or smallest whole number at which a response holds, by sequential tests: it doubles the number until the response changes sides, halves the gap, and
//! measures the two numbers at the edge until each is certain. Decides only; whoever asks runs.
//!
//! The next step follows from the values and the number of runs left alone, so that a value that contradicts an earlier one moves the edge. Where half of the runs
//! left would not decide a number, it is gone around: numbers further out are made certain first, and what is left goes to those between.

use feedrate_analysis::precision::{sequential_mean, would_decide};
use feedrate_measure::stats::{self, Interval};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of a search for a number of accelerators.
pub const ACCELERATORS: &str = "accelerators";

names! {
    /// The number to find.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchTarget {
        /// The largest up to which the response holds.
        Largest = "largest",
        /// The smallest from which on it holds.
        Smallest = "smallest",
    }
}

names! {
    /// Conclusion from the values at a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Certainty {
        /// The response holds.
        Holds = "holds",
        /// It does not.
        Fails = "fails",
        /// Too few values, or too much noise.
        NotDecided = "not_decided",
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchBounds {
    /// The largest, or smallest, number at which the response holds for certain.
    pub certain: Option<u64>,
    /// First and last of the numbers beside it of which that is not known.
    pub not_decided: Option<(u64, u64)>,
    /// The nearest number beyond, at which it fails for certain.
    pub fails: Option<u64>,
}

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The response holds from here on.
    pub least: f64,
    /// The smallest number, at least 1.
    pub from: u64,
    /// The largest number.
    pub max: u64,
    /// The edge that is looked for.
    pub find: SearchTarget,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    goal: Goal,
    values: BTreeMap<u64, Vec<f64>>,
}

impl Search {
    /// Nothing is measured yet.
    pub fn new(goal: Goal) -> Self {
        Search { goal, values: BTreeMap::new() }
    }

    /// Add a value measured at `number`.
    pub fn add(&mut self, number: u64, value: f64) {
        self.values.entry(number).or_default().push(value);
    }

    /// The state of `number`. One value shows nothing.
    pub fn certainty(&self, number: u64) -> Certainty {
        match self.interval(number) {
            Some(mean) if self.goal.least <= mean.low => Certainty::Holds,
            Some(mean) if mean.high < self.goal.least => Certainty::Fails,
            _ => Certainty::NotDecided,
        }
    }

    /// The answer so far.
    pub fn found(&self) -> SearchBounds {
        let Goal { from, max, find, .. } = self.goal;
        let (below, above) = self.edge();
        let first = below.map_or(from, |number| number + 1);
        let last = above.map_or(max, |number| number - 1);
        let (certain, fails) = match find {
            SearchTarget::Largest => (below, above),
            SearchTarget::Smallest => (above, below),
        };
        SearchBounds { certain, not_decided: (first <= last).then_some((first, last)), fails }
    }

    /// Whether the edge seems to lie beyond the largest number.
    pub fn lies_beyond(&self) -> bool {
        self.seems(self.goal.max) == Some(self.sides()[0])
    }

    /// The last number that is certainly on the lower side, and the first that is not.
    fn edge(&self) -> (Option<u64>, Option<u64>) {
        let [before, beyond] = self.sides();
        let above = self.certain(beyond).next();
        let below = self.certain(before).take_while(|&number| above.is_none_or(|end| number < end));
        (below.last(), above)
    }

    /// Numbers above the edge that are as certain as those below it: answers that rise and fall.
    pub fn again(&self) -> Vec<u64> {
        let [before, beyond] = self.sides();
        let Some(edge) = self.certain(beyond).next() else { return Vec::new() };
        self.certain(before).filter(|&number| edge < number).collect()
    }

    /// Decide at which number to measure next, with at most `runs_left` to come; `None` where the search is over.
    pub fn next(&self, runs_left: u64) -> Option<u64> {
        let Goal { from, max, .. } = self.goal;
        if runs_left == 0 || self.found().not_decided.is_none() {
            return None;
        }
        let mut open =
            self.values.range(self.edge().0.unwrap_or(from)..).map(|(&number, _)| number);
        let above = open.find(|&number| self.seems(number) == Some(self.sides()[1]));
        let below = self.values.range(..above.unwrap_or(u64::MAX)).map(|(&number, _)| number);
        match (below.clone().next_back(), above) {
            (None, None) => Some(from),
            (Some(below), None) if below < max => Some(below.saturating_mul(2).min(max)),
            (Some(below), Some(above)) if 1 < above - below => Some(below.midpoint(above)),
            (highest, _) => {
                let further = self.values.keys().next_back().map(|last| last.saturating_mul(2));
                let measured = self.values.range(highest.map_or(from, |number| number + 1)..);
                let upwards =
                    measured.map(|(&number, _)| number).chain(further.map(|n| n.min(max)));
                let sides = [self.settle(below.rev(), runs_left), self.settle(upwards, runs_left)];
                let fewest = sides.into_iter().flatten().min_by_key(|&number| self.count(number));
                fewest.or_else(|| self.least_known())
            }
        }
    }

    /// The number to measure next so that one side of the edge becomes certain; `outwards` are its numbers, from the edge on.
    fn settle(&self, outwards: impl Iterator<Item = u64>, runs_left: u64) -> Option<u64> {
        let mut passed = None;
        for number in outwards {
            if self.is_out_of_reach(number, runs_left) {
                passed = Some(number);
                continue;
            }
            return match passed {
                _ if self.certainty(number) == Certainty::NotDecided => Some(number),
                Some(passed) if 1 < number.abs_diff(passed) => Some(number.midpoint(passed)),
                _ => None,
            };
        }
        None
    }

    /// Whether half of the runs left would not decide it.
    fn is_out_of_reach(&self, number: u64, runs_left: u64) -> bool {
        let count = self.count(number);
        let in_all = count + runs_left / 2;
        2 <= count
            && self.certainty(number) == Certainty::NotDecided
            && !would_decide(self.values_at(number), self.goal.least, in_all)
    }

    /// The one of the numbers that were gone around with the fewest values.
    fn least_known(&self) -> Option<u64> {
        let (first, last) = self.found().not_decided?;
        let open = self.values.range(first..=last).map(|(&number, _)| number);
        open.min_by_key(|&number| self.count(number))
    }

    /// The states of numbers below the edge, and of those above it.
    fn sides(&self) -> [Certainty; 2] {
        match self.goal.find {
            SearchTarget::Largest => [Certainty::Holds, Certainty::Fails],
            SearchTarget::Smallest => [Certainty::Fails, Certainty::Holds],
        }
    }

    fn certain(&self, wanted: Certainty) -> impl Iterator<Item = u64> {
        self.values.keys().copied().filter(move |&number| self.certainty(number) == wanted)
    }

    /// The words of the mean, certain or not; `None` where nothing was measured.
    fn seems(&self, number: u64) -> Option<Certainty> {
        let mean = stats::mean(self.values_at(number))?;
        Some(if self.goal.least <= mean { Certainty::Holds } else { Certainty::Fails })
    }

    /// The interval that decides; `None` of fewer than two values.
    pub fn interval(&self, number: u64) -> Option<Interval> {
        sequential_mean(self.values_at(number))
    }

    fn values_at(&self, number: u64) -> &[f64] {
        self.values.get(&number).map_or(&[], Vec::as_slice)
    }

    fn count(&self, number: u64) -> u64 {
        self.values_at(number).len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;
    use proptest::prelude::*;

    const RUNS: u64 = 20;
    const GOAL: Goal = Goal { least: 90.0, from: 1, max: 1 << 20, find: SearchTarget::Largest };

    /// The search with so many runs, and the numbers in the order they were measured.
    fn run(goal: Goal, runs: u64, mut of: impl FnMut(u64) -> f64) -> (Search, Vec<u64>) {
        let mut search = Search::new(goal);
        let mut probes = Vec::new();
        while let Some(number) = search.next(runs - probes.len() as u64) {
            assert!((goal.from..=goal.max).contains(&number), "{number}");
            probes.push(number);
            search.add(number, of(number));
        }
        (search, probes)
    }

    /// Utilisation that a storage allows which can feed `knee` accelerators at 90 %, and no more.
    fn feeds(knee: u64) -> impl Fn(u64) -> f64 {
        move |number| (90.0 * (knee as f64 + 0.5) / number as f64).min(100.0)
    }

    fn found(
        certain: impl Into<Option<u64>>,
        open: impl Into<Option<(u64, u64)>>,
        fails: impl Into<Option<u64>>,
    ) -> SearchBounds {
        SearchBounds { certain: certain.into(), not_decided: open.into(), fails: fails.into() }
    }

    #[test]
    fn every_knee_is_found_in_few_runs() {
        for knee in 1..=4096 {
            let (search, probes) = run(GOAL, 1000, feeds(knee));
            assert_eq!(search.found(), found(knee, None, knee + 1));
            let bound = 2.0 * (knee as f64).log2() + 4.0;
            assert!(probes.len() as f64 <= bound, "{knee}: {probes:?}");
        }
    }

    #[test]
    fn probes_double_then_halve_then_repeat() {
        assert_eq!(run(GOAL, RUNS, feeds(6)).1, [1, 2, 4, 8, 6, 7, 6, 7]);
        assert_eq!(run(Goal { from: 3, ..GOAL }, RUNS, feeds(7)).1, [3, 6, 12, 9, 7, 8, 7, 8]);
    }

    #[test]
    fn the_range_ends_the_search() {
        for (goal, knee, expected, probes) in [
            (Goal { max: 12, ..GOAL }, 40, found(12, None, None), vec![1, 2, 4, 8, 12, 12]),
            (Goal { max: 12, ..GOAL }, 12, found(12, None, None), vec![1, 2, 4, 8, 12, 12]),
            (
                Goal { max: 12, ..GOAL },
                11,
                found(11, None, 12),
                vec![1, 2, 4, 8, 12, 10, 11, 11, 12],
            ),
            (Goal { from: 5, max: 12, ..GOAL }, 4, found(None, None, 5), vec![5, 5]),
            (Goal { from: 5, max: 5, ..GOAL }, 9, found(5, None, None), vec![5, 5]),
        ] {
            let (search, seen) = run(goal, RUNS, feeds(knee));
            assert_eq!((search.found(), seen), (expected, probes), "{goal:?}");
        }
    }

    #[test]
    fn a_range_that_ends_too_early_can_be_widened() {
        let (mut search, mut probes) = (Search::new(Goal { max: 1, ..GOAL }), Vec::new());
        loop {
            if search.lies_beyond() && search.goal.max < 64 {
                // The largest number so far is measured again.
                search.values.remove(&search.goal.max);
                search.goal.max *= 4;
                continue;
            }
            let Some(number) = search.next(RUNS - probes.len() as u64) else { break };
            probes.push(number);
            search.add(number, feeds(6)(number));
        }
        assert_eq!(probes, [1, 1, 2, 4, 4, 8, 6, 7, 6, 7]);
        assert_eq!(search.found(), found(6, None, 7));
        assert_eq!(search.goal.max, 16);
        // Nothing measured lies beyond nothing.
        assert!(!Search::new(GOAL).lies_beyond());
    }

    #[test]
    fn one_value_shows_nothing() {
        let (search, probes) = run(Goal { max: 8, ..GOAL }, 4, feeds(3));
        assert_eq!(probes, [1, 2, 4, 3]);
        assert_eq!(search.found(), found(None, (1, 8), None));
        assert_eq!(search.certainty(4), Certainty::NotDecided);
        assert_eq!(search.next(0), None);
    }

    #[test]
    fn a_value_that_another_contradicts_moves_the_edge() {
        // 4 failed by chance: its second value lifts the mean, and the search goes on above it.
        let mut first = true;
        let of = |number: u64| {
            let unlucky = number == 4 && std::mem::take(&mut first);
            if unlucky { 85.0 } else { feeds(6)(number) }
        };
        let (search, probes) = run(GOAL, RUNS, of);
        assert_eq!(probes[..6], [1, 2, 4, 3, 3, 4]);
        assert_eq!(search.found(), found(6, None, 7));
    }

    #[test]
    fn the_smallest_number_is_found_where_more_of_it_helps() {
        // Each thread reads a tenth of what is needed.
        let of = |threads: u64| (10.0 * threads as f64).min(100.0);
        let goal = Goal { find: SearchTarget::Smallest, max: 64, ..GOAL };
        let (search, probes) = run(goal, RUNS, of);
        assert_eq!(
            (search.found(), probes),
            (found(9, None, 8), vec![1, 2, 4, 8, 16, 12, 10, 9, 8, 9])
        );
        assert_eq!(run(goal, RUNS, |_| 95.0).0.found(), found(1, None, None));
        assert_eq!(run(goal, RUNS, |_| 85.0).0.found(), found(None, None, 64));
        // Looked for the wrong way, not even the smallest holds.
        assert_eq!(run(GOAL, RUNS, of).0.found(), found(None, None, 1));
    }

    #[test]
    fn answers_that_rise_and_fall_are_told() {
        // 4 and 5 share a cache that 3 does not fill.
        let of = |number: u64| if [1, 2, 4, 5].contains(&number) { 95.0 } else { 80.0 };
        let (mut search, _) = run(Goal { max: 4, ..GOAL }, RUNS, of);
        assert_eq!((search.found(), search.again()), (found(4, None, None), vec![]));
        for number in [3, 3, 5, 5] {
            search.add(number, of(number));
        }
        search.add(2, 95.0);
        assert_eq!((search.found().certain, search.found().fails), (Some(2), Some(3)));
        assert_eq!(search.again(), [4, 5]);
    }

    #[test]
    fn a_number_at_the_bound_is_gone_around() {
        // 90.0 % with 5, and noise: nobody can tell whether 5 hold.
        let mut random = LegacyRandom::new(16);
        let mut undecided = 0;
        for _ in 0..200 {
            let of = |number| 450.0 / number as f64 + 1.5 * random.standard_normal();
            let (search, probes) = run(GOAL, RUNS, of);
            undecided += u32::from(search.found() == found(4, (5, 5), 6));
            assert!(probes.len() <= 20);
        }
        assert!(150 < undecided, "{undecided}");
    }

    /// The number of 500 searches in noise that decided all, and how many were wrong.
    fn in_noise(noise: f64, knee: u64) -> (u32, u32) {
        let mut random = LegacyRandom::new(2026);
        let (mut decided, mut wrong) = (0, 0);
        for _ in 0..500 {
            let of = |number| (feeds(knee)(number) + noise * random.standard_normal()).min(100.0);
            let (search, _) = run(Goal { max: 64, ..GOAL }, RUNS, of);
            let SearchBounds { certain, not_decided, fails } = search.found();
            decided += u32::from(not_decided.is_none());
            wrong +=
                u32::from(certain.is_some_and(|n| knee < n) || fails.is_some_and(|n| n <= knee));
        }
        (decided, wrong)
    }

    #[test]
    fn noise_makes_a_search_longer_and_seldom_wrong() {
        for (noise, knee, decided_of_500) in
            [(0.2, 6, 495..=500), (1.0, 6, 490..=500), (3.0, 6, 350..=450), (1.0, 40, 5..=50)]
        {
            let (decided, wrong) = in_noise(noise, knee);
            assert!(decided_of_500.contains(&decided), "{noise}, {knee}: {decided}");
            assert!(wrong <= 25, "{noise}, {knee}: {wrong}");
        }
        // Where nearly nothing can be told, little is said.
        let (decided, wrong) = in_noise(10.0, 6);
        assert!(decided <= 50 && wrong <= 25, "{decided}, {wrong}");
    }

    proptest! {
        #[test]
        fn whatever_the_answers_it_ends_and_does_not_lie(
            answers in proptest::collection::vec(80.0..100.0, 1..200),
            from in 1_u64..10, range in 0_u64..300, runs in 1_u64..60,
            find in proptest::sample::select(&SearchTarget::ALL),
        ) {
            let goal = Goal { least: 90.0, from, max: from + range, find };
            let mut at = 0;
            let of = |_| { at += 1; answers[at % answers.len()] };
            let (search, probes) = run(goal, runs, of);
            let SearchBounds { certain, not_decided, fails } = search.found();
            prop_assert!(certain.is_none_or(|n| search.certainty(n) == Certainty::Holds));
            prop_assert!(fails.is_none_or(|n| search.certainty(n) == Certainty::Fails));
            prop_assert!(not_decided.is_none() || probes.len() as u64 == runs);
            let open = not_decided.map_or(0, |(low, high)| high - low + 1);
            let (low, high) = match find {
                SearchTarget::Largest => (certain, fails),
                SearchTarget::Smallest => (fails, certain),
            };
            let low = low.map_or(from, |n| n + 1);
            prop_assert_eq!(open, high.unwrap_or(goal.max + 1) - low);
        }
    }
}
