//! Kinds of designs, which decide which levels are combined. Each kind has a file and a row in [`DESIGNS`].
//!
//! A design returns points. A point has a level for each factor, or `None` for the baseline's level. `randomization` then adds replicates and creates
//! ordered rows in the same way for all kinds.
//!
//! To add a kind: write its file with a `pub(super) static DESIGN`, add its `mod` line and row here. `feedrate list`,
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

/// Removed kinds, each with a hint that names the replacement.
const REPLACEMENTS: [(&str, &str); 2] = [
    (
        "plackett_burman",
        "screen with `fractional`: `resolution = 3` takes up to 15 factors, `resolution = 4` does not confound main effects with two-factor interactions",
    ),
    (
        "latin_hypercube",
        "use `full_factorial` with ranges cut into levels: `{ low = 1, high = 64, steps = 4 }`",
    ),
];

/// Maximum number of runs. A larger design is assumed to be a mistake, and is refused before any rows are created.
pub const RUNS_MAX: usize = 100_000;

/// A kind of design.
pub struct DesignKind {
    /// Name as users write it, in snake_case.
    pub name: &'static str,
    /// The combinations of levels, in one sentence.
    pub summary: &'static str,
    /// The effects that can be estimated, in one sentence.
    pub estimates: &'static str,
    /// Options besides the factors.
    pub options: &'static [DesignOption],
    /// Creates the points. The caller has checked that there is a factor, that each has a level, and that all options exist.
    create_points: fn(&DesignRequest) -> Result<DesignPoints, Problem>,
}

/// An option of a kind of design.
#[derive(Debug)]
pub struct DesignOption {
    /// Name as users write it.
    pub name: &'static str,
    /// Its effect and its default.
    pub meaning: &'static str,
}

/// Input of a design.
pub struct DesignRequest<'a> {
    /// Factors to vary.
    pub factors: &'a [StudyFactor],
    /// Options of the design.
    pub options: &'a DesignOptions,
}

/// A level of each factor, in order; `None` keeps the baseline's level.
pub type Point = Vec<Option<String>>;

/// Points of a design.
#[derive(Clone, Debug, Default)]
pub struct DesignPoints {
    /// Points to run, in standard order.
    pub points: Vec<Point>,
    /// Confounded effects of a fraction; `None` for other designs.
    pub aliases: Option<Aliases>,
}

/// Options of a design as written: names and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesignOptions(pub Vec<(String, Vec<String>)>);

impl DesignOptions {
    /// The values of an option; empty if it is not given.
    pub fn values(&self, name: &str) -> &[String] {
        self.0.iter().find(|(known, _)| known == name).map_or(&[], |(_, words)| words)
    }

    /// The value of an option that is a number; `None` if it is not given.
    fn count(&self, name: &str) -> Result<Option<u32>, Problem> {
        let count = match self.values(name) {
            [] => return Ok(None),
            [word] => word.parse().ok(),
            _ => None,
        };
        count.map(Some).ok_or_else(|| {
            let message =
                format!("`{}` is not a whole number from 0 up", self.values(name).join(","));
            Problem::error(option_key(name), message).hint("see `feedrate list designs NAME`")
        })
    }
}

impl DesignKind {
    /// Creates the points of a design.
    ///
    /// # Errors
    /// Invalid factors or options, or more than [`RUNS_MAX`] points.
    pub fn points(&self, request: &DesignRequest) -> Result<DesignPoints, Problems> {
        let mut problems = Problems::default();
        if request.factors.is_empty() {
            problems.push(Problem::error("factors", "a design without factors").hint(
                "give at least one factor with its levels: `reader.read_threads = [1, 4, 8]`",
            ));
        }
        for (name, _) in &request.options.0 {
            if self.options.iter().all(|option| option.name != name) {
                problems.push(self.unknown_option(name));
            }
        }
        if problems.has_errors() {
            return Err(problems);
        }
        Ok((self.create_points)(request)?)
    }

    fn unknown_option(&self, name: &str) -> Problem {
        let known: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        let problem =
            Problem::error(option_key(name), format!("`{}` has no such option", self.name));
        problem.hint(match (nearest(name, known.iter().copied()), known.as_slice()) {
            (Some(suggestion), _) => format!("did you mean `{suggestion}`?"),
            (None, []) => "this design has no options".into(),
            (None, known) => format!("its options are `{}`", known.join("`, `")),
        })
    }
}

/// Returns the kind with this name. Hyphens in the name count as underscores.
///
/// # Errors
/// There is no such kind.
pub fn find(name: &str) -> Result<&'static DesignKind, Problem> {
    let wanted = name.replace('-', "_");
    DESIGNS.iter().copied().find(|design| design.name == wanted).ok_or_else(|| {
        let known = DESIGNS.iter().map(|design| design.name);
        let replacement = REPLACEMENTS.iter().find(|(removed, _)| *removed == wanted);
        let hint = match (replacement, nearest(&wanted, known)) {
            (Some((_, hint)), _) => (*hint).into(),
            (None, Some(suggestion)) => format!("did you mean `{suggestion}`?"),
            (None, None) => "see `feedrate list designs`".into(),
        };
        Problem::error("design.kind", format!("there is no design `{name}`")).hint(hint)
    })
}

fn option_key(option: &str) -> String {
    format!("design.{option}")
}

/// Refuses more than [`RUNS_MAX`] points. `None` means that the number overflowed.
fn checked_count(points: Option<u64>) -> Result<usize, Problem> {
    let fits =
        points.and_then(|count| usize::try_from(count).ok()).filter(|&count| count <= RUNS_MAX);
    fits.ok_or_else(|| {
        let count = points
            .map_or("more points than can be counted".into(), |points| format!("{points} points"));
        Problem::error("design", format!("{count}, the limit is {RUNS_MAX}"))
            .hint("use fewer factors or levels, or `fractional`, which needs fewer points")
    })
}
