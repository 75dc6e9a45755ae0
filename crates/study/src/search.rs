//! Searches for the largest or smallest integer at which a response reaches its target, by sequential tests. The search doubles the number until the
//! response crosses the target, halves the gap, and measures the two numbers at the edge until both are certain. It only decides which number to measure.
//!
//! Each decision uses all values so far and the number of remaining runs. A value that contradicts an earlier value can therefore move the edge. The
//! search skips a number that half of the remaining runs would not decide. It first decides numbers farther from the edge, and then spends the remaining
//! runs on the skipped numbers.

use feedrate_analysis::precision::{sequential_mean, would_decide};
use feedrate_measure::stats::{self, Interval};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of a search for a number of accelerators.
pub const ACCELERATORS: &str = "accelerators";

names! {
    /// The number to search for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchTarget {
        /// The largest number up to which the response holds.
        Largest = "largest",
        /// The smallest number from which on the response holds.
        Smallest = "smallest",
    }
}

names! {
    /// Conclusion about a number from its values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Certainty {
        /// The response holds.
        Holds = "holds",
        /// The response does not hold.
        Fails = "fails",
        /// There are too few values, or there is too much noise.
        NotDecided = "not_decided",
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchBounds {
    /// The largest, or smallest, number at which the response holds for certain by the test over its runs. Relevant doubts of the deciding
    /// numbers still make the answer only probable.
    pub certain: Option<u64>,
    /// First and last undecided number next to `certain`.
    pub not_decided: Option<(u64, u64)>,
    /// The nearest number beyond the undecided numbers at which the response fails for certain.
    pub fails: Option<u64>,
}

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Minimum response that counts as holding.
    pub threshold: f64,
    /// The smallest number, at least 1.
    pub from: u64,
    /// The largest number.
    pub max: u64,
    /// The number to search for.
    pub find: SearchTarget,
}

/// A search with its values so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    goal: Goal,
    values: BTreeMap<u64, Vec<f64>>,
}

impl Search {
    /// Starts a search without values.
    pub fn new(goal: Goal) -> Self {
        Search { goal, values: BTreeMap::new() }
    }

    /// Adds a value measured at `number`.
    pub fn add(&mut self, number: u64, value: f64) {
        self.values.entry(number).or_default().push(value);
    }

    /// The conclusion about `number`. A single value decides nothing.
    pub fn certainty(&self, number: u64) -> Certainty {
        match self.interval(number) {
            Some(mean) if self.goal.threshold <= mean.low => Certainty::Holds,
            Some(mean) if mean.high < self.goal.threshold => Certainty::Fails,
            _ => Certainty::NotDecided,
        }
    }

