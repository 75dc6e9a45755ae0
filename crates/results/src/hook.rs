//! Hooks: commands that change settings outside a workload, such as the settings of a file system or a device. The study's CSV contains them as
//! comment lines `# hook NAME: COMMAND`, so that a study is one file. This module parses and checks hooks; it does not run them.
//!
//! The runner passes the command to bash before each run of a row that sets `study.hook.NAME`, with the level as `$1`.

use feedrate_spec::problem::{Location, Problem, Problems};
use std::collections::BTreeMap;

/// Prefix of the key of a factor that is set by a hook.
pub const HOOK_PREFIX: &str = "study.hook.";

/// Formats a hook as a comment, without `#`.
pub fn comment(name: &str, command: &str) -> String {
    format!("hook {name}: {command}")
}

/// Parses the commands of a study's hooks, by hook name. Problems refer to the CSV as `file`.
///
/// # Errors
/// A hook has two commands.
pub fn hooks(file: &str, csv: &str) -> Result<BTreeMap<String, String>, Problems> {
    let mut hooks: BTreeMap<String, String> = BTreeMap::new();
    let mut problems = Problems::default();
    for (i, line) in csv.lines().enumerate() {
        let Some((name, command)) = parse_line(line) else { continue };
        let known = hooks.entry(name.to_string()).or_insert_with(|| command.to_string());
        if known != command {
            let place = Location::File { name: file.into(), line: i + 1, column: 1 };
            problems.push(
                Problem::error(
                    format!("{HOOK_PREFIX}{name}"),
                    format!("has a second command, `{command}`"),
                )
                .with_location(Some(place))
                .hint(format!("keep one of the lines `# hook {name}: …`")),
            );
        }
    }
    if problems.has_errors() { Err(problems) } else { Ok(hooks) }
}

fn parse_line(line: &str) -> Option<(&str, &str)> {
    let hook = line.trim().strip_prefix('#')?.trim().strip_prefix("hook ")?;
    let (name, command) = hook.split_once(':').map(|(name, rest)| (name.trim(), rest.trim()))?;
    (is_valid_name(name) && !command.is_empty()).then_some((name, command))
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Checks the name and command of a hook and returns the first problem.
pub fn problem(name: &str, command: &str) -> Option<Problem> {
    let key = format!("hooks.{name}");
    if !is_valid_name(name) {
        return Some(
            Problem::error(key, "is not a valid hook name")
                .hint("use letters, digits, `_` and `-`"),
        );
    }
    let problem = match command.trim() {
        "" => Problem::error(key, "has no command"),
        command if command.contains(['\n', '\r']) => Problem::error(key, "has more than one line"),
        _ => return None,
    };
    Some(
        problem.hint(
            "give one line of shell, where `$1` is the level; move longer commands to a script",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_parsed_from_comment_lines() {
        let csv = "# a study\n# hook governor: cpupower frequency-set -g $1\nmodel,epochs\n#hook ra: echo $1: x\n# hook up: \n# hook the disks up: now\n";
        let found = hooks("s.csv", csv).unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(n, c)| (n.as_str(), c.as_str())).collect();
        assert_eq!(found, [("governor", "cpupower frequency-set -g $1"), ("ra", "echo $1: x")]);
        assert_eq!(parse_line(&format!("# {}", comment("a-b", "x y"))), Some(("a-b", "x y")));
    }

    #[test]
    fn a_hook_has_exactly_one_command_on_one_line() {
        let twice = hooks("s.csv", "# hook a: x\n# hook a: x\n# hook a: y\n").unwrap_err();
        assert!(twice.to_string().contains("s.csv:3:1: study.hook.a"), "{twice}");
        for (name, command) in [("a b", "x"), ("", "x"), ("a", " "), ("a", "x\ny")] {
            assert!(problem(name, command).is_some(), "{name:?} {command:?}");
        }
        assert_eq!(problem("a", "x"), None);
    }
}
