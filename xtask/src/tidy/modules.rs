//! Rules about modules inside a crate: reading order, and no file that nothing names.

use super::repo::{File, Repo};
use super::tokens::{Token, closing, is_word, reads};
use super::{Check, Finding};
use std::collections::HashSet;

pub(super) static MODULE_ORDER: Check = Check {
    rule: "a module uses only modules listed before it in lib.rs",
    advice: "the `mod` list is the reading order: move the `mod` line up, or move what is needed down into an \
             earlier module",
    find: module_order,
};

fn module_order(repo: &Repo) -> Vec<Finding> {
    repo.packages().into_iter().flat_map(|package| order_in(repo, package)).collect()
}

fn order_in(repo: &Repo, package: &str) -> Vec<Finding> {
    let root =
        ["lib.rs", "main.rs"].iter().find_map(|name| repo.file(&format!("{package}/src/{name}")));
    let Some(root) = root else { return Vec::new() };
    let order = declared(&root.tokens());
    let place = |name: &str| order.iter().position(|module| module == name);
    let mut findings = Vec::new();
    for file in repo.live_rust().filter(|file| file.package() == package) {
        let modules = file.modules().unwrap_or_default();
        let Some((own, own_place)) = modules.first().and_then(|&own| Some((own, place(own)?)))
        else {
            continue;
        };
        for (used, line) in crate_paths(&file.live_tokens(), modules.len()) {
            if place(&used).is_some_and(|used_place| own_place < used_place) {
                let what = format!("`{own}` uses `{used}`, which comes after it");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// Modules of the crate's root that a file `depth` modules deep names, with the line.
pub(super) fn crate_paths(tokens: &[Token], depth: usize) -> Vec<(String, usize)> {
    let supers = ["super", "::"].repeat(depth);
    let mut paths = Vec::new();
    for i in 0..tokens.len() {
        if reads(tokens, i, &["crate", "::"]) {
            first_words(tokens, i + 2, &mut paths);
        } else if depth > 0 && reads(tokens, i, &supers) && !(i > 0 && tokens[i - 1].text == "::") {
            first_words(tokens, i + supers.len(), &mut paths);
        }
    }
    paths
}

/// The name at `i`, or the first name of each entry of a group `{a::b, c}`.
pub(super) fn first_words(tokens: &[Token], i: usize, words: &mut Vec<(String, usize)>) {
    let Some(token) = tokens.get(i) else { return };
    if is_word(&token.text) {
        words.push((token.text.clone(), token.line));
    }
    if token.text != "{" {
        return;
    }
    let end = closing(tokens, i) - 1;
    let mut at = i + 1;
    while at < end {
        words.push((tokens[at].text.clone(), tokens[at].line));
        while at < end && tokens[at].text != "," {
            at = if tokens[at].text == "{" { closing(tokens, at) } else { at + 1 };
        }
        at += 1;
    }
}

pub(super) static NO_DEAD_FILE: Check = Check {
    rule: "every Rust file is compiled",
    advice: "add the `mod` line, or delete the file: git remembers it",
    find: no_dead_file,
};

fn no_dead_file(repo: &Repo) -> Vec<Finding> {
    let mut reached: HashSet<String> = HashSet::new();
    let mut open: Vec<String> =
        repo.rust().filter(|file| is_root(repo, file)).map(|f| f.path.clone()).collect();
    while let Some(path) = open.pop() {
        let Some(file) = repo.file(&path).filter(|_| reached.insert(path.clone())) else {
            continue;
        };
        let folder = children_folder(repo, file);
        for module in declared(&file.tokens()) {
            open.push(format!("{folder}/{module}.rs"));
            open.push(format!("{folder}/{module}/mod.rs"));
        }
    }
    let dead = repo.rust().filter(|file| !reached.contains(&file.path));
    dead.map(|file| Finding::new(&file.path, 1, "no `mod` line leads to it")).collect()
}

/// Where cargo starts: a library, a binary, a test, a bench, an example, a build script.
fn is_root(repo: &Repo, file: &File) -> bool {
    let package = file.package();
    let inside = &file.path[package.len() + 1..];
    let Some(manifest) = repo.file(&format!("{package}/Cargo.toml")) else { return true };
    if matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs") {
        return true;
    }
    let own_path = manifest.text.lines().any(|line| line.trim() == format!("path = \"{inside}\""));
    let target = ["src/bin/", "tests/", "benches/", "examples/"]
        .iter()
        .find_map(|folder| inside.strip_prefix(folder));
    own_path
        || target.is_some_and(|rest| {
            !rest.contains('/') || rest.ends_with("/main.rs") && rest.matches('/').count() == 1
        })
}

fn children_folder(repo: &Repo, file: &File) -> String {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    if name == "mod.rs" || is_root(repo, file) {
        folder.to_string()
    } else {
        file.path.trim_end_matches(".rs").to_string()
    }
}

/// Modules in files of their own, in the order of their lines.
fn declared(tokens: &[Token]) -> Vec<String> {
    let is_line = |i: &usize| {
        tokens[*i].text == "mod" && is_word(&tokens[*i + 1].text) && tokens[*i + 2].text == ";"
    };
    let lines = (0..tokens.len().saturating_sub(2)).filter(is_line);
    lines.map(|i| tokens[i + 1].text.clone()).collect()
}
