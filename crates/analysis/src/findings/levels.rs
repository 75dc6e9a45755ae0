//! What each level of a factor does against the baseline's, and which factors act together. Each cell of runs has a variance of its own (Welch, Satterthwaite).

use super::sheet::{Sheet, Told};
use super::untold::{Reason, Untold};
use super::words::{self, against, chance, list, quoted};
use super::{FigureUnit, Figures, Finding, Kind};
use crate::compare::ALPHA;
use feedrate_measure::stats::{Combination, Difference, knee};
use std::collections::BTreeSet;

/// Every test of levels on a sheet.
pub(super) struct Tests {
    pub(super) levels: Vec<LevelTest>,
    pairs: Vec<PairTest>,
}

/// A level against the base of its factor.
pub(super) struct LevelTest {
    pub(super) factor: usize,
    pub(super) level: usize,
    /// `None` where the design does not tell it.
    pub(super) told: Option<Told>,
    /// `None` where a run that it rests on was not repeated.
    pub(super) difference: Option<Difference>,
    estimate: f64,
    p: Option<f64>,
}

/// Two levels together, against each alone.
struct PairTest {
    /// Place among the pairs of the sheet.
    pair: usize,
    levels: (usize, usize),
    combination: Option<Combination>,
    difference: Option<Difference>,
    p: Option<f64>,
}

/// All of a sheet.
pub(super) fn tests(sheet: &Sheet) -> Tests {
    let mut levels = Vec::new();
    for (factor, varied) in sheet.factors.iter().enumerate() {
        let is_tested =
            |&level: &usize| level != varied.base && !varied.is_ignored(varied.base, level);
        for level in (0..varied.levels.len()).filter(is_tested) {
            let told = sheet.difference(factor, varied.base, level);
            let difference = told.as_ref().and_then(|told| told.combination.welch(&sheet.cells));
            let estimate = told.as_ref().map(|told| told.combination.estimate(&sheet.cells));
            let p = difference.and_then(|difference| difference.p());
            levels.push(LevelTest {
                factor,
                level,
                told,
                difference,
                estimate: estimate.unwrap_or(0.0),
                p,
            });
        }
    }
    let mut pairs = Vec::new();
    for (pair, &(a, b)) in sheet.pairs.iter().enumerate() {
        let others = |of: usize| {
            (0..sheet.factors[of].levels.len())
                .filter(move |&level| level != sheet.factors[of].base)
        };
        for levels in others(a).flat_map(|x| others(b).map(move |y| (x, y))) {
            let combination = sheet.interaction((a, levels.0), (b, levels.1));
            let difference = combination.as_ref().and_then(|one| one.welch(&sheet.cells));
            let p = difference.and_then(|difference| difference.p());
            pairs.push(PairTest { pair, levels, combination, difference, p });
        }
    }
    Tests { levels, pairs }
}

impl Tests {
    /// p of all, to be corrected.
    pub(super) fn p_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        let of_levels = self.levels.iter_mut().filter_map(|one| one.p.as_mut());
        of_levels.chain(self.pairs.iter_mut().filter_map(|one| one.p.as_mut()))
    }

    pub(super) fn of(&self, factor: usize) -> Vec<&LevelTest> {
        self.levels.iter().filter(|one| one.factor == factor).collect()
    }

    /// Factors that act together with this one.
    fn partners(&self, sheet: &Sheet, factor: usize) -> BTreeSet<usize> {
        let found =
            self.pairs.iter().filter(|one| is_found(one.p)).map(|one| sheet.pairs[one.pair]);
        let partner = |(a, b): (usize, usize)| match factor {
            _ if a == factor => Some(b),
            _ if b == factor => Some(a),
            _ => None,
        };
        found.filter_map(partner).collect()
    }
}

impl LevelTest {
    pub(super) fn is_found(&self) -> bool {
        is_found(self.p)
    }

    /// Runs of the level or of the base, whichever has fewer.
    pub(super) fn n(&self, sheet: &Sheet) -> usize {
        let base = sheet.factors[self.factor].base;
        let runs = |told: &Told| {
            let of = |level| sheet.runs_of(&told.combination, (self.factor, level));
            of(self.level).min(of(base))
        };
        self.told.as_ref().map_or(0, runs)
    }

    fn figures(&self, sheet: &Sheet) -> Figures {
        let varied = &sheet.factors[self.factor];
        let what = format!("{} against {}", varied.levels[self.level], varied.base_level());
        let figures = sheet.figures(what, self.estimate, self.difference.as_ref(), self.n(sheet));
        Figures { p: self.p, ..figures }
    }

