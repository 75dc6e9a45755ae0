//! The rule about files that may use the clock, the terminal, the environment, the machine and global state.

use super::tokens::{RustToken, is_word, reads};
use super::{Check, Violation};

/// A kind of access that only the files below `places` may have.
struct Reserved {
    /// Description, such as "reads the time".
    description: &'static str,
    /// Whether the tokens at an index have this access.
    matches: fn(&[RustToken], usize) -> bool,
    /// Prefixes of the allowed paths.
    places: &'static [&'static str],
    /// The remedy.
    instead: &'static str,
}

const RESERVED: &[Reserved] = &[
    Reserved {
        description: "reads the time",
        matches: |tokens, i| {
            let is_now = is_word(&tokens[i].text) && reads(tokens, i + 1, &["::", "now"]);
            is_now || tokens[i].text == "clock_gettime"
        },
        places: &[
            "crates/run/src/clock",
            "crates/run/src/system",
            "crates/session/",
            "crates/feedrate/",
            "xtask/",
        ],
        instead: "take the time as an argument, or use `feedrate_run::clock::Clock`",
    },
    Reserved {
        description: "uses stdout or stderr",
        matches: |tokens, i| {
            let is_macro = ["print", "println", "eprint", "eprintln", "dbg"]
                .iter()
                .any(|word| reads(tokens, i, &[word, "!"]));
            let is_stream = ["stdout", "stderr"];
            is_macro || is_stream.iter().any(|word| reads(tokens, i, &[word, "(", ")"]))
        },
        places: &[
            "crates/feedrate/src/messages.rs",
            "crates/feedrate/src/progress.rs",
            "crates/feedrate/src/bin/launcher/",
            "xtask/",
        ],
        instead: "use `messages::print…` and `messages::say` of the binary, which escape text and never panic",
    },
    Reserved {
        description: "reads arguments or the environment",
        matches: |tokens, i| {
            let calls = ["var", "var_os", "vars", "vars_os", "args", "args_os"];
            calls.iter().any(|call| reads(tokens, i, &["env", "::", call]))
        },
        places: &["crates/feedrate/", "xtask/"],
        instead: "take the value as an argument; the binary reads it",
    },
    Reserved {
        description: "accesses the machine",
        matches: |tokens, i| {
            let parts = ["fs", "env", "net", "process", "thread"];
            parts.iter().any(|part| reads(tokens, i, &["std", "::", part]))
        },
        places: &[
            "crates/data/",
            "crates/measure/",
            "crates/run/",
            "crates/results/",
            "crates/session/",
            "crates/analysis/",
            "crates/report/",
            "crates/study/",
            "crates/feedrate/",
            "xtask/",
        ],
        instead: "take values as arguments; callers read files and start threads",
    },
    Reserved {
        description: "keeps global state",
        matches: |tokens, i| {
            let kinds = ["Mutex", "RwLock", "OnceLock", "LazyLock"];
            let is_static = tokens[i].text == "static" && reads(tokens, i + 2, &[":"]);
            let is_shared = is_static
                && tokens.get(i + 3).is_some_and(|kind| {
                    kind.text.starts_with("Atomic") || kinds.contains(&&*kind.text)
                });
            is_shared || reads(tokens, i, &["static", "mut"]) || tokens[i].text == "thread_local"
        },
        // The verbosity and the initialisation of MPI are set once per process.
        places: &["crates/feedrate/src/messages.rs", "crates/run/src/comm/mpi/mod.rs"],
        instead: "pass it as an argument",
    },
];

pub(super) static ONLY_SOME_PLACES_MAY: Check = Check {
    rule: "only some files use the time, the terminal, the environment, the machine or global state",
    advice: "follow the remedy in each line; a new place needs a reason in ARCHITECTURE.md",
    find: |repo| {
        let mut findings = Vec::new();
        for file in repo.live_rust() {
            let tokens = file.live_tokens();
            let forbidden = RESERVED
                .iter()
                .filter(|row| row.places.iter().all(|place| !file.path.starts_with(place)));
            for Reserved { description, matches, instead, .. } in forbidden {
                for i in (0..tokens.len()).filter(|&i| matches(tokens, i)) {
                    let text = format!("{description}: {instead}");
                    findings.push(Violation::new(&file.path, tokens[i].line, text));
                }
            }
        }
        findings
    },
};
