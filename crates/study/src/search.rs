//! The largest whole number at which a response still holds: it doubles until one fails, halves the gap, and measures the two numbers at the
//! edge again. Decides only; whoever asks runs.
//!
//! The next step follows from the values alone, so that nothing is measured twice for nothing and an answer that contradicts an earlier one moves the edge. With
//! answers that fall as the number grows, it takes at most 2 · log2(n) + 2 + 2 · (replicates − 1) values for an edge at n, counted from a start at 1.

use feedrate_measure::stats;
use std::collections::BTreeMap;

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The response holds from here on.
    pub least: f64,
    /// The smallest number, at least 1.
    pub from: u64,
    /// The largest number.
    pub max: u64,
    /// Values at each of the two numbers around the edge.
    pub replicates: u64,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    goal: Goal,
    values: BTreeMap<u64, Vec<f64>>,
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStep {
    /// Measure at this number.
    Probe(u64),
    /// It is over.
    Found(Edge),
}

/// Where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It holds here, and not at the next number.
    At(u64),
    /// It holds at the largest number.
    AtMax(u64),
    /// It does not hold at the smallest.
    BelowFrom,
}

impl Edge {
    /// The largest number at which it holds, if there is one.
    pub fn number(self) -> Option<u64> {
        match self {
            Edge::At(number) | Edge::AtMax(number) => Some(number),
            Edge::BelowFrom => None,
        }
    }

    /// The numbers whose values decide it, in a search from `from`.
    pub fn around(self, from: u64) -> Vec<u64> {
        match self {
            Edge::At(number) => vec![number, number + 1],
            Edge::AtMax(number) => vec![number],
            Edge::BelowFrom => vec![from],
        }
    }
}

impl Search {
    /// Nothing is measured yet.
    pub fn new(goal: Goal) -> Self {
        Search { goal, values: BTreeMap::new() }
    }

    /// A value was measured at `number`.
    pub fn tell(&mut self, number: u64, value: f64) {
        self.values.entry(number).or_default().push(value);
    }

    /// Measured values, by number.
    pub fn values(&self) -> &BTreeMap<u64, Vec<f64>> {
        &self.values
    }

    /// Whether the mean at `number` holds; `None` where nothing was measured.
    pub fn holds(&self, number: u64) -> Option<bool> {
        stats::mean(self.values.get(&number)?).map(|mean| self.goal.least <= mean)
    }

    /// Numbers above the edge at which it held all the same: answers that do not fall.
    pub fn holds_above(&self, edge: Edge) -> Vec<u64> {
        let fails = match edge {
            Edge::At(number) => number + 1,
            Edge::AtMax(_) => return Vec::new(),
            Edge::BelowFrom => self.goal.from,
        };
        let above = self.values.range(fails + 1..).map(|(&number, _)| number);
        above.filter(|&number| self.holds(number) == Some(true)).collect()
    }

    /// Decide the next step. Each number is measured `replicates` times at most, so that it comes to an end whatever the answers.
    pub fn next(&self) -> SearchStep {
        let Goal { from, max, .. } = self.goal;
        let fails = self.values.keys().copied().find(|&number| self.holds(number) == Some(false));
        let below = |end: u64| self.values.range(..end).map(|(&number, _)| number).next_back();
        match (below(fails.unwrap_or(u64::MAX)), fails) {
            (None, None) => SearchStep::Probe(from),
            (Some(highest), None) if highest < max => {
                SearchStep::Probe(highest.saturating_mul(2).min(max))
            }
            (Some(highest), None) => self.settled(&[highest], Edge::AtMax(highest)),
            (None, Some(lowest)) => self.settled(&[lowest], Edge::BelowFrom),
            (Some(holds), Some(fails)) if 1 < fails - holds => {
                SearchStep::Probe(holds + (fails - holds) / 2)
            }
            (Some(holds), Some(fails)) => self.settled(&[holds, fails], Edge::At(holds)),
        }
    }

