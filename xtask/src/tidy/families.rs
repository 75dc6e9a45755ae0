//! Rules about plug-in families: members do not import each other, and formats and storages are separate.

use super::modules::used_paths;
use super::repo::{Repo, SourceFile};
use super::tokens::{RustToken, has_texts};
use super::{Check, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// Folders of families. A member is a file or folder with a row in the family's table. Helper files have no row.
const FAMILIES: &[&str] = &[
    "crates/data/src/format",
    "crates/data/src/storage",
    "crates/data/src/storage/engine",
    "crates/engine/src/loader",
    "crates/run/src/comm",
    "crates/run/src/compute",
    "crates/run/src/checkpoint",
    LAYERS,
    "crates/measure/src/metric",
    "crates/measure/src/doubt",
    "crates/results/src/doubt",
    "crates/analysis/src/advice",
    "crates/study/src/design",
    "crates/study/src/launch",
    "crates/study/src/chooser",
    "crates/report/src/plot",
    "crates/report/src/output",
];

/// The family of layers. Layers have no names and thus no rows.
const LAYERS: &str = "crates/run/src/layers";
/// Files of the family of layers that are not members.
const LAYERS_HELPERS: &[&str] = &["slots", "once"];

pub(super) static MEMBERS_APART: Check = Check {
    rule: "members of a family do not import each other",
    advice: "move shared code into the family's `mod.rs`, or into a file of the family without a row",
    find: |repo| FAMILIES.iter().flat_map(|family| member_imports(repo, family)).collect(),
};

fn member_imports(repo: &Repo, family: &str) -> Vec<Violation> {
    let files: Vec<(&str, &SourceFile)> = repo
        .live_rust()
        .filter_map(|file| {
            let inside = file.path.strip_prefix(family)?.strip_prefix('/')?;
            let name = inside.split('/').next()?.trim_end_matches(".rs");
            (name != "mod").then_some((name, file))
        })
        .collect();
    let has_row = files.iter().filter(|(name, file)| match family {
        LAYERS => !LAYERS_HELPERS.contains(name),
        _ => row_names(file, NAME).chain(row_names(file, METRIC)).next().is_some(),
    });
    let mut members: BTreeSet<&str> = has_row.map(|(name, _)| *name).collect();
    // A nested family is not a member of this family.
    members.retain(|name| !FAMILIES.contains(&format!("{family}/{name}").as_str()));
    let mut findings = Vec::new();
    for (name, file) in &files {
        for (used, line) in sibling_paths(family, file) {
            if used != *name && members.contains(used.as_str()) {
                findings.push(Violation::new(
                    &file.path,
                    line,
                    format!("`{name}` imports `{used}`"),
                ));
            }
        }
    }
    findings
}

/// Returns the names of rows in a file, with quotes: the literals after `mark`.
fn row_names<'a>(file: &'a SourceFile, mark: [&str; 2]) -> impl Iterator<Item = &'a str> {
    let tokens = file.live_tokens();
    let names = (2..tokens.len())
        .filter(move |&i| has_texts(tokens, i - 2, &mark) && tokens[i].text == "\"");
    names.map(|i| tokens[i].literal.as_str())
}

const NAME: [&str; 2] = ["name", ":"];
const METRIC: [&str; 2] = ["MetricId", "("];

/// Returns the names that a file uses from its family, with their lines.
fn sibling_paths(family: &str, file: &SourceFile) -> Vec<(String, usize)> {
    let Some((_, folder)) = family.split_once("/src/") else { return Vec::new() };
    let parents: Vec<&str> = folder.split('/').collect();
    let paths = used_paths(file).into_iter();
    paths
        .filter(|(path, _)| {
            path.iter().zip(&parents).filter(|(a, b)| a == *b).count() == parents.len()
        })
        .filter_map(|(path, line)| Some((path.into_iter().nth(parents.len())?, line)))
        .collect()
}

pub(super) static NAMES_NOT_COMPARED: Check = Check {
    rule: "names of members are compared only inside their family",
    advice: "declare an ability in the family's `mod.rs`, and check it",
    find: |repo| {
        let mut findings = Vec::new();
        let names = member_names(repo);
        for file in repo.live_rust() {
            let tokens = file.live_tokens();
            for (i, token) in tokens.iter().enumerate() {
                let families = names.get(token.literal.as_str());
                let is_outside = families.is_some_and(|families| {
                    families.iter().all(|folder| !file.path.starts_with(folder))
                });
                let has_other_meaning = OTHER_MEANINGS
                    .iter()
                    .any(|(path, literal, _)| *path == file.path && *literal == token.literal);
                let is_name = is_outside && !has_other_meaning;
                let constant = if is_name { constant_of(tokens, i) } else { None };
                let is_const_compared = constant.is_some_and(|name| {
                    (0..tokens.len()).any(|i| tokens[i].text == name && is_compared_name(tokens, i))
                });
                if is_outside && (is_compared(tokens, i) || is_const_compared) {
                    findings.push(Violation::new(
                        &file.path,
                        token.line,
                        format!("compares {}", token.literal),
                    ));
                }
            }
        }
        findings
    },
};

