//! Renders inconclusive findings as sentences: the reason, the open question, and the runs that would settle it.

use super::number::{list, quoted, two_digits};
use super::terms::{is_percent, level, shorten_levels, title};
use feedrate_analysis::finding::{
    EffectSize, Inconclusive, NamedLevels, Noise, OpenQuestion, OpenQuestions,
};
use feedrate_analysis::precision::REPLICATES_MIN;
use feedrate_spec::units::counted;

/// One sentence on an open question.
pub(super) fn sentence(finding: &Inconclusive) -> String {
    let (why, question, remedy) = match finding {
        Inconclusive::Ignored(factors) => return ignored_factors(factors),
        Inconclusive::Separate(names) => {
            let question = format!("the difference between {}", shorten_levels_list(names));
            (APART, question, String::new())
        }
        Inconclusive::OnlyInvalid(factors) => {
            let question = effect_of(factors);
            ("all of their runs are left out", question, "; run these again".to_string())
        }
        Inconclusive::NoReplicates { questions: open, noise } => {
            let remedy = format!("; {}", needed_replicates(noise.as_ref()));
            ("some combinations were run once (no replicates)", questions(open), remedy)
        }
        Inconclusive::TooNoisy(responses) => {
            let responses =
                responses.iter().map(|(noise, factors, widest)| too_noisy(noise, factors, widest));
            let question = responses.collect::<Vec<_>>().join("; ");
            ("the noise is too large for so few runs", question, String::new())
        }
        Inconclusive::Confounded { questions: open, lacking } => {
            let remedy = match lacking {
                Some(levels) => format!("also run {} to separate them", combination(levels)),
                None => "make runs that vary only one of them".into(),
            };
            (ALIASED, questions(open), format!("; {remedy}"))
        }
        Inconclusive::Aliased(open) => {
            let remedy = "; a design with more runs can separate them".into();
            (ALIASED, questions(open), remedy)
        }
        Inconclusive::TooManyLevels(open) => {
            ("there are too many levels to test one by one", questions(open), String::new())
        }
        Inconclusive::NotCrossed { missing, pairs } => {
            let pairs = counted(*pairs as u64, "pair");
            let question = format!("interactions of factors ({missing} of {pairs})");
            let remedy = "; a full factorial or a 2^k design shows them".into();
            ("not all combinations of their levels were run", question, remedy)
        }
    };
    format!("inconclusive, because {why}: {question}{remedy}")
}

/// Instructions for the runs that would settle an open question; `None` if no runs would.
pub(crate) fn to_do(finding: &Inconclusive) -> Option<String> {
    let detectable = |noise: &Noise| {
        format!("enough to detect a difference of {} in {}", margin(noise), title(noise.response))
    };
    Some(match finding {
        Inconclusive::OnlyInvalid(factors) => {
            let factors = list(factors.iter().map(with_levels));
            format!("repeat the runs of {factors}: all of them are invalid")
        }
        Inconclusive::NoReplicates { noise: None, .. } => {
            format!("run each experiment {REPLICATES_MIN} times: none was repeated")
        }
        Inconclusive::NoReplicates { noise: Some(noise), .. } => {
            format!("run each experiment {} times, {}", noise.runs?, detectable(noise))
        }
        Inconclusive::TooNoisy(responses) => {
            let feasible = responses.iter().map(|(noise, ..)| noise);
            let feasible = feasible.filter_map(|noise| Some((noise.runs?, noise)));
            let (runs, noise) = feasible.max_by_key(|(runs, _)| *runs)?;
            format!("run each experiment about {runs} times, {}", detectable(noise))
        }
        Inconclusive::Confounded { lacking: Some(levels), .. } => {
            format!("also run the combination {}", combination(levels))
        }
        Inconclusive::Confounded { questions: open, .. } => {
            format!("make runs that vary only one of {}", subjects(open))
        }
        Inconclusive::Aliased(_) => "use a design with more runs".into(),
        Inconclusive::NotCrossed { .. } => {
            "run all combinations of the factors (a full factorial or a 2^k design)".into()
        }
        Inconclusive::Ignored(_) | Inconclusive::Separate(_) | Inconclusive::TooManyLevels(_) => {
            return None;
        }
    })
}

/// Maximum number of names in a list.
const NAMED_MAX: usize = 4;

/// A list of at most [`NAMED_MAX`] names.
fn shorten_levels_list(names: &[String]) -> String {
    let named = names.iter().take(NAMED_MAX).map(|name| quoted(name));
    let more = (NAMED_MAX < names.len()).then(|| format!("{} more", names.len() - NAMED_MAX));
    list(named.chain(more))
}

