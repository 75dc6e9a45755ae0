//! The text files of the source tree, read once. Checks use only [`Repo`], so that tests can supply files.

use super::tokens::{RustToken, tokens, without_tests};
use crate::shell::output;
use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::path::Path;

/// All text files that git tracks, and new files that git does not ignore.
pub(super) struct Repo {
    files: Vec<SourceFile>,
}

/// A text file of the tree.
pub(super) struct SourceFile {
    /// Path from the root, with `/`.
    pub(super) path: String,
    /// Content of the file.
    pub(super) text: String,
    tokens: OnceCell<Vec<RustToken>>,
    live_tokens: OnceCell<Vec<RustToken>>,
}

impl Repo {
    /// Reads the text files that git lists.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let listing = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
        let paths = output(root, "git", &listing).context("tidy needs `git` to list the files")?;
        let mut files = Vec::new();
        for path in paths.split('\0').filter(|path| !path.is_empty()) {
            // Binary files, and deleted files that git still lists, are skipped.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(SourceFile::new(path, text));
            }
        }
        Ok(Repo { files })
    }

    /// Creates a tree of the given files, for tests.
    #[cfg(test)]
    pub(super) fn with_files(files: &[(&str, &str)]) -> Self {
        Repo {
            files: files
                .iter()
                .map(|(path, text)| SourceFile::new(path, text.to_string()))
                .collect(),
        }
    }

    /// Returns all text files.
    pub(super) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns all lines with their path and their number from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        self.files.iter().flat_map(|file| {
            (1..).zip(file.text.lines()).map(|(number, line)| (file.path.as_str(), number, line))
        })
    }

    /// Returns the file at `path`.
    pub(super) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the Rust files of the crates and of xtask.
    pub(super) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs") && !file.package().is_empty())
    }

    /// Returns the Rust files without tests and benches.
    pub(super) fn live_rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.rust().filter(|file| !file.is_test())
    }

    /// Returns the folders of packages: `crates/spec`, `xtask`.
    pub(super) fn packages(&self) -> Vec<&str> {
        let manifests = self.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
        manifests.map(SourceFile::package).filter(|package| !package.is_empty()).collect()
    }
}

impl SourceFile {
    fn new(path: &str, text: String) -> Self {
        SourceFile {
            path: path.to_string(),
            text,
            tokens: OnceCell::new(),
            live_tokens: OnceCell::new(),
        }
    }

    /// Returns the folder of the file's package; empty outside `crates/` and `xtask/`.
    pub(super) fn package(&self) -> &str {
        if self.path.starts_with("xtask/") {
            return "xtask";
        }
        let Some(inside) = self.path.strip_prefix("crates/") else { return "" };
        inside.find('/').map_or("", |end| &self.path[.."crates/".len() + end])
    }

    /// Returns the path of the module from the root of its crate: `[format, npy]` for `src/format/npy.rs`, `[]` for `src/lib.rs`.
    /// `None` outside `src/`.
    pub(super) fn modules(&self) -> Option<Vec<&str>> {
        let inside = self.path.strip_prefix(self.package())?.strip_prefix("/src/")?;
        let stem = inside.strip_suffix(".rs")?;
        let mut modules: Vec<&str> = stem.split('/').collect();
        let last = modules.last().copied();
        if last == Some("mod") || (modules.len() == 1 && matches!(last, Some("lib" | "main"))) {
            modules.pop();
        }
        Some(modules)
    }

    /// Returns the tokens of a Rust file, without comments and the content of literals.
    pub(super) fn tokens(&self) -> &[RustToken] {
        self.tokens.get_or_init(|| tokens(&self.text))
    }

    /// Returns the tokens without items that only tests compile.
    pub(super) fn live_tokens(&self) -> &[RustToken] {
        self.live_tokens.get_or_init(|| without_tests(self.tokens()))
    }

    fn is_test(&self) -> bool {
        let inside = &self.path[self.package().len()..];
        inside.starts_with("/tests/")
            || inside.starts_with("/benches/")
            || inside.contains("/tests/")
            || inside.ends_with("/tests.rs")
    }
}
