//! Random changes of file contents: flipped bits, truncation, swapped bytes, huge numbers, forged texts.

use super::random::Random;

/// Numbers at which lengths and counts may overflow.
const EXTREME_NUMBERS: [u64; 10] =
    [0, 1, 255, 65_535, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63, u64::MAX];

/// Changes bytes. The result may equal the original.
pub(super) fn bytes(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let len = content.len();
        if len < 16 {
            content.extend_from_slice(&random.draw().to_le_bytes());
            continue;
        }
        // Headers and footers together are changed as often as the rest.
        let position = match random.below(4) {
            0 => random.below(len.min(256)),
            1 => len - 1 - random.below(len.min(256)),
            _ => random.below(len),
        };
        let at = position.min(len - 8);
        match random.below(9) {
            0 | 1 => content[at] ^= 1 << random.below(8),
            2 => content.truncate(at),
            3 => content[at..at + 8].copy_from_slice(&random.pick(&EXTREME_NUMBERS).to_le_bytes()),
            4 => content[at..at + 4]
                .copy_from_slice(&(random.pick(&EXTREME_NUMBERS) as u32).to_le_bytes()),
            5 => content[at..at + 4]
                .copy_from_slice(&(random.pick(&EXTREME_NUMBERS) as u32).to_be_bytes()),
            6 => {
                let other = random.below(len - 7).min(len - 8);
                for i in 0..4 {
                    content.swap(at + i, other + i);
                }
            }
            7 => {
                let end = (at + random.below(64)).min(len);
                content[at..end].fill(0);
            }
            _ => {
                let end = (at + random.below(512)).min(len);
                let repeated = content[at..end].to_vec();
                content.splice(at..at, repeated);
            }
        }
    }
}

/// Values that fields of results do not expect.
const UNEXPECTED_VALUES: &[&str] = &[
    "null",
    "-1",
    "1e308",
    "-1e308",
    "1e15",
    "18446744073709551615",
    "9223372036854775808",
    "NaN",
    "\"\"",
    "[]",
    "{}",
    "true",
    "[[[[[[[[[[]]]]]]]]]]",
    "2026-13-45T99:99:99",
    "../../../../etc/passwd",
    "0.1e-400",
];

/// Texts that would control the terminal or forge a line if printed unchanged, escaped for JSON and unescaped.
const CONTROL: &[&str] = &[
    r"\u001b[31mforged\u0007\r\nforged",
    r"\u001b]0;forged\u0007\u009b2J\nforged",
    "\u{1b}[2Jforged\u{9b}31m\rforged",
];

/// Changes text: replaces a value, removes or repeats a line, or changes bytes.
pub(super) fn text(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let at = random.below(lines.len().max(1));
        match random.below(8) {
            0 => return bytes(content, random),
            1 if !lines.is_empty() => *content = [&lines[..at], &lines[at + 1..]].concat().concat(),
            2 if !lines.is_empty() => *content = [&lines[..=at], &lines[at..]].concat().concat(),
            3 | 4 => forge(content, random),
            _ => replace_value(content, random),
        }
    }
}

/// Replaces the text between two separators.
fn replace_value(content: &mut Vec<u8>, random: &mut Random) {
    let is_separator = |byte: &u8| b",:\n[]{}".contains(byte);
    if content.is_empty() {
        return;
    }
    let at = random.below(content.len());
    let start = content[..at].iter().rposition(is_separator).map_or(0, |i| i + 1);
    let end = content[at..].iter().position(is_separator).map_or(content.len(), |i| at + i);
    content.splice(start.min(end)..end, random.pick(UNEXPECTED_VALUES).bytes());
}

/// Inserts control characters into a value of JSON or YAML.
fn forge(content: &mut Vec<u8>, random: &mut Random) {
    let values = values(content);
    if !values.is_empty() {
        let at = random.pick(&values);
        forge_at(content, at, random);
    }
}

/// The start positions of values that may be texts.
pub(super) fn values(content: &[u8]) -> Vec<usize> {
    let starts = (0..=content.len()).filter(|at| {
        let before = &content[..*at];
        before.ends_with(b"\": \"") || before.ends_with(b"\":\"") || before.ends_with(b": ")
    });
    starts.collect()
}

/// Inserts control characters at `at`.
pub(super) fn forge_at(content: &mut Vec<u8>, at: usize, random: &mut Random) {
    content.splice(at..at, random.pick(CONTROL).bytes());
}
