//! Fractional factorial designs 2^(k-p): p of the k factors are products of the others. Some effects are therefore confounded. The table of these effects
//! is part of the design (Jain, chapter 19; Box, Hunter and Hunter, chapter 6).

use super::aliases::{self, Aliases, FACTORS_MAX, Word};
use super::{DesignKind, DesignOption, DesignPoints, DesignRequest, levels};
use feedrate_spec::problem::Problem;
use feedrate_spec::units::counted;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "fractional",
    summary: "2^(k-p): a fraction of 2^k, with a table of the effects that it confounds.",
    estimates: "one estimate for each chain of the alias table; from resolution 5 on, all effects of up to two factors",
    options: &[
        DesignOption {
            name: "p",
            meaning: "Number of factors that are products of others: 2^(k-p) runs by the standard generators.",
        },
        DesignOption {
            name: "generators",
            meaning: "Your own products, with letters in the order of factors: `D=ABC,E=-AB`.",
        },
        DesignOption {
            name: "resolution",
            meaning: "The smallest standard fraction of at least this resolution, 3 to 8.",
        },
    ],
    create_points,
};

/// Number of factors, and a generator of minimum aberration for each of the last p factors: Montgomery, "Design and Analysis of Experiments",
/// table 8.14, and Box, Hunter and Hunter, "Statistics for Experimenters", chapter 6. For p = 1, the generator is the product of all other factors.
const STANDARD: &[(usize, &[&str])] = &[
    (5, &["AB", "AC"]),
    (6, &["ABC", "BCD"]),
    (6, &["AB", "AC", "BC"]),
    (7, &["ABCD", "ABDE"]),
    (7, &["ABC", "BCD", "ACD"]),
    (7, &["AB", "AC", "BC", "ABC"]),
    (8, &["ABCD", "ABEF"]),
    (8, &["ABC", "ABD", "BCDE"]),
    (8, &["BCD", "ACD", "ABC", "ABD"]),
    (9, &["ACDFG", "BCEFG"]),
    (9, &["ABCD", "ACEF", "CDEF"]),
    (9, &["BCDE", "ACDE", "ABDE", "ABCE"]),
    (9, &["ABC", "BCD", "ACD", "ABD", "ABCD"]),
    (10, &["ABCG", "BCDE", "ACDF"]),
    (10, &["BCDF", "ACDF", "ABDE", "ABCE"]),
    (10, &["ABCD", "ABCE", "ABDE", "ACDE", "BCDE"]),
    (10, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB"]),
    (11, &["ABCG", "BCDE", "ACDF", "ABCDEFG"]),
    (11, &["CDE", "ABCD", "ABF", "BDEF", "ADEF"]),
    (11, &["ABC", "BCD", "CDE", "ACD", "ADE", "BDE"]),
    (11, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB", "AC"]),
    (12, &["ABC", "ABD", "ACD", "BCD", "ABCD", "AB", "AC", "AD"]),
    (13, &["ABC", "ABD", "ACD", "BCD", "ABCD", "AB", "AC", "AD", "BC"]),
    (14, &["ABC", "ABD", "ACD", "BCD", "ABCD", "AB", "AC", "AD", "BC", "BD"]),
    (15, &["ABC", "ABD", "ACD", "BCD", "ABCD", "AB", "AC", "AD", "BC", "BD", "CD"]),
];

/// Maximum number of generators. Each generator doubles the number of defining words.
const GENERATORS_MAX: usize = 11;

/// A factor that is a product of others.
#[derive(Clone, Copy, Debug)]
struct Generator {
    factor: usize,
    word: Word,
}

fn create_points(request: &DesignRequest) -> Result<DesignPoints, Problem> {
    levels::require_two(request.factors, DESIGN.name)?;
    let factors = request.factors.len();
    if factors > FACTORS_MAX {
        return Err(Problem::error(
            "factors",
            format!("{factors} factors, more than the maximum of {FACTORS_MAX}"),
        )
        .hint("leave out the least important ones"));
    }
    let generators = generators(request, factors)?;
    let defining = aliases::group(&defining_words(&generators));
    refuse_constant_words(&defining)?;
    let base: Vec<usize> = (0..factors)
        .filter(|&i| generators.iter().all(|generator| generator.factor != i))
        .collect();
    let count = super::checked_count(1_u64.checked_shl(base.len() as u32))?;
    let points = (0..count).map(|run| {
        let high = high_factors(run, &base, &generators);
        levels::point(request.factors, |i| high >> i & 1 == 1)
    });
    let points = points.collect();
    let definitions = generators.iter().map(|generator| {
        format!("{} = {}", aliases::letter(generator.factor), generator.word.text())
    });
    let aliases = Aliases::new(request.factors, definitions.collect(), &defining);
    Ok(DesignPoints { points, aliases: Some(aliases) })
}

/// Returns the factors at their high level in a run, one bit for each.
fn high_factors(run: usize, base: &[usize], generators: &[Generator]) -> u32 {
    let base = base.iter().enumerate();
    let high: u32 = base.map(|(bit, &factor)| ((run >> bit & 1) as u32) << factor).sum();
    let high_generated = generators.iter().filter(|generator| {
        let low = (generator.word.factors & !high).count_ones();
        (low % 2 == 1) == generator.word.is_negative
    });
    high_generated.fold(high, |bits, generator| bits | 1 << generator.factor)
}

/// The words that are equal to the mean, one for each generator.
fn defining_words(generators: &[Generator]) -> Vec<Word> {
    let words = generators.iter();
    words.map(|generator| generator.word.times(Word::from_factors(1 << generator.factor))).collect()
}

/// Refuses designs in which a factor never changes, or two factors always change together.
fn refuse_constant_words(defining: &[Word]) -> Result<(), Problem> {
    match defining.first().filter(|word| word.order() < 3) {
        None => Ok(()),
        Some(word) => {
            let message = format!("`{}` would be the same in all runs", word.text());
            Err(Problem::error("design.generators", message).hint(
                "define each factor as the product of at least two others, and no two factors by the same product",
            ))
        }
    }
}

/// The generators that the options of the design request.
fn generators(request: &DesignRequest, factors: usize) -> Result<Vec<Generator>, Problem> {
    let given = request.options.values("generators");
    let p = request.options.count("p")?;
    let resolution = request.options.count("resolution")?;
    match (given, p, resolution) {
        ([], Some(p), None) => standard_generators(factors, p as usize),
        ([], None, Some(resolution)) => generators_with_resolution(factors, resolution),
        ([_, ..], None, None) => parse_generators(given, factors),
        _ => Err(Problem::error(
            "design",
            "a fraction needs exactly one of `p`, `resolution` and `generators`",
        )
        .hint("give one of `p = 2`, `resolution = 4`, `generators = [\"D=ABC\"]`")),
    }
}

/// The tabulated generators of 2^(factors-p).
fn standard_generators(factors: usize, p: usize) -> Result<Vec<Generator>, Problem> {
    tabulated_generators(factors, p).ok_or_else(|| {
        let known: Vec<String> = tabulated_p(factors).map(|p| p.to_string()).collect();
        let problem = Problem::error(
            "design.p",
            format!("no standard fraction 2^({factors}-{p}) is tabulated"),
        );
        problem.hint(match known.as_slice() {
            [] => {
                "a fraction needs at least three factors; for more than fifteen, give `generators`"
                    .into()
            }
            known => {
                format!(
                    "for {factors} factors, p may be {}; or give `generators`",
                    known.join(", ")
                )
            }
        })
    })
}

/// The smallest tabulated fraction of at least this resolution.
fn generators_with_resolution(factors: usize, resolution: u32) -> Result<Vec<Generator>, Problem> {
    let mut tables = tabulated_p(factors).rev().filter_map(|p| tabulated_generators(factors, p));
    let found = tables.find(|generators| {
        let words = aliases::group(&defining_words(generators));
        words.first().is_some_and(|word| word.order() >= resolution)
    });
    found.ok_or_else(|| {
        let message =
            format!("no standard fraction of {factors} factors has resolution {resolution}");
        Problem::error("design.resolution", message)
            .hint("use a lower resolution, or `two_level` for all combinations")
    })
}

/// Values of p for which a fraction is tabulated.
fn tabulated_p(factors: usize) -> impl DoubleEndedIterator<Item = usize> {
    (1..factors).filter(move |&p| tabulated_generators(factors, p).is_some())
}

/// The tabulated generators of 2^(factors-p); `None` if there are none.
fn tabulated_generators(factors: usize, p: usize) -> Option<Vec<Generator>> {
    let base = factors.checked_sub(p)?;
    if p == 1 {
        let word = Word::from_factors((1 << base) - 1);
        return (3..=15).contains(&factors).then(|| vec![Generator { factor: base, word }]);
    }
    let (_, words) = STANDARD.iter().find(|(k, words)| *k == factors && words.len() == p)?;
    let generated = (base..).zip(*words);
    generated
        .map(|(factor, text)| Some(Generator { factor, word: Word::parse(text, base).ok()? }))
        .collect()
}

/// Parses generators given by the user.
fn parse_generators(given: &[String], factors: usize) -> Result<Vec<Generator>, Problem> {
    let invalid = |message: String| {
        let last = aliases::letter(factors - 1);
        Problem::error("design.generators", message).hint(format!(
            "write `D=ABC`: letters A to {last} without I, in the order of the factors; each further factor once on the left"
        ))
    };
    if given.len() > GENERATORS_MAX.min(factors - 1) {
        return Err(invalid(format!(
            "{} for {}",
            counted(given.len() as u64, "generator"),
            counted(factors as u64, "factor")
        )));
    }
    let mut generators: Vec<Generator> = Vec::new();
    for text in given {
        let unknown_letter = |c: char| {
            invalid(format!("`{text}`: `{c}` is not the letter of a factor, or occurs twice"))
        };
        let (factor_text, word_text) =
            text.split_once('=').ok_or_else(|| invalid(format!("`{text}` has no `=`")))?;
        let left = Word::parse(factor_text, factors).map_err(unknown_letter)?;
        let word = Word::parse(word_text, factors).map_err(unknown_letter)?;
        if left.order() != 1 || left.is_negative {
            return Err(invalid(format!("`{text}` needs exactly one letter on the left")));
        }
        let factor = left.factors.trailing_zeros() as usize;
        if generators.iter().any(|known| known.factor == factor) {
            return Err(invalid(format!("`{}` is defined twice", aliases::letter(factor))));
        }
        generators.push(Generator { factor, word });
    }
    let generated = generators.iter().fold(0, |factors, generator| factors | 1 << generator.factor);
    let dependent = generators.iter().find(|generator| generator.word.factors & generated != 0);
    if let Some(dependent) = dependent {
        let message = format!(
            "`{}` is the product of factors that are products themselves",
            aliases::letter(dependent.factor)
        );
        return Err(invalid(message));
    }
    Ok(generators)
}
