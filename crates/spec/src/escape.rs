//! Escapes untrusted text for display. Control characters, line separators and marks of text direction become escapes such as
//! `\u{1b}`, so that a text cannot control the terminal, add a line or reverse its direction. U+FDD0 to U+FDDF are escaped too:
//! these noncharacters are reserved for internal use, and feedrate marks colours with them.
//!
//! Newlines in text from files are escaped too ([`one_line`], [`escape_json_texts`]), so that a file cannot add lines to an output.

use crate::units;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;

/// Escapes control characters, newlines included, and internal marks.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape_chars(text, |c| is_control(c) || MARKS.contains(&c), |c| c.escape_default().to_string())
}

/// Lists names for a message: `` `a`, `b` and `c` ``, or `` `a`, `b` and 5 more `` if there are more than `shown_max`.
pub fn name_list<Name: AsRef<str>>(names: &[Name], shown_max: usize) -> String {
    name_list_of(names, names.len(), shown_max)
}

/// Lists the first of `count` names as [`name_list`] does.
pub fn name_list_of<Name: AsRef<str>>(names: &[Name], count: usize, shown_max: usize) -> String {
    let shown = names.iter().take(shown_max);
    let mut words: Vec<String> =
        shown.map(|name| format!("`{}`", one_line(name.as_ref()))).collect();
    let unnamed = count.saturating_sub(words.len());
    if unnamed > 0 {
        words.push(format!("{} more", units::count(unnamed as u64)));
    }
    match words.pop() {
        None => "nothing".into(),
        Some(only) if words.is_empty() => only,
        Some(last) => format!("{} and {last}", words.join(", ")),
    }
}

/// Escapes control characters except newlines and tabs. Internal marks stay.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_chars(
        text,
        |c| !matches!(c, '\n' | '\t') && is_control(c),
        |c| c.escape_default().to_string(),
    )
}

/// Escapes control characters and internal marks in JSON; the value stays the same.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    // JSON itself escapes characters below U+0020; a raw newline can only be between its tokens.
    escape_chars(
        json,
        |c| c != '\n' && (is_control(c) || MARKS.contains(&c)),
        |c| format!("\\u{:04x}", u32::from(c)),
    )
}

/// Replaces control characters and internal marks in the strings of a JSON document by visible escapes.
pub fn escape_json_texts(json: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let mut position = 0;
    let mut copied = 0;
    while let Some(next) = json[position..].iter().position(|&byte| matches!(byte, b'\\' | 0xef)) {
        position += next;
        let mut bytes = 2;
        match &json[position..] {
            [b'\\', b'b' | b'f' | b'n' | b'r' | b't', ..]
            | [b'\\', b'u', b'0', b'0', b'0' | b'1', ..]
            | [b'\\', b'u', b'f' | b'F', b'd' | b'D', b'd' | b'D', ..] => {
                out.extend_from_slice(&json[copied..position]);
                out.push(b'\\');
                copied = position;
            }
            [0xef, 0xb7, last @ 0x90..=0x9f, ..] => {
                out.extend_from_slice(&json[copied..position]);
                out.extend_from_slice(format!("\\\\ufdd{:x}", last - 0x90).as_bytes());
                copied = position + 3;
                bytes = 3;
            }
            [0xef, ..] => bytes = 1,
            _ => {}
        }
        position = json.len().min(position + bytes);
    }
    if out.is_empty() {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(&json[copied..]);
    Cow::Owned(out)
}

/// Quotes `text` as one word for bash.
pub fn bash_word(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=+,@%".contains(c));
    if is_plain && !text.is_empty() {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Joins `words` to a command line for bash.
pub fn bash_command<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| bash_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Formats `path` so that it can be shown and pasted into bash: a path that is not UTF-8 becomes a quoted word with escapes.
pub fn path_text(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return text.to_string();
    }
    format!("$'{}'", path.as_os_str().as_encoded_bytes().escape_ascii())
}

/// Noncharacters, which feedrate uses as internal marks.
const MARKS: RangeInclusive<char> = '\u{fdd0}'..='\u{fddf}';

/// Whether `c` is a control character, a line or paragraph separator, or a mark of text direction.
fn is_control(c: char) -> bool {
    let sets_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    sets_direction || c.is_control()
}

fn escape_chars(
    text: &str,
    needs_escape: fn(char) -> bool,
    escape: fn(char) -> String,
) -> Cow<'_, str> {
    let Some(first) = text.find(needs_escape) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_string();
    for c in text[first..].chars() {
        if needs_escape(c) {
            out += &escape(c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
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
            assert_eq!(bash_word(text), expected);
        }
    }

    #[test]
    fn terminal_controls_become_escapes() {
        for (text, expected) in [
            ("modèle 1", "modèle 1"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{7}\u{7f}\u{9b}1m", "\\u{7}\\u{7f}\\u{9b}1m"),
            ("a\u{202e}b\u{2066}c\u{2028}d", "a\\u{202e}b\\u{2066}c\\u{2028}d"),
        ] {
            assert_eq!(one_line(text), expected);
            assert_eq!(escape_lines(text), expected.replace("\\n", "\n").replace("\\t", "\t"));
        }
        assert_eq!(one_line("a\u{fdd1}b\u{fdcf}"), "a\\u{fdd1}b\u{fdcf}");
        assert_eq!(escape_lines("a\u{fdd1}b"), "a\u{fdd1}b", "internal marks stay");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{1b}\n\u{7f}\u{9b}\u{202e}\u{fdd4}\"\\";
        let json = serde_json::to_string(text).unwrap();
        let shown = escape_json(&json);
        assert!(!shown.contains(is_control) && !shown.contains('\u{fdd4}'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn only_control_characters_of_json_strings_are_replaced() {
        let check = |text: &str, expected: &str| {
            let json = serde_json::to_vec(&[text, "x"]).unwrap();
            let read: Vec<String> = serde_json::from_slice(&escape_json_texts(&json)).unwrap();
            assert_eq!(read, [expected, "x"]);
        };
        check("plain", "plain");
        check("a\nb\u{1b}[1mc\t\r\u{8}\u{c}", "a\\nb\\u001b[1mc\\t\\r\\b\\f");
        check(
            "\u{fdd0}a\u{fddf}\u{fdcf}\u{fde0}ï\u{fdd1}",
            "\\ufdd0a\\ufddf\u{fdcf}\u{fde0}ï\\ufdd1",
        );
        check("\\n \\\\ \" \\\n", "\\n \\\\ \" \\\\n");
        assert_eq!(&*escape_json_texts(br#"["\u0041\u001F\"#), br#"["\u0041\\u001F\"#);
        assert_eq!(&*escape_json_texts(br#"["\uFdd4"#), br#"["\\uFdd4"#);
        assert_eq!(&*escape_json_texts(b"\\n"), b"\\\\n");
    }
}
