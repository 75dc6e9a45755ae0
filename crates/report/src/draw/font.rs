//! Measures, shortens and wraps text in Liberation Sans, whose widths equal those of Arial and Helvetica.

use ttf_parser::Face;

/// The font. Its license, the SIL Open Font License, is in the same folder.
static SANS: &[u8] = include_bytes!("font/LiberationSans-Regular.ttf");

/// Font families with the same widths, for SVG.
pub(super) const FAMILIES: &str = "Liberation Sans, Arial, Helvetica, Arimo, sans-serif";

/// Height of capitals above the baseline, as a share of the text size.
pub(super) const CAPITALS: f64 = 0.72;

/// The width of a text in the unit of `size`. A character that the font lacks has the width of its replacement.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.0 };
    let units: f64 = text.chars().map(|c| advance(&face, c)).sum();
    units * size / f64::from(face.units_per_em())
}

/// Replaces the middle of a text by an ellipsis if the text is wider than `width_max`. Keeps the end, which often distinguishes names.
pub(super) fn shorten(text: &str, size: f64, width_max: f64) -> String {
    if width(text, size) <= width_max {
        return text.into();
    }
    let all: Vec<char> = text.chars().collect();
    let part = |chars: &[char]| chars.iter().collect::<String>();
    let keep_characters = |kept: usize| {
        let head = part(&all[..kept / 2]);
        let tail = part(&all[all.len() - kept.div_ceil(2)..]);
        format!("{}…{}", head.trim_end(), tail.trim_start())
    };
    // Binary search: more characters are never narrower.
    let mut fitting = 0;
    let mut too_many = all.len();
    while 1 < too_many.saturating_sub(fitting) {
        let kept = usize::midpoint(fitting, too_many);
        if width(&keep_characters(kept), size) <= width_max {
            fitting = kept;
        } else {
            too_many = kept;
        }
    }
    keep_characters(fitting)
}

/// Shortens several texts. Appends numbers to different texts that would become equal.
pub(super) fn shorten_distinct(texts: &[String], size: f64, width_max: f64) -> Vec<String> {
    let mut short: Vec<String> = texts.iter().map(|text| shorten(text, size, width_max)).collect();
    for i in 0..texts.len() {
        let is_taken = |j: usize| texts[j] != texts[i] && short[j] == short[i];
        if (0..i).any(is_taken) || (i + 1..texts.len()).any(is_taken) {
            let number = format!(" {}", i + 1);
            short[i] = shorten(&texts[i], size, width_max - width(&number, size)) + &number;
        }
    }
    short
}

/// Wraps a text into lines of at most `width_max`. Breaks after commas, else at spaces except before a unit, else after punctuation in words, else anywhere.
/// A line has at least one character, even if `width_max` is zero or negative.
pub(super) fn wrap(text: &str, size: f64, width_max: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = line_end(rest, size, width_max) {
        lines.push(rest[..end].trim_end().to_string());
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_string());
    }
    lines
}

/// The end of the first line of a text that is wider than `width_max`, after at least one character; `None` if the text fits into one line.
fn line_end(text: &str, size: f64, width_max: f64) -> Option<usize> {
    const SIGNS: [&[char]; 3] = [&[','], &[' '], &['_', '-', '.', '/']];
    let face = face()?;
    let unit = size / f64::from(face.units_per_em());
    let first_end = text.chars().next()?.len_utf8();
    let mut last_after_signs: [Option<usize>; 3] = [None; 3];
    let mut last = first_end;
    // Widths of the text so far, in units of the font.
    let mut all = 0.0;
    let mut without_trailing_blanks = 0.0;
    for (at, c) in text.char_indices() {
        if width_max < without_trailing_blanks * unit {
            return Some(last_after_signs.into_iter().flatten().next().unwrap_or(last));
        }
        if 0 < at {
            last = at;
            let before = &text[..at];
            let is_before_unit =
                before.ends_with(' ') && before.trim_end().ends_with(|c: char| c.is_ascii_digit());
            for (place, signs) in last_after_signs.iter_mut().zip(SIGNS) {
                if before.ends_with(signs) && !is_before_unit {
                    *place = Some(at);
                }
            }
        }
        all += advance(&face, c);
        if !c.is_whitespace() {
            without_trailing_blanks = all;
        }
    }
    (width_max < all * unit).then(|| last_after_signs.into_iter().flatten().next().unwrap_or(last))
}

/// The font's face, which a test checks to be valid.
pub(super) fn face() -> Option<Face<'static>> {
    Face::parse(SANS, 0).ok()
}

/// Width of a character in units of the font.
pub(super) fn advance(face: &Face<'_>, c: char) -> f64 {
    f64::from(face.glyph_hor_advance(face.glyph_index(c).unwrap_or_default()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_equal_helvetica() {
        // Adobe's metrics: H 722, e 556, l 222, space 278 thousandths.
        assert_eq!(format!("{:.2}", width("Hel l", 10.0)), "20.00");
        let face = face().unwrap();
        assert!("µs×÷−…≥".chars().all(|c| face.glyph_index(c).is_some()));
    }

    #[test]
    fn a_long_text_is_cut_in_the_middle_and_stays_distinct() {
        assert_eq!(shorten("short", 10.0, 100.0), "short");
        let short = shorten("a rather long label", 10.0, 40.0);
        assert!(short.ends_with("el") && width(&short, 10.0) <= 40.0, "{short}");
        let texts = ["read_threads 1 of a", "read_threads 2 of a", "read_threads 1 of a"];
        let short = shorten_distinct(&texts.map(String::from), 10.0, 40.0);
        assert!(short[0] != short[1] && short.iter().all(|text| width(text, 10.0) <= 40.0));
        // Equal texts stay equal if no other text becomes the same.
        let same = shorten_distinct(&["a rather long label"; 2].map(String::from), 10.0, 40.0);
        assert_eq!(same[0], same[1]);
    }

    #[test]
    fn a_wrapped_text_is_complete_and_fits_the_width() {
        for (text, width_max, expected) in [
            ("short", 100.0, "short"),
            ("4 processes, read_threads 1", 100.0, "4 processes,|read_threads 1"),
            ("record_length_bytes 536.9 MB", 80.0, "record_length_|bytes 536.9 MB"),
            ("prefetch 50 kB", 55.0, "prefetch|50 kB"),
            ("aaaaaaaaaaaa", 30.0, "aaaaa|aaaaa|aa"),
            ("a  ", 5.6, "a"),
            ("µµ", 1.0, "µ|µ"),
            ("1/2", 0.0, "1|/|2"),
            ("1/2", -2.5, "1|/|2"),
            ("1/2", f64::NEG_INFINITY, "1|/|2"),
            ("1/2", f64::NAN, "1/2"),
            ("", -2.5, ""),
        ] {
            assert_eq!(wrap(text, 10.0, width_max).join("|"), expected);
        }
    }

    #[test]
    fn a_text_of_any_length_is_wrapped_and_shortened() {
        let text = "aµ, 4_".repeat(10_000);
        let without_blanks = text.replace(' ', "");
        for width_max in [f64::NEG_INFINITY, -2.5, 0.0, 1.0, 100.0, 1e5] {
            let lines = wrap(&text, 10.0, width_max);
            assert_eq!(lines.concat().replace(' ', ""), without_blanks, "{width_max}");
            let is_fitting =
                |line: &String| width(line, 10.0) <= width_max || line.chars().count() <= 1;
            assert!(lines.iter().all(is_fitting), "{width_max}");
            let short = shorten(&text, 10.0, width_max);
            assert!(short == "…" || width(&short, 10.0) <= width_max, "{width_max}");
        }
    }
}
