//! Measures, shortens and wraps text in Liberation Sans, whose widths equal those of Arial and Helvetica.

use ttf_parser::Face;

/// The font, under the SIL Open Font License, a copy of which is beside it.
static SANS: &[u8] = include_bytes!("font/LiberationSans-Regular.ttf");

/// Font families of an SVG, which have the same widths.
pub(super) const FAMILIES: &str = "Liberation Sans, Arial, Helvetica, Arimo, sans-serif";

/// From the base line to the top of capitals, as a share of the size.
pub(super) const CAPITALS: f64 = 0.72;

/// The width of a text in the unit of `size`. A character that the font lacks has the width of its replacement.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.0 };
    let units: f64 = text.chars().map(|c| advance(&face, c)).sum();
    units * size / f64::from(face.units_per_em())
}

/// A text whose middle is replaced by an ellipsis if it is wider than `most`. The end is kept, as it often distinguishes names.
pub(super) fn shortened(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.into();
    }
    let all: Vec<char> = text.chars().collect();
    let part = |chars: &[char]| chars.iter().collect::<String>();
    for kept in (1..all.len()).rev() {
        let head = part(&all[..kept / 2]);
        let tail = part(&all[all.len() - kept.div_ceil(2)..]);
        let short = format!("{}…{}", head.trim_end(), tail.trim_start());
        if width(&short, size) <= most {
            return short;
        }
    }
    "…".into()
}

/// Several shortened texts. Different texts that would become equal get numbers.
pub(super) fn shortened_apart(texts: &[String], size: f64, most: f64) -> Vec<String> {
    let mut short: Vec<String> = texts.iter().map(|text| shortened(text, size, most)).collect();
    for i in 0..texts.len() {
        let is_taken = |j: usize| texts[j] != texts[i] && short[j] == short[i];
        if (0..i).any(is_taken) || (i + 1..texts.len()).any(is_taken) {
            let number = format!(" {}", i + 1);
            short[i] = shortened(&texts[i], size, most - width(&number, size)) + &number;
        }
    }
    short
}

/// A text in lines of at most `most`, broken after commas, else at spaces except before a unit, else after punctuation in words, else anywhere. A line
/// has at least one character.
pub(super) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && most < width(rest, size) {
        let ends = rest.char_indices().skip(1).map(|(at, _)| at);
        let fitting: Vec<usize> =
            ends.take_while(|at| width(rest[..*at].trim_end(), size) <= most).collect();
        let signs: [&[char]; 3] = [&[','], &[' '], &['_', '-', '.', '/']];
        let is_after = |at: usize, signs: &[char]| {
            let before = rest[..at].trim_end();
            let is_of_number =
                rest[..at].ends_with(' ') && before.ends_with(|c: char| c.is_ascii_digit());
            rest[..at].ends_with(signs) && !is_of_number
        };
        let after = signs
            .into_iter()
            .find_map(|signs| fitting.iter().rev().find(|at| is_after(**at, signs)));
        let least = rest.chars().next().map_or(0, char::len_utf8);
        let end = after.or(fitting.last()).copied().unwrap_or(least);
        lines.push(rest[..end].trim_end().to_string());
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_string());
    }
    lines
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
    fn widths_are_those_of_helvetica() {
        // Adobe's metrics: H 722, e 556, l 222, space 278 thousandths.
        assert_eq!(format!("{:.2}", width("Hel l", 10.0)), "20.00");
        let face = face().unwrap();
        assert!("µs×÷−…≥".chars().all(|c| face.glyph_index(c).is_some()));
    }

    #[test]
    fn a_long_text_is_cut_in_the_middle_and_stays_apart_from_others() {
        assert_eq!(shortened("short", 10.0, 100.0), "short");
        let short = shortened("a rather long label", 10.0, 40.0);
        assert!(short.ends_with("el") && width(&short, 10.0) <= 40.0, "{short}");
        let texts = ["read_threads 1 of a", "read_threads 2 of a", "read_threads 1 of a"];
        let short = shortened_apart(&texts.map(String::from), 10.0, 40.0);
        assert!(short[0] != short[1] && short.iter().all(|text| width(text, 10.0) <= 40.0));
        // Equal texts stay equal if no other text becomes the same.
        let same = shortened_apart(&["a rather long label"; 2].map(String::from), 10.0, 40.0);
        assert_eq!(same[0], same[1]);
    }

    #[test]
    fn a_wrapped_text_is_complete_and_fits_the_width() {
        for (text, most, expected) in [
            ("short", 100.0, "short"),
            ("4 processes, read_threads 1", 100.0, "4 processes,|read_threads 1"),
            ("record_length_bytes 536.9 MB", 80.0, "record_length_|bytes 536.9 MB"),
            ("prefetch 50 kB", 55.0, "prefetch|50 kB"),
            ("aaaaaaaaaaaa", 30.0, "aaaaa|aaaaa|aa"),
            ("µµ", 1.0, "µ|µ"),
            ("1/2", 0.0, "1|/|2"),
            ("1/2", -2.5, "1|/|2"),
            ("1/2", f64::NEG_INFINITY, "1|/|2"),
            ("1/2", f64::NAN, "1/2"),
            ("", -2.5, ""),
        ] {
            assert_eq!(wrapped(text, 10.0, most).join("|"), expected);
        }
    }
}
