//! The writer of bash scripts: every script that feedrate writes has its head, its prologue and its quoting from here. Runs nothing.

pub use feedrate_spec::escape::bash_word as quoted;

/// A script: `head`, lines of comments and of `#SBATCH`, then the user's `prologue`, then `body`.
pub fn script(head: &str, prologue: &[String], body: &str) -> String {
    let prologue = if prologue.is_empty() {
        String::new()
    } else {
        let lines = prologue.join("\n");
        format!("# Modules may use variables that are not set.\nset +u\n{lines}\nset -u\n")
    };
    format!("#!/usr/bin/env bash\n{head}set -euo pipefail\n{prologue}{body}\n")
}

/// `words` as a command of bash.
pub fn command<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_bash_would_change_them() {
        for (text, expected) in [
            ("reader.batch_size=4", "reader.batch_size=4"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("~key", "'~key'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
