//! Rules about plug-in families: members do not know each other, formats and storages do not either.

use super::modules::used_paths;
use super::repo::{Repo, SourceFile};
use super::tokens::{Token, reads};
use super::{Check, Finding};
use std::collections::BTreeMap;

/// A folder of members.
struct Family {
    folder: &'static str,
    /// Files that members share: (module, why it is no member).
    shared: &'static [(&'static str, &'static str)],
}

/// Families that are planned and not there yet cost nothing here.
const FAMILIES: &[Family] = &[
    Family {
        folder: "crates/data/src/format",
        shared: &[
            ("packed", "a sample in one piece, as most formats write it"),
            (
                "packed_cursor",
                "samples and nothing else: raw files, and what a format's library serves",
            ),
            ("payload_range", "a sample in one range of a file, passed on in pieces"),
            ("deflate", "packs whatever a format writes"),
            ("ahead", "files of records read in order, in pieces that hold many"),
            ("indexed", "samples with an index beside them, read in one way or another"),
            ("text", "numbers as text, a sample a line, alike in csv and json"),
            ("npy_header", "an array's header, alone in npy and inside npz"),
            ("npy_stream", "an array that comes in pieces, alone in npy and inside npz"),
            ("whole_image", "a picture that is decoded once its file is whole"),
        ],
    },
    Family {
        folder: "crates/data/src/storage",
        shared: &[("engine", "a family of its own: how files are read")],
    },
    Family { folder: "crates/data/src/storage/engine", shared: &[] },
    Family {
        folder: "crates/engine/src/loader",
        shared: &[("queue", "counts batches for every loader and driver")],
    },
    Family { folder: "crates/run/src/comm", shared: &[] },
    Family { folder: "crates/run/src/compute", shared: &[] },
    Family {
        folder: "crates/run/src/checkpoint",
        shared: &[
            ("files", "what a file system does, so that tests can lose power"),
            ("content", "what tensors hold, whatever the file around them"),
            ("sink", "what every format writes into"),
            ("manifest", "what a whole checkpoint consists of, whatever its format"),
            ("folder", "one checkpoint where it lies, whatever its format"),
        ],
    },
    Family {
        folder: "crates/run/src/layers",
        shared: &[
            ("slots", "open files by number, in every layer that has its own"),
            ("once", "reads made once for a group, within a process or for others too"),
        ],
    },
    Family { folder: "crates/measure/src/metric", shared: &[] },
    Family { folder: "crates/measure/src/doubt", shared: &[] },
    Family { folder: "crates/results/src/doubt", shared: &[] },
    Family {
        folder: "crates/study/src/design",
        shared: &[
            ("levels", "factors at two levels, as every sign table has them"),
            ("aliases", "what a fraction confounds, whichever design is one"),
        ],
    },
    Family { folder: "crates/study/src/launch", shared: &[] },
    Family {
        folder: "crates/report/src/plot",
        shared: &[
            ("data", "what every plot is drawn from"),
            ("block", "runs by their design: cells, names and marks, the same in every plot"),
            ("response", "the axes of responses and of processes"),
            ("caption", "what marks, intervals and axes are, in the words of every caption"),
            ("against", "a response against processes, whichever it is"),
        ],
    },
    Family { folder: "crates/analysis/src/advice", shared: &[] },
    Family {
        folder: "crates/report/src/output",
        shared: &[("words", "sentences with names in them, in each markup")],
    },
];

pub(super) static MEMBERS_APART: Check = Check {
    rule: "members of a family do not import each other",
    advice: "move what they share into the family's `mod.rs`, or into a helper named with its reason in \
             xtask/src/tidy/families.rs",
    find: members_apart,
};

fn members_apart(repo: &Repo) -> Vec<Finding> {
    FAMILIES.iter().flat_map(|family| mixed_members(repo, family)).collect()
}

