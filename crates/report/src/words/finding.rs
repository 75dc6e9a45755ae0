//! Findings in sentences: one rendering for every output. A sentence does not name the workload, nor repeat what a doubt says.

use super::number::{
    against, chance, change, digits, efficiency, ends, list, plain, quoted, range, share, signed,
    two_digits, unit, with_ends,
};
use super::terms::{level, title};
use super::{inconclusive, over_time};
use feedrate_analysis::finding::{
    Caveat, EffectSize, EffectUnit, Finding, FindingKind, Interaction, MainEffect, Quantity,
    Subject, WindowArtefact,
};
use feedrate_measure::metric::{Better, Metric, Unit};
use feedrate_spec::units::counted;

/// Say a finding in one sentence.
pub fn sentence(finding: &Finding) -> String {
    let title = finding.response.map_or("", title);
    let factor = finding.factors.first().map_or(String::new(), |name| quoted(name));
    match &finding.subject {
        Subject::Window(of) => window(of, &factor),
        Subject::MoreThanLinear => more_than_linear(&finding.effects[0], title, &factor),
        Subject::LeftOut { runs, all, doubts } => left_out(*runs, *all, doubts),
        Subject::MainEffect(_) if finding.kind == FindingKind::NotTested => {
            let levels: Vec<String> = finding.effects.iter().map(level).collect();
            format!("not tested: {factor} and {title}: {}", levels.join("; "))
        }
        Subject::MainEffect(of) => main_effect(of, finding, title),
        Subject::Interaction(of) => interaction(of, finding, title),
        Subject::Efficiency => linear_growth(finding, title),
        Subject::Equivalent { levels, margin } => {
            equivalent(finding, levels, *margin, &factor, title)
        }
        Subject::NoGain { level, margin } => {
            let of = &finding.effects[0];
            let gain = no_gain(of, finding.response, *margin);
            format!("more than {level} {factor}: {gain}, n = {}", of.n)
        }
        Subject::BetweenEpochs(experiments) => over_time::epochs(finding, *experiments),
        Subject::AroundCheckpoints(experiments) => over_time::checkpoints(finding, *experiments),
        Subject::Drift => drift(&finding.effects[0], title),
        Subject::Outliers { runs, cell_runs } => outliers(finding, runs, *cell_runs, title),
        Subject::Inconclusive(of) => inconclusive::sentence(of),
    }
}

fn more_than_linear(of: &EffectSize, title: &str, factor: &str) -> String {
    let Quantity::Level { level, base } = &of.quantity else { return String::new() };
    format!(
        "{title} grows more than linearly: at {level} {factor} it is {} of what {base} would grow to, \
         n = {} ({}); that is a cache or a window until it is explained",
        efficiency(of),
        of.n,
        tested(of)
    )
}

fn left_out(runs: usize, all: usize, doubts: &[(String, usize)]) -> String {
    let doubts = doubts.iter().map(|(name, runs)| format!("{} ({runs})", quoted(name)));
    let is = if runs == 1 { "is" } else { "are" };
    let all = counted(all as u64, "run");
    format!("{runs} of {all} {is} left out as invalid: {}", list(doubts))
}

fn equivalent(
    finding: &Finding,
    levels: &[String],
    margin: f64,
    factor: &str,
    title: &str,
) -> String {
    let [of] = finding.effects.as_slice() else { return String::new() };
    let Quantity::OthersAgainst(base) = &of.quantity else { return String::new() };
    let levels = match levels {
        [one] => format!("{one} is"),
        _ => "all levels are".into(),
    };
    format!(
        "{factor} makes no difference to {title} that matters: {levels} within {} {} of {base} (difference {}), \
         n = {}",
        two_digits(margin),
        unit(of),
        range(of),
        of.n
    )
}

fn outliers(finding: &Finding, runs: &[(String, f64)], of: usize, title: &str) -> String {
    let named = runs
        .iter()
        .map(|(name, score)| format!("{} (modified z-score {})", quoted(name), signed(*score, 1)));
    format!(
        "{} of {} of the same combination far from the others in {title}: {}; {}",
        runs.len(),
        counted(of as u64, "run"),
        list(named),
        median(finding)
    )
}

