//! Renders findings as sentences, the same for every output. A sentence does not name the workload or repeat a doubt.

use super::number::{
    chance, change, digits, efficiency, ends, list, plain, quoted, range, relative_to, share,
    signed, two_digits, unit, with_interval,
};
use super::terms::{levels, shorten_levels, title};
use super::{inconclusive, over_time};
use feedrate_analysis::finding::{
    Caveat, EffectSize, EffectUnit, Finding, FindingKind, Interaction, MainEffect, Quantity,
    Subject, WindowArtefact,
};
use feedrate_measure::metric::{Better, Metric, Unit};
use feedrate_spec::units::counted;

/// One sentence on a finding.
pub fn sentence(finding: &Finding) -> String {
    let title = finding.response.map_or("", title);
    let factor = finding.factors.first().map_or(String::new(), |name| quoted(name));
    match &finding.subject {
        Subject::Window(artefact) => {
            let untested = if finding.is_supported { "" } else { "not tested: " };
            format!("{untested}{}", window(artefact, &factor))
        }
        Subject::MoreThanLinear => more_than_linear(&finding.effects[0], title, &factor),
        Subject::LeftOut { runs, all, doubts } => excluded_runs(*runs, *all, doubts),
        Subject::MainEffect(_) if finding.kind == FindingKind::NotTested => {
            format!("not tested: {factor} and {title}: {}", levels(&finding.effects))
        }
        Subject::MainEffect(effect) => main_effect(effect, finding, title),
        Subject::TradeOff => trade_off(finding, &factor),
        Subject::Interaction(found) => interaction(found, finding, title),
        Subject::Efficiency => linear_growth(finding, title),
        Subject::Equivalent { levels, margin } => {
            equivalent(finding, levels, *margin, &factor, title)
        }
        Subject::NoGain { level, margin } => {
            let effect = &finding.effects[0];
            let gain = no_gain(effect, finding.response, *margin);
            format!("more than {level} {factor}: {gain}, n = {}", effect.n)
        }
        Subject::BetweenEpochs(experiments) => over_time::epochs(finding, *experiments),
        Subject::AroundCheckpoints(experiments) => over_time::checkpoints(finding, *experiments),
        Subject::Drift => drift(&finding.effects[0], title),
        Subject::Outliers { runs, cell_runs } => outliers(finding, runs, *cell_runs, title),
        Subject::Inconclusive(question) => inconclusive::sentence(question),
    }
}

fn more_than_linear(effect: &EffectSize, title: &str, factor: &str) -> String {
    let Quantity::Level { level, base } = &effect.quantity else { return String::new() };
    format!(
        "{title} grows more than linearly: at {level} {factor} it is {} of what {base} would grow to, \
         n = {} ({}); suspect a cache or the measurement window until this is explained",
        efficiency(effect),
        effect.n,
        p_value(effect)
    )
}

fn excluded_runs(runs: usize, all: usize, doubts: &[(String, usize)]) -> String {
    let doubts = doubts.iter().map(|(name, runs)| format!("{} ({runs})", quoted(name)));
    let verb = if runs == 1 { "is" } else { "are" };
    let all = counted(all as u64, "run");
    format!("{runs} of {all} {verb} left out for doubts: {}", list(doubts))
}

fn equivalent(
    finding: &Finding,
    levels: &[String],
    margin: f64,
    factor: &str,
    title: &str,
) -> String {
    let [effect] = finding.effects.as_slice() else { return String::new() };
    let Quantity::OthersAgainst(base) = &effect.quantity else { return String::new() };
    let levels = match levels {
        [level] => format!("{level} is"),
        _ => "all levels are".into(),
    };
    format!(
        "{factor} makes no relevant difference to {title}: {levels} within {} {} of {base} (difference {}), \
         n = {}",
        two_digits(margin),
        unit(effect),
        range(effect),
        effect.n
    )
}

fn outliers(finding: &Finding, runs: &[(String, f64)], count: usize, title: &str) -> String {
    let verb = if runs.len() == 1 { "is" } else { "are" };
    let named = runs
        .iter()
        .map(|(name, score)| format!("{} (modified z-score {})", quoted(name), signed(*score, 1)));
    format!(
        "{} of {} of the same combination {verb} far from the others in {title}: {}; {}",
        runs.len(),
        counted(count as u64, "run"),
        list(named),
        median(finding)
    )
}

/// The median of the runs of a combination, with its interval.
fn median(finding: &Finding) -> String {
    let Some(effect) = finding.effects.first() else { return String::new() };
    let response = finding.response.and_then(|name| Metric::find(name).ok());
    let unit = response.map_or(Unit::Percent, |response| response.unit);
    let median =
        with_interval(effect.estimate, effect.low.zip(effect.high), |value| unit.text(value));
    format!("median of these {}: {median}", counted(effect.n as u64, "run"))
}