    fn text(&self, sheet: &Sheet) -> String {
        let varied = &sheet.factors[self.factor];
        let (level, base) = (&varied.levels[self.level], varied.base_level());
        let figures = self.figures(sheet);
        // `8 is 2 × 1` would be a sum.
        match varied.numbers.is_some() {
            true => format!("at {level} it is {}", against(&format!("that at {base}"), &figures)),
            false => format!("{level} is {}", against(base, &figures)),
        }
    }

    pub(super) fn cells(&self) -> Vec<usize> {
        self.told.as_ref().map_or(Vec::new(), |told| told.combination.cells().collect())
    }
}

fn is_found(p: Option<f64>) -> bool {
    p.is_some_and(|p| p < ALPHA)
}

/// What is told of a factor, and what is not.
pub(super) fn told(
    sheet: &Sheet,
    factor: usize,
    tests: &Tests,
    number: usize,
    findings: &mut Vec<Finding>,
    untold: &mut Vec<Untold>,
) {
    let mut own = tests.of(factor);
    own.sort_by(|a, b| b.estimate.abs().total_cmp(&a.estimate.abs()));
    let name = quoted(&sheet.factors[factor].name);
    let confounded: Vec<&LevelTest> =
        own.iter().copied().filter(|one| one.told.is_none()).collect();
    let single = own.iter().any(|one| one.told.is_some() && one.difference.is_none());
    let is_any_found = own.iter().any(|one| one.is_found());
    if sheet.is_too_large() {
        untold.push(Untold::new(Reason::TooManyLevels, name));
        return;
    }
    if !confounded.is_empty() {
        let levels = confounded.iter().map(|one| sheet.factors[factor].levels[one.level].clone());
        let what = match confounded.len() < own.len() {
            true => format!("{name} at {}", list(&levels.collect::<Vec<_>>())),
            false => name.clone(),
        };
        untold.push(Untold::new(Reason::Confounded, what));
    }
    if single {
        untold.push(Untold::new(Reason::NoReplicates, name.clone()));
        findings.extend(not_tested(sheet, factor, &own));
    }
    if is_any_found {
        findings.push(effect(sheet, factor, &own, tests, number));
    } else if let Some(widest) = own.iter().find(|one| one.difference.is_some()) {
        let what = format!("{name} ({}, n = {})", widest.text(sheet), widest.n(sheet));
        untold.push(Untold::new(Reason::Noise, what));
    }
}

/// A factor of which at least one level was found to differ.
fn effect(
    sheet: &Sheet,
    factor: usize,
    own: &[&LevelTest],
    tests: &Tests,
    number: usize,
) -> Finding {
    let varied = &sheet.factors[factor];
    let found: Vec<&&LevelTest> = own.iter().filter(|one| one.is_found()).collect();
    let largest = found[0];
    let p = found.iter().filter_map(|one| one.p).fold(0.0, f64::max);
    let n = found.iter().map(|one| one.n(sheet)).min().unwrap_or(0);
    let what: Vec<String> = found.iter().map(|one| one.text(sheet)).collect();
    let mut sentence = format!(
        "{}: {}, n = {n} ({})",
        explains(sheet, factor),
        what.join("; "),
        chance(p, number)
    );
    let is_open = |one: &&&LevelTest| !one.is_found() && one.difference.is_some();
    let mut others: Vec<usize> = own.iter().filter(is_open).map(|one| one.level).collect();
    others.sort_unstable();
    let others: Vec<String> = others.iter().map(|&level| varied.levels[level].clone()).collect();
    if !others.is_empty() {
        sentence.push_str(&format!(
            "; not told apart from {}: {}",
            varied.base_level(),
            list(&others)
        ));
    }
    let cells: Vec<usize> = found.iter().flat_map(|one| one.cells()).collect();
    let mut finding = sheet.finding(Kind::Effect, &[factor], sentence, cells);
    let share_percent = sheet.share(factor).map(|share| 100.0 * share);
    let figures = |one: &&&LevelTest| Figures { tests: Some(number), ..one.figures(sheet) };
    finding.figures = found.iter().map(figures).collect();
    finding.figures[0].share_percent = share_percent;
    finding.magnitude = sheet.magnitude(largest.estimate);
    if found.iter().any(|one| one.told.as_ref().is_some_and(|told| told.is_additive)) {
        finding.doubts.push(match sheet.lack_of_fit_p().filter(|&p| p < ALPHA) {
            Some(p) => format!(
                "holds if factors do not act together, and they do: without that, the runs are missed by more than their noise (lack of fit, {})",
                chance(p, 1)
            ),
            None => "holds if factors do not act together: the design does not tell that from what each does".into(),
        });
    }
    finding.doubts.extend(overlap(sheet));
    for partner in tests.partners(sheet, factor) {
        finding.doubts.push(format!("depends on {}", quoted(&sheet.factors[partner].name)));
    }
    finding
}

