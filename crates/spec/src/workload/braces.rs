//! Finds and escapes interpolations `${…}` in text. `interpolation.rs` evaluates them.

/// Returns the length of the interpolation at the start of `text`, including its closing brace.
pub(super) fn interpolation_length(text: &str) -> Option<usize> {
    find(text, |c, open| c == '}' && open == 0).map(|index| index + 1)
}

/// Returns the length of the first argument in `text`, up to a comma or the end.
pub(super) fn argument_length(text: &str) -> usize {
    find(text, |c, open| c == ',' && open == 0).unwrap_or(text.len())
}

/// Returns the index of the first character that `is_wanted` accepts, which also receives the number of brackets that are open after it.
/// Characters in quotes or after a backslash are skipped.
fn find(text: &str, is_wanted: impl Fn(char, usize) -> bool) -> Option<usize> {
    let mut open = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (index, c) in text.char_indices() {
        if is_escaped || c == '\\' {
            is_escaped = !is_escaped;
            continue;
        }
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(opening)) if c == opening => quote = None,
            ('{' | '[', None) => open += 1,
            ('}' | ']', None) => open = open.checked_sub(1)?,
            _ => {}
        }
        if quote.is_none() && is_wanted(c, open) {
            return Some(index);
        }
    }
    None
}

/// Escapes the interpolations in `text`, so that evaluating it returns `text`.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        out.extend(std::iter::repeat_n('\\', trailing_backslashes(before) + 1));
        out.push_str("${");
        rest = after;
    }
    out + rest
}

/// Number of backslashes at the end of `text`.
pub(super) fn trailing_backslashes(text: &str) -> usize {
    text.len() - text.trim_end_matches('\\').len()
}
