//! Splits Rust source into tokens: words, punctuation marks and literals, without comments. It does not parse the grammar.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::ops::{Range, RangeInclusive};

/// A token: a word, `::`, a single punctuation mark, or a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RustToken {
    /// The token as written; `"` for any string or character.
    pub(super) text: String,
    /// A string or character with its quotes; empty for other tokens.
    pub(super) literal: String,
    /// Line, from 1.
    pub(super) line: usize,
}

/// Returns the tokens of `source`. Doc comments become attributes; other comments are dropped.
pub(super) fn tokens(source: &str) -> Vec<RustToken> {
    let mut tokens = Vec::new();
    // The compiler reports files that cannot be parsed.
    add_tokens(source.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn add_tokens(stream: TokenStream, tokens: &mut Vec<RustToken>) {
    let mut is_joint = false;
    for tree in stream {
        let line = tree.span().start().line;
        let follows_joint = std::mem::take(&mut is_joint);
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
                    Some(last) if follows_joint && mark.as_char() == ':' && last.text == ":" => {
                        last.text = "::".into();
                    }
                    _ => tokens.push(RustToken::new(mark.as_char(), line)),
                }
            }
            TokenTree::Literal(literal) => {
                let written = literal.to_string();
                let is_number = written.starts_with(|c: char| c.is_ascii_digit());
                let text = if is_number { written.clone() } else { "\"".to_string() };
                tokens.push(RustToken { literal: written, ..RustToken::new(text, line) });
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

/// Removes items with `#[cfg(test)]` or `#[test]`.
pub(super) fn without_tests(tokens: &[RustToken]) -> Vec<RustToken> {
    let mut live_tokens = Vec::with_capacity(tokens.len());
    let mut start = 0;
    for item in test_items(tokens) {
        live_tokens.extend_from_slice(&tokens[start..item.start]);
        start = item.end;
    }
    live_tokens.extend_from_slice(&tokens[start..]);
    live_tokens
}

/// Returns the lines of items with `#[cfg(test)]` or `#[test]`.
pub(super) fn test_lines(tokens: &[RustToken]) -> Vec<RangeInclusive<usize>> {
    let items = test_items(tokens).into_iter();
    items.map(|item| tokens[item.start].line..=tokens[item.end - 1].line).collect()
}

/// Returns the index ranges of items with `#[cfg(test)]` or `#[test]`.
fn test_items(tokens: &[RustToken]) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        match attribute_end(tokens, i) {
            Some(end) if is_test_attribute(&tokens[i..end]) => {
                let item = i..item_end(tokens, end);
                i = item.end;
                items.push(item);
            }
            Some(end) => i = end,
            None => i += 1,
        }
    }
    items
}

/// Whether the tokens from `i` on have the texts `pattern`.
pub(super) fn has_texts(tokens: &[RustToken], i: usize, pattern: &[&str]) -> bool {
    tokens.len() >= i + pattern.len()
        && pattern.iter().zip(&tokens[i..]).all(|(&expected, token)| expected == token.text)
}

/// Returns the index after the bracket that closes the bracket at `open`.
pub(super) fn index_after_bracket(tokens: &[RustToken], open: usize) -> usize {
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

/// Whether a token's text is a name or keyword.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn attribute_end(tokens: &[RustToken], i: usize) -> Option<usize> {
    has_texts(tokens, i, &["#", "["]).then(|| index_after_bracket(tokens, i + 1))
}

fn is_test_attribute(attribute: &[RustToken]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.text == word);
    let cfg = has_texts(attribute, 2, &["cfg"]) && has("test") && !has("not");
    cfg || has_texts(attribute, 2, &["test", "]"])
}

/// Returns the index after the item that begins at `start`.
fn item_end(tokens: &[RustToken], start: usize) -> usize {
    let mut i = start;
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            ";" => return i + 1,
            "{" => {
                let end = index_after_bracket(tokens, i);
                return if has_texts(tokens, end, &[";"]) { end + 1 } else { end };
            }
            "(" | "[" => i = index_after_bracket(tokens, i),
            _ => i += 1,
        }
    }
    i
}