/// Of a design that is not balanced, factors may have more together than there is: each is taken beside the others.
fn overlap(sheet: &Sheet) -> Option<String> {
    let all: f64 = (0..sheet.factors.len()).filter_map(|factor| sheet.share(factor)).sum();
    let percent = 100.0 * all;
    (101.0 <= percent).then(|| {
        format!("shares overlap, as levels were not run equally often together: they add up to {percent:.0} %")
    })
}

/// The share of a factor; of several, whether it is the largest.
fn explains(sheet: &Sheet, factor: usize) -> String {
    let (what, title) = (quoted(&sheet.factors[factor].name), sheet.response.title);
    let Some(share) = sheet.share(factor) else { return format!("{what} acts on {title}") };
    let text = words::share(100.0 * share);
    let others = (0..sheet.factors.len()).filter(|&other| other != factor);
    let others: Vec<f64> = others.filter_map(|other| sheet.share(other)).collect();
    let is_told = |of: usize| sheet.comparable(of).len() == sheet.factors[of].levels.len();
    let is_largest = !others.is_empty() && others.iter().all(|&other| other < share);
    match is_largest && (0..sheet.factors.len()).all(is_told) {
        true => format!("{what} matters most to {title} ({text} of its variation)"),
        false => format!("{what} explains {text} of the variation of {title}"),
    }
}

/// Differences between runs of which at least one was not repeated: description, no claim.
fn not_tested(sheet: &Sheet, factor: usize, own: &[&LevelTest]) -> Option<Finding> {
    let singles = own.iter().copied().filter(|one| one.told.is_some() && one.difference.is_none());
    let singles: Vec<&LevelTest> = singles.collect();
    let single = singles.first()?;
    let varied = &sheet.factors[factor];
    let told: Vec<String> = singles.iter().map(|one| one.text(sheet)).collect();
    let mut sentence = format!(
        "not tested: {} and {}: {}",
        quoted(&varied.name),
        sheet.response.title,
        told.join("; ")
    );
    if let Some(level) = bend(sheet, factor, own) {
        sentence.push_str(&format!("; the curve bends at {level}"));
    }
    let cells: Vec<usize> = singles.iter().flat_map(|one| one.cells()).collect();
    let mut finding = sheet.finding(Kind::NotTested, &[factor], sentence, cells);
    finding.figures = singles.iter().map(|one| one.figures(sheet)).collect();
    finding.magnitude = sheet.magnitude(single.estimate);
    finding.supported = false;
    finding.doubts.push("a combination was run once: noise was not measured".into());
    Some(finding)
}

/// The knee of the curve over the levels of a factor that are numbers.
fn bend<'a>(sheet: &'a Sheet, factor: usize, own: &[&LevelTest]) -> Option<&'a str> {
    let varied = &sheet.factors[factor];
    let numbers = varied.numbers.as_ref()?;
    let value = |level: usize| match level == varied.base {
        true => Some(0.0),
        false => {
            own.iter().find(|one| one.level == level && one.told.is_some()).map(|one| one.estimate)
        }
    };
    let points =
        numbers.iter().enumerate().map(|(level, &x)| Some((x, sheet.shown(value(level)?))));
    let at = knee(&points.collect::<Option<Vec<_>>>()?)?;
    Some(&varied.levels[at])
}

