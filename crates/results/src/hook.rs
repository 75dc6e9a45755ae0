//! Hooks: commands that set what no workload can, a file system's or a device's setting. They stand in the study's CSV itself, as comment lines
//! `# hook NAME: COMMAND`, so that a study is one file. Nothing is run here.
//!
//! The runner has bash run the command, with the level as `$1`, before a run of a row that sets `study.hook.NAME`.

use feedrate_spec::problem::{Place, Problem, Problems};
use std::collections::BTreeMap;

/// The key of a factor that a hook sets, before the hook's name.
pub const HOOK_PREFIX: &str = "study.hook.";

/// The comment that carries a hook, without `#`.
pub fn comment(name: &str, command: &str) -> String {
    format!("hook {name}: {command}")
}

/// The hooks of a study's CSV, by name. `file` is what places call it.
///
/// # Errors
/// A name that stands for two commands.
pub fn hooks(file: &str, csv: &str) -> Result<BTreeMap<String, String>, Problems> {
    let mut hooks: BTreeMap<String, String> = BTreeMap::new();
    let mut problems = Problems::default();
    for (i, line) in csv.lines().enumerate() {
        let Some((name, command)) = read(line) else { continue };
        let known = hooks.entry(name.to_string()).or_insert_with(|| command.to_string());
        if known != command {
            let place = Place::File { name: file.into(), line: i + 1, column: 1 };
            problems.push(
                Problem::error(
                    format!("{HOOK_PREFIX}{name}"),
                    format!("`{command}` is its second command"),
                )
                .at(Some(place))
                .hint(format!("leave one of the lines `# hook {name}: …`")),
            );
        }
    }
    if problems.has_errors() { Err(problems) } else { Ok(hooks) }
}

fn read(line: &str) -> Option<(&str, &str)> {
    let (name, command) =
        line.trim().strip_prefix('#')?.trim().strip_prefix("hook ")?.split_once(':')?;
    let (name, command) = (name.trim(), command.trim());
    (is_name(name) && !command.is_empty()).then_some((name, command))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Check a hook.
pub fn problem(name: &str, command: &str) -> Option<Problem> {
    let key = format!("hooks.{name}");
    if !is_name(name) {
        return Some(
            Problem::error(key, "is no name of a hook").hint("use letters, digits, `_` and `-`"),
        );
    }
    let problem = match command.trim() {
        "" => Problem::error(key, "has no command"),
        command if command.contains(['\n', '\r']) => Problem::error(key, "is longer than a line"),
        _ => return None,
    };
    Some(problem.hint("give one line for the shell, `$1` is the level; put more into a script"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_comment_lines_of_the_study() {
        let csv = "# a study\n# hook governor: cpupower frequency-set -g $1\nmodel,epochs\n#hook ra: echo $1: x\n# hook up: \n# hook the disks up: now\n";
        let found = hooks("s.csv", csv).unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(n, c)| (n.as_str(), c.as_str())).collect();
        assert_eq!(found, [("governor", "cpupower frequency-set -g $1"), ("ra", "echo $1: x")]);
        assert_eq!(read(&format!("# {}", comment("a-b", "x y"))), Some(("a-b", "x y")));
    }

    #[test]
    fn a_hook_has_one_command_of_one_line() {
        let twice = hooks("s.csv", "# hook a: x\n# hook a: x\n# hook a: y\n").unwrap_err();
        assert!(twice.to_string().contains("s.csv:3:1: study.hook.a"), "{twice}");
        for (name, command) in [("a b", "x"), ("", "x"), ("a", " "), ("a", "x\ny")] {
            assert!(problem(name, command).is_some(), "{name:?} {command:?}");
        }
        assert_eq!(problem("a", "x"), None);
    }
}