    /// The result so far.
    pub fn bounds(&self) -> SearchBounds {
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

    /// Whether the edge seems to be beyond the largest number.
    pub fn is_edge_beyond_range(&self) -> bool {
        self.likely_certainty(self.goal.max) == Some(self.expected_decisions()[0])
    }

    /// The last number that is certainly below the edge, and the first that is certainly above it.
    fn edge(&self) -> (Option<u64>, Option<u64>) {
        let [before, beyond] = self.expected_decisions();
        let above = self.numbers_decided_as(beyond).next();
        let below = self
            .numbers_decided_as(before)
            .take_while(|&number| above.is_none_or(|end| number < end));
        (below.last(), above)
    }

    /// Numbers above the edge with the decision expected below it, as for a response that rises and falls.
    pub fn contradictions(&self) -> Vec<u64> {
        let [before, beyond] = self.expected_decisions();
        let Some(edge) = self.numbers_decided_as(beyond).next() else { return Vec::new() };
        self.numbers_decided_as(before).filter(|&number| edge < number).collect()
    }

    /// Returns the number to measure next if at most `runs_left` runs remain; `None` if the search is over.
    pub fn next(&self, runs_left: u64) -> Option<u64> {
        let Goal { from, max, .. } = self.goal;
        if runs_left == 0 || self.bounds().not_decided.is_none() {
            return None;
        }
        let mut open =
            self.values.range(self.edge().0.unwrap_or(from)..).map(|(&number, _)| number);
        let above = open
            .find(|&number| self.likely_certainty(number) == Some(self.expected_decisions()[1]));
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
                let sides = [
                    self.next_on_side(below.rev(), runs_left),
                    self.next_on_side(upwards, runs_left),
                ];
                let fewest = sides.into_iter().flatten().min_by_key(|&number| self.count(number));
                fewest.or_else(|| self.least_measured())
            }
        }
    }

    /// Returns the number to measure next to decide one side of the edge. `outwards` are the measured numbers of that side, starting at the edge.
    fn next_on_side(&self, outwards: impl Iterator<Item = u64>, runs_left: u64) -> Option<u64> {
        let mut skipped = None;
        for number in outwards {
            if self.is_out_of_reach(number, runs_left) {
                skipped = Some(number);
                continue;
            }
            return match skipped {
                _ if self.certainty(number) == Certainty::NotDecided => Some(number),
                Some(skipped) if 1 < number.abs_diff(skipped) => Some(number.midpoint(skipped)),
                _ => None,
            };
        }
        None
    }

    /// Whether half of the remaining runs would not decide `number`.
    fn is_out_of_reach(&self, number: u64, runs_left: u64) -> bool {
        let count = self.count(number);
        let total = count + runs_left / 2;
        2 <= count
            && self.certainty(number) == Certainty::NotDecided
            && !would_decide(self.values_at(number), self.goal.threshold, total)
    }

    /// The skipped number with the fewest values.
    fn least_measured(&self) -> Option<u64> {
        let (first, last) = self.bounds().not_decided?;
        let open = self.values.range(first..=last).map(|(&number, _)| number);
        open.min_by_key(|&number| self.count(number))
    }

    /// The decisions that are expected below and above the edge.
    fn expected_decisions(&self) -> [Certainty; 2] {
        match self.goal.find {
            SearchTarget::Largest => [Certainty::Holds, Certainty::Fails],
            SearchTarget::Smallest => [Certainty::Fails, Certainty::Holds],
        }
    }

    /// Numbers that are decided as `wanted`.
    fn numbers_decided_as(&self, wanted: Certainty) -> impl Iterator<Item = u64> {
        self.values.keys().copied().filter(move |&number| self.certainty(number) == wanted)
    }

    /// The decision that the mean suggests, even if it is uncertain; `None` without values.
    fn likely_certainty(&self, number: u64) -> Option<Certainty> {
        let mean = stats::mean(self.values_at(number))?;
        Some(if self.goal.threshold <= mean { Certainty::Holds } else { Certainty::Fails })
    }

    /// The confidence interval on which decisions are based; `None` for fewer than two values.
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
    const GOAL: Goal = Goal { threshold: 90.0, from: 1, max: 1 << 20, find: SearchTarget::Largest };

    /// A search with at most `runs` runs, and the numbers in the order in which they were measured.
    fn run(goal: Goal, runs: u64, mut response: impl FnMut(u64) -> f64) -> (Search, Vec<u64>) {
        let mut search = Search::new(goal);
        let mut probes = Vec::new();
        while let Some(number) = search.next(runs - probes.len() as u64) {
            assert!((goal.from..=goal.max).contains(&number), "{number}");
            probes.push(number);
            search.add(number, response(number));
        }
        (search, probes)
    }

    /// Utilisation on a storage that feeds up to `knee` accelerators at 90 %.
    fn utilisation_with_knee(knee: u64) -> impl Fn(u64) -> f64 {
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
            let (search, probes) = run(GOAL, 1000, utilisation_with_knee(knee));
            assert_eq!(search.bounds(), found(knee, None, knee + 1));
            let bound = 2.0 * (knee as f64).log2() + 4.0;
            assert!(probes.len() as f64 <= bound, "{knee}: {probes:?}");
        }
    }

    #[test]
    fn probes_double_then_halve_then_repeat() {
        assert_eq!(run(GOAL, RUNS, utilisation_with_knee(6)).1, [1, 2, 4, 8, 6, 7, 6, 7]);
        assert_eq!(
            run(Goal { from: 3, ..GOAL }, RUNS, utilisation_with_knee(7)).1,
            [3, 6, 12, 9, 7, 8, 7, 8]
        );
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
            let (search, seen) = run(goal, RUNS, utilisation_with_knee(knee));
            assert_eq!((search.bounds(), seen), (expected, probes), "{goal:?}");
        }
    }

    #[test]
    fn a_range_that_ends_too_early_can_be_widened() {
        let mut search = Search::new(Goal { max: 1, ..GOAL });
        let mut probes = Vec::new();
        loop {
            if search.is_edge_beyond_range() && search.goal.max < 64 {
                // The largest number so far is measured again.
                search.values.remove(&search.goal.max);
                search.goal.max *= 4;
                continue;
            }
            let Some(number) = search.next(RUNS - probes.len() as u64) else { break };
            probes.push(number);
            search.add(number, utilisation_with_knee(6)(number));
        }
        assert_eq!(probes, [1, 1, 2, 4, 4, 8, 6, 7, 6, 7]);
        assert_eq!(search.bounds(), found(6, None, 7));
        assert_eq!(search.goal.max, 16);
        // Without values, the edge is not beyond the range.
        assert!(!Search::new(GOAL).is_edge_beyond_range());
    }

    #[test]
    fn one_value_decides_nothing() {
        let (search, probes) = run(Goal { max: 8, ..GOAL }, 4, utilisation_with_knee(3));
        assert_eq!(probes, [1, 2, 4, 3]);
        assert_eq!(search.bounds(), found(None, (1, 8), None));
        assert_eq!(search.certainty(4), Certainty::NotDecided);
        assert_eq!(search.next(0), None);
    }

    #[test]
    fn a_value_that_another_contradicts_moves_the_edge() {
        // 4 fails by chance. Its second value raises the mean, and the search continues above 4.
        let mut first = true;
        let response = |number: u64| {
            let unlucky = number == 4 && std::mem::take(&mut first);
            if unlucky { 85.0 } else { utilisation_with_knee(6)(number) }
        };
        let (search, probes) = run(GOAL, RUNS, response);
        assert_eq!(probes[..6], [1, 2, 4, 3, 3, 4]);
        assert_eq!(search.bounds(), found(6, None, 7));
    }

    #[test]
    fn the_smallest_number_is_found_if_larger_numbers_help() {
        // Each thread reads a tenth of the required rate.
        let response = |threads: u64| (10.0 * threads as f64).min(100.0);
        let goal = Goal { find: SearchTarget::Smallest, max: 64, ..GOAL };
        let (search, probes) = run(goal, RUNS, response);
        assert_eq!(
            (search.bounds(), probes),
            (found(9, None, 8), vec![1, 2, 4, 8, 16, 12, 10, 9, 8, 9])
        );
        assert_eq!(run(goal, RUNS, |_| 95.0).0.bounds(), found(1, None, None));
        assert_eq!(run(goal, RUNS, |_| 85.0).0.bounds(), found(None, None, 64));
        // In a search for the largest number, not even the smallest holds.
        assert_eq!(run(GOAL, RUNS, response).0.bounds(), found(None, None, 1));
    }

    #[test]
    fn a_response_that_rises_and_falls_is_reported() {
        // 4 and 5 share a cache that 3 does not fill.
        let response = |number: u64| if [1, 2, 4, 5].contains(&number) { 95.0 } else { 80.0 };
        let (mut search, _) = run(Goal { max: 4, ..GOAL }, RUNS, response);
        assert_eq!((search.bounds(), search.contradictions()), (found(4, None, None), vec![]));
        for number in [3, 3, 5, 5] {
            search.add(number, response(number));
        }
        search.add(2, 95.0);
        assert_eq!((search.bounds().certain, search.bounds().fails), (Some(2), Some(3)));
        assert_eq!(search.contradictions(), [4, 5]);
    }

    #[test]
    fn a_number_at_the_bound_is_skipped() {
        // The mean at 5 is exactly 90 %, so noise keeps 5 undecided.
        let mut random = LegacyRandom::new(16);
        let mut undecided = 0;
        for _ in 0..200 {
            let response = |number| 450.0 / number as f64 + 1.5 * random.standard_normal();
            let (search, probes) = run(GOAL, RUNS, response);
            undecided += u32::from(search.bounds() == found(4, (5, 5), 6));
            assert!(probes.len() <= 20);
        }
        assert!(150 < undecided, "{undecided}");
    }

    /// Of 500 searches with noise, the number that decided all numbers, and the number with a wrong result.
    fn count_decided_and_wrong(noise: f64, knee: u64) -> (u32, u32) {
        let mut random = LegacyRandom::new(2026);
        let mut decided = 0;
        let mut wrong = 0;
        for _ in 0..500 {
            let response = |number| {
                (utilisation_with_knee(knee)(number) + noise * random.standard_normal()).min(100.0)
            };
            let (search, _) = run(Goal { max: 64, ..GOAL }, RUNS, response);
            let SearchBounds { certain, not_decided, fails } = search.bounds();
            decided += u32::from(not_decided.is_none());
            wrong +=
                u32::from(certain.is_some_and(|n| knee < n) || fails.is_some_and(|n| n <= knee));
        }
        (decided, wrong)
    }

    #[test]
    fn noise_makes_a_search_longer_but_rarely_wrong() {
        for (noise, knee, decided_of_500) in
            [(0.2, 6, 495..=500), (1.0, 6, 490..=500), (3.0, 6, 350..=450), (1.0, 40, 5..=50)]
        {
            let (decided, wrong) = count_decided_and_wrong(noise, knee);
            assert!(decided_of_500.contains(&decided), "{noise}, {knee}: {decided}");
            assert!(wrong <= 25, "{noise}, {knee}: {wrong}");
        }
        // With strong noise, few numbers are decided.
        let (decided, wrong) = count_decided_and_wrong(10.0, 6);
        assert!(decided <= 50 && wrong <= 25, "{decided}, {wrong}");
    }

    proptest! {
        #[test]
        fn a_search_ends_and_matches_its_values(
            responses in proptest::collection::vec(80.0..100.0, 1..200),
            from in 1_u64..10, range in 0_u64..300, runs in 1_u64..60,
            find in proptest::sample::select(&SearchTarget::ALL),
        ) {
            let goal = Goal { threshold: 90.0, from, max: from + range, find };
            let mut index = 0;
            let response = |_| { index += 1; responses[index % responses.len()] };
            let (search, probes) = run(goal, runs, response);
            let SearchBounds { certain, not_decided, fails } = search.bounds();
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
