//! Which law throughput follows over processes: the Universal Scalability Law beside Amdahl's, each with what is to be doubted of it.

use super::scaling::Processes;
use super::sheet::Sheet;
use super::words::{list, plain, quoted};
use super::{FigureUnit, Figures, Finding, Kind};
use crate::precision::CONFIDENCE;
use feedrate_measure::stats::{Scaling, ScalingDoubt, amdahl, universal_scalability};

/// Both laws, fitted to the middle of each number of processes against the fewest. Nothing where growth is not told, or neither can be fitted.
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
        // So that the fewest processes have as much as they are linear from one.
        points.push((processes.number(level), over.exp() * processes.number(level) / fewest));
        cells.extend(own);
    }
    let (universal, amdahl) = (universal_scalability(&points), amdahl(&points)?);
    let is_coherent = universal.as_ref().is_some_and(is_coherent);
    let mut parts = vec![amdahl_text(&amdahl)];
    match universal.as_ref().filter(|_| is_coherent) {
        Some(law) => parts.insert(0, universal_text(law)),
        None => parts.extend(universal.as_ref().map(|law| {
            format!(
                "the Universal Scalability Law adds nothing, as its coherence of {} is not told from none",
                share(law, 2, law.coherence)
            )
        })),
    }
    let varied = &sheet.factors[processes.factor];
    let n =
        processes.levels.iter().map(|&level| runs_at(sheet, &processes, level, &cells)).min()?;
    let sentence = format!(
        "{} over {}, fitted to {} numbers of them: {}; {}",
        sheet.response.title,
        quoted(&varied.name),
        points.len(),
        parts.join("; "),
        if n < 2 { "one run of each".into() } else { format!("n = {n}") }
    );
    let mut finding = sheet.finding(Kind::Scaling, &[processes.factor], sentence, cells);
    let laws = [("Amdahl's law", Some(&amdahl)), ("Universal Scalability Law", universal.as_ref())];
    for (name, law) in laws.into_iter().filter_map(|(name, law)| Some((name, law?))) {
        finding.figures.extend(figures(name, law, n));
        let is_told = is_coherent || name == "Amdahl's law";
        finding.doubts.extend(doubts(name, law).into_iter().filter(|_| is_told));
    }
    if n < 2 {
        finding.supported = false;
        finding.kind = Kind::NotTested;
        finding.sentence.insert_str(0, "not tested: ");
    }
    Some(finding)
}

fn runs_at(sheet: &Sheet, processes: &Processes, level: usize, cells: &[usize]) -> usize {
    let mut own: Vec<usize> = cells.to_vec();
    own.sort_unstable();
    own.dedup();
    let at = own.iter().filter(|&&cell| sheet.cells[cell].levels[processes.factor] == level);
    at.map(|&cell| sheet.cells[cell].values.len()).sum()
}

/// Whether coherence is told from none.
fn is_coherent(law: &Scaling) -> bool {
    law.interval(2, CONFIDENCE).is_some_and(|of| 0.0 < of.low)
}

fn share(law: &Scaling, at: usize, value: f64) -> String {
    let of = law.interval(at, CONFIDENCE);
    let ends = of.map_or(String::new(), |of| {
        format!(" [{} %, {} %]", plain(100.0 * of.low, 2), plain(100.0 * of.high, 2))
    });
    format!("{} %{ends}", plain(100.0 * value, 2))
}

fn amdahl_text(law: &Scaling) -> String {
    let most = limit(law).map_or(String::new(), |most| {
        format!(", so that more processes come to at most {} times one", plain(most, 0))
    });
    format!(
        "by Amdahl's law {} of the work is serial{most} (R² = {:.3})",
        share(law, 1, law.contention),
        law.r_squared
    )
}

fn universal_text(law: &Scaling) -> String {
    let peak = law.peak();
    let peak =
        peak.map_or(String::new(), |peak| format!(", most throughput at {peak:.0} processes"));
    format!(
        "by the Universal Scalability Law contention is {} and coherence {}{peak} (R² = {:.3})",
        share(law, 1, law.contention),
        share(law, 2, law.coherence),
        law.r_squared
    )
}

/// What Amdahl's law grows to, in times of one; told where the serial share is told from none.
fn limit(law: &Scaling) -> Option<f64> {
    let is_serial = law.interval(1, CONFIDENCE).is_some_and(|of| 0.0 < of.low);
    is_serial.then(|| 1.0 / law.contention)
}

fn figures(name: &str, law: &Scaling, n: usize) -> Vec<Figures> {
    let of = |what: &str, unit, at: usize, value| {
        Figures::new(format!("{name}, {what}"), unit, value, law.interval(at, CONFIDENCE), n)
    };
    let contention = of("contention", FigureUnit::Share, 1, law.contention);
    let coherence = of("coherence", FigureUnit::Share, 2, law.coherence);
    let peak = law
        .peak()
        .filter(|_| is_coherent(law))
        .map(|peak| Figures::new(format!("{name}, peak"), FigureUnit::Processes, peak, None, n));
    let has_coherence = law.coherence > 0.0;
    let all = [Some(contention), Some(coherence).filter(|_| has_coherence), peak];
    all.into_iter().flatten().collect()
}

fn doubts(name: &str, law: &Scaling) -> Vec<String> {
    let told = law.doubts.iter().map(|doubt| match doubt {
        ScalingDoubt::FewPoints => "it is fitted to fewer than five points".to_string(),
        ScalingDoubt::Superlinear => {
            "some growth is more than linear, which it does not have".into()
        }
        ScalingDoubt::AtBound => "a coefficient would fit best below 0".into(),
        ScalingDoubt::PeakBeyondData => "the most throughput lies beyond what was measured".into(),
        ScalingDoubt::Misfit => {
            format!("it misses a point by {:.0} % of the most throughput", 100.0 * law.misfit)
        }
        ScalingDoubt::LimitBeyondData => {
            "what it grows to lies far beyond what was measured".into()
        }
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { Vec::new() } else { vec![format!("{name}: {}", list(&told))] }
}
