//! A line of strace: who, when, which call, what it returned. Knows nothing of files and processes.

/// A line with its time.
#[derive(Debug, PartialEq)]
pub(super) struct TimedLine<'a> {
    /// `None` where the log is of one process.
    pub(super) pid: Option<u64>,
    pub(super) ns: u64,
    pub(super) rest: &'a str,
}

/// A call that has returned.
#[derive(Debug, PartialEq)]
pub(super) struct SystemCall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// `None` of calls that did not return.
    pub(super) returned: Option<i64>,
    /// Path of the descriptor that it returned, with `-y`.
    pub(super) path: Option<String>,
    pub(super) ns: Option<u64>,
}

/// `1234 1795422974.415951 openat(...`, `1234<python3> 17954...`, `[pid  1234] 17954...`, or without a number.
pub(super) fn timed(line: &str) -> Option<TimedLine<'_>> {
    let line = line.trim_start();
    let (pid, rest) = match line.strip_prefix("[pid") {
        Some(rest) => {
            let (pid, rest) = rest.split_once(']')?;
            (Some(pid.trim().parse().ok()?), rest.trim_start())
        }
        None => {
            let end = line.find(|char: char| !char.is_ascii_digit())?;
            // With `-Y` the name of the program comes after the number, in brackets.
            let rest = match line[end..].strip_prefix('<') {
                Some(rest) => rest.split_once("> ")?.1,
                None => &line[end..],
            };
            match line[..end].parse() {
                Ok(pid) if !rest.starts_with('.') => (Some(pid), rest.trim_start()),
                _ => (None, line),
            }
        }
    };
    let (time, rest) = rest.split_once(' ')?;
    Some(TimedLine { pid, ns: time_ns(time)?, rest: bare(rest.trim_start()) })
}

/// Without what `-n`, `-i` and `--relative-timestamps` put before a call.
fn bare(mut rest: &str) -> &str {
    for (open, close) in [("(+", ") "), ("[", "] "), ("[", "] ")] {
        let inner = rest.strip_prefix(open).and_then(|inner| inner.split_once(close));
        rest = inner.map_or(rest, |halves| halves.1.trim_start());
    }
    rest
}

/// Seconds since 1970, as `-ttt` has them.
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

/// A whole call. `None` of what is none.
pub(super) fn call(text: &str) -> Option<SystemCall<'_>> {
    let (name, rest) = text.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let ends = rest.rmatch_indices("= ").map(|found| found.0);
    let at = ends.into_iter().find(|&at| rest[..at].trim_end().ends_with(')'))?;
    let arguments = rest[..at].trim_end().strip_suffix(')')?;
    let mut value = rest[at + 2..].trim_end();
    let mut ns = None;
    if let Some((before, time)) = value.rsplit_once('<')
        && let Some(found) = time.strip_suffix('>').and_then(time_ns)
    {
        (value, ns) = (before.trim_end(), Some(found));
    }
    let (returned, path) = descriptor(value);
    Some(SystemCall { name, arguments: split(arguments), returned, path, ns })
}

/// `17`, `0x7f00`, `17</path>`: the number, and the path that `-y` adds.
pub(super) fn descriptor(text: &str) -> (Option<i64>, Option<String>) {
    let text = text.trim();
    let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || char == '-'));
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let number = match number.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as i64),
        None => number.parse().ok(),
    };
    // AT_FDCWD has a path and no number.
    let path = rest.strip_prefix('<').or_else(|| text.strip_prefix("AT_FDCWD<"));
    let path = path.and_then(|path| path.rsplit_once('>'));
    (number, path.map(|halves| unescaped(halves.0)))
}

/// Arguments, cut at the commas that lie in no text, path or bracket.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    let (mut in_text, mut in_path, mut is_escaped) = (false, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' if !in_path => in_text = !in_text,
            _ if in_text => {}
            b'<' if !text[..at].ends_with(' ') && !text[..at].ends_with('<') => in_path = true,
            b'>' => in_path = false,
            _ if in_path => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth <= 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The text of `"…"`; `None` of an address, and where strace left off.
pub(super) fn quoted(argument: &str) -> Option<String> {
    Some(unescaped(argument.strip_prefix('"')?.strip_suffix('"')?))
}

fn unescaped(text: &str) -> String {
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            found.push(bytes[at]);
            at += 1;
            continue;
        }
        let octal = bytes[at + 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
        let digits = octal.count();
        if digits > 0 {
            let value = bytes[at + 1..at + 1 + digits].iter();
            found.push(value.fold(0_u8, |sum, byte| sum.wrapping_mul(8).wrapping_add(byte - b'0')));
            at += 1 + digits;
            continue;
        }
        found.extend(bytes.get(at + 1).map(|byte| match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            other => *other,
        }));
        at += 2;
    }
    String::from_utf8_lossy(&found).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_and_when() {
        let check = |line: &str, pid: Option<u64>, ns: u64, rest: &str| {
            assert_eq!(timed(line), Some(TimedLine { pid, ns, rest }), "{line}");
        };
        check("7  12.000001 close(3) = 0", Some(7), 12_000_001_000, "close(3) = 0");
        check("[pid    7] 12.5 +++ exited", Some(7), 12_500_000_000, "+++ exited");
        check("12.5 read(3", None, 12_500_000_000, "read(3");
        check("7<my job> 12.5 read(3", Some(7), 12_500_000_000, "read(3");
        check("7 12.5 (+     0.000033) [   9] [00007f] read(3", Some(7), 12_500_000_000, "read(3");
        for line in ["", "close(3) = 0", "7 close(3) = 0", "7 12 x", "99999999999.0 x", "7 1.-1 x"]
        {
            assert_eq!(timed(line), None, "{line}");
        }
    }

    #[test]
    fn calls_with_all_that_they_may_hold() {
        let read = call(r#"read(3</a, (b) = 1/c\76>, "x\", 9) = 2 <"..., 4096) = 17 <0.000153>"#);
        let read = read.unwrap();
        assert_eq!((read.name, read.returned, read.ns), ("read", Some(17), Some(153_000)));
        assert_eq!(read.arguments.len(), 3);
        let path = Some("/a, (b) = 1/c>".to_string());
        assert_eq!(descriptor(read.arguments[0]), (Some(3), path));
        let open =
            r#"openat(AT_FDCWD</t>, "a\303\266", O_RDONLY|O_CLOEXEC)   = 5</t/a\303\266> <0.1>"#;
        let open = call(open).unwrap();
        assert_eq!((open.returned, open.path.as_deref()), (Some(5), Some("/t/aö")));
        assert_eq!(descriptor(open.arguments[0]), (None, Some("/t".into())));
        assert_eq!(quoted(open.arguments[1]).as_deref(), Some("aö"));
        let failed = call("close(9) = -1 EBADF (Bad file descriptor)").unwrap();
        assert_eq!((failed.returned, failed.ns), (Some(-1), None));
        assert_eq!(call("exit_group(0) = ?").unwrap().returned, None);
        assert_eq!(call("mmap(NULL, 8) = 0xffffffffff600000").unwrap().returned, Some(-10_485_760));
        for text in ["", "(", "a b(c) = 1", "read(3, ", "x() 1"] {
            assert_eq!(call(text), None, "{text}");
        }
    }
}