/// Names of members that are also keys of YAML, columns, commands or folders.
const AMBIGUOUS_NAMES: &[&str] = &[
    "\"none\"",
    "\"null\"",
    "\"file\"",
    "\"csv\"",
    "\"broadcast\"",
    "\"shards\"",
    "\"transfer_size\"",
    "\"design\"",
    "\"scale\"",
    "\"trials\"",
];

/// Returns the names of all members, with the folders of their families.
fn member_names(repo: &Repo) -> BTreeMap<&str, Vec<&'static str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for family in FAMILIES {
        for file in repo.live_rust().filter(|file| file.path.starts_with(family)) {
            row_names(file, NAME).for_each(|name| names.entry(name).or_default().push(family));
        }
    }
    names.retain(|name, _| !AMBIGUOUS_NAMES.contains(name));
    names
}

/// Whether the literal at `i` is an operand of `==` or `!=`, or a pattern.
fn is_compared(tokens: &[RustToken], i: usize) -> bool {
    let before: [&[&str]; 3] = [&["=", "=", "\""], &["!", "=", "\""], &["\"", "|", "\""]];
    let after: [&[&str]; 4] =
        [&["\"", "!", "="], &["\"", "=", "="], &["\"", "=", ">"], &["\"", "|", "\""]];
    let is_after_mark = i >= 2 && before.iter().any(|marks| has_texts(tokens, i - 2, marks));
    is_after_mark || after.iter().any(|marks| has_texts(tokens, i, marks))
}

/// Compared constants that are not the name of a member: (file, literal, meaning).
const OTHER_MEANINGS: &[(&str, &str, &str)] = &[
    ("crates/feedrate/src/command/plot.rs", "\"png\"", "the extension of a picture"),
    ("crates/results/src/logs/strace/mod.rs", "\"mmap\"", "a system call"),
    ("crates/run/src/comm/mpi/library.rs", "\"mpirun\"", "a program"),
    ("crates/spec/src/plan/planner/storage.rs", "\"direct\"", "a value of MLPerf's options"),
];

/// Returns the name of the constant that contains the literal at `i`.
fn constant_of(tokens: &[RustToken], i: usize) -> Option<&str> {
    // The semicolon in the type of an array, `[&str; 2]`, does not end an item.
    let is_end = |index: usize| match tokens[index].text.as_str() {
        ";" => !has_texts(tokens, index + 2, &["]"]),
        text => text == "}",
    };
    let mut before = (0..i).rev().take_while(|&index| !is_end(index));
    let keyword =
        before.find(|&index| matches!(tokens[index].text.as_str(), "const" | "static"))?;
    has_texts(tokens, keyword + 2, &[":"]).then(|| tokens[keyword + 1].text.as_str())
}

/// Whether the name at `i` is an operand of `==` or `!=`, a pattern, or the subject of `.contains`.
fn is_compared_name(tokens: &[RustToken], i: usize) -> bool {
    let before: [&[&str]; 4] = [&["=", "="], &["!", "="], &["=", "=", "&"], &["!", "=", "&"]];
    let after: [&[&str]; 4] = [&["!", "="], &["=", "="], &["=", ">"], &[".", "contains", "("]];
    let is_after_mark =
        before.iter().any(|marks| i >= marks.len() && has_texts(tokens, i - marks.len(), marks));
    is_after_mark || after.iter().any(|marks| has_texts(tokens, i + 1, marks))
}

/// Files in which formats and storages may use each other: (file, reason).
const EXCEPTIONS: &[(&str, &str)] =
    &[("crates/data/src/format/mod.rs", "the error of a sink contains the error of its storage")];

pub(super) static FORMAT_AND_STORAGE_APART: Check =
    Check {
        rule: "formats and storages do not import each other",
        advice: "a format requests byte ranges and receives bytes; its caller accesses the storage",
        find: |repo| {
            let mut findings = Vec::new();
            for (folder_name, other) in [("format", "storage"), ("storage", "format")] {
                let folder = format!("crates/data/src/{folder_name}/");
                let checked_files = repo.live_rust().filter(|file| {
                    file.path.starts_with(&folder)
                        && EXCEPTIONS.iter().all(|(path, _)| *path != file.path)
                });
                for file in checked_files {
                    let paths = used_paths(file).into_iter();
                    let forbidden =
                        paths.filter(|(path, _)| path.first().is_some_and(|used| used == other));
                    findings.extend(forbidden.map(|(_, line)| {
                        Violation::new(&file.path, line, format!("names `{other}`"))
                    }));
                }
            }
            findings
        },
    };
