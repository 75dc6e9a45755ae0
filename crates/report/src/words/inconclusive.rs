//! Questions that stay open, in sentences: why, what it is about, and what would tell it.

use super::number::{list, quoted, two_digits};
use super::terms::{is_percent, level, title};
use feedrate_analysis::finding::{
    EffectSize, Inconclusive, NamedLevels, Noise, OpenQuestion, OpenQuestions,
};
use feedrate_analysis::precision::REPLICATES_MIN;

/// Say why a question stays open.
pub(super) fn sentence(of: &Inconclusive) -> String {
    let (why, what, remedy) = match of {
        Inconclusive::Ignored(factors) => return ignored(factors),
        Inconclusive::Separate(names) => {
            let what = format!("what differs between {}", few(names));
            (APART, what, String::new())
        }
        Inconclusive::OnlyInvalid(factors) => {
            let what = what_do(factors);
            ("their only runs must not be used", what, "; run these again".to_string())
        }
        Inconclusive::NoReplicates { questions: of, noise } => {
            let remedy = format!("; {}", replicates(noise.as_ref()));
            ("there is one run of each (no replicates)", questions(of), remedy)
        }
        Inconclusive::TooNoisy(responses) => {
            let responses =
                responses.iter().map(|(noise, factors, widest)| too_noisy(noise, factors, widest));
            let what = responses.collect::<Vec<_>>().join("; ");
            ("the noise is too large for so few runs", what, String::new())
        }
        Inconclusive::Confounded { questions: of, lacking } => {
            let remedy = match lacking {
                Some(levels) => format!("one combination more, {},", combination(levels)),
                None => "runs that change them alone".into(),
            };
            (ALIASED, questions(of), format!("; {remedy} would tell"))
        }
        Inconclusive::Aliased(of) => {
            let (what, titles) = (subjects(of), titles(of));
            let what = format!("what {what} do together to {titles}");
            (ALIASED, what, "; a design of more runs would tell".into())
        }
        Inconclusive::TooManyLevels(of) => {
            ("there are too many levels to test one by one", questions(of), String::new())
        }
        Inconclusive::NotCrossed { missing, pairs } => {
            let s = if *pairs == 1 { "" } else { "s" };
            let what = format!("whether factors act together ({missing} of {pairs} pair{s})");
            let remedy = "; a full factorial or a 2^k design would tell".into();
            ("not all combinations of their levels were run", what, remedy)
        }
    };
    format!("cannot be told, because {why}: {what}{remedy}")
}

/// The runs that would tell it, as what to do; `None` where no runs would.
pub(crate) fn to_do(of: &Inconclusive) -> Option<String> {
    let each = |noise: &Noise| Some((noise.runs?, margin(noise), title(noise.response)));
    Some(match of {
        Inconclusive::OnlyInvalid(factors) => {
            let factors = list(factors.iter().map(with_levels));
            format!("repeat the runs of {factors}, all of which must not be used")
        }
        Inconclusive::NoReplicates { noise: None, .. } => {
            format!("make {REPLICATES_MIN} runs of each experiment: none was repeated")
        }
        Inconclusive::NoReplicates { noise: Some(noise), .. } => {
            let (runs, margin, of) = each(noise)?;
            format!("make {runs} runs of each experiment, which would tell {margin} of {of}")
        }
        Inconclusive::TooNoisy(responses) => {
            let most = responses.iter().filter_map(|(noise, ..)| each(noise));
            let (runs, margin, of) = most.max_by_key(|of| of.0)?;
            format!("make about {runs} runs of each experiment, which would tell {margin} of {of}")
        }
        Inconclusive::Confounded { lacking: Some(levels), .. } => {
            format!("run one combination more: {}", combination(levels))
        }
        Inconclusive::Confounded { questions: of, .. } => {
            format!("make runs that change {} alone", subjects(of))
        }
        Inconclusive::Aliased(_) => "use a design of more runs".into(),
        Inconclusive::NotCrossed { .. } => {
            "run all combinations of the factors (a full factorial or a 2^k design)".into()
        }
        Inconclusive::Ignored(_) | Inconclusive::Separate(_) | Inconclusive::TooManyLevels(_) => {
            return None;
        }
    })
}

/// Names are told up to here.
const NAMED_MAX: usize = 4;

fn few(names: &[String]) -> String {
    let named = names.iter().take(NAMED_MAX).map(|name| quoted(name));
    let more = (NAMED_MAX < names.len()).then(|| format!("{} more", names.len() - NAMED_MAX));
    list(named.chain(more))
}

