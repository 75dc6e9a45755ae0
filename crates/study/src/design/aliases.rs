//! Effects of factors at two levels as words of letters, and which of them a fraction cannot tell apart. `I` is no letter: it is the mean
//! (Box, Hunter and Hunter, "Statistics for Experimenters", chapter 6; Jain, chapter 19).

use crate::factor::StudyFactor;
use schemars::JsonSchema;
use serde::Serialize;

/// In the order of factors.
const LETTERS: &[u8] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";
/// Most factors that have letters.
pub(super) const FACTORS_MAX: usize = LETTERS.len();
/// Chains of more words than this show those of up to three factors, and how many there are beside.
const CHAIN_SHOWN: usize = 7;

/// Effects that are confounded with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Aliases {
    /// Letter and name of each factor.
    pub letters: Vec<(char, String)>,
    /// How the further factors are made: `D = ABC`.
    pub generators: Vec<String>,
    /// Words equal to the mean, the shortest first.
    pub defining: Vec<String>,
    /// Length of the shortest of them.
    pub resolution: u32,
    /// Effects of up to two factors, each chain once.
    pub chains: Vec<Chain>,
}

/// Effects that have one estimate together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chain {
    /// The one of fewest factors.
    pub effect: String,
    /// Effects that it is confounded with, fewest factors first.
    pub aliases: Vec<String>,
    /// Further ones, of four factors and more.
    pub further: usize,
}

/// A product of factors with its sign: a bit for each factor.
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

    /// Read `ABC` or `-ABC`.
    ///
    /// # Errors
    /// A letter that stands for no factor, or comes twice.
    pub(super) fn parse(text: &str, factors: usize) -> Result<Word, char> {
        let text = text.trim();
        let (is_negative, letters) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
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

    /// Fewest factors first, then by letters.
    fn place(self) -> (u32, u32) {
        (self.order(), self.factors.reverse_bits() ^ u32::MAX)
    }
}

pub(super) fn letter(factor: usize) -> char {
    char::from(LETTERS[factor])
}

/// All products of the words, but the empty one.
pub(super) fn group(words: &[Word]) -> Vec<Word> {
    let mut group = vec![Word::from_factors(0)];
    for &word in words {
        let products: Vec<Word> = group.iter().map(|known| known.times(word)).collect();
        group.extend(products);
    }
    group.remove(0);
    group.sort_by_key(|word| word.place());
    group
}

impl Aliases {
    /// Aliases of a design whose `defining` words are a whole group.
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
            aliases.sort_by_key(|word| word.place());
            seen.extend(aliases.iter().map(|word| word.factors));
            let all = aliases.len();
            aliases.retain(|word| all <= CHAIN_SHOWN || word.order() <= 3);
            let further = all - aliases.len();
            let aliases = aliases.iter().map(|word| word.text()).collect();
            chains.push(Chain { effect: effect.text(), aliases, further });
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

    /// The table as text, a line each.
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
        let own = std::iter::once(&self.effect).chain(&self.aliases);
        let own: Vec<&str> = own.map(String::as_str).collect();
        let more = match self.further {
            0 => String::new(),
            further => format!(" and {further} of more factors"),
        };
        format!("{}{more}", own.join(" = "))
    }
}

/// Single factors, then pairs.
fn effects(factors: usize) -> impl Iterator<Item = Word> {
    let pairs = (0..factors).flat_map(move |i| (i + 1..factors).map(move |j| 1 << i | 1 << j));
    (0..factors).map(|i| 1 << i).chain(pairs).map(Word::from_factors)
}
