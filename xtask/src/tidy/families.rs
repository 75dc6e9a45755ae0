//! Rules about plug-in families: members do not know each other, formats and storages do not either.

use super::modules::used_paths;
use super::repo::{Repo, SourceFile};
use super::tokens::{RustToken, reads};
use super::{Check, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// Folders of members. A member is a file or folder that holds a row of the family's table; its helpers hold none.
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

/// Layers have no names, and so no rows.
const LAYERS: &str = "crates/run/src/layers";
/// Open files by number; reads made once for a group, within a process or for others too.
const LAYERS_HELPERS: &[&str] = &["slots", "once"];

pub(super) static MEMBERS_APART: Check = Check {
    rule: "members of a family do not import each other",
    advice: "move what they share into the family's `mod.rs`, or into a file beside them that holds no row",
    find: |repo| FAMILIES.iter().flat_map(|family| mixed_members(repo, family)).collect(),
};

fn mixed_members(repo: &Repo, family: &str) -> Vec<Violation> {
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
        _ => rows(file, NAME).chain(rows(file, METRIC)).next().is_some(),
    });
    let mut members: BTreeSet<&str> = has_row.map(|(name, _)| *name).collect();
    // A family within this one is no member of it.
    members.retain(|name| !FAMILIES.contains(&format!("{family}/{name}").as_str()));
    let mut findings = Vec::new();
    for (own, file) in &files {
        for (used, line) in sibling_paths(family, file) {
            if used != *own && members.contains(used.as_str()) {
                findings.push(Violation::new(
                    &file.path,
                    line,
                    format!("`{own}` imports `{used}`"),
                ));
            }
        }
    }
    findings
}

/// Names of rows that a file holds, with their quotes: literals behind `mark`.
fn rows<'a>(file: &'a SourceFile, mark: [&str; 2]) -> impl Iterator<Item = &'a str> {
    let tokens = file.live_tokens();
    let names =
        (2..tokens.len()).filter(move |&i| reads(tokens, i - 2, &mark) && tokens[i].text == "\"");
    names.map(|i| tokens[i].literal.as_str())
}

const NAME: [&str; 2] = ["name", ":"];
const METRIC: [&str; 2] = ["MetricId", "("];

/// Names that a file uses inside its family.
fn sibling_paths(family: &str, file: &SourceFile) -> Vec<(String, usize)> {
    let Some((_, folder)) = family.split_once("/src/") else { return Vec::new() };
    let above: Vec<&str> = folder.split('/').collect();
    let paths = used_paths(file).into_iter();
    paths
        .filter(|(path, _)| path.iter().zip(&above).filter(|(a, b)| a == *b).count() == above.len())
        .filter_map(|(path, line)| Some((path.into_iter().nth(above.len())?, line)))
        .collect()
}

