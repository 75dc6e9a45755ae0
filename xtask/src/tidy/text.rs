//! Rules about single files: header, length, unfinished work and absolute paths.

use super::{Check, Violation};

const FILE_LINES_MAX: usize = 500;
const LENGTH_REASON: &str = "Long because";

pub(super) static FILES_HAVE_HEADERS: Check = Check {
    rule: "every Rust file begins with `//!`",
    advice: "describe the file's responsibility and its boundary in one to five lines",
    find: |repo| {
        let undocumented = repo.rust().filter(|file| !file.text.starts_with("//! "));
        undocumented
            .map(|file| Violation::new(&file.path, 1, "does not begin with `//! `"))
            .collect()
    },
};

pub(super) static SHORT_FILES: Check = Check {
    rule: "files with more than 500 lines give a reason",
    advice: "split the file, or explain its length in its top comment: `Long because …`",
    find: |repo| {
        let long = repo.rust().filter(|file| file.text.lines().count() > FILE_LINES_MAX);
        long.filter(|file| {
            file.text.lines().all(|line| !line.starts_with("//!") || !line.contains(LENGTH_REASON))
        })
        .map(|file| Violation::new(&file.path, 1, format!("{} lines", file.text.lines().count())))
        .collect()
    },
};

pub(super) static NO_LOOSE_ENDS: Check = Check {
    rule: "unfinished work has an issue number",
    advice: "finish it, or create an issue and write its number: `TODO(#12)`",
    find: |repo| {
        let mut findings = Vec::new();
        let scripts = [".py", ".sh", ".toml", ".yaml", ".yml", ".ci/run"];
        for (path, line, text) in repo.lines() {
            if scripts.iter().any(|suffix| path.ends_with(suffix)) {
                push_loose_end(path, line, text, &mut findings);
            } else if path.ends_with(".rs")
                && let Some((_, comment)) = text.split_once("//")
            {
                push_loose_end(path, line, comment, &mut findings);
            }
        }
        findings
    },
};

fn push_loose_end(path: &str, line: usize, text: &str, findings: &mut Vec<Violation>) {
    for word in ["TODO", "FIXME"] {
        let Some(start) = text.find(word) else { continue };
        let after = text[start + word.len()..].trim_start_matches([' ', '(', ':']);
        let has_number = after
            .strip_prefix('#')
            .is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
        // A word in backticks is quoted, not a mark.
        if !has_number && !text[..start].ends_with('`') {
            findings.push(Violation::new(path, line, format!("`{word}` without `#` and a number")));
        }
    }
}

pub(super) static NO_MACHINE_PATHS: Check = Check {
    rule: "no file contains an absolute path of one machine",
    advice: "write a path relative to the workspace, or a placeholder such as `DIR`",
    find: |repo| {
        let mut findings = Vec::new();
        for (path, number, line) in repo.lines() {
            for folder in ["root", "work", "home"] {
                let prefix = format!("/{folder}");
                if line
                    .match_indices(&prefix)
                    .any(|(start, _)| is_absolute(line, start, prefix.len()))
                {
                    findings.push(Violation::new(path, number, format!("`{prefix}/`")));
                }
            }
        }
        findings
    },
};

/// Whether an absolute path begins at `start`. A part of a relative path or of a web address is not absolute.
fn is_absolute(line: &str, start: usize, len: usize) -> bool {
    let is_start =
        !line[..start].ends_with(|c: char| c.is_alphanumeric() || "._-/}*~…".contains(c));
    is_start && line[start + len..].starts_with('/')
}
