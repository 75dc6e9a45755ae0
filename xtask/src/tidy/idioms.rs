//! Rules about short patterns of code: idioms that say a plain thing in a roundabout way, and calls that only some places may make.

use super::repo::Repo;
use super::tokens::{RustToken, closing, docs, is_word, reads};
use super::{Check, Violation};

/// Something that only some places may do.
struct Reserved {
    what: &'static str,
    is_done: fn(&[RustToken], usize) -> bool,
    /// The only places, by the start of their paths.
    places: &'static [&'static str],
    instead: &'static str,
}

const RESERVED: &[Reserved] = &[
    Reserved {
        what: "asks for the time",
        is_done: |tokens, i| {
            let is_now = is_word(&tokens[i].text) && reads(tokens, i + 1, &["::", "now"]);
            is_now || tokens[i].text == "clock_gettime"
        },
        places: &["crates/run/src/clock", "crates/run/src/system", "crates/feedrate/", "xtask/"],
        instead: "take the time as an argument, or ask `feedrate_run::clock::Clock`",
    },
    Reserved {
        what: "takes stdout or stderr",
        is_done: |tokens, i| {
            let is_macro = ["print", "println", "eprint", "eprintln", "dbg"]
                .iter()
                .any(|word| reads(tokens, i, &[word, "!"]));
            let is_stream = ["stdout", "stderr"];
            is_macro || is_stream.iter().any(|word| reads(tokens, i, &[word, "(", ")"]))
        },
        places: &["crates/feedrate/src/messages.rs", "crates/feedrate/src/progress.rs", "xtask/"],
        instead: "use `messages::print…` and `messages::say` of the binary, which escape, check, and never panic",
    },
    Reserved {
        what: "reads arguments or the environment",
        is_done: |tokens, i| {
            let calls = ["var", "var_os", "vars", "vars_os", "args", "args_os"];
            calls.iter().any(|call| reads(tokens, i, &["env", "::", call]))
        },
        places: &["crates/feedrate/", "xtask/"],
        instead: "take the value as an argument; the binary reads it",
    },
    Reserved {
        what: "touches the machine",
        is_done: |tokens, i| {
            let parts = ["fs", "env", "net", "process", "thread"];
            parts.iter().any(|part| reads(tokens, i, &["std", "::", part]))
        },
        places: &[
            "crates/data/",
            "crates/measure/",
            "crates/run/",
            "crates/results/",
            "crates/analysis/",
            "crates/report/",
            "crates/study/",
            "crates/feedrate/",
            "xtask/",
        ],
        instead: "decide from arguments; whoever calls reads files and starts threads",
    },
    Reserved {
        what: "keeps global state",
        is_done: |tokens, i| {
            let kinds = ["Mutex", "RwLock", "OnceLock", "LazyLock"];
            let is_static = tokens[i].text == "static" && reads(tokens, i + 2, &[":"]);
            let is_shared = is_static
                && tokens
                    .get(i + 3)
                    .is_some_and(|of| of.text.starts_with("Atomic") || kinds.contains(&&*of.text));
            is_shared || reads(tokens, i, &["static", "mut"]) || tokens[i].text == "thread_local"
        },
        // How much is said, and that MPI was taken, holds once a process.
        places: &["crates/feedrate/src/messages.rs", "crates/run/src/comm/mpi/mod.rs"],
        instead: "pass it to whoever needs it",
    },
];

pub(super) static ONLY_SOME_PLACES_MAY: Check = Check {
    rule: "the time, the terminal, the environment and global state have their places",
    advice: "each line says what to do instead; a new place needs a reason in ARCHITECTURE.md",
    find: |repo| {
        let mut findings = Vec::new();
        for Reserved { what, is_done, places, instead } in RESERVED {
            let mut found = find_idiom(repo, &format!("{what}: {instead}"), *is_done);
            found.retain(|found| places.iter().all(|place| !found.path.starts_with(place)));
            findings.extend(found);
        }
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
