//! The rule that files of a crate do not use each other in a circle. Uses between a module and its parents are ignored, because a
//! family's `mod.rs` uses its members, and the members use its trait.

use super::modules::used_paths;
use super::repo::{Repo, SourceFile};
use super::{Check, Violation};
use std::collections::{BTreeMap, BTreeSet};

pub(super) static NO_FILE_CIRCLES: Check = Check {
    rule: "no files of a crate use each other in a circle",
    advice: "move the shared code into a file that both can use",
    find: |repo| {
        repo.packages().into_iter().flat_map(|package| find_circles(repo, package)).collect()
    },
};

/// Maximum number of imports that are followed from module to module.
const IMPORTS_MAX: usize = 8;

/// A module by its path from the root of its crate.
type Module = Vec<String>;
/// The modules that a module uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

fn find_circles(repo: &Repo, package: &str) -> Vec<Violation> {
    let files: Vec<(Module, &SourceFile)> = repo
        .live_rust()
        .filter(|file| file.package() == package)
        .filter_map(|file| Some((file.modules()?.into_iter().map(String::from).collect(), file)))
        .collect();
    let uses = resolve_uses(&files);
    let mut findings = Vec::new();
    for (module, file) in &files {
        let reachable_modules = reachable(&uses, module);
        if !reachable_modules.contains(module) {
            continue;
        }
        let circle = reachable_modules
            .iter()
            .filter(|other| *other != module && reachable(&uses, other).contains(module));
        let names: Vec<String> = circle.map(|other| format!("`{}`", other.join("::"))).collect();
        findings.push(Violation::new(
            &file.path,
            1,
            format!("in a circle with {}", names.join(", ")),
        ));
    }
    findings
}

/// Returns the modules that each module uses, except its own parents and children.
fn resolve_uses(files: &[(Module, &SourceFile)]) -> Uses {
    let paths: BTreeMap<&Module, Vec<Module>> = files
        .iter()
        .map(|(module, file)| {
            (module, used_paths(file).into_iter().map(|(path, _)| path).collect())
        })
        .collect();
    let mut uses = Uses::new();
    for (module, module_paths) in &paths {
        let used = module_paths.iter().filter_map(|path| owner(&paths, path, 0));
        let unrelated = used.filter(|used| !used.starts_with(module) && !module.starts_with(used));
        uses.insert((*module).clone(), unrelated.collect());
    }
    uses
}

/// Returns the module that defines the item at `path`, found through re-exports.
fn owner(paths: &BTreeMap<&Module, Vec<Module>>, path: &[String], depth: usize) -> Option<Module> {
    let len = (0..=path.len()).rev().find(|&len| paths.contains_key(&path[..len].to_vec()))?;
    let module = path[..len].to_vec();
    let item = path.get(len);
    if depth > IMPORTS_MAX || item.is_none() {
        return Some(module);
    }
    let import = paths[&module].iter().find(|import| import.last() == item && import.len() > 1);
    import.and_then(|import| owner(paths, import, depth + 1)).or(Some(module))
}

/// Returns all modules that `from` uses directly or indirectly.
fn reachable(uses: &Uses, from: &Module) -> BTreeSet<Module> {
    let mut reachable_modules = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(module) = pending.pop() {
        for used in uses.get(module).into_iter().flatten() {
            if reachable_modules.insert(used.clone()) {
                pending.push(used);
            }
        }
    }
    reachable_modules
}
