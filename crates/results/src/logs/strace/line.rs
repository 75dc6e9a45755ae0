//! Parses lines of strace: process, time, call, arguments and result. [`super::processes`] maps them to files and ranks.

/// A line with its time.
#[derive(Debug, PartialEq)]
pub(super) struct TimedLine<'a> {
    /// Process; `None` in logs of a single process.
    pub(super) pid: Option<u64>,
    pub(super) ns: u64,
    pub(super) rest: &'a str,
}

/// A complete call.
#[derive(Debug, PartialEq)]
pub(super) struct SystemCall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// Result; `None` for calls that did not return.
    pub(super) returned: Option<i64>,
    /// Path of the returned descriptor, which `-y` adds.
    pub(super) path: Option<String>,
    /// Duration, which `-T` adds.
    pub(super) ns: Option<u64>,
}

/// Splits a line into process, time and call. Supported forms are `1234 1795422974.415951 openat(...`, `1234<python3> 17954...`,
/// `[pid  1234] 17954...`, and lines without a process.
pub(super) fn parse_line(line: &str) -> Option<TimedLine<'_>> {
    let line = line.trim_start();
    let (pid, time_and_call) = match line.strip_prefix("[pid") {
        Some(bracketed) => {
            let (pid, rest) = bracketed.split_once(']')?;
            (Some(pid.trim().parse().ok()?), rest.trim_start())
        }
        None => {
            let end = line.find(|char: char| !char.is_ascii_digit())?;
            // With `-Y`, the name of the program follows in angle brackets.
            let rest = match line[end..].strip_prefix('<') {
                Some(named) => named.split_once("> ")?.1,
                None => &line[end..],
            };
            match line[..end].parse() {
                Ok(pid) if !rest.starts_with('.') => (Some(pid), rest.trim_start()),
                _ => (None, line),
            }
        }
    };
    let (time, call) = time_and_call.split_once(' ')?;
    Some(TimedLine { pid, ns: time_ns(time)?, rest: strip_prefixes(call.trim_start()) })
}

/// Removes the fields that `-n`, `-i` and `--relative-timestamps` put before a call.
fn strip_prefixes(mut rest: &str) -> &str {
    for (open, close) in [("(+", ") "), ("[", "] "), ("[", "] ")] {
        let inner = rest.strip_prefix(open).and_then(|inner| inner.split_once(close));
        rest = inner.map_or(rest, |(_, after)| after.trim_start());
    }
    rest
}

/// Parses seconds since 1970 in the format of `-ttt`, to nanoseconds.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(seconds) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok().filter(|&seconds| seconds < 1 << 33)?;
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    Some(seconds * 1_000_000_000 + fraction.parse::<u64>().ok()? * scale)
}

/// Returns whether a line has a time in the format of `-t` or `-tt`, such as `12:00:59.123456`.
pub(super) fn has_time_of_day(line: &str) -> bool {
    let is_time = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        let is_number =
            |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() == 3 && parts[..2].iter().all(is_number)
    };
    // The time follows at most `[pid  1234]`.
    line.split_whitespace().take(3).any(is_time)
}

/// Parses a complete call.
pub(super) fn parse_call(text: &str) -> Option<SystemCall<'_>> {
    let (name, rest) = text.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let mut signs = rest.rmatch_indices("= ").map(|(position, _)| position);
    let equals = signs.find(|&position| rest[..position].trim_end().ends_with(')'))?;
    let arguments = rest[..equals].trim_end().strip_suffix(')')?;
    let mut value = rest[equals + 2..].trim_end();
    let mut ns = None;
    if let Some((before, time)) = value.rsplit_once('<')
        && let Some(duration_ns) = time.strip_suffix('>').and_then(time_ns)
    {
        value = before.trim_end();
        ns = Some(duration_ns);
    }
    let (returned, path) = parse_descriptor(value);
    Some(SystemCall { name, arguments: split_arguments(arguments), returned, path, ns })
}