fn mixed_members(repo: &Repo, family: &Family) -> Vec<Finding> {
    let files: Vec<(&str, &SourceFile)> = repo
        .live_rust()
        .filter_map(|file| {
            let inside = file.path.strip_prefix(family.folder)?.strip_prefix('/')?;
            let name = inside.split('/').next()?.trim_end_matches(".rs");
            (name != "mod").then_some((name, file))
        })
        .collect();
    let mut findings = stale_exemptions(family, &files);
    for (own, file) in &files {
        for (used, line) in sibling_paths(family, file) {
            let is_shared = family.shared.iter().any(|(shared, _)| *shared == used);
            let is_member = !is_shared && files.iter().any(|(member, _)| *member == used);
            if used != *own && is_member {
                findings.push(Finding::new(&file.path, line, format!("`{own}` imports `{used}`")));
            }
        }
    }
    findings
}

fn stale_exemptions(family: &Family, files: &[(&str, &SourceFile)]) -> Vec<Finding> {
    if files.is_empty() {
        return Vec::new();
    }
    let shared = family.shared.iter().map(|(name, _)| *name);
    let stale = shared.filter(|name| files.iter().all(|(file, _)| file != name));
    stale
        .map(|name| Finding::new(family.folder, 1, format!("the helper `{name}` is gone")))
        .collect()
}

/// Names that a file uses inside its family.
fn sibling_paths(family: &Family, file: &SourceFile) -> Vec<(String, usize)> {
    let Some((_, folder)) = family.folder.split_once("/src/") else { return Vec::new() };
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
    find: names_not_compared,
};

/// Members' names that YAML has for other things.
const AMBIGUOUS_NAMES: &[&str] = &["\"none\"", "\"null\"", "\"file\""];

fn names_not_compared(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = member_names(repo);
    for file in repo.live_rust() {
        let tokens = file.live_tokens();
        for (i, token) in tokens.iter().enumerate() {
            let families = names.get(token.literal.as_str());
            let is_strange = families.is_some_and(|families| {
                families.iter().all(|folder| !file.path.starts_with(folder))
            });
            if is_strange && is_compared(tokens, i) {
                findings.push(Finding::new(
                    &file.path,
                    token.line,
                    format!("compares {}", token.literal),
                ));
            }
        }
    }
    findings
}

/// Literals in `name: "…"` below the folders of families, with those folders.
fn member_names(repo: &Repo) -> BTreeMap<String, Vec<&'static str>> {
    let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for family in FAMILIES {
        for file in repo.live_rust().filter(|file| file.path.starts_with(family.folder)) {
            let tokens = file.live_tokens();
            for i in (2..tokens.len()).filter(|&i| reads(tokens, i - 2, &["name", ":", "\""])) {
                names.entry(tokens[i].literal.clone()).or_default().push(family.folder);
            }
        }
    }
    names.retain(|name, _| !AMBIGUOUS_NAMES.contains(&name.as_str()));
    names
}

/// Whether the literal at `i` stands beside `==` or `!=`, or is a pattern.
fn is_compared(tokens: &[Token], i: usize) -> bool {
    let behind: [&[&str]; 3] = [&["=", "=", "\""], &["!", "=", "\""], &["\"", "|", "\""]];
    let before: [&[&str]; 4] =
        [&["\"", "!", "="], &["\"", "=", "="], &["\"", "=", ">"], &["\"", "|", "\""]];
    let is_behind = i >= 2 && behind.iter().any(|marks| reads(tokens, i - 2, marks));
    is_behind || before.iter().any(|marks| reads(tokens, i, marks))
}

/// Where one of the two may name the other: (file, why).
const MEETING_POINTS: &[(&str, &str)] =
    &[("crates/data/src/format/mod.rs", "a sink fails as the storage under it fails")];

pub(super) static FORMAT_AND_STORAGE_APART: Check = Check {
    rule: "formats and storages do not import each other",
    advice: "a format asks for byte ranges and is fed bytes; whoever drives it talks to the storage",
    find: format_and_storage_apart,
};

fn format_and_storage_apart(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (own, other) in [("format", "storage"), ("storage", "format")] {
        let folder = format!("crates/data/src/{own}/");
        let strangers = repo.live_rust().filter(|file| {
            file.path.starts_with(&folder)
                && MEETING_POINTS.iter().all(|(path, _)| *path != file.path)
        });
        for file in strangers {
            let paths = used_paths(file).into_iter();
            let strange = paths.filter(|(path, _)| path.first().is_some_and(|used| used == other));
            findings.extend(
                strange.map(|(_, line)| Finding::new(&file.path, line, format!("names `{other}`"))),
            );
        }
    }
    findings
}
