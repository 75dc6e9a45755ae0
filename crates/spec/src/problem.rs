//! Problems of a workload: the place, the message and the remedy. All problems are collected before any is reported.

use crate::escape::one_line;
use std::fmt;

/// The place where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Place::Override(text) => write!(f, "override `{text}`"),
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

/// One thing wrong with a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether it stops the command.
    pub severity: ProblemSeverity,
    /// The place where the value was written; `None` for a default value, or if several values conflict.
    pub place: Option<Place>,
    /// The dotted key, such as `reader.batch_size`; empty if no single key is at fault.
    pub key: String,
    /// A lowercase fragment, the offending value in backticks.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl Problem {
    /// An error about `key`.
    pub fn error(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            severity: ProblemSeverity::Error,
            place: None,
            key: key.into(),
            message: message.into(),
            hint: None,
        }
    }

    /// An error about a value whose key the caller adds later.
    pub fn new(message: impl Into<String>) -> Self {
        Problem::error("", message)
    }

    /// Sets the key, and the place unless one is set already.
    #[must_use]
    pub fn with_key(mut self, key: &str, place: &Place) -> Self {
        self.key = key.into();
        self.place.get_or_insert_with(|| place.clone());
        self
    }

    /// A warning about `key`.
    pub fn warning(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { severity: ProblemSeverity::Warning, ..Problem::error(key, message) }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
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
        if let Some(place) = &self.place {
            write!(f, "{}: ", one_line(&place.to_string()))?;
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

/// All problems found, in the order they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Returns the value, or adds its problem and returns `None`.
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

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
