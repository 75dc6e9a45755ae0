//! Which law throughput follows over processes: the Universal Scalability Law, or Amdahl's where it adds nothing; or why neither can be told.

use super::scaling::Processes;
use super::sheet::Sheet;
use super::words::{list, plain, quoted};
use super::{FigureUnit, Figures, Finding, Kind};
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{Interval, Scaling, ScalingDoubt, amdahl, universal_scalability};

/// The law, fitted to the middle of each number of processes against the fewest. Nothing where growth is not told, or no law can be fitted.
pub(super) fn law(sheet: &Sheet) -> Option<Finding> {
    let processes = Processes::of(sheet)?;
    let fewest = processes.number(processes.levels[0]);
    let (mut points, mut cells) = (Vec::new(), Vec::new());
    for &level in &processes.levels {
        let (over, own) = match level == processes.levels[0] {
            true => (0.0, Vec::new()),
            false => {
                let (combination, over) = processes.over_linear(sheet, level)?;
                (over, combination.cells().collect())
            }
        };
        // Laws tell ratios only, so that the fewest processes may have 1.
        points.push((processes.number(level), over.exp() * processes.number(level) / fewest));
        cells.extend(own);
    }
    let universal = universal_scalability(&points).filter(|law| told(law, COHERENCE).is_some());
    let law = match universal {
        Some(law) => law,
        None => amdahl(&points)?,
    };
    let varied = &sheet.factors[processes.factor];
    let n =
        processes.levels.iter().map(|&level| runs_at(sheet, &processes, level, &cells)).min()?;
    let (title, varied, numbers) = (sheet.response.title, quoted(&varied.name), points.len());
    let runs = if n < 2 { "one run of each".into() } else { format!("n = {n}") };
    let (kind, sentence) = match untold(&law) {
        Some((why, next)) => (
            Kind::CannotTell,
            format!(
                "cannot be told, because {why}: which law {title} follows over {varied} ({numbers} numbers of them, {runs}){next}"
            ),
        ),
        None => {
            let kind = if n < 2 { Kind::NotTested } else { Kind::Scaling };
            let start = if n < 2 { "not tested: " } else { "" };
            let law = text(&law);
            let what = format!("{title} over {varied}, fitted to {numbers} numbers of them");
            (kind, format!("{start}{what}: {law}; {runs}"))
        }
    };
    let mut finding = sheet.finding(kind, &[processes.factor], sentence, cells);
    finding.supported = kind != Kind::NotTested;
    if kind != Kind::CannotTell {
        finding.figures = figures(&law, n);
        finding.doubts.extend(doubts(&law));
    }
    Some(finding)
}

/// Of the parameters of a law, its contention: in Amdahl's law the serial share.
const CONTENTION: usize = 1;
const COHERENCE: usize = 2;

fn runs_at(sheet: &Sheet, processes: &Processes, level: usize, cells: &[usize]) -> usize {
    let mut own: Vec<usize> = cells.to_vec();
    own.sort_unstable();
    own.dedup();
    let at = own.iter().filter(|&&cell| sheet.cells[cell].levels[processes.factor] == level);
    at.map(|&cell| sheet.cells[cell].values.len()).sum()
}

/// A share that is told from none, and is one: its interval lies above 0, and not beyond all.
fn told(law: &Scaling, at: usize) -> Option<Interval> {
    law.interval(at, CONFIDENCE).filter(|of| 0.0 < of.low && of.high <= 1.0)
}

/// Why the law is not told, and what follows from that; `None` where it is told.
fn untold(law: &Scaling) -> Option<(String, &'static str)> {
    if law.doubts.contains(&ScalingDoubt::Superlinear) {
        let why = "some growth is more than linear, which no law has";
        return Some((why.into(), "; that is a cache, a window or noise until it is explained"));
    }
    if !law.fits() {
        let missed = 100.0 * law.misfit;
        let why = format!("{} misses a point by {missed:.0} % of the most throughput", name(law));
        return Some((why, ""));
    }
    if told(law, CONTENTION).is_some() || told(law, COHERENCE).is_some() {
        return None;
    }
    let Some(of) = law.interval(CONTENTION, CONFIDENCE) else {
        return Some(("growth fits best without a serial share".into(), ""));
    };
    let reaches = match (of.low <= 0.0, 1.0 < of.high) {
        (true, true) => "below 0 % and beyond 100 %",
        (true, false) => "below 0 %",
        _ => "beyond 100 %",
    };
    let why = format!("the interval of the serial share reaches {reaches}");
    Some((why, "; more numbers of processes, or more runs of each, would tell"))
}

fn name(law: &Scaling) -> &'static str {
    if law.coherence > 0.0 { "the Universal Scalability Law" } else { "Amdahl's law" }
}

fn text(law: &Scaling) -> String {
    let share = |of: Interval| {
        let [middle, low, high] = [of.estimate, of.low, of.high].map(|x| plain(100.0 * x, 2));
        format!("{middle} % [{low} %, {high} %]")
    };
    let contention = told(law, CONTENTION).map(share);
    let what = match (told(law, COHERENCE).map(share), contention) {
        (None, contention) => format!(
            "{} of the work is serial, so that any number of processes does at most {} times what one does",
            contention.unwrap_or_default(),
            plain(most_times_one(law), if most_times_one(law) < 10.0 { 1 } else { 0 })
        ),
        (Some(coherence), contention) => format!(
            "coherence is {coherence} and contention {}{}",
            contention.unwrap_or("not told from none".into()),
            peak(law)
                .map_or(String::new(), |peak| format!(", most throughput at {peak:.0} processes"))
        ),
    };
    format!("by {} {what} (R² = {:.3})", name(law), law.r_squared)
}

/// What Amdahl's law grows to, in times of one.
fn most_times_one(law: &Scaling) -> f64 {
    1.0 / law.contention
}

/// Where throughput is the most, if it was not more beyond.
fn peak(law: &Scaling) -> Option<f64> {
    law.peak().filter(|_| !law.doubts.contains(&ScalingDoubt::MoreBeyondPeak))
}

fn figures(law: &Scaling, n: usize) -> Vec<Figures> {
    let name = name(law).trim_start_matches("the ");
    let figures = |what: &str, unit, value, interval| {
        Figures::new(format!("{name}, {what}"), unit, value, interval, n)
    };
    let share = |what: &str, at| {
        told(law, at).map(|of| figures(what, FigureUnit::Share, of.estimate, Some(of)))
    };
    let peak = peak(law).map(|peak| figures("peak", FigureUnit::Processes, peak, None));
    let all = [share("contention", CONTENTION), share("coherence", COHERENCE), peak];
    all.into_iter().flatten().collect()
}

fn doubts(law: &Scaling) -> Option<String> {
    let told = law.doubts.iter().filter_map(|doubt| {
        Some(match doubt {
            ScalingDoubt::FewPoints => "it is fitted to fewer than five points",
            ScalingDoubt::AtBound => "a coefficient would fit best below 0",
            ScalingDoubt::PeakBeyondData => "the most throughput lies beyond what was measured",
            ScalingDoubt::MoreBeyondPeak => {
                "more throughput was measured beyond its peak, which is not told"
            }
            ScalingDoubt::LimitBeyondData => "what it grows to lies far beyond what was measured",
            // Such a law is not told.
            ScalingDoubt::Superlinear | ScalingDoubt::Misfit => return None,
        })
    });
    let told: Vec<String> = told.map(str::to_string).collect();
    let name = name(law).trim_start_matches("the ");
    (!told.is_empty()).then(|| format!("{name}: {}", list(&told)))
}
