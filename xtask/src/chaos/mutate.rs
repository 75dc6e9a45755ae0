//! Files that lie: bits flipped, ends cut, lengths swapped, numbers made huge.

use super::random::Random;

/// Numbers at which lengths and counts overflow.
const ODD: [u64; 10] =
    [0, 1, 255, 65_535, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63, u64::MAX];

/// Change bytes; they may come out as they were.
pub(super) fn bytes(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let len = content.len();
        if len < 16 {
            content.extend_from_slice(&random.draw().to_le_bytes());
            continue;
        }
        // Headers and footers are hit as often as all between.
        let at = match random.below(4) {
            0 => random.below(len.min(256)),
            1 => len - 1 - random.below(len.min(256)),
            _ => random.below(len),
        };
        let at = at.min(len - 8);
        match random.below(9) {
            0 | 1 => content[at] ^= 1 << random.below(8),
            2 => content.truncate(at),
            3 => content[at..at + 8].copy_from_slice(&random.pick(&ODD).to_le_bytes()),
            4 => content[at..at + 4].copy_from_slice(&(random.pick(&ODD) as u32).to_le_bytes()),
            5 => content[at..at + 4].copy_from_slice(&(random.pick(&ODD) as u32).to_be_bytes()),
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
                let again = content[at..end].to_vec();
                content.splice(at..at, again);
            }
        }
    }
}

/// Values that no field of a result expects.
const WORDS: &[&str] = &[
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

/// Text that moves the cursor or makes a line of its own if it is printed as it is; as JSON has it, and bare.
const CONTROL: &[&str] = &[
    r"\u001b[31mforged\u0007\r\nforged",
    r"\u001b]0;forged\u0007\u009b2J\nforged",
    "\u{1b}[2Jforged\u{9b}31m\rforged",
];

/// Change text: a value put in the place of another, a line gone or doubled, or bytes.
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

/// Put a word in the place of what stands between two separators.
fn replace_value(content: &mut Vec<u8>, random: &mut Random) {
    let is_end = |byte: &u8| b",:\n[]{}".contains(byte);
    if content.is_empty() {
        return;
    }
    let at = random.below(content.len());
    let start = content[..at].iter().rposition(is_end).map_or(0, |i| i + 1);
    let end = content[at..].iter().position(is_end).map_or(content.len(), |i| at + i);
    content.splice(start.min(end)..end, random.pick(WORDS).bytes());
}

/// Put control characters into a text that is a value, of JSON or of YAML.
fn forge(content: &mut Vec<u8>, random: &mut Random) {
    let values = values(content);
    if !values.is_empty() {
        let at = random.pick(&values);
        forge_at(content, at, random);
    }
}

/// Where values begin that may be texts.
pub(super) fn values(content: &[u8]) -> Vec<usize> {
    let begin = (0..=content.len()).filter(|i| {
        let before = &content[..*i];
        before.ends_with(b"\": \"") || before.ends_with(b"\":\"") || before.ends_with(b": ")
    });
    begin.collect()
}

/// Put control characters there.
pub(super) fn forge_at(content: &mut Vec<u8>, at: usize, random: &mut Random) {
    content.splice(at..at, random.pick(CONTROL).bytes());
}
