//! Problems of a workload: the location, the message and the remedy. All problems are collected before any is reported.

use crate::escape::one_line;
use std::fmt;

/// The location where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A line and column, both counted from 1, of a named file.
    File {
        /// The file as the user named it.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// An override on the command line, as it was typed.
    Override(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Location::Override(text) => write!(f, "override `{text}`"),
        }
    }
}

/// Whether a problem stops the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemSeverity {
    /// The command cannot continue.
    Error,
    /// The command continues, but the user should know.
    Warning,
}

/// A mistake in a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the problem stops the command.
    pub severity: ProblemSeverity,
    /// The location of the value; `None` for a default value, or if several values conflict.
    pub location: Option<Location>,
    /// The dotted key, such as `reader.batch_size`; empty if no single key is at fault.
    pub key: String,
    /// A lowercase fragment, the offending value in backticks.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl Problem {
    /// Creates an error about `key`.
    pub fn error(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            severity: ProblemSeverity::Error,
            location: None,
            key: key.into(),
            message: message.into(),
            hint: None,
        }
    }

    /// Creates an error about a value. The caller adds the key later.
    pub fn new(message: impl Into<String>) -> Self {
        Problem::error("", message)
    }

    /// Sets the key, and the location unless one is set already.
    #[must_use]
    pub fn with_key(mut self, key: &str, location: &Location) -> Self {
        self.key = key.into();
        self.location.get_or_insert_with(|| location.clone());
        self
    }

    /// Creates a warning about `key`.
    pub fn warning(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { severity: ProblemSeverity::Warning, ..Problem::error(key, message) }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the location.
    #[must_use]
    pub fn with_location(mut self, location: Option<Location>) -> Self {
        self.location = location;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            ProblemSeverity::Error => "error",
            ProblemSeverity::Warning => "warning",
        };
        write!(f, "{severity}: ")?;
        if let Some(location) = &self.location {
            write!(f, "{}: ", one_line(&location.to_string()))?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", one_line(&self.key))?;
        }
        write!(f, "{}", one_line(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", one_line(hint))?;
        }
        Ok(())
    }
}

/// All problems, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Returns the value of `result`, or adds its problem and returns `None`.
    pub fn ok_or_push<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.push(problem)).ok()
    }

    /// Whether any problem stops the command.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == ProblemSeverity::Error)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

/// Maximum number of problems that are written.
const PROBLEMS_SHOWN_MAX: usize = 200;

impl fmt::Display for Problems {
    /// Writes the first problems, errors before warnings if there are too many for all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut problems: Vec<&Problem> = self.0.iter().collect();
        let more = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX);
        if 0 < more {
            problems.sort_by_key(|problem| problem.severity == ProblemSeverity::Warning);
            problems.truncate(PROBLEMS_SHOWN_MAX);
        }
        for (i, problem) in problems.into_iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        if 0 < more {
            write!(f, "\nand {more} more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_problems_are_shortened_and_keep_their_errors() {
        let warnings = (0..202).map(|index| Problem::warning("", format!("w{index}")));
        let mut problems = Problems(warnings.collect());
        problems.push(Problem::error("", "e"));
        let text = problems.to_string();
        assert_eq!(text.lines().count(), 201, "{text}");
        assert!(text.starts_with("error: e\nwarning: w0\n"), "{text}");
        assert!(text.ends_with("warning: w198\nand 3 more"), "{text}");
        problems.0.truncate(200);
        assert!(problems.to_string().ends_with("warning: w199"));
    }
}
