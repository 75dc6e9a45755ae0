//! Rules about one file at a time: its header, its length, what it leaves behind.

use super::repo::{File, Repo};
use super::tokens::{closing, comments, is_word, lines_of_code, reads};
use super::{Check, Finding};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;
const REASON: &str = "Long because";

pub(super) static FILES_SAY_WHAT_THEY_ARE: Check = Check {
    rule: "every Rust file opens with `//!`",
    advice: "say in one to five lines what the file is and what it must not do",
    find: files_say_what_they_are,
};

fn files_say_what_they_are(repo: &Repo) -> Vec<Finding> {
    let silent = repo.rust().filter(|file| !file.text.starts_with("//! "));
    silent.map(|file| Finding::new(&file.path, 1, "does not open with `//! `")).collect()
}

pub(super) static SHORT_FUNCTIONS: Check = Check {
    rule: "no function over 70 lines of code",
    advice: "cut it where its comments would be headings: branching above, straight leaves below",
    find: short_functions,
};

fn short_functions(repo: &Repo) -> Vec<Finding> {
    repo.rust().flat_map(long_functions).collect()
}

fn long_functions(file: &File) -> Vec<Finding> {
    let tokens = file.tokens();
    let code = lines_of_code(&file.text);
    let mut findings = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(i + 1).filter(|name| token.text == "fn" && is_word(&name.text))
        else {
            continue;
        };
        let mut open = i + 2;
        while open < tokens.len() && !matches!(tokens[open].text.as_str(), "{" | ";") {
            let group = matches!(tokens[open].text.as_str(), "(" | "[");
            open = if group { closing(tokens, open) } else { open + 1 };
        }
        if !reads(tokens, open, &["{"]) {
            continue;
        }
        let close = closing(tokens, open) - 1;
        // Lines strictly between the braces' lines; `line` counts from 1, `code` from 0.
        let between = tokens[open].line..tokens[close].line.saturating_sub(1);
        let lines = code.get(between).map_or(0, |lines| lines.iter().filter(|&&line| line).count());
        if lines > FUNCTION_LINES_MAX {
            let what = format!("`{}` has {lines} lines of code", name.text);
            findings.push(Finding::new(&file.path, token.line, what));
        }
    }
    findings
}

pub(super) static SHORT_FILES: Check = Check {
    rule: "no file over 500 lines without a reason",
    advice: "split it, or say in its top comment `Long because …`",
    find: short_files,
};

fn short_files(repo: &Repo) -> Vec<Finding> {
    let long = repo.rust().filter(|file| file.text.lines().count() > FILE_LINES_MAX);
    let reasonless = long.filter(|file| {
        !file
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .any(|line| line.contains(REASON))
    });
    reasonless
        .map(|file| Finding::new(&file.path, 1, format!("{} lines", file.text.lines().count())))
        .collect()
}

pub(super) static NO_LOOSE_ENDS: Check = Check {
    rule: "what is left to do has an issue number",
    advice: "do it now, or file an issue and write its number: `TODO(#12)`",
    find: no_loose_ends,
};

fn no_loose_ends(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.rust() {
        for (line, text) in comments(&file.text) {
            push_loose_end(&file.path, line, text, &mut findings);
        }
    }
    let scripts = [".py", ".sh", ".toml", ".yaml", ".yml", ".ci/run"];
    let is_script = |file: &&File| scripts.iter().any(|suffix| file.path.ends_with(suffix));
    for file in repo.files().iter().filter(is_script) {
        for (i, text) in file.text.lines().enumerate() {
            push_loose_end(&file.path, i + 1, text, &mut findings);
        }
    }
    findings
}

fn push_loose_end(path: &str, line: usize, text: &str, findings: &mut Vec<Finding>) {
    for word in ["TODO", "FIXME"] {
        let Some(at) = text.find(word) else { continue };
        let after = text[at + word.len()..].trim_start_matches([' ', '(', ':']);
        let numbered =
            after.strip_prefix('#').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        // In backticks the word is spoken of, not used.
        if !numbered && !text[..at].ends_with('`') {
            findings.push(Finding::new(path, line, format!("`{word}` without `#` and a number")));
        }
    }
}

pub(super) static NO_MERGE_MARKS: Check = Check {
    rule: "no file holds two versions of itself",
    advice: "keep one side of the merge, or both in one, and delete the marks",
    find: no_merge_marks,
};

fn no_merge_marks(repo: &Repo) -> Vec<Finding> {
    let marks = ["<<<<<<< ", ">>>>>>> "];
    let is_mark = |line: &str| marks.iter().any(|mark| line.starts_with(mark));
    let of_file = |file: &File| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| is_mark(line));
        lines.map(|(i, _)| Finding::new(&file.path, i + 1, "a mark of a merge")).collect::<Vec<_>>()
    };
    repo.files().iter().flat_map(of_file).collect()
}

pub(super) static NO_SILENCED_LINTS: Check = Check {
    rule: "lints are expected with a reason, never allowed",
    advice: "mend the code, or write `#[expect(…, reason = \"…\")]`",
    find: no_silenced_lints,
};

fn no_silenced_lints(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.rust() {
        let tokens = file.tokens();
        for i in 0..tokens.len() {
            let name = if reads(tokens, i, &["#", "!", "["]) {
                i + 3
            } else if reads(tokens, i, &["#", "["]) {
                i + 2
            } else {
                continue;
            };
            let attribute = &tokens[name..closing(tokens, name - 1)];
            let reasoned = attribute.iter().any(|token| token.text == "reason");
            let what = match attribute[0].text.as_str() {
                "allow" => "`allow`",
                "expect" if !reasoned => "`expect` without `reason`",
                _ => continue,
            };
            findings.push(Finding::new(&file.path, tokens[i].line, what));
        }
    }
    findings
}

pub(super) static NO_MACHINE_PATHS: Check = Check {
    rule: "no file names a place on somebody's machine",
    advice: "write a path relative to the workspace, or a placeholder such as `DIR`",
    find: no_machine_paths,
};

fn no_machine_paths(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.files() {
        for (i, line) in file.text.lines().enumerate() {
            for folder in ["root", "work", "home"] {
                let place = format!("/{folder}");
                if line.match_indices(&place).any(|(at, _)| is_absolute(line, at, place.len())) {
                    findings.push(Finding::new(&file.path, i + 1, format!("`{place}/`")));
                }
            }
        }
    }
    findings
}

/// At the start of a path, not in the middle of `a/b/c` or of an address.
fn is_absolute(line: &str, at: usize, len: usize) -> bool {
    let starts = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}*~…".contains(c));
    starts && line[at + len..].starts_with('/')
}
