//! Rules about calls: who may print and exit, who may ask for the time.

use super::repo::Repo;
use super::tokens::{Token, is_word, reads};
use super::{Check, Finding};

pub(super) static ONLY_THE_BINARY_PRINTS: Check = Check {
    rule: "only the binary prints and exits",
    advice: "return a value or an error; crates/feedrate shows it",
    find: only_the_binary_prints,
};

fn only_the_binary_prints(repo: &Repo) -> Vec<Finding> {
    find_calls(repo, &["crates/feedrate/", "xtask/"], |tokens, i| {
        let prints = ["println", "eprintln", "print", "eprint", "dbg"];
        let is_print = prints.contains(&tokens[i].text.as_str()) && reads(tokens, i + 1, &["!"]);
        is_print || reads(tokens, i, &["process", "::", "exit"])
    })
}

pub(super) static ONLY_THE_CLOCK_TELLS_TIME: Check = Check {
    rule: "only the clock tells the time",
    advice: "take the time as an argument, or ask `feedrate_run::clock::Clock`",
    find: only_the_clock_tells_time,
};

fn only_the_clock_tells_time(repo: &Repo) -> Vec<Finding> {
    let clocks = ["crates/run/src/clock", "crates/run/src/system", "crates/feedrate/", "xtask/"];
    find_calls(repo, &clocks, |tokens, i| {
        let is_now = is_word(&tokens[i].text) && reads(tokens, i + 1, &["::", "now"]);
        is_now || tokens[i].text == "clock_gettime"
    })
}

/// Calls outside the places that may make them.
fn find_calls(repo: &Repo, places: &[&str], is_call: fn(&[Token], usize) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let strangers =
        repo.live_rust().filter(|file| places.iter().all(|place| !file.path.starts_with(place)));
    for file in strangers {
        let tokens = file.live_tokens();
        for i in (0..tokens.len()).filter(|&i| is_call(tokens, i)) {
            let what = format!("calls `{}`", call_text(tokens, i));
            findings.push(Finding::new(&file.path, tokens[i].line, what));
        }
    }
    findings
}

fn call_text(tokens: &[Token], i: usize) -> String {
    let end = if reads(tokens, i + 1, &["!"]) { i + 2 } else { (i + 3).min(tokens.len()) };
    tokens[i..end].iter().map(|token| token.text.as_str()).collect()
}