/// The p value of a tested effect.
fn p_value(effect: &EffectSize) -> String {
    chance(effect.p.unwrap_or(1.0), effect.tests.unwrap_or(1))
}

fn window(artefact: &WindowArtefact, factor: &str) -> String {
    let step = format!("from {} to {} {factor}", artefact.from, artefact.to);
    let [before, after] = artefact.windowed_percent;
    let by_window = format!("{before:.1} % to {after:.1} %");
    let mut evidence = Vec::new();
    if let Some(rate) = artefact.rate {
        let percent = 100.0 * (rate - 1.0);
        let verb = if percent < 0.0 { "falls" } else { "rises" };
        let linear = artefact.rate_if_linear.map_or(String::new(), |linear| {
            format!(" ({:.0} % would be linear)", 100.0 * (linear - 1.0))
        });
        evidence.push(format!("whole-epoch throughput {verb} by {:.0} %{linear}", percent.abs()));
    }
    if let Some([a, b]) = artefact.all_steps_percent {
        evidence.push(format!("utilisation over all steps goes from {a:.1} % to {b:.1} %"));
    }
    let word = |falls: bool| if falls { "drop" } else { "rise" };
    let (step, claim) = match (artefact.is_hidden, artefact.all_steps_percent) {
        (true, Some([a, b])) => (
            format!("{} {step} in utilisation", word(b < a)),
            format!("is hidden by the excluded first step (windowed, {by_window})"),
        ),
        _ => (
            format!("{} {step} in windowed utilisation ({by_window})", word(after < before)),
            "is an artefact of the excluded first step".to_string(),
        ),
    };
    format!("the {step} {claim}: {}", list(&evidence))
}

/// Minimum number of combinations of other factors that a sentence on averages mentions. Few are clear from the design.
const AVERAGED_MIN: usize = 10;

fn main_effect(main: &MainEffect, finding: &Finding, title: &str) -> String {
    let factor = quoted(&finding.factors[0]);
    let effects = &finding.effects;
    let claim = match main.share_percent.map(share) {
        None => format!("{factor} affects {title}"),
        Some(share) if main.is_largest => {
            format!("{factor} matters most to {title} ({share} of its variation)")
        }
        Some(share) => format!("{factor} explains {share} of the variation of {title}"),
    };
    let n = effects.iter().map(|effect| effect.n).min().unwrap_or(0);
    let p = effects.iter().filter_map(|effect| effect.p).fold(0.0, f64::max);
    let tests = effects[0].tests.unwrap_or(1);
    let others = match &effects[0].quantity {
        Quantity::Level { base, .. } if !main.indistinguishable.is_empty() => {
            let levels = list(shorten_levels(main.indistinguishable.clone()));
            format!("; no measurable difference from {base} at {levels}")
        }
        _ => String::new(),
    };
    let averaged = match main.combinations {
        0..AVERAGED_MIN => String::new(),
        count => format!(", averaged over {count} combinations of other factors"),
    };
    format!("{claim}: {}, n = {n} ({}){averaged}{others}", levels(effects), chance(p, tests))
}

/// Two responses that change in opposite directions: `batch_size` trades utilisation for throughput.
fn trade_off(finding: &Finding, factor: &str) -> String {
    let changes = finding.effects.iter().filter_map(|effect| match &effect.quantity {
        Quantity::ResponseAtLevel { response, base, .. } => Some(format!(
            "{} is {}",
            title(response),
            relative_to(&format!("that at {base}"), effect)
        )),
        _ => None,
    });
    let Some(Quantity::ResponseAtLevel { level, .. }) =
        finding.effects.first().map(|effect| &effect.quantity)
    else {
        return String::new();
    };
    let untested = if finding.is_supported { "" } else { "not tested: " };
    format!(
        "{untested}{factor} trades utilisation for throughput: at {level}, {}; compare settings by throughput",
        list(changes)
    )
}

fn interaction(found: &Interaction, finding: &Finding, title: &str) -> String {
    let name_a = quoted(&finding.factors[0]);
    let name_b = quoted(&finding.factors[1]);
    let effect = &finding.effects[0];
    let of_variation = match effect.share_percent {
        Some(percent) => format!(" ({} of its variation)", share(percent)),
        None => String::new(),
    };
    let ([level, to], [base, from]) = (&found.levels, &found.bases);
    let step = format!("from {from} to {to} {name_b}");
    let text = |value: f64| match effect.unit {
        EffectUnit::Points => format!("{} points", signed(value, 1)),
        _ => format!("a factor of {}", plain(value, 2)),
    };
    let change = match found.changes {
        Some([with, without]) => format!(
            "{step} it changes by {} with {name_a} {level} and by {} with {base}; the first is {}",
            text(with),
            text(without),
            relative_to("the second", effect)
        ),
        None => format!(
            "{step} its change with {name_a} {level} is {}",
            relative_to(&format!("that with {base}"), effect)
        ),
    };
    format!(
        "{name_a} and {name_b} interact in {title}{of_variation}: {change}, n = {} ({})",
        effect.n,
        p_value(effect)
    )
}