const APART: &str =
    "they are not the same storage and data, which `feedrate compare` holds against each other";
const ALIASED: &str = "other factors always changed with them";

/// `what `format` (npz, png) does`.
fn what_do(factors: &[NamedLevels]) -> String {
    let does = if factors.len() == 1 { "does" } else { "do" };
    format!("what {} {does}", list(factors.iter().map(with_levels)))
}

fn combination(levels: &[(String, String)]) -> String {
    list(levels.iter().map(|(name, level)| format!("{} {level}", quoted(name))))
}

fn with_levels(of: &NamedLevels) -> String {
    format!("{} ({})", quoted(&of.factor), list(&of.levels))
}

fn ignored(factors: &[(Vec<NamedLevels>, Vec<String>)]) -> String {
    let text = |(factors, why): &(Vec<NamedLevels>, Vec<String>)| {
        format!("{} ({})", what_do(factors), why.join("; "))
    };
    let count: usize = factors.iter().map(|(factors, _)| factors.len()).sum();
    let it = if count == 1 { "it" } else { "them" };
    format!(
        "cannot be told, because DLIO does not act on {it}: {}; runs that differ in nothing else are taken as repeats; feedrate's loaders obey {it}",
        list(factors.iter().map(text))
    )
}

fn questions(of: &OpenQuestions) -> String {
    let act = match of.questions.as_slice() {
        [_] => "does",
        _ => "do",
    };
    format!("what {} {act} to {}", subjects(of), titles(of))
}

fn subjects(of: &OpenQuestions) -> String {
    let text = |question: &OpenQuestion| match question {
        OpenQuestion::Factor(of) if of.levels.is_empty() => quoted(&of.factor),
        OpenQuestion::Factor(of) => format!("{} at {}", quoted(&of.factor), list(&of.levels)),
        OpenQuestion::Pair([a, b]) => format!("{} with {}", quoted(a), quoted(b)),
        OpenQuestion::Pairs(pairs) => format!("{pairs} pairs of factors together"),
    };
    list(of.questions.iter().map(text))
}

fn titles(of: &OpenQuestions) -> String {
    list(of.responses.iter().map(|name| title(name)))
}

/// A response, the factors that noise hides, and how many runs would tell them.
fn too_noisy(noise: &Noise, factors: &[String], widest: &[EffectSize]) -> String {
    let factors = factors.iter().zip(widest);
    let factors =
        factors.map(|(factor, of)| format!("{} ({}, n = {})", quoted(factor), level(of), of.n));
    let runs = noise.runs.map_or(String::new(), |runs| {
        format!("; about {runs} runs of each would tell {}", margin(noise))
    });
    format!("{} by {}{runs}", title(noise.response), list(factors))
}

fn margin(noise: &Noise) -> String {
    format!("{} {}", two_digits(noise.margin), unit(noise))
}

fn unit(noise: &Noise) -> &'static str {
    if is_percent(noise.response) { "points" } else { "%" }
}

/// How many runs would do, from the noise of those that were repeated.
fn replicates(noise: Option<&Noise>) -> String {
    let Some(noise) = noise else {
        return format!(
            "two runs of each measure the noise, {REPLICATES_MIN} are advised (none was repeated, so that \
             it is not known how many it takes)"
        );
    };
    let runs = noise.runs.map_or("more than anybody makes".into(), |runs| runs.to_string());
    format!(
        "from the noise of {} in repeated runs ({:.1} {}), {runs} of each would tell {}",
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
    fn what_is_open_comes_with_what_to_do() {
        let noise =
            |runs| Noise { response: "samples_per_second", deviation: 1.0, runs, margin: 2.0 };
        let of = OpenQuestions { questions: vec![], responses: vec![] };
        let once = |noise| Inconclusive::NoReplicates { questions: of.clone(), noise };
        let noisy = vec![(noise(Some(3)), vec![], vec![]), (noise(Some(8)), vec![], vec![])];
        for (open, expected) in [
            (once(None), Some("make 5 runs of each experiment: none was repeated")),
            (once(Some(noise(None))), None),
            (
                Inconclusive::TooNoisy(noisy),
                Some("make about 8 runs of each experiment, which would tell 2 % of throughput"),
            ),
            (Inconclusive::TooNoisy(vec![(noise(None), vec![], vec![])]), None),
            (Inconclusive::Separate(vec![]), None),
        ] {
            assert_eq!(to_do(&open).as_deref(), expected, "{open:?}");
        }
    }
}
