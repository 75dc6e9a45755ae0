//! Pieces of bash scripts, for whoever writes one. Runs nothing.

/// `text` as one word.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Lines such as `module load openmpi`, with what they need around them.
pub fn prologue(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.join("\n");
    format!("# Modules may use variables that are not set.\nset +u\n{lines}\nset -u\n")
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
