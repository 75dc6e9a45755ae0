//! The one list of what is installed where below a prefix: of the archive, the Debian package, Spack and conda. Programs are installed by Cargo
//! and maturin.

use crate::shell::output;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// In `bin`.
pub(super) const PROGRAMS: &[&str] =
    &["feedrate", "dlio_benchmark", "dlio_benchmark_query", "dlio_postprocessor"];

/// All but the programs.
const SHARED: &[(Source, &str)] = &[
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

/// Where something that is installed comes from.
enum Source {
    /// A page for each command, told by the program.
    Manual,
    /// A shell's script, told by the program.
    Completion(&'static str),
    /// A file or folder of the repository.
    File(&'static str),
}

/// Install everything that belongs beside the programs in `PREFIX/bin`.
pub(crate) fn share(root: &Path, prefix: &Path) -> Result<()> {
    let program = prefix.join("bin/feedrate");
    if !program.exists() {
        let prefix = prefix.display();
        bail!(
            "there is no `{prefix}/bin/feedrate`\n  hint: `cargo install --locked --path crates/feedrate --root {prefix}`"
        );
    }
    let program = std::path::absolute(program)?.display().to_string();
    for (source, place) in SHARED {
        let place = std::path::absolute(prefix.join(place))?;
        fs::create_dir_all(place.parent().context("a place lies below the prefix")?)?;
        let to = place.display().to_string();
        let told = match source {
            Source::Manual => output(root, &program, &["man", "--force", &to])?,
            Source::Completion(shell) => output(root, &program, &["completions", shell])?,
            Source::File(from) => output(root, "cp", &["-rT", from, &to])?,
        };
        if let Source::Completion(_) = source {
            fs::write(place, told)?;
        }
    }
    Ok(())
}
