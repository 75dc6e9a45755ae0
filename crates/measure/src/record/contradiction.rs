//! Contradictions between the files of a run.

/// A setting that the files of a run state differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Key in DLIO's notation; `None` if no single key is at fault.
    pub key: Option<String>,
    /// Each value with its place.
    pub text: String,
}
