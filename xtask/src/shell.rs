//! Runs commands. Each command is printed before it starts; an error contains its arguments and status.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Returns the path of this program. If a build has replaced the file since the start, Linux appends ` (deleted)` to its path, where the new
/// file is.
pub(crate) fn this_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?.display().to_string();
    Ok(path.trim_end_matches(" (deleted)").into())
}

/// Runs a command with the output of this program as its output.
pub(crate) fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    run_with(folder, program, arguments, &[])
}

/// Like [`run`], with additional environment variables.
pub(crate) fn run_with(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<()> {
    let command_line = format!("{program} {}", arguments.join(" "));
    eprintln!("\n$ {command_line}");
    let start = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !status.success() {
        bail!("`{command_line}` failed: {status}");
    }
    eprintln!("({} s)", start.elapsed().as_secs());
    Ok(())
}

/// Returns the output of a command that must succeed, without printing the command.
pub(crate) fn output(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start `{program}`"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", arguments.join(" "), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("the output of `{program}` is not UTF-8"))
}

/// Whether a command starts and succeeds. Its output is discarded.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