pub(super) static NAMES_NOT_COMPARED: Check = Check {
    rule: "nobody outside a family compares a member's name",
    advice: "declare an ability in the family's `mod.rs`, and ask for it",
    find: |repo| {
        let mut findings = Vec::new();
        let names = member_names(repo);
        for file in repo.live_rust() {
            let tokens = file.live_tokens();
            for (i, token) in tokens.iter().enumerate() {
                let families = names.get(token.literal.as_str());
                let is_strange = families.is_some_and(|families| {
                    families.iter().all(|folder| !file.path.starts_with(folder))
                });
                let has_other_meaning = OTHER_MEANINGS
                    .iter()
                    .any(|(path, literal, _)| *path == file.path && *literal == token.literal);
                let is_looked_up = is_strange && !has_other_meaning;
                let constant = if is_looked_up { constant_of(tokens, i) } else { None };
                let is_const_compared = constant.is_some_and(|name| {
                    (0..tokens.len()).any(|i| tokens[i].text == name && is_compared_name(tokens, i))
                });
                if is_strange && (is_compared(tokens, i) || is_const_compared) {
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

/// Members' names that keys of YAML, columns, commands and folders have too.
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

/// Names of rows below the folders of families, with those folders.
fn member_names(repo: &Repo) -> BTreeMap<&str, Vec<&'static str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for family in FAMILIES {
        for file in repo.live_rust().filter(|file| file.path.starts_with(family)) {
            rows(file, NAME).for_each(|name| names.entry(name).or_default().push(family));
        }
    }
    names.retain(|name, _| !AMBIGUOUS_NAMES.contains(name));
    names
}

/// Whether the literal at `i` stands beside `==` or `!=`, or is a pattern.
fn is_compared(tokens: &[RustToken], i: usize) -> bool {
    let behind: [&[&str]; 3] = [&["=", "=", "\""], &["!", "=", "\""], &["\"", "|", "\""]];
    let before: [&[&str]; 4] =
        [&["\"", "!", "="], &["\"", "=", "="], &["\"", "=", ">"], &["\"", "|", "\""]];
    let is_behind = i >= 2 && behind.iter().any(|marks| reads(tokens, i - 2, marks));
    is_behind || before.iter().any(|marks| reads(tokens, i, marks))
}

/// Constants that are compared and name something else, or a member until its family has an ability: (file, literal, meaning).
const OTHER_MEANINGS: &[(&str, &str, &str)] = &[
    ("crates/feedrate/src/command/plot.rs", "\"png\"", "the ending of a picture"),
    ("crates/results/src/logs/strace/mod.rs", "\"mmap\"", "a system call"),
    ("crates/run/src/comm/mpi/library.rs", "\"mpirun\"", "a program"),
];

/// The constant whose value holds the literal at `i`.
fn constant_of(tokens: &[RustToken], i: usize) -> Option<&str> {
    // The length of an array, `[&str; 2]`, ends no item.
    let is_end = |at: usize| match tokens[at].text.as_str() {
        ";" => !reads(tokens, at + 2, &["]"]),
        text => text == "}",
    };
    let mut before = (0..i).rev().take_while(|&at| !is_end(at));
    let at = before.find(|&at| matches!(tokens[at].text.as_str(), "const" | "static"))?;
    reads(tokens, at + 2, &[":"]).then(|| tokens[at + 1].text.as_str())
}

/// Whether the name at `i` stands beside `==` or `!=`, is a pattern, or looks for a value (`.contains`).
fn is_compared_name(tokens: &[RustToken], i: usize) -> bool {
    let behind: [&[&str]; 4] = [&["=", "="], &["!", "="], &["=", "=", "&"], &["!", "=", "&"]];
    let before: [&[&str]; 4] = [&["!", "="], &["=", "="], &["=", ">"], &[".", "contains", "("]];
    let is_behind =
        behind.iter().any(|marks| i >= marks.len() && reads(tokens, i - marks.len(), marks));
    is_behind || before.iter().any(|marks| reads(tokens, i + 1, marks))
}

/// Where one of the two may name the other: (file, why).
const MEETING_POINTS: &[(&str, &str)] =
    &[("crates/data/src/format/mod.rs", "a sink fails as the storage under it fails")];

pub(super) static FORMAT_AND_STORAGE_APART: Check = Check {
    rule: "formats and storages do not import each other",
    advice: "a format asks for byte ranges and is fed bytes; whoever drives it talks to the storage",
    find: |repo| {
        let mut findings = Vec::new();
        for (own, other) in [("format", "storage"), ("storage", "format")] {
            let folder = format!("crates/data/src/{own}/");
            let strangers = repo.live_rust().filter(|file| {
                file.path.starts_with(&folder)
                    && MEETING_POINTS.iter().all(|(path, _)| *path != file.path)
            });
            for file in strangers {
                let paths = used_paths(file).into_iter();
                let strange =
                    paths.filter(|(path, _)| path.first().is_some_and(|used| used == other));
                findings.extend(
                    strange.map(|(_, line)| {
                        Violation::new(&file.path, line, format!("names `{other}`"))
                    }),
                );
            }
        }
        findings
    },
};
