//! The rule of plain language: limits on words that make comments hard to read, and on names that do not describe anything.
//!
//! Some of these words are normal English, so they are limited per package instead of forbidden. For comparison, nextest, ripgrep and
//! hyperfine have up to 1.5 of these words in 1000 comment lines, and up to 5 of these names.

use super::repo::{Repo, SourceFile};
use super::tokens::{RustToken, is_word, test_lines};
use super::{Check, Violation};

/// Words that comments should avoid. Pairs of words count only with a single space between them.
const WORDS: &[&str] = &[
    "tell", "tells", "told", "telling", "ask", "asks", "asked", "nobody", "whoever", "whatever",
    "so many", "so long", "lies", "lay",
];

/// Names that identifiers should not have.
const NAMES: &[&str] = &[
    "of", "by", "own", "one", "told", "untold", "asked", "what", "near", "like", "whole", "many",
    "so",
];

/// The limits of a package.
struct Limits {
    /// Words of [`WORDS`] in 1000 comment lines.
    words_per_1000_lines: usize,
    /// Uses of [`NAMES`].
    names: usize,
    /// Functions called `of` or `of_…`.
    of_functions: usize,
}

/// The limits of every package without a row in [`HIGHER_LIMITS`].
const LIMITS: Limits = Limits { words_per_1000_lines: 6, names: 8, of_functions: 0 };

/// Packages that do not meet [`LIMITS`] yet. Lower the numbers with each improvement, and remove a row when its package meets them.
const HIGHER_LIMITS: &[(&str, Limits)] = &[];

pub(super) static PLAIN_LANGUAGE: Check = Check {
    rule: "comments and names use plain language",
    advice: "replace the words in comments (report, configured, requested, unknown, number of, located), and give names that describe \
             the item; the limits are in xtask/src/tidy/language.rs",
    find: |repo| {
        repo.packages().into_iter().flat_map(|package| find_violations(repo, package)).collect()
    },
};

fn find_violations(repo: &Repo, package: &str) -> Vec<Violation> {
    let limits = HIGHER_LIMITS
        .iter()
        .find(|(name, _)| *name == package)
        .map_or(&LIMITS, |(_, limits)| limits);
    let files: Vec<&SourceFile> =
        repo.live_rust().filter(|file| file.package() == package).collect();
    let comment_lines: usize = files.iter().map(|file| comment_lines(file).count()).sum();
    let words: Vec<Violation> = files.iter().flat_map(|file| find_words(file)).collect();
    let names: Vec<Violation> = files.iter().flat_map(|file| find_names(file)).collect();
    let functions: Vec<Violation> = files.iter().flat_map(|file| find_of_functions(file)).collect();

    let words_max = limits.words_per_1000_lines;
    let mut violations = Vec::new();
    if words.len() * 1000 > words_max * comment_lines {
        let message = format!(
            "{} words in {comment_lines} comment lines, more than {words_max} in 1000",
            words.len()
        );
        violations.push(Violation::new(package, 1, message));
        violations.extend(words);
    }
    for (noun, found, max) in
        [("names", names, limits.names), ("functions called `of…`", functions, limits.of_functions)]
    {
        if found.len() > max {
            let message = format!("{} {noun}, more than {max}", found.len());
            violations.push(Violation::new(package, 1, message));
            violations.extend(found);
        }
    }
    violations
}

/// Returns the lines outside tests that contain only a comment, with their numbers.
fn comment_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let tests = test_lines(file.tokens());
    (1..).zip(file.text.lines()).filter(move |(number, line)| {
        line.trim_start().starts_with("//") && !tests.iter().any(|lines| lines.contains(number))
    })
}

fn find_words(file: &SourceFile) -> Vec<Violation> {
    comment_lines(file)
        .flat_map(|(number, line)| {
            let found = words_in(line).into_iter();
            found.map(move |word| {
                Violation::new(&file.path, number, format!("`{word}` in a comment"))
            })
        })
        .collect()
}

/// Returns the words of [`WORDS`] in a line of comment.
fn words_in(line: &str) -> Vec<&'static str> {
    let lower = line.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for word in WORDS {
        let starts = lower.match_indices(word).map(|(start, _)| start);
        found.extend(starts.filter_map(|start| {
            let is_whole = !lower[..start].ends_with(is_part)
                && !lower[start + word.len()..].starts_with(is_part);
            is_whole.then_some(*word)
        }));
    }
    found
}

fn find_names(file: &SourceFile) -> Vec<Violation> {
    let tokens = file.live_tokens();
    let indices = (0..tokens.len()).filter(|&i| is_vague_name(tokens, i));
    indices
        .map(|i| {
            Violation::new(&file.path, tokens[i].line, format!("the name `{}`", tokens[i].text))
        })
        .collect()
}

/// Whether the token at `i` is one of [`NAMES`]. Fields, methods, and names before a type or arguments do not count.
fn is_vague_name(tokens: &[RustToken], i: usize) -> bool {
    let after = tokens.get(i + 1).map_or("", |token| token.text.as_str());
    NAMES.contains(&tokens[i].text.as_str())
        && !(i > 0 && tokens[i - 1].text == ".")
        && !matches!(after, "!" | "(" | "<" | ":" | "::")
}

fn find_of_functions(file: &SourceFile) -> Vec<Violation> {
    let pairs = file.live_tokens().windows(2);
    let functions = pairs.filter(|pair| {
        let name = &pair[1].text;
        pair[0].text == "fn" && is_word(name) && (name == "of" || name.starts_with("of_"))
    });
    functions
        .map(|pair| {
            Violation::new(&file.path, pair[1].line, format!("the function `{}`", pair[1].text))
        })
        .collect()
}
