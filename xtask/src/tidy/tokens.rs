//! Rust as words and marks: enough to tell code from comments and strings, no more. No grammar.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A word, `::`, or a single mark; literals are one token `"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RustToken {
    /// As written; `"` for any string or character.
    pub(super) text: String,
    /// A string or character as written, with its quotes; otherwise empty.
    pub(super) literal: String,
    /// From 1.
    pub(super) line: usize,
}

/// Tokens of `source`; docs are the attributes that they stand for, other comments are left out.
pub(super) fn tokens(source: &str) -> Vec<RustToken> {
    let mut tokens = Vec::new();
    // What cannot be parsed is the compiler's to tell.
    add_tokens(source.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn add_tokens(stream: TokenStream, tokens: &mut Vec<RustToken>) {
    let mut is_joint = false;
    for tree in stream {
        let line = tree.span().start().line;
        let is_behind_joint = std::mem::take(&mut is_joint);
        match tree {
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::None => ["", ""],
                };
                tokens.push(RustToken::new(open, line));
                add_tokens(group.stream(), tokens);
                tokens.push(RustToken::new(close, group.span_close().start().line));
            }
            TokenTree::Punct(mark) => {
                is_joint = mark.spacing() == Spacing::Joint;
                match tokens.last_mut() {
                    Some(last) if is_behind_joint && mark.as_char() == ':' && last.text == ":" => {
                        last.text = "::".into();
                    }
                    _ => tokens.push(RustToken::new(mark.as_char(), line)),
                }
            }
            TokenTree::Literal(literal) => {
                let literal = literal.to_string();
                let is_number = literal.starts_with(|c: char| c.is_ascii_digit());
                let text = if is_number { literal.clone() } else { "\"".to_string() };
                tokens.push(RustToken { literal, ..RustToken::new(text, line) });
            }
            TokenTree::Ident(word) => tokens.push(RustToken::new(word, line)),
        }
    }
}

impl RustToken {
    fn new(text: impl ToString, line: usize) -> Self {
        RustToken { text: text.to_string(), literal: String::new(), line }
    }
}

/// Without items under `#[cfg(test)]` and `#[test]`.
pub(super) fn cut_tests(tokens: &[RustToken]) -> Vec<RustToken> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut i = 0;
    while i < tokens.len() {
        let attribute = attribute_end(tokens, i);
        match attribute {
            Some(end) if is_test_attribute(&tokens[i..end]) => i = item_end(tokens, end),
            Some(end) => {
                kept.extend_from_slice(&tokens[i..end]);
                i = end;
            }
            None => {
                kept.push(tokens[i].clone());
                i += 1;
            }
        }
    }
    kept
}

/// Whether `tokens` at `i` read as `pattern`.
pub(super) fn reads(tokens: &[RustToken], i: usize, pattern: &[&str]) -> bool {
    tokens.len() >= i + pattern.len()
        && pattern.iter().zip(&tokens[i..]).all(|(&wanted, token)| wanted == token.text)
}

/// The index after the mark that closes the one at `open`.
pub(super) fn closing(tokens: &[RustToken], open: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// Whether a token is a name or keyword.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn attribute_end(tokens: &[RustToken], i: usize) -> Option<usize> {
    reads(tokens, i, &["#", "["]).then(|| closing(tokens, i + 1))
}

fn is_test_attribute(attribute: &[RustToken]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.text == word);
    let cfg = reads(attribute, 2, &["cfg"]) && has("test") && !has("not");
    cfg || reads(attribute, 2, &["test", "]"])
}

/// After the item that starts at `i`: its `;`, or the end of its block.
fn item_end(tokens: &[RustToken], start: usize) -> usize {
    let mut i = start;
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            ";" => return i + 1,
            "{" => {
                let end = closing(tokens, i);
                return if reads(tokens, end, &[";"]) { end + 1 } else { end };
            }
            "(" | "[" => i = closing(tokens, i),
            _ => i += 1,
        }
    }
    i
}