/// Parses a number or a descriptor with the path that `-y` adds: `17`, `0x7f00`, `17</path>`.
pub(super) fn parse_descriptor(text: &str) -> (Option<i64>, Option<String>) {
    let text = text.trim();
    let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || char == '-'));
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as i64),
        None => digits.parse().ok(),
    };
    // AT_FDCWD has a path but no number.
    let path = rest.strip_prefix('<').or_else(|| text.strip_prefix("AT_FDCWD<"));
    let inner = path.and_then(|path| path.rsplit_once('>'));
    (number, inner.map(|(path, _)| unescape(path)))
}

/// Splits arguments at commas outside strings, paths and brackets.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_i32;
    let mut in_text = false;
    let mut in_path = false;
    let mut is_escaped = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' if !in_path => in_text = !in_text,
            _ if in_text => {}
            b'<' if !text[..position].ends_with(' ') && !text[..position].ends_with('<') => {
                in_path = true
            }
            b'>' => in_path = false,
            _ if in_path => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth <= 0 => {
                parts.push(text[start..position].trim());
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Returns the text of a string in quotes; `None` for addresses and truncated strings.
pub(super) fn parse_quoted(argument: &str) -> Option<String> {
    Some(unescape(argument.strip_prefix('"')?.strip_suffix('"')?))
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(text.len());
    let mut position = 0;
    while position < bytes.len() {
        if bytes[position] != b'\\' {
            found.push(bytes[position]);
            position += 1;
            continue;
        }
        let octal =
            bytes[position + 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
        let digits = octal.count();
        if digits > 0 {
            let value = bytes[position + 1..position + 1 + digits].iter();
            found.push(value.fold(0_u8, |sum, byte| sum.wrapping_mul(8).wrapping_add(byte - b'0')));
            position += 1 + digits;
            continue;
        }
        found.extend(bytes.get(position + 1).map(|byte| match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            other => *other,
        }));
        position += 2;
    }
    String::from_utf8_lossy(&found).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_and_time_are_parsed() {
        let check = |line: &str, pid: Option<u64>, ns: u64, rest: &str| {
            assert_eq!(parse_line(line), Some(TimedLine { pid, ns, rest }), "{line}");
        };
        check("7  12.000001 close(3) = 0", Some(7), 12_000_001_000, "close(3) = 0");
        check("[pid    7] 12.5 +++ exited", Some(7), 12_500_000_000, "+++ exited");
        check("12.5 read(3", None, 12_500_000_000, "read(3");
        check("7<my job> 12.5 read(3", Some(7), 12_500_000_000, "read(3");
        check("7 12.5 (+     0.000033) [   9] [00007f] read(3", Some(7), 12_500_000_000, "read(3");
        for line in ["", "close(3) = 0", "7 close(3) = 0", "7 12 x", "99999999999.0 x", "7 1.-1 x"]
        {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn calls_are_parsed_with_arguments_and_results() {
        let read =
            parse_call(r#"read(3</a, (b) = 1/c\76>, "x\", 9) = 2 <"..., 4096) = 17 <0.000153>"#);
        let read = read.unwrap();
        assert_eq!((read.name, read.returned, read.ns), ("read", Some(17), Some(153_000)));
        assert_eq!(read.arguments.len(), 3);
        let path = Some("/a, (b) = 1/c>".to_string());
        assert_eq!(parse_descriptor(read.arguments[0]), (Some(3), path));
        let open =
            r#"openat(AT_FDCWD</t>, "a\303\266", O_RDONLY|O_CLOEXEC)   = 5</t/a\303\266> <0.1>"#;
        let open = parse_call(open).unwrap();
        assert_eq!((open.returned, open.path.as_deref()), (Some(5), Some("/t/aö")));
        assert_eq!(parse_descriptor(open.arguments[0]), (None, Some("/t".into())));
        assert_eq!(parse_quoted(open.arguments[1]).as_deref(), Some("aö"));
        let failed = parse_call("close(9) = -1 EBADF (Bad file descriptor)").unwrap();
        assert_eq!((failed.returned, failed.ns), (Some(-1), None));
        assert_eq!(parse_call("exit_group(0) = ?").unwrap().returned, None);
        assert_eq!(
            parse_call("mmap(NULL, 8) = 0xffffffffff600000").unwrap().returned,
            Some(-10_485_760)
        );
        for text in ["", "(", "a b(c) = 1", "read(3, ", "x() 1"] {
            assert_eq!(parse_call(text), None, "{text}");
        }
    }
}
