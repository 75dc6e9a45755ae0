//! The rule about dependencies between crates, checked in their manifests.

use super::repo::SourceFile;
use super::{Check, Violation};

/// The crates that each crate may use, as in ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("spec", &[]),
    ("data", &["spec"]),
    ("measure", &["spec"]),
    ("engine", &["spec", "data", "measure"]),
    ("run", &["spec", "data", "measure", "engine"]),
    ("results", &["spec", "measure"]),
    ("analysis", &["spec", "measure", "results", "engine"]),
    ("report", &["spec", "measure", "results", "analysis"]),
    ("session", &["spec", "data", "measure", "engine", "run", "results"]),
    ("study", &["spec", "data", "measure", "run", "results", "analysis", "session"]),
    (
        "feedrate",
        &[
            "spec", "data", "measure", "engine", "run", "results", "session", "analysis", "report",
            "study",
        ],
    ),
];

pub(super) static CRATE_DIRECTIONS: Check = Check {
    rule: "crates depend only on the crates below them",
    advice: "move the shared code down into `spec`, or pass it in as a value; a new crate needs a row in \
             xtask/src/tidy/layout.rs and a paragraph in ARCHITECTURE.md",
    find: |repo| {
        let manifests = repo.files().iter().filter(|file| file.path.ends_with("/Cargo.toml"));
        manifests.flat_map(forbidden_dependencies).collect()
    },
};

/// Returns the dependencies of a crate that are not allowed.
fn forbidden_dependencies(manifest: &SourceFile) -> Vec<Violation> {
    let Some(name) = manifest.package().strip_prefix("crates/") else { return Vec::new() };
    let Some((_, may_use)) = MAY_USE.iter().find(|(row, _)| *row == name) else {
        return vec![Violation::new(&manifest.path, 1, format!("crate `{name}` has no row"))];
    };
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    for (i, line) in manifest.text.lines().enumerate() {
        let entry = line.trim();
        if let Some(section) = entry.strip_prefix('[') {
            in_dependencies = section.contains("dependencies");
        }
        let is_dependency = in_dependencies || entry.starts_with('[');
        let used = if is_dependency { workspace_dependency(entry) } else { None };
        if let Some(used) = used.filter(|used| !may_use.contains(used)) {
            findings.push(Violation::new(&manifest.path, i + 1, format!("`{name}` uses `{used}`")));
        }
    }
    findings
}

/// Returns the crate of this workspace in a line of a manifest: `feedrate-spec = …`, `[dependencies.feedrate-spec]`.
fn workspace_dependency(line: &str) -> Option<&str> {
    let quoted_key = match line.strip_prefix('[') {
        Some(section) => section.trim_end_matches(']').split_once("dependencies.")?.1,
        None => line.split(['=', '.']).next()?.trim(),
    };
    let key = quoted_key.trim_matches('"');
    key.strip_prefix("feedrate-").or((key == "feedrate").then_some("feedrate"))
}
