//! Designs: which levels are combined with which. One file a kind, one row in [`DESIGNS`].
//!
//! A design gives points, each a level of every factor or none where the baseline's stays. It knows nothing of rows, files, replicates and order;
//! those are put around all kinds alike (`randomization`).
//!
//! To add one: write its file with a `pub(super) static DESIGN`, add its `mod` line and row here. `feedrate list`,
//! `study new` and the contract tests read the table.

mod levels;
mod aliases;
mod one_factor_at_a_time;
mod full_factorial;
mod two_level;
mod fractional;
#[cfg(test)]
mod tests;

pub use aliases::{Aliases, Chain};

use crate::factor::StudyFactor;
use feedrate_spec::problem::{Problem, Problems};
use feedrate_spec::workload::nearest;

/// Every kind of design, the simplest first.
pub static DESIGNS: &[&DesignKind] = &[
    &one_factor_at_a_time::DESIGN,
    &full_factorial::DESIGN,
    &two_level::DESIGN,
    &fractional::DESIGN,
];

/// Kinds of earlier versions, each with the hint that names what to use instead.
const REPLACEMENTS: [(&str, &str); 2] = [
    (
        "plackett_burman",
        "screen with `fractional`: `resolution = 3` takes up to 15 factors, `resolution = 4` keeps main effects clear of interactions of two",
    ),
    (
        "latin_hypercube",
        "use `full_factorial` with ranges cut into levels: `{ low = 1, high = 64, steps = 4 }`",
    ),
];

/// A larger design is a mistake, and is refused before it is made.
pub const RUNS_MAX: usize = 100_000;

/// A row of the table.
pub struct DesignKind {
    /// Name as users write it, in snake_case.
    pub name: &'static str,
    /// Combinations that it makes, in one sentence.
    pub summary: &'static str,
    /// Effects that can be estimated from it, in one sentence.
    pub estimates: &'static str,
    /// Options that it takes beside factors.
    pub options: &'static [DesignOption],
    /// Lays the points. At least one factor is there, each with at least one level, and all options are known.
    lay: fn(&DesignRequest) -> Result<Laid, Problem>,
}

/// Something a kind of design can be told.
#[derive(Debug)]
pub struct DesignOption {
    /// Name as users write it.
    pub name: &'static str,
    /// Its effect, and its default.
    pub meaning: &'static str,
}

/// Input of a design.
pub struct DesignRequest<'a> {
    /// Factors to vary.
    pub factors: &'a [StudyFactor],
    /// Options of the design.
    pub options: &'a DesignOptions,
}

/// A level of each factor, in their order; `None` leaves the baseline's.
pub type Point = Vec<Option<String>>;

/// A design's output.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// Points to run, in the order of the textbook.
    pub points: Vec<Point>,
    /// Confounded effects, where the design is a fraction.
    pub aliases: Option<Aliases>,
}

/// Options of a design as they were written: name and words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesignOptions(pub Vec<(String, Vec<String>)>);

impl DesignOptions {
    /// The words of an option; none where it is not given.
    pub fn words(&self, name: &str) -> &[String] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[], |(_, words)| words)
    }

    fn count(&self, name: &str) -> Result<Option<u32>, Problem> {
        let count = match self.words(name) {
            [] => return Ok(None),
            [word] => word.parse().ok(),
            _ => None,
        };
        count.map(Some).ok_or_else(|| {
            let message =
                format!("`{}` is not a whole number from 0 up", self.words(name).join(","));
            Problem::error(key_of(name), message)
                .hint("`feedrate list designs NAME` says what it does")
        })
    }
}

impl DesignKind {
    /// Lay the points.
    ///
    /// # Errors
    /// All that is wrong with factors and options; more than [`RUNS_MAX`] points.
    pub fn lay(&self, asked: &DesignRequest) -> Result<Laid, Problems> {
        let mut problems = Problems::default();
        if asked.factors.is_empty() {
            problems.push(Problem::error("factors", "a design without factors").hint(
                "give at least one factor with its levels: `reader.read_threads = [1, 4, 8]`",
            ));
        }
        for (name, _) in &asked.options.0 {
            if self.options.iter().all(|option| option.name != name) {
                problems.push(self.unknown_option(name));
            }
        }
        if problems.has_errors() {
            return Err(problems);
        }
        Ok((self.lay)(asked)?)
    }

    fn unknown_option(&self, name: &str) -> Problem {
        let known: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        let problem = Problem::error(key_of(name), format!("`{}` has no such option", self.name));
        problem.hint(match (nearest(name, known.iter().copied()), known.as_slice()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "it takes none".into(),
            (None, known) => format!("it takes `{}`", known.join("`, `")),
        })
    }
}

/// The kind of that name; hyphens count as underscores.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static DesignKind, Problem> {
    let wanted = name.replace('-', "_");
    DESIGNS.iter().copied().find(|design| design.name == wanted).ok_or_else(|| {
        let known = DESIGNS.iter().map(|design| design.name);
        let replacement = REPLACEMENTS.iter().find(|(removed, _)| *removed == wanted);
        let hint = match (replacement, nearest(&wanted, known)) {
            (Some((_, hint)), _) => (*hint).into(),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "see `feedrate list designs`".into(),
        };
        Problem::error("design.kind", format!("there is no design `{name}`")).hint(hint)
    })
}

fn key_of(option: &str) -> String {
    format!("design.{option}")
}

/// Refuse what is too large to be meant.
fn bounded(points: Option<u64>) -> Result<usize, Problem> {
    let fits = points.and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= RUNS_MAX);
    fits.ok_or_else(|| {
        let asked =
            points.map_or("more points than can be counted".into(), |n| format!("{n} points"));
        Problem::error("design", format!("{asked}, the limit is {RUNS_MAX}"))
            .hint("take fewer factors or levels, or `fractional`, which needs fewer")
    })
}
