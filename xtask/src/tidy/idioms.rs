//! Rules about short patterns of code: idioms that say a plain thing in a roundabout way, and calls that only some places may make.

use super::repo::Repo;
use super::tokens::{RustToken, closing, docs, is_word, reads};
use super::{Check, Violation};

pub(super) static ONLY_THE_CLOCK_TELLS_TIME: Check = Check {
    rule: "only the clock tells the time",
    advice: "take the time as an argument, or ask `feedrate_run::clock::Clock`",
    find: |repo| {
        let places =
            ["crates/run/src/clock", "crates/run/src/system", "crates/feedrate/", "xtask/"];
        let mut findings = find_idiom(repo, "asks for the time", |tokens, i| {
            let is_now = is_word(&tokens[i].text) && reads(tokens, i + 1, &["::", "now"]);
            is_now || tokens[i].text == "clock_gettime"
        });
        findings.retain(|found| places.iter().all(|place| !found.path.starts_with(place)));
        findings
    },
};

pub(super) static ONE_PLACE_PRINTS: Check = Check {
    rule: "one place prints",
    advice: "use `messages::print…` and `messages::say` of the binary, which escape, check, and never panic",
    find: |repo| {
        let places =
            ["crates/feedrate/src/messages.rs", "crates/feedrate/src/progress.rs", "xtask/"];
        let mut findings = find_idiom(repo, "takes stdout or stderr", |tokens, i| {
            let is_macro = ["print", "println", "eprint", "eprintln", "dbg"]
                .iter()
                .any(|word| reads(tokens, i, &[word, "!"]));
            let is_stream = ["stdout", "stderr"];
            is_macro || is_stream.iter().any(|word| reads(tokens, i, &[word, "(", ")"]))
        });
        findings.retain(|found| places.iter().all(|place| !found.path.starts_with(place)));
        findings
    },
};

pub(super) static NO_FILTER_AS_IF: Check = Check {
    rule: "no `.filter(|_| …)` as an `if`",
    advice: "write `if condition { … } else { None }`, or `condition.then(|| …)`",
    find: |repo| {
        find_idiom(repo, "`.filter(|_| …)`", |tokens, i| {
            reads(tokens, i, &[".", "filter", "(", "|", "_", "|"])
        })
    },
};

pub(super) static NO_TUPLE_PARAMETERS: Check = Check {
    rule: "no parameter is a tuple that is taken apart",
    advice: "write one parameter each, or a struct that names what belongs together",
    find: |repo| find_idiom(repo, "a tuple as a parameter", is_tuple_parameter),
};

/// `(a, b): (` behind `(` or `,`.
fn is_tuple_parameter(tokens: &[RustToken], i: usize) -> bool {
    if !matches!(tokens[i].text.as_str(), "(" | ",") || !reads(tokens, i + 1, &["("]) {
        return false;
    }
    let end = closing(tokens, i + 1);
    let names = &tokens[i + 2..end - 1];
    names.iter().all(|token| is_word(&token.text) || token.text == ",")
        && reads(tokens, end, &[":", "("])
}

fn find_idiom(
    repo: &Repo,
    what: &str,
    is_idiom: fn(&[RustToken], usize) -> bool,
) -> Vec<Violation> {
    let mut findings = Vec::new();
    for file in repo.live_rust() {
        let tokens = file.live_tokens();
        for i in (0..tokens.len()).filter(|&i| is_idiom(tokens, i)) {
            findings.push(Violation::new(&file.path, tokens[i].line, what));
        }
    }
    findings
}

pub(super) static DOCS_BEGIN_PLAINLY: Check = Check {
    rule: "no doc comment begins with What, Of, Why, Whose or Which",
    advice: "begin with a verb or a noun: `Upper limit that keeps the figure readable`",
    find: |repo| {
        let mut findings = Vec::new();
        for file in repo.live_rust() {
            for (line, text) in docs(file.tokens()) {
                let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                if ["What", "Of", "Why", "Whose", "Which"].contains(&first) {
                    findings.push(Violation::new(
                        &file.path,
                        line,
                        format!("begins with `{first}`"),
                    ));
                }
            }
        }
        findings
    },
};
