//! 2^(k-p): a fraction of all combinations of two levels, in which each further factor is a product of the others. What that confounds is
//! part of the design (Jain, chapter 19; Box, Hunter and Hunter, chapter 6).

use super::aliases::{self, Aliases, FACTORS_MAX, Word};
use super::{DesignKind, DesignOption, DesignRequest, Laid, levels};
use feedrate_spec::problem::Problem;
use feedrate_spec::units::counted;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "fractional",
    summary: "2^(k-p): a fraction of 2^k, with what it cannot tell apart.",
    estimates: "one estimate for each chain of the alias table; from resolution 5 on, all effects of up to two factors",
    options: &[
        DesignOption {
            name: "p",
            meaning: "Factors that are products of others: 2^(k-p) runs by the standard generators.",
        },
        DesignOption {
            name: "generators",
            meaning: "Products of your own, letters in the order of factors: `D=ABC,E=-AB`.",
        },
        DesignOption {
            name: "resolution",
            meaning: "The smallest standard fraction of at least this resolution, 3 to 8.",
        },
    ],
    lay,
};

/// Generators of least aberration by (factors, p), the letters behind those of the base factors: Montgomery, "Design and Analysis of Experiments",
/// table 8.14, and Box, Hunter and Hunter, "Statistics for Experimenters", chapter 6. Those of p = 1 are the product of all.
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

/// Maximum factors; the table of aliases of more is longer than anyone reads.
const GENERATORS_MAX: usize = 11;

/// A factor that is a product of others.
#[derive(Clone, Copy, Debug)]
struct Generator {
    factor: usize,
    word: Word,
}

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    levels::two_each(asked.factors, DESIGN.name)?;
    let factors = asked.factors.len();
    if factors > FACTORS_MAX {
        return Err(Problem::error(
            "factors",
            format!("{factors} factors, there are letters for {FACTORS_MAX}"),
        )
        .hint("leave out those that matter least"));
    }
    let generators = generators(asked, factors)?;
    let defining = aliases::group(&defining_words(&generators));
    refuse_twins(&defining)?;
    let base: Vec<usize> =
        (0..factors).filter(|&i| generators.iter().all(|made| made.factor != i)).collect();
    let count = super::bounded(1_u64.checked_shl(base.len() as u32))?;
    let points = (0..count).map(|run| {
        let signs = signs(run, &base, &generators);
        levels::point(asked.factors, |i| signs >> i & 1 == 1)
    });
    let points = points.collect();
    let said = generators
        .iter()
        .map(|made| format!("{} = {}", aliases::letter(made.factor), made.word.text()));
    let aliases = Aliases::new(asked.factors, said.collect(), &defining);
    Ok(Laid { points, aliases: Some(aliases) })
}

/// The factors that are high in a run.
fn signs(run: usize, base: &[usize], generators: &[Generator]) -> u32 {
    let base = base.iter().enumerate();
    let high: u32 = base.map(|(bit, &factor)| ((run >> bit & 1) as u32) << factor).sum();
    let made = generators.iter().filter(|made| {
        let low = (made.word.factors & !high).count_ones();
        (low % 2 == 1) == made.word.is_negative
    });
    made.fold(high, |high, made| high | 1 << made.factor)
}

fn defining_words(generators: &[Generator]) -> Vec<Word> {
    let words = generators.iter();
    words.map(|made| made.word.times(Word::from_factors(1 << made.factor))).collect()
}

/// Two factors that always change together, or one that never does, are no design.
fn refuse_twins(defining: &[Word]) -> Result<(), Problem> {
    match defining.first().filter(|word| word.order() < 3) {
        None => Ok(()),
        Some(word) => {
            let message = format!("`{}` would be the same in all runs", word.text());
            Err(Problem::error("design.generators", message).hint(
                "make each factor the product of two others at least, and each of different ones",
            ))
        }
    }
}

