//! `feedrate completions` and `feedrate man`: shell completions and manual pages, generated from the commands' help.

use crate::exit::Exit;
use crate::messages::write_or_print;
use anyhow::Context;
use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use feedrate_session::output::write_output;
use std::fs;
use std::path::PathBuf;

/// `feedrate completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate completions bash > /etc/bash_completion.d/feedrate
  feedrate completions fish > ~/.config/fish/completions/feedrate.fish")]
pub(super) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

/// `feedrate man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate man ~/.local/share/man/man1
  feedrate man /usr/local/share/man/man1 --force")]
pub(super) struct ManArguments {
    /// Folder of the pages, created if necessary.
    dir: PathBuf,
    /// Replace existing pages.
    #[arg(long)]
    force: bool,
}

/// Prints the completion script.
pub(super) fn completions(
    arguments: &CompletionsArguments,
    mut program: clap::Command,
) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    write_or_print(None, &String::from_utf8(script)?, false)?;
    Ok(Exit::Fine)
}

/// Writes a page for the program and one for each command.
pub(super) fn man(arguments: &ManArguments, mut program: clap::Command) -> anyhow::Result<Exit> {
    let dir = &arguments.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    program.build();
    write_pages(&program, arguments)?;
    Ok(Exit::Fine)
}

fn write_pages(command: &clap::Command, arguments: &ManArguments) -> anyhow::Result<()> {
    let page = Man::new(command.clone());
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    write_output(&arguments.dir.join(page.get_filename()), &bytes, Some(arguments.force))?;
    let shown = |inner: &&clap::Command| !inner.is_hide_set() && inner.get_name() != "help";
    command.get_subcommands().filter(shown).try_for_each(|inner| write_pages(inner, arguments))
}