fn linear_growth(finding: &Finding, title: &str) -> String {
    let effect = &finding.effects[0];
    let factor = quoted(&finding.factors[0]);
    let Quantity::Level { level, base } = &effect.quantity else { return String::new() };
    let growth = format!(
        "{title} at {level} {factor} is {} of what {base} would grow to linearly",
        efficiency(effect)
    );
    match finding.kind {
        FindingKind::NotTested => {
            format!("not tested: {growth}, n = {}, as a combination was run once", effect.n)
        }
        _ => {
            let interval = effect.low.zip(effect.high);
            let may_be_linear = interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
            let estimate = if may_be_linear { "estimate: " } else { "" };
            format!("{estimate}{growth}, n = {}", effect.n)
        }
    }
}

/// A sentence on a loss, on a gain too small to matter, or on no measurable gain.
fn no_gain(effect: &EffectSize, response: Option<&str>, margin: f64) -> String {
    let name = response.unwrap_or_default();
    let title = title(name);
    let Some([low, high]) = ends(effect) else { return String::new() };
    if low <= 0.0 && 0.0 <= high {
        return format!("no measurable gain of {title} (difference {})", range(effect));
    }
    let digits = digits(high - low);
    let text = |end: f64| plain(end.abs(), digits);
    let verb = if high < 0.0 { "falls" } else { "rises" };
    let least = text(if high < 0.0 { high } else { low });
    let most = text(if high < 0.0 { low } else { high });
    let is_higher_better = Metric::find(name).is_ok_and(|metric| metric.better == Better::Higher);
    let unit = unit(effect);
    if is_higher_better == (low > 0.0) {
        let margin = two_digits(margin);
        format!("{title} {verb} by at most {most} {unit}, less than what matters ({margin} {unit})")
    } else {
        format!("{title} {verb} by {least} to {most} {unit}")
    }
}

fn drift(effect: &EffectSize, title: &str) -> String {
    let Some([low, high]) = ends(effect) else { return String::new() };
    let digits = digits(high - low);
    let text = |value| signed(value, digits);
    format!(
        "{title} drifts with the order of runs: {} {} from the first repeated run to the last [{}, {}], n = {} ({})",
        text(change(effect, effect.estimate)),
        unit(effect),
        text(low),
        text(high),
        effect.n,
        p_value(effect)
    )
}

/// A reason why a finding may mislead.
pub fn caveat(caveat: &Caveat) -> String {
    match caveat {
        Caveat::RunsDoubted(name) => quoted(name),
        Caveat::ChangedTogether { factor, followers } => {
            let followers = list(followers.iter().map(|name| quoted(name)));
            format!("{followers} always changed together with {}", quoted(factor))
        }
        Caveat::Additive { lack_of_fit_p: Some(p) } => format!(
            "assumes that factors do not interact, but the runs do not fit a model without interactions (lack of fit, {})",
            chance(*p, 1)
        ),
        Caveat::Additive { lack_of_fit_p: None } => {
            "assumes that factors do not interact, which this design cannot check".into()
        }
        Caveat::SharesOverlap { percent } => format!(
            "shares overlap, as not all combinations of levels were run equally often: they add up to {percent:.0} %"
        ),
        Caveat::DependsOn(factor) => format!("depends on {}", quoted(factor)),
        Caveat::NotReplicated => "a combination was run once: its noise was not measured".into(),
        Caveat::OneRunOfLevel => "a level has only one run".into(),
        Caveat::OutliersAreCommon => {
            "with normal noise, one in eight sets of ten runs has such an outlier".into()
        }
    }
}

/// The name of a quantity.
pub fn quantity(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Level { level, base } => format!("{level} against {base}"),
        Quantity::ResponseAtLevel { response, level, base } => {
            format!("{}, {level} against {base}", title(response))
        }
        Quantity::OthersAgainst(base) => format!("other levels against {base}"),
        Quantity::MoreThan(level) => format!("more than {level} against {level}"),
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
        Quantity::CheckpointNetCost => "net cost of a checkpoint".into(),
        Quantity::CheckpointShare => "checkpoints, share of the run's time".into(),
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
