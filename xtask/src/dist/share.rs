//! Installs the files that accompany the programs below a prefix: for the archive, the Debian package, Spack and conda. Cargo and maturin
//! install the programs.

use crate::shell::output;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Programs in `bin`.
pub(super) const PROGRAMS: &[&str] =
    &["feedrate", "dlio_benchmark", "dlio_benchmark_query", "dlio_postprocessor"];

/// The other files: source and path below the prefix.
const SHARED_FILES: &[(Source, &str)] = &[
    (Source::Manual, "share/man/man1"),
    (Source::Completion("bash"), "share/bash-completion/completions/feedrate"),
    (Source::Completion("zsh"), "share/zsh/site-functions/_feedrate"),
    (Source::Completion("fish"), "share/fish/vendor_completions.d/feedrate.fish"),
    (Source::File("LICENSE"), "share/doc/feedrate/copyright"),
    (Source::File("crates/report/src/draw/font/OFL.txt"), "share/doc/feedrate/copyright-font"),
    (Source::File("README.md"), "share/doc/feedrate/README.md"),
    (Source::File("CHANGELOG.md"), "share/doc/feedrate/CHANGELOG.md"),
    (Source::File("studies"), "share/doc/feedrate/examples"),
];

/// Source of an installed file or folder.
enum Source {
    /// The pages of all commands, written by the program.
    Manual,
    /// The completion script for a shell, printed by the program.
    Completion(&'static str),
    /// A file or folder of the repository.
    File(&'static str),
}

/// Installs the files that accompany the programs in `PREFIX/bin`.
pub(crate) fn install_shared_files(root: &Path, prefix: &Path) -> Result<()> {
    let program = prefix.join("bin/feedrate");
    if !program.exists() {
        let prefix_path = prefix.display();
        bail!(
            "there is no `{prefix_path}/bin/feedrate`\n  hint: `cargo install --locked --path crates/feedrate --root {prefix_path}`"
        );
    }
    let feedrate = std::path::absolute(program)?.display().to_string();
    for (source, path) in SHARED_FILES {
        let target = std::path::absolute(prefix.join(path))?;
        fs::create_dir_all(target.parent().context("the path is below the prefix")?)?;
        let to = target.display().to_string();
        let printed = match source {
            Source::Manual => output(root, &feedrate, &["man", "--force", &to])?,
            Source::Completion(shell) => output(root, &feedrate, &["completions", shell])?,
            Source::File(from) => output(root, "cp", &["-rT", from, &to])?,
        };
        if let Source::Completion(_) = source {
            fs::write(target, printed)?;
        }
    }
    Ok(())
}
