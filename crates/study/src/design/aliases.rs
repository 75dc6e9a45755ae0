//! Alias tables of fractional designs: which effects of factors at two levels are confounded. An effect is a word with a letter for each factor; `I` is
//! not used as a letter, as it denotes the mean (Box, Hunter and Hunter, "Statistics for Experimenters", chapter 6; Jain, chapter 19).

use crate::factor::StudyFactor;
use schemars::JsonSchema;
use serde::Serialize;

/// Letters of factors, in order.
const LETTERS: &[u8] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";
/// Maximum number of factors with letters.
pub(super) const FACTORS_MAX: usize = LETTERS.len();
/// Length of a chain above which only its words of up to three factors are listed; the others are counted.
const CHAIN_MAX: usize = 7;

/// Effects that are confounded with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Aliases {
    /// Letter and name of each factor.
    pub letters: Vec<(char, String)>,
    /// Generator of each further factor: `D = ABC`.
    pub generators: Vec<String>,
    /// The defining words, which are confounded with the mean, the shortest first.
    pub defining: Vec<String>,
    /// Length of the shortest defining word.
    pub resolution: u32,
    /// Chains of confounded effects of up to two factors, each once.
    pub chains: Vec<Chain>,
}

/// Effects that are confounded with each other, so that only their sum can be estimated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chain {
    /// The effect with the fewest factors.
    pub effect: String,
    /// Effects that are confounded with it, fewest factors first.
    pub aliases: Vec<String>,
    /// Number of further effects, of four factors and more.
    pub further: usize,
}

/// A signed product of factors, with one bit for each factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word {
    pub(super) factors: u32,
    pub(super) is_negative: bool,
}

impl Word {
    pub(super) fn from_factors(factors: u32) -> Word {
        Word { factors, is_negative: false }
    }

    pub(super) fn order(self) -> u32 {
        self.factors.count_ones()
    }

    pub(super) fn times(self, other: Word) -> Word {
        Word {
            factors: self.factors ^ other.factors,
            is_negative: self.is_negative != other.is_negative,
        }
    }

    /// Parses `ABC` or `-ABC`.
    ///
    /// # Errors
    /// A letter without a factor, or one that occurs twice.
    pub(super) fn parse(text: &str, factors: usize) -> Result<Word, char> {
        let trimmed = text.trim();
        let (is_negative, letters) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        let mut word = Word { is_negative, ..Word::from_factors(0) };
        for c in letters.chars() {
            let upper = c.to_ascii_uppercase();
            let index = LETTERS[..factors].iter().position(|&letter| char::from(letter) == upper);
            let bit = 1 << index.ok_or(c)?;
            if word.factors & bit != 0 {
                return Err(c);
            }
            word.factors |= bit;
        }
        Ok(word)
    }

    pub(super) fn text(self) -> String {
        if self.factors == 0 {
            return "I".into();
        }
        let sign = if self.is_negative { "-" } else { "" };
        let letters = (0..FACTORS_MAX).filter(|i| self.factors >> i & 1 == 1).map(letter);
        sign.chars().chain(letters).collect()
    }

    /// Key that sorts words by number of factors, then by letters.
    fn sort_key(self) -> (u32, u32) {
        (self.order(), self.factors.reverse_bits() ^ u32::MAX)
    }
}

pub(super) fn letter(factor: usize) -> char {
    char::from(LETTERS[factor])
}

/// All products of the words, without the empty one.
pub(super) fn group(words: &[Word]) -> Vec<Word> {
    let mut group = vec![Word::from_factors(0)];
    for &word in words {
        let products: Vec<Word> = group.iter().map(|known| known.times(word)).collect();
        group.extend(products);
    }
    group.remove(0);
    group.sort_by_key(|word| word.sort_key());
    group
}

impl Aliases {
    /// The aliases of a design with these `defining` words, which must include all their products.
    pub(super) fn new(
        factors: &[StudyFactor],
        generators: Vec<String>,
        defining: &[Word],
    ) -> Aliases {
        let mut chains: Vec<Chain> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for effect in effects(factors.len()) {
            if seen.contains(&effect.factors) {
                continue;
            }
            let mut aliases: Vec<Word> = defining.iter().map(|word| word.times(effect)).collect();
            aliases.sort_by_key(|word| word.sort_key());
            seen.extend(aliases.iter().map(|word| word.factors));
            let count = aliases.len();
            aliases.retain(|word| count <= CHAIN_MAX || word.order() <= 3);
            let further = count - aliases.len();
            let words = aliases.iter().map(|word| word.text()).collect();
            chains.push(Chain { effect: effect.text(), aliases: words, further });
        }
        let names = factors.iter().enumerate();
        Aliases {
            letters: names.map(|(i, factor)| (letter(i), factor.name.clone())).collect(),
            generators,
            defining: defining.iter().map(|word| word.text()).collect(),
            resolution: defining.first().map_or(0, |word| word.order()),
            chains,
        }
    }

    /// The table as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let letters = self.letters.iter().map(|(letter, name)| format!("{letter} = {name}"));
        let mut lines = vec![
            format!("factors: {}", letters.collect::<Vec<_>>().join(", ")),
            format!("generators: {}", self.generators.join(", ")),
            format!("resolution {}", self.resolution),
        ];
        lines.extend(self.chains.iter().map(Chain::line));
        lines
    }
}

impl Chain {
    fn line(&self) -> String {
        let words = std::iter::once(&self.effect).chain(&self.aliases);
        let words: Vec<&str> = words.map(String::as_str).collect();
        let rest = match self.further {
            0 => String::new(),
            further => format!(" and {further} with more factors"),
        };
        format!("{}{rest}", words.join(" = "))
    }
}

/// Effects of single factors, then of pairs.
fn effects(factors: usize) -> impl Iterator<Item = Word> {
    let pairs = (0..factors).flat_map(move |i| (i + 1..factors).map(move |j| 1 << i | 1 << j));
    (0..factors).map(|i| 1 << i).chain(pairs).map(Word::from_factors)
}