fn generators(asked: &DesignRequest, factors: usize) -> Result<Vec<Generator>, Problem> {
    let given = asked.options.words("generators");
    let p = asked.options.count("p")?;
    let resolution = asked.options.count("resolution")?;
    match (given, p, resolution) {
        ([], Some(p), None) => standard(factors, p as usize),
        ([], None, Some(resolution)) => of_resolution(factors, resolution),
        ([_, ..], None, None) => own(given, factors),
        _ => Err(Problem::error("design", "a fraction is said in one way")
            .hint("give one of `p = 2`, `resolution = 4`, `generators = [\"D=ABC\"]`")),
    }
}

fn standard(factors: usize, p: usize) -> Result<Vec<Generator>, Problem> {
    table(factors, p).ok_or_else(|| {
        let known: Vec<String> = tabulated(factors).map(|p| p.to_string()).collect();
        let problem = Problem::error(
            "design.p",
            format!("no standard fraction 2^({factors}-{p}) is tabulated"),
        );
        problem.hint(match known.as_slice() {
            [] => {
                "a fraction needs at least three factors; of more than fifteen, give `generators`"
                    .into()
            }
            known => {
                format!("of {factors} factors, p may be {}; or give `generators`", known.join(", "))
            }
        })
    })
}

fn of_resolution(factors: usize, resolution: u32) -> Result<Vec<Generator>, Problem> {
    let mut tables = tabulated(factors).rev().filter_map(|p| table(factors, p));
    let found = tables.find(|made| {
        let words = aliases::group(&defining_words(made));
        words.first().is_some_and(|word| word.order() >= resolution)
    });
    found.ok_or_else(|| {
        let message =
            format!("no standard fraction of {factors} factors has resolution {resolution}");
        Problem::error("design.resolution", message)
            .hint("take a lower one, or `two_level` for all combinations")
    })
}

fn tabulated(factors: usize) -> impl DoubleEndedIterator<Item = usize> {
    (1..factors).filter(move |&p| table(factors, p).is_some())
}

fn table(factors: usize, p: usize) -> Option<Vec<Generator>> {
    let base = factors.checked_sub(p)?;
    if p == 1 {
        let word = Word::from_factors((1 << base) - 1);
        return (3..=15).contains(&factors).then(|| vec![Generator { factor: base, word }]);
    }
    let (_, words) = STANDARD.iter().find(|(k, words)| *k == factors && words.len() == p)?;
    let made = (base..).zip(*words);
    made.map(|(factor, text)| Some(Generator { factor, word: Word::parse(text, base).ok()? }))
        .collect()
}

fn own(given: &[String], factors: usize) -> Result<Vec<Generator>, Problem> {
    let wrong = |message: String| {
        let last = aliases::letter(factors - 1);
        Problem::error("design.generators", message).hint(format!(
            "write `D=ABC`: letters A to {last} without I, in the order of the factors; each further factor once on the left"
        ))
    };
    if given.len() > GENERATORS_MAX.min(factors - 1) {
        return Err(wrong(format!(
            "{} for {}",
            counted(given.len() as u64, "generator"),
            counted(factors as u64, "factor")
        )));
    }
    let mut made: Vec<Generator> = Vec::new();
    for text in given {
        let unread =
            |c: char| wrong(format!("`{text}`: `{c}` is no letter of a factor, or comes twice"));
        let (left, right) =
            text.split_once('=').ok_or_else(|| wrong(format!("`{text}` has no `=`")))?;
        let left = Word::parse(left, factors).map_err(unread)?;
        let word = Word::parse(right, factors).map_err(unread)?;
        if left.order() != 1 || left.is_negative {
            return Err(wrong(format!("`{text}` has not one letter on the left")));
        }
        let factor = left.factors.trailing_zeros() as usize;
        if made.iter().any(|known| known.factor == factor) {
            return Err(wrong(format!("`{}` is made twice", aliases::letter(factor))));
        }
        made.push(Generator { factor, word });
    }
    let all = made.iter().fold(0, |all, made| all | 1 << made.factor);
    if let Some(twice) = made.iter().find(|made| made.word.factors & all != 0) {
        let message = format!(
            "`{}` is made of factors that are made themselves",
            aliases::letter(twice.factor)
        );
        return Err(wrong(message));
    }
    Ok(made)
}
