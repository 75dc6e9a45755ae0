//! Rules about the modules of a crate: their order, and that every file is in the module tree.

use super::repo::{Repo, SourceFile};
use super::tokens::{RustToken, has_texts, index_after_bracket, is_word};
use super::{Check, Violation};
use std::collections::{HashMap, HashSet};

pub(super) static MODULE_ORDER: Check = Check {
    rule: "a module uses only modules listed before it in lib.rs",
    advice: "the `mod` list is the reading order: move the `mod` line up, or move the shared code into an earlier \
             module",
    find: |repo| {
        repo.packages().into_iter().flat_map(|package| find_forward_uses(repo, package)).collect()
    },
};

fn find_forward_uses(repo: &Repo, package: &str) -> Vec<Violation> {
    let root =
        ["lib.rs", "main.rs"].iter().find_map(|name| repo.file(&format!("{package}/src/{name}")));
    let Some(root) = root else { return Vec::new() };
    let order = declared_modules(root.tokens());
    let position = |name: &str| order.iter().position(|module| module == name);
    let mut findings = Vec::new();
    for file in repo.live_rust().filter(|file| file.package() == package) {
        let modules = file.modules().unwrap_or_default();
        let Some((name, module_position)) =
            modules.first().and_then(|&name| Some((name, position(name)?)))
        else {
            continue;
        };
        for (path, line) in used_paths(file) {
            let Some(used) = path.first() else { continue };
            if position(used).is_some_and(|used_position| module_position < used_position) {
                let message = format!("`{name}` uses `{used}`, which comes after it");
                findings.push(Violation::new(&file.path, line, message));
            }
        }
    }
    findings.dedup();
    findings
}

pub(super) static SIBLING_ORDER: Check = Check {
    rule: "modules of crates/feedrate rarely import a sibling that is declared after them",
    advice: "move the `mod` line up, or move the shared code into an earlier module",
    find: |repo| {
        let findings = find_later_siblings(repo, "crates/feedrate");
        if findings.len() > LATER_SIBLINGS_MAX { findings } else { Vec::new() }
    },
};

/// Maximum number of imports of siblings that are declared later.
const LATER_SIBLINGS_MAX: usize = 4;

/// Returns the imports of modules that are declared after the importing module in the same file, at any depth.
fn find_later_siblings(repo: &Repo, package: &str) -> Vec<Violation> {
    let files = || repo.live_rust().filter(|file| file.package() == package);
    let path = |file: &SourceFile| -> Vec<String> {
        file.modules().unwrap_or_default().into_iter().map(String::from).collect()
    };
    let orders: HashMap<Vec<String>, Vec<String>> =
        files().map(|file| (path(file), declared_modules(file.tokens()))).collect();
    let position = |parent: &[String], name: &String| {
        orders.get(parent)?.iter().position(|module| module == name)
    };
    let mut findings = Vec::new();
    for file in files() {
        let module = path(file);
        for (used, line) in used_paths(file) {
            let shared = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            let (parent, children) = module.split_at(shared);
            let Some(sibling) = children.first() else { continue };
            let Some(other) = used.get(shared) else { continue };
            if let (Some(first), Some(second)) =
                (position(parent, sibling), position(parent, other))
                && first < second
            {
                let text = format!("`{sibling}` imports `{other}`, which is declared after it");
                findings.push(Violation::new(&file.path, line, text));
            }
        }
    }
    findings.dedup();
    findings
}

/// Returns the paths after `use`, `crate::`, `super::` or `self::` in a file, from the root of its crate, with their lines.
/// Paths into other crates appear as if they were below the file's own module.
pub(super) fn used_paths(file: &SourceFile) -> Vec<(Vec<String>, usize)> {
    let module: Vec<String> =
        file.modules().unwrap_or_default().into_iter().map(String::from).collect();
    let tokens = file.live_tokens();
    let mut paths = Vec::new();
    for i in 0..tokens.len() {
        let before = i.checked_sub(1).map_or("", |before| &tokens[before].text);
        let is_root = matches!(tokens[i].text.as_str(), "crate" | "super" | "self");
        if before == "use" || (is_root && before != "::" && has_texts(tokens, i + 1, &["::"])) {
            add_paths(tokens, i, module.clone(), &mut paths);
        }
    }
    paths
}

/// Adds the path at `i`, or each path of a group `{a::b, c}`, prefixed with `prefix`.
fn add_paths(
    tokens: &[RustToken],
    mut i: usize,
    mut prefix: Vec<String>,
    paths: &mut Vec<(Vec<String>, usize)>,
) {
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "crate" => prefix.clear(),
            "super" => drop(prefix.pop()),
            "self" => {}
            "{" => return add_group(tokens, i, &prefix, paths),
            name => prefix.push(name.to_string()),
        }
        if !has_texts(tokens, i + 1, &["::"]) {
            return paths.push((prefix, token.line));
        }
        i += 2;
    }
}

fn add_group(
    tokens: &[RustToken],
    open: usize,
    prefix: &[String],
    paths: &mut Vec<(Vec<String>, usize)>,
) {
    let end = index_after_bracket(tokens, open) - 1;
    let mut i = open + 1;
    while i < end {
        add_paths(tokens, i, prefix.to_vec(), paths);
        while i < end && tokens[i].text != "," {
            i = if tokens[i].text == "{" { index_after_bracket(tokens, i) } else { i + 1 };
        }
        i += 1;
    }
}

pub(super) static NO_DEAD_FILE: Check = Check {
    rule: "every Rust file is compiled",
    advice: "add the `mod` line, or delete the file",
    find: |repo| {
        let mut reached: HashSet<String> = HashSet::new();
        let mut pending: Vec<String> =
            repo.rust().filter(|file| is_root(repo, file)).map(|file| file.path.clone()).collect();
        while let Some(path) = pending.pop() {
            let Some(file) = repo.file(&path) else { continue };
            if !reached.insert(path) {
                continue;
            }
            let folder = children_folder(repo, file);
            for module in declared_modules(file.tokens()) {
                pending.push(format!("{folder}/{module}.rs"));
                pending.push(format!("{folder}/{module}/mod.rs"));
            }
        }
        let dead = repo.rust().filter(|file| !reached.contains(&file.path));
        dead.map(|file| Violation::new(&file.path, 1, "no `mod` line declares it")).collect()
    },
};

/// Whether cargo compiles a file as a root: a library, binary, test, bench, example or build script.
fn is_root(repo: &Repo, file: &SourceFile) -> bool {
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

/// Returns the folder of a file's child modules.
fn children_folder(repo: &Repo, file: &SourceFile) -> String {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    if name == "mod.rs" || is_root(repo, file) {
        folder.to_string()
    } else {
        file.path.trim_end_matches(".rs").to_string()
    }
}

/// Returns the names of modules in separate files, in the order of their `mod` lines.
fn declared_modules(tokens: &[RustToken]) -> Vec<String> {
    let is_mod_line = |words: &&[RustToken]| {
        words[0].text == "mod" && is_word(&words[1].text) && words[2].text == ";"
    };
    tokens.windows(3).filter(is_mod_line).map(|words| words[1].text.clone()).collect()
}