    /// The edge, once the numbers around it have all their values.
    fn settled(&self, around: &[u64], edge: Edge) -> SearchStep {
        let count = |number: &u64| self.values.get(number).map_or(0, |values| values.len() as u64);
        let fewest = around.iter().copied().min_by_key(count);
        match fewest.filter(|number| count(number) < self.goal.replicates) {
            Some(number) => SearchStep::Probe(number),
            None => SearchStep::Found(edge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The edge, and the numbers in the order they were measured.
    fn run(goal: Goal, mut of: impl FnMut(u64) -> f64) -> (Edge, Search, Vec<u64>) {
        let mut search = Search::new(goal);
        let mut probes = Vec::new();
        loop {
            match search.next() {
                SearchStep::Found(edge) => return (edge, search, probes),
                SearchStep::Probe(number) => {
                    assert!((goal.from..=goal.max).contains(&number), "{number}");
                    probes.push(number);
                    search.tell(number, of(number));
                }
            }
        }
    }

    /// Utilisation that a storage allows which can feed `knee` accelerators at 90 %, and no more.
    fn feeds(knee: u64) -> impl FnMut(u64) -> f64 {
        move |number| (90.0 * (knee as f64 + 0.5) / number as f64).min(100.0)
    }

    const GOAL: Goal = Goal { least: 90.0, from: 1, max: 1 << 20, replicates: 2 };

    #[test]
    fn every_knee_is_found_in_few_runs() {
        for knee in 1..=4096 {
            let (edge, search, probes) = run(GOAL, feeds(knee));
            assert_eq!(edge, Edge::At(knee));
            let bound = 2.0 * (knee as f64).log2() + 4.0;
            assert!(probes.len() as f64 <= bound, "{knee}: {probes:?}");
            assert_eq!(search.values()[&knee].len().min(search.values()[&(knee + 1)].len()), 2);
        }
    }

    #[test]
    fn probes_double_then_halve_then_repeat() {
        assert_eq!(run(GOAL, feeds(6)).2, [1, 2, 4, 8, 6, 7, 6, 7]);
        assert_eq!(run(Goal { from: 3, replicates: 1, ..GOAL }, feeds(7)).2, [3, 6, 12, 9, 7, 8]);
    }

    #[test]
    fn the_range_ends_the_search() {
        for (goal, knee, expected, probes) in [
            (Goal { max: 12, ..GOAL }, 40, Edge::AtMax(12), vec![1, 2, 4, 8, 12, 12]),
            (Goal { max: 12, ..GOAL }, 12, Edge::AtMax(12), vec![1, 2, 4, 8, 12, 12]),
            (Goal { max: 12, ..GOAL }, 11, Edge::At(11), vec![1, 2, 4, 8, 12, 10, 11, 11, 12]),
            (Goal { from: 5, max: 12, ..GOAL }, 4, Edge::BelowFrom, vec![5, 5]),
            (Goal { from: 5, max: 5, replicates: 1, ..GOAL }, 9, Edge::AtMax(5), vec![5]),
        ] {
            let (edge, _, seen) = run(goal, feeds(knee));
            assert_eq!((edge, seen), (expected, probes), "{goal:?}");
        }
    }

    #[test]
    fn a_value_that_another_contradicts_moves_the_edge() {
        // 4 failed by chance: its second value lifts the mean, and the search goes on above it.
        let mut first = true;
        let of = |number: u64| {
            let unlucky = number == 4 && std::mem::take(&mut first);
            if unlucky { 85.0 } else { feeds(6)(number) }
        };
        let (edge, _, probes) = run(GOAL, of);
        assert_eq!((edge, probes), (Edge::At(6), vec![1, 2, 4, 3, 3, 4, 8, 6, 7, 6, 7]));
    }

    #[test]
    fn answers_that_do_not_fall_are_told() {
        let mut search = Search::new(GOAL);
        for (number, value) in [(1, 95.0), (2, 80.0), (4, 95.0)] {
            search.tell(number, value);
        }
        assert_eq!(search.holds_above(Edge::At(1)), [4]);
        assert!(search.holds_above(Edge::AtMax(4)).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_the_answers_it_ends_and_does_not_lie(
            answers in proptest::collection::vec(80.0..100.0, 1..2000),
            from in 1_u64..10, range in 0_u64..300, replicates in 1_u64..4,
        ) {
            let goal = Goal { least: 90.0, from, max: from + range, replicates };
            let mut at = 0;
            let of = |_| { at += 1; answers[at % answers.len()] };
            let (edge, search, probes) = run(goal, of);
            prop_assert!(probes.len() as u64 <= (range + 1) * replicates);
            let all = |number| search.values()[&number].len() as u64 == replicates;
            match edge {
                Edge::At(number) => {
                    prop_assert_eq!(search.holds(number), Some(true));
                    prop_assert_eq!(search.holds(number + 1), Some(false));
                    prop_assert!(all(number) && all(number + 1));
                }
                Edge::AtMax(number) => {
                    prop_assert_eq!(number, goal.max);
                    prop_assert!(search.holds(number) == Some(true) && all(number));
                }
                Edge::BelowFrom => {
                    prop_assert!(search.holds(from) == Some(false) && all(from));
                }
            }
        }
    }
}