/// The median of the runs of a combination, with its interval.
fn median(finding: &Finding) -> String {
    let Some(of) = finding.effects.first() else { return String::new() };
    let response = finding.response.and_then(|name| Metric::find(name).ok());
    let unit = response.map_or(Unit::Percent, |response| response.unit);
    let median = with_ends(of.estimate, of.low.zip(of.high), |value| unit.text(value));
    format!("of these {}: median {median}", counted(of.n as u64, "run"))
}

fn tested(of: &EffectSize) -> String {
    chance(of.p.unwrap_or(1.0), of.tests.unwrap_or(1))
}

fn window(of: &WindowArtefact, factor: &str) -> String {
    let step = format!("from {} to {} {factor}", of.from, of.to);
    let [before, after] = of.windowed_percent;
    let by_window = format!("{before:.1} % to {after:.1} %");
    let mut whole = Vec::new();
    if let Some(rate) = of.rate {
        let percent = 100.0 * (rate - 1.0);
        let verb = if percent < 0.0 { "falls" } else { "rises" };
        let linear = of.rate_if_linear.map_or(String::new(), |linear| {
            format!(" ({:.0} % would be linear)", 100.0 * (linear - 1.0))
        });
        whole.push(format!("whole-epoch throughput {verb} by {:.0} %{linear}", percent.abs()));
    }
    if let Some([a, b]) = of.all_steps_percent {
        whole.push(format!("utilisation over all steps goes from {a:.1} % to {b:.1} %"));
    }
    let word = |falls: bool| if falls { "drop" } else { "rise" };
    let (step, claim) = match (of.is_hidden, of.all_steps_percent) {
        (true, Some([a, b])) => (
            format!("{} {step} in utilisation", word(b < a)),
            format!("is hidden by the excluded first step (windowed, {by_window})"),
        ),
        _ => (
            format!("{} {step} in windowed utilisation ({by_window})", word(after < before)),
            "is an artefact of the excluded first step".to_string(),
        ),
    };
    format!("the {step} {claim}: {}", list(&whole))
}

fn main_effect(of: &MainEffect, finding: &Finding, title: &str) -> String {
    let factor = quoted(&finding.factors[0]);
    let effects = &finding.effects;
    let claim = match of.share_percent.map(share) {
        None => format!("{factor} acts on {title}"),
        Some(share) if of.is_largest => {
            format!("{factor} matters most to {title} ({share} of its variation)")
        }
        Some(share) => format!("{factor} explains {share} of the variation of {title}"),
    };
    let levels: Vec<String> = effects.iter().map(level).collect();
    let n = effects.iter().map(|one| one.n).min().unwrap_or(0);
    let p = effects.iter().filter_map(|one| one.p).fold(0.0, f64::max);
    let tests = effects[0].tests.unwrap_or(1);
    let others = match &effects[0].quantity {
        Quantity::Level { base, .. } if !of.indistinguishable.is_empty() => {
            format!("; not told apart from {base}: {}", list(&of.indistinguishable))
        }
        _ => String::new(),
    };
    format!("{claim}: {}, n = {n} ({}){others}", levels.join("; "), chance(p, tests))
}

fn interaction(of: &Interaction, finding: &Finding, title: &str) -> String {
    let [name_a, name_b] = [0, 1].map(|at| quoted(&finding.factors[at]));
    let effect = &finding.effects[0];
    let of_variation = match effect.share_percent {
        Some(percent) => format!(" ({} of its variation)", share(percent)),
        None => String::new(),
    };
    let ([level, to], [base, from]) = (&of.levels, &of.bases);
    let step = format!("from {from} to {to} {name_b}");
    let by = |value: f64| match effect.unit {
        EffectUnit::Points => format!("{} points", signed(value, 1)),
        _ => format!("a factor of {}", plain(value, 2)),
    };
    let change = match of.changes {
        Some([with, without]) => format!(
            "{step} it changes by {} with {name_a} {level} and by {} with {base}, of which the first is {}",
            by(with),
            by(without),
            against("the second", effect)
        ),
        None => format!(
            "{step} its change with {name_a} {level} is {}",
            against(&format!("that with {base}"), effect)
        ),
    };
    format!(
        "{name_a} and {name_b} act together on {title}{of_variation}: {change}, n = {} ({})",
        effect.n,
        tested(effect)
    )
}

