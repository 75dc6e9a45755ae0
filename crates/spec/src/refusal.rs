//! Refusals: a request that cannot be carried out, and the remedy.

use crate::workload::alike;

/// A request that is refused, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A lowercase fragment.
    pub message: String,
    /// The remedy, where there is one.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal with a remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal { message: message.into(), hint: Some(hint.into()) }
    }

    /// A refusal without a remedy.
    pub fn without_hint(message: impl Into<String>) -> Self {
        Refusal { message: message.into(), hint: None }
    }

    /// Refuses a name that does not exist. The hint has similar names, else `otherwise`.
    pub fn unknown_name<'a>(
        message: String,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: &str,
    ) -> Self {
        match alternatives(&alike(name, known)) {
            Some(names) => Self::new(message, format!("did you mean {names}?")),
            None => Self::new(message, otherwise),
        }
    }
}

/// Refuses with a remedy.
///
/// # Errors
/// Always.
pub fn refuse<T, E: From<Refusal>>(
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, E> {
    Err(Refusal::new(message, hint).into())
}

/// Number of names that are offered, at most.
const OFFERED_MAX: usize = 10;

/// "`a`, `b` or `c`"; `None` without names.
pub fn alternatives(names: &[&str]) -> Option<String> {
    let offered: Vec<String> =
        names.iter().take(OFFERED_MAX).map(|name| format!("`{name}`")).collect();
    let (last, first) = offered.split_last()?;
    Some(if first.is_empty() { last.clone() } else { format!("{} or {last}", first.join(", ")) })
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
