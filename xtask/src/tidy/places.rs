//! The rule about files that may use the clock, the terminal, the environment, the machine and global state.

use super::tokens::{RustToken, has_texts, is_word};
use super::{Check, Violation};

/// A type of access that only the files below `allowed_paths` may have.
struct ReservedAccess {
    /// Description, such as "reads the time".
    description: &'static str,
    /// Whether there is such an access in the tokens at an index.
    matches: fn(&[RustToken], usize) -> bool,
    /// Prefixes of the allowed paths.
    allowed_paths: &'static [&'static str],
    /// The remedy.
    remedy: &'static str,
}

const RESERVED: &[ReservedAccess] = &[
    ReservedAccess {
        description: "reads the time",
        matches: |tokens, i| {
            let is_now = is_word(&tokens[i].text) && has_texts(tokens, i + 1, &["::", "now"]);
            is_now || tokens[i].text == "clock_gettime"
        },
        allowed_paths: &[
            "crates/run/src/clock",
            "crates/run/src/system",
            "crates/data/src/storage/object/",
            "crates/session/",
            "crates/feedrate/",
            "xtask/",
        ],
        remedy: "take the time as an argument, or use `feedrate_run::clock::Clock`",
    },
    ReservedAccess {
        description: "uses stdout or stderr",
        matches: |tokens, i| {
            let is_macro = ["print", "println", "eprint", "eprintln", "dbg"]
                .iter()
                .any(|word| has_texts(tokens, i, &[word, "!"]));
            let is_stream = ["stdout", "stderr"];
            is_macro || is_stream.iter().any(|word| has_texts(tokens, i, &[word, "(", ")"]))
        },
        allowed_paths: &[
            "crates/feedrate/src/messages.rs",
            "crates/feedrate/src/progress.rs",
            "crates/feedrate/src/bin/launcher/",
            "xtask/",
        ],
        remedy: "use `messages::print…` and `messages::say` of the binary, which escape text and never panic",
    },
    ReservedAccess {
        description: "reads arguments or the environment",
        matches: |tokens, i| {
            let calls = ["var", "var_os", "vars", "vars_os", "args", "args_os"];
            calls.iter().any(|call| has_texts(tokens, i, &["env", "::", call]))
        },
        allowed_paths: &["crates/session/src/surroundings.rs", "crates/feedrate/", "xtask/"],
        remedy: "take the value as an argument; the binary reads it",
    },
    ReservedAccess {
        description: "accesses the machine",
        matches: |tokens, i| {
            let modules = ["fs", "env", "net", "process", "thread"];
            modules.iter().any(|module| has_texts(tokens, i, &["std", "::", module]))
        },
        allowed_paths: &[
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
        remedy: "take values as arguments; callers read files and start threads",
    },
    ReservedAccess {
        description: "keeps global state",
        matches: |tokens, i| {
            let kinds = ["Mutex", "RwLock", "OnceLock", "LazyLock"];
            let is_static = tokens[i].text == "static" && has_texts(tokens, i + 2, &[":"]);
            let is_shared = is_static
                && tokens.get(i + 3).is_some_and(|kind| {
                    kind.text.starts_with("Atomic") || kinds.contains(&&*kind.text)
                });
            is_shared
                || has_texts(tokens, i, &["static", "mut"])
                || tokens[i].text == "thread_local"
        },
        // Verbosity and MPI are initialised once per process. Stores share connections and credentials.
        allowed_paths: &[
            "crates/feedrate/src/messages.rs",
            "crates/run/src/comm/mpi/mod.rs",
            "crates/data/src/storage/object/settings.rs",
        ],
        remedy: "pass it as an argument",
    },
];

pub(super) static RESERVED_ACCESS: Check = Check {
    rule: "only some files use the time, the terminal, the environment, the machine or global state",
    advice: "follow the remedy in each line; a new path needs a reason in ARCHITECTURE.md",
    find: |repo| {
        let mut findings = Vec::new();
        for file in repo.live_rust() {
            let tokens = file.live_tokens();
            let forbidden = RESERVED
                .iter()
                .filter(|row| row.allowed_paths.iter().all(|path| !file.path.starts_with(path)));
            for ReservedAccess { description, matches, remedy, .. } in forbidden {
                for i in (0..tokens.len()).filter(|&i| matches(tokens, i)) {
                    let text = format!("{description}: {remedy}");
                    findings.push(Violation::new(&file.path, tokens[i].line, text));
                }
            }
        }
        findings
    },
};
