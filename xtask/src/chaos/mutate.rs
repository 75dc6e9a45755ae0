//! Random changes of file contents: flipped bits, truncation, swapped bytes, huge numbers, forged texts.

use super::random::Random;

/// Numbers that may cause overflows of lengths and counts.
const EXTREME_NUMBERS: [u64; 10] =
    [0, 1, 255, 65_535, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63, u64::MAX];

/// Changes bytes. The result may equal the original.
pub(super) fn mutate_bytes(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let len = content.len();
        if len < 16 {
            content.extend_from_slice(&random.draw().to_le_bytes());
            continue;
        }
        // Half of the changes are in headers and footers.
        let any_position = match random.below(4) {
            0 => random.below(len.min(256)),
            1 => len - 1 - random.below(len.min(256)),
            _ => random.below(len),
        };
        let position = any_position.min(len - 8);
        match random.below(9) {
            0 | 1 => content[position] ^= 1 << random.below(8),
            2 => content.truncate(position),
            3 => content[position..position + 8]
                .copy_from_slice(&random.pick(&EXTREME_NUMBERS).to_le_bytes()),
            4 => content[position..position + 4]
                .copy_from_slice(&(random.pick(&EXTREME_NUMBERS) as u32).to_le_bytes()),
            5 => content[position..position + 4]
                .copy_from_slice(&(random.pick(&EXTREME_NUMBERS) as u32).to_be_bytes()),
            6 => {
                let other_position = random.below(len - 7).min(len - 8);
                for i in 0..4 {
                    content.swap(position + i, other_position + i);
                }
            }
            7 => {
                let end = (position + random.below(64)).min(len);
                content[position..end].fill(0);
            }
            _ => {
                let end = (position + random.below(512)).min(len);
                let repeated = content[position..end].to_vec();
                content.splice(position..position, repeated);
            }
        }
    }
}

/// Unexpected values for fields of results.
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

/// Texts that control the terminal or forge a line if they are printed unchanged. Some are escaped for JSON, one is not.
const CONTROL_TEXTS: &[&str] = &[
    r"\u001b[31mforged\u0007\r\nforged",
    r"\u001b]0;forged\u0007\u009b2J\nforged",
    "\u{1b}[2Jforged\u{9b}31m\rforged",
];

/// Changes text: replaces a value, removes or repeats a line, or changes bytes.
pub(super) fn mutate_text(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let at = random.below(lines.len().max(1));
        match random.below(8) {
            0 => return mutate_bytes(content, random),
            1 if !lines.is_empty() => *content = [&lines[..at], &lines[at + 1..]].concat().concat(),
            2 if !lines.is_empty() => *content = [&lines[..=at], &lines[at..]].concat().concat(),
            3 | 4 => insert_control_characters(content, random),
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
fn insert_control_characters(content: &mut Vec<u8>, random: &mut Random) {
    let positions = value_positions(content);
    if !positions.is_empty() {
        let at = random.pick(&positions);
        insert_control_characters_at(content, at, random);
    }
}

/// Returns the start positions of values that may be texts.
pub(super) fn value_positions(content: &[u8]) -> Vec<usize> {
    let starts = (0..=content.len()).filter(|at| {
        let before = &content[..*at];
        before.ends_with(b"\": \"") || before.ends_with(b"\":\"") || before.ends_with(b": ")
    });
    starts.collect()
}

/// Inserts control characters at `at`.
pub(super) fn insert_control_characters_at(content: &mut Vec<u8>, at: usize, random: &mut Random) {
    content.splice(at..at, random.pick(CONTROL_TEXTS).bytes());
}
