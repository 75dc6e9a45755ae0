//! Refusals: errors that the user can correct, each with a remedy.

use crate::workload::{alternatives, similar_names};

/// A refused request, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A lowercase fragment.
    pub message: String,
    /// The remedy, if there is one.
    pub hint: Option<String>,
}

impl Refusal {
    /// Creates a refusal with a remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal { message: message.into(), hint: Some(hint.into()) }
    }

    /// Creates a refusal without a remedy.
    pub fn without_hint(message: impl Into<String>) -> Self {
        Refusal { message: message.into(), hint: None }
    }

    /// Refuses a name that does not exist. The hint lists similar names, or is `otherwise` if there are none.
    pub fn unknown_name<'a>(
        message: String,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: &str,
    ) -> Self {
        match alternatives(&similar_names(name, known)) {
            Some(names) => Self::new(message, format!("did you mean {names}?")),
            None => Self::new(message, otherwise),
        }
    }
}

/// Returns a refusal with a remedy.
///
/// # Errors
/// Always.
pub fn refuse<T, E: From<Refusal>>(
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, E> {
    Err(Refusal::new(message, hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered() {
        for (name, expected) in [
            ("threds", "did you mean `threads`?"),
            ("mpi", "did you mean `mpi`, `mpich` or `mpirun`?"),
            ("nothing", "see the list"),
            ("", "see the list"),
        ] {
            let known = ["threads", "mpi", "mpich", "mpirun"];
            let refusal = Refusal::unknown_name("no such name".into(), name, known, "see the list");
            assert_eq!(refusal.hint.as_deref(), Some(expected), "{name}");
        }
    }
}