fn linear_growth(finding: &Finding, title: &str) -> String {
    let (of, factor) = (&finding.effects[0], quoted(&finding.factors[0]));
    let Quantity::Level { level, base } = &of.quantity else { return String::new() };
    let growth = format!(
        "{title} at {level} {factor} is {} of what {base} would grow to linearly",
        efficiency(of)
    );
    match finding.kind {
        FindingKind::NotTested => format!("not tested: {growth}, one run of each"),
        _ => format!("{growth}, n = {}", of.n),
    }
}

/// A loss, a gain that is too small, or none that was measured.
fn no_gain(of: &EffectSize, response: Option<&str>, margin: f64) -> String {
    let name = response.unwrap_or_default();
    let title = title(name);
    let Some([low, high]) = ends(of) else { return String::new() };
    if low <= 0.0 && 0.0 <= high {
        return format!("no measurable gain of {title} (difference {})", range(of));
    }
    let (verb, [least, most]) =
        if high < 0.0 { ("falls", [high, low]) } else { ("rises", [low, high]) };
    let digits = digits(high - low);
    let [least, most] = [least, most].map(|end| plain(end.abs(), digits));
    let is_higher_better = Metric::find(name).is_ok_and(|of| of.better == Better::Higher);
    let unit = unit(of);
    if is_higher_better == (low > 0.0) {
        let margin = two_digits(margin);
        format!("{title} {verb} by at most {most} {unit}, less than what matters ({margin} {unit})")
    } else {
        format!("{title} {verb} by {least} to {most} {unit}")
    }
}

fn drift(of: &EffectSize, title: &str) -> String {
    let Some([low, high]) = ends(of) else { return String::new() };
    let digits = digits(high - low);
    let [by, low, high] = [change(of, of.estimate), low, high].map(|value| signed(value, digits));
    format!(
        "{title} drifts over the order of running: {by} {} from the first repeated run to the last [{low}, {high}], n = {} ({})",
        unit(of),
        of.n,
        tested(of)
    )
}

/// Say why a finding may mislead.
pub fn caveat(of: &Caveat) -> String {
    match of {
        Caveat::RunsDoubted(name) => quoted(name),
        Caveat::ChangedTogether { factor, followers } => {
            let followers = list(followers.iter().map(|name| quoted(name)));
            format!("{followers} always changed together with {}", quoted(factor))
        }
        Caveat::Additive { lack_of_fit_p: Some(p) } => format!(
            "holds if factors do not act together, and they do: without that, the runs are missed by more than their noise (lack of fit, {})",
            chance(*p, 1)
        ),
        Caveat::Additive { lack_of_fit_p: None } => {
            "holds if factors do not act together: the design does not tell that from what each does".into()
        }
        Caveat::SharesOverlap { percent } => format!(
            "shares overlap, as levels were not run equally often together: they add up to {percent:.0} %"
        ),
        Caveat::DependsOn(factor) => format!("depends on {}", quoted(factor)),
        Caveat::NotReplicated => "a combination was run once: noise was not measured".into(),
        Caveat::OneRunOfLevel => "one run of a level".into(),
        Caveat::OutliersAreCommon => {
            "of ten runs with normal noise one set in eight has such a run".into()
        }
    }
}

/// Name the quantity of a number.
pub fn quantity(of: &Quantity) -> String {
    match of {
        Quantity::Level { level, base } => format!("{level} against {base}"),
        Quantity::OthersAgainst(base) => format!("the others against {base}"),
        Quantity::MoreThan(level) => format!("above {level} against it"),
        Quantity::Together { level, with } => format!("{level} with {with}"),
        Quantity::LastRunAgainstFirst => "last run against first".into(),
        Quantity::FirstEpoch(name) => format!("{}, first epoch against later ones", title(name)),
        Quantity::DuringCheckpoints(name) => {
            format!("{}, during checkpoints against before", title(name))
        }
        Quantity::AfterCheckpoints(name) => {
            format!("{}, after checkpoints against before", title(name))
        }
        Quantity::CheckpointDuration => "duration of a checkpoint".into(),
        Quantity::CheckpointShare => "checkpoints, of the time of the run".into(),
        Quantity::Median => "median".into(),
        Quantity::Windowed { level, base } => {
            format!("windowed utilisation, {level} against {base}")
        }
        Quantity::AllSteps { level, base } => {
            format!("utilisation over all steps, {level} against {base}")
        }
        Quantity::WholeEpochThroughput { level, base } => {
            format!("whole-epoch throughput, {level} against {base}")
        }
    }
}