/// Pairs of factors that act together.
pub(super) fn together(sheet: &Sheet, tests: &Tests, number: usize) -> Vec<Finding> {
    let of_pair = |(pair, &(a, b)): (usize, &(usize, usize))| {
        let own = tests.pairs.iter().filter(|one| one.pair == pair && is_found(one.p));
        let size =
            |one: &PairTest| one.difference.map_or(0.0, |difference| difference.estimate.abs());
        let largest = own.max_by(|x, y| size(x).total_cmp(&size(y)))?;
        let (of_a, of_b) = (&sheet.factors[a], &sheet.factors[b]);
        let combination = largest.combination.as_ref()?;
        let difference = largest.difference?;
        let n = combination.cells().map(|cell| sheet.cells[cell].values.len()).min()?;
        let p = largest.p?;
        let what =
            format!("{} with {}", of_b.levels[largest.levels.1], of_a.levels[largest.levels.0]);
        let figures = Figures {
            p: Some(p),
            tests: Some(number),
            share_percent: sheet.share_of_pair(pair).map(|share| 100.0 * share),
            ..sheet.figures(what, difference.estimate, Some(&difference), n)
        };
        let share = figures.share_percent.map_or(String::new(), |percent| {
            format!(" ({} of its variation)", words::share(percent))
        });
        let sentence = format!(
            "{} and {} act together on {}{share}: {}, n = {n} ({})",
            quoted(&of_a.name),
            quoted(&of_b.name),
            sheet.response.title,
            step_with(sheet, (a, largest.levels.0), (b, largest.levels.1), &figures),
            chance(p, number)
        );
        let mut finding = sheet.finding(Kind::Effect, &[a, b], sentence, combination.cells());
        finding.figures = vec![figures];
        finding.magnitude = sheet.magnitude(difference.estimate);
        Some(finding)
    };
    sheet.pairs.iter().enumerate().filter_map(of_pair).collect()
}

/// What a step of `b` does with the level of `a` and with its base; of what it does with either too, where the same combinations of other factors have both.
fn step_with(sheet: &Sheet, a: (usize, usize), b: (usize, usize), of: &Figures) -> String {
    let (of_a, of_b) = (&sheet.factors[a.0], &sheet.factors[b.0]);
    let (level, base) = (&of_a.levels[a.1], of_a.base_level());
    let (name_a, name_b) = (quoted(&of_a.name), quoted(&of_b.name));
    let step = format!("from {} to {} {name_b}", of_b.base_level(), of_b.levels[b.1]);
    let by = |at: usize| {
        let change =
            sheet.middle((a.0, at), (b.0, b.1))? - sheet.middle((a.0, at), (b.0, of_b.base))?;
        Some(match of.unit {
            FigureUnit::Points => format!("{} points", words::signed(change, 1)),
            _ => format!("a factor of {}", words::plain(sheet.shown(change), 2)),
        })
    };
    match by(a.1).zip(by(of_a.base)) {
        Some((with, without)) => format!(
            "{step} it changes by {with} with {name_a} {level} and by {without} with {base}, of which the first is {}",
            against("the second", of)
        ),
        None => {
            format!(
                "{step} its change with {name_a} {level} is {}",
                against(&format!("that with {base}"), of)
            )
        }
    }
}

/// Pairs of factors of which cannot be told whether they act together.
pub(super) fn not_crossed(sheet: &Sheet, tests: &Tests) -> Vec<Untold> {
    let name = |&(a, b): &(usize, usize)| {
        format!("{} with {}", quoted(&sheet.factors[a].name), quoted(&sheet.factors[b].name))
    };
    let reason = |pair: usize| {
        let own = || tests.pairs.iter().filter(|one| one.pair == pair);
        if own().any(|one| one.combination.is_none()) {
            return Some(Reason::Aliased);
        }
        own().any(|one| one.difference.is_none()).then_some(Reason::NoReplicates)
    };
    let mut untold = Vec::new();
    for asked in [Reason::Aliased, Reason::NoReplicates] {
        let pairs = sheet.pairs.iter().enumerate();
        let pairs = pairs.filter(|(pair, _)| reason(*pair) == Some(asked));
        let names: Vec<String> = pairs.map(|(_, factors)| name(factors)).collect();
        match names.len() {
            0..=3 => untold.extend(names.into_iter().map(|name| Untold::new(asked, name))),
            n => untold.push(Untold::new(asked, format!("{n} pairs of factors together"))),
        }
    }
    let factors = sheet.factors.len();
    let all = factors * factors.saturating_sub(1) / 2;
    if sheet.pairs_dropped > 0 {
        let what = format!("{} pairs of factors together", sheet.pairs_dropped);
        untold.push(Untold::new(Reason::TooManyLevels, what));
    }
    let missing = all - sheet.pairs.len() - sheet.pairs_dropped;
    if missing > 0 {
        let of = if all == 1 { "pair" } else { "pairs" };
        let what = format!("whether factors act together ({missing} of {all} {of})");
        untold.push(Untold::new(Reason::NotCrossed, what));
    }
    untold
}