const APART: &str = "they may differ in storage or data that the records do not show, which `feedrate compare` is for";
const ALIASED: &str = "other factors always changed together with them";

/// `the effect of `format` (npz and png)`.
fn effect_of(factors: &[NamedLevels]) -> String {
    format!("the effect of {}", list(factors.iter().map(with_levels)))
}

fn combination(levels: &[(String, String)]) -> String {
    list(levels.iter().map(|(name, level)| format!("{} {level}", quoted(name))))
}

fn levels(factor: &NamedLevels) -> String {
    list(shorten_levels(factor.levels.clone()))
}

fn with_levels(factor: &NamedLevels) -> String {
    format!("{} ({})", quoted(&factor.factor), levels(factor))
}

/// The sentence on factors that DLIO ignores.
fn ignored_factors(factors: &[(Vec<NamedLevels>, Vec<String>)]) -> String {
    let text = |(factors, why): &(Vec<NamedLevels>, Vec<String>)| {
        format!("{} ({})", effect_of(factors), why.join("; "))
    };
    let count: usize = factors.iter().map(|(factors, _)| factors.len()).sum();
    let pronoun = if count == 1 { "it" } else { "them" };
    format!(
        "inconclusive, because DLIO ignores {pronoun}: {}; runs that differ in nothing else count as repeats; feedrate's loaders obey {pronoun}",
        list(factors.iter().map(text))
    )
}

/// The undecided effects.
fn questions(open: &OpenQuestions) -> String {
    format!("the effect of {} on {}", subjects(open), titles(open))
}

fn subjects(open: &OpenQuestions) -> String {
    let text = |question: &OpenQuestion| match question {
        OpenQuestion::Factor(factor) if factor.levels.is_empty() => quoted(&factor.factor),
        OpenQuestion::Factor(factor) => {
            format!("{} at {}", quoted(&factor.factor), levels(factor))
        }
        OpenQuestion::Pair([a, b]) => format!("{} together with {}", quoted(a), quoted(b)),
        OpenQuestion::Pairs(pairs) => format!("{pairs} pairs of factors together"),
    };
    list(open.questions.iter().map(text))
}

fn titles(open: &OpenQuestions) -> String {
    list(open.responses.iter().map(|name| title(name)))
}

/// A response, the factors that noise hides, and the number of runs that would show them.
fn too_noisy(noise: &Noise, factors: &[String], widest: &[EffectSize]) -> String {
    let named = factors.iter().zip(widest).map(|(factor, effect)| {
        format!("{} ({}, n = {})", quoted(factor), level(effect), effect.n)
    });
    let runs = noise.runs.map_or(String::new(), |runs| {
        format!("; about {runs} runs of each are needed to detect {}", margin(noise))
    });
    format!("{} by {}{runs}", title(noise.response), list(named))
}

fn margin(noise: &Noise) -> String {
    format!("{} {}", two_digits(noise.margin), unit(noise))
}

fn unit(noise: &Noise) -> &'static str {
    if is_percent(noise.response) { "points" } else { "%" }
}

/// The number of needed runs, estimated from the noise of repeated runs.
fn needed_replicates(noise: Option<&Noise>) -> String {
    let Some(noise) = noise else {
        return format!(
            "run each at least twice to measure the noise, better {REPLICATES_MIN} times (none was repeated, so the \
             number needed is unknown)"
        );
    };
    let runs = noise.runs.map_or("an impractical number of".into(), |runs| runs.to_string());
    format!(
        "with the noise of {} in repeated runs ({:.1} {}), {runs} runs of each are needed to detect {}",
        title(noise.response),
        noise.deviation,
        unit(noise),
        margin(noise)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_questions_come_with_instructions() {
        let noise =
            |runs| Noise { response: "samples_per_second", deviation: 1.0, runs, margin: 2.0 };
        let open = OpenQuestions { questions: vec![], responses: vec![] };
        let once = |noise| Inconclusive::NoReplicates { questions: open.clone(), noise };
        let noisy = vec![(noise(Some(3)), vec![], vec![]), (noise(Some(8)), vec![], vec![])];
        for (open, expected) in [
            (once(None), Some("run each experiment 5 times: none was repeated")),
            (once(Some(noise(None))), None),
            (
                Inconclusive::TooNoisy(noisy),
                Some(
                    "run each experiment about 8 times, enough to detect a difference of 2 % in throughput",
                ),
            ),
            (Inconclusive::TooNoisy(vec![(noise(None), vec![], vec![])]), None),
            (Inconclusive::Separate(vec![]), None),
        ] {
            assert_eq!(to_do(&open).as_deref(), expected, "{open:?}");
        }
    }
}
