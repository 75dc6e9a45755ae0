//! Rust as words and marks: enough to tell code from comments and strings, no more. No grammar.

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

/// PieceKind of a piece of source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Code,
    Literal,
    Comment,
}

/// Tokens of `source`, comments left out.
pub(super) fn tokens(source: &str) -> Vec<RustToken> {
    let mut tokens = Vec::new();
    let mut line = 1;
    for (kind, piece) in pieces(source) {
        match kind {
            PieceKind::Code => code_tokens(piece, line, &mut tokens),
            PieceKind::Literal => {
                tokens.push(RustToken { text: "\"".into(), literal: piece.to_string(), line });
            }
            PieceKind::Comment => {}
        }
        line += piece.matches('\n').count();
    }
    tokens
}

/// The comments of `source`: (line, text).
pub(super) fn comments(source: &str) -> Vec<(usize, &str)> {
    let mut comments = Vec::new();
    let mut line = 1;
    for (kind, piece) in pieces(source) {
        if kind == PieceKind::Comment {
            comments.extend(piece.lines().enumerate().map(|(i, text)| (line + i, text)));
        }
        line += piece.matches('\n').count();
    }
    comments
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

fn code_tokens(code: &str, first_line: usize, tokens: &mut Vec<RustToken>) {
    let mut line = first_line;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
        let len = match first {
            c if is_word_char(c) => rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (text, after) = rest.split_at(len);
        if !first.is_whitespace() {
            tokens.push(RustToken { text: text.to_string(), literal: String::new(), line });
        }
        line += usize::from(first == '\n');
        rest = after;
    }
}

/// `source` cut into code, literals and comments, in order.
fn pieces(source: &str) -> Vec<(PieceKind, &str)> {
    let mut pieces = Vec::new();
    let (mut start, mut i) = (0, 0);
    while i < source.len() {
        let special = special_len(source, i);
        let Some((kind, len)) = special else {
            i += source[i..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        pieces.push((PieceKind::Code, &source[start..i]));
        pieces.push((kind, &source[i..i + len]));
        i += len;
        start = i;
    }
    pieces.push((PieceKind::Code, &source[start..]));
    pieces
}

/// The comment or literal that starts at `i`, if one does.
fn special_len(source: &str, i: usize) -> Option<(PieceKind, usize)> {
    let rest = &source[i..];
    let after_word = source[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return Some((PieceKind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((PieceKind::Comment, block_comment_len(rest)));
    }
    if rest.starts_with('"') {
        return Some((PieceKind::Literal, quoted_len(rest, '"')));
    }
    if rest.starts_with('\'') {
        return character_len(rest).map(|len| (PieceKind::Literal, len));
    }
    let raw = ["r", "br", "cr"].iter().find_map(|prefix| raw_len(rest, prefix));
    raw.filter(|_| !after_word).map(|len| (PieceKind::Literal, len))
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0;
    let mut i = 0;
    while i < rest.len() {
        if rest[i..].starts_with("/*") {
            depth += 1;
            i += 2;
        } else if rest[i..].starts_with("*/") {
            depth -= 1;
            i += 2;
        } else {
            i += rest[i..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    i
}

fn quoted_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return i + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// `'a'` and `'\n'`, not the lifetime `'a`.
fn character_len(rest: &str) -> Option<usize> {
    let mut chars = rest.chars().skip(1);
    let first = chars.next()?;
    (first == '\\' || chars.next() == Some('\'')).then(|| quoted_len(rest, '\''))
}

fn raw_len(rest: &str, prefix: &str) -> Option<usize> {
    let after = rest.strip_prefix(prefix)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let closed = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + closed)
}
