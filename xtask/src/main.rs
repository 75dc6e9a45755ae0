//! Commands for developers and CI: `cargo xtask ci|quick|setup|tidy|dist|bench`. No part of the product.

mod shell;
mod setup;
mod tidy;
mod chaos;
mod dist;
mod ci;

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  ci            all that CI does: setup, tidy, format, lints, tests, the short forms of `chaos` and `dist`, docs
  quick [REV]   what an edit needs of it: tidy, format, lints, and the short tests of the crates that differ
                from REV (by default from where the branch left main) and of those above them
  setup         install what the tests need into .venv; `--bench`: what the benchmarks need as well
  tidy          check the rules of the source tree (also run by `cargo test -p xtask`); `--lower`: write the
                budgets of rules that are broken less often than before
  chaos [...]   the campaign against the real programs; `--short`: the form that CI runs; `--only CLASS`, `--seed N`:
                one case again; `--first N`: other seeds; `--programs DIR`: those of a folder
  book          make the searchable site of docs/ in target/book; needs mdbook
  dist          build every package into target/dist, and try each in a fresh place; some ten minutes; `--short`:
                the form that CI runs
  share PREFIX  install manual, completions and documents beside the programs in PREFIX/bin
  bench [...]   build for release and run bench/run.py with these arguments";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match command(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(words: &[&str]) -> Result<()> {
    let root = workspace_root();
    match words {
        ["ci"] => ci::ci(&root),
        ["quick"] => ci::quick(&root, None),
        ["quick", revision] => ci::quick(&root, Some(revision)),
        ["setup"] => setup::for_tests(&root),
        ["setup", "--bench"] => setup::for_tests(&root).and_then(|()| setup::for_bench(&root)),
        ["tidy"] => tidy::tidy(&root),
        ["tidy", "--lower"] => tidy::lower_budgets(&root),
        ["chaos", rest @ ..] => chaos::chaos(&root, rest),
        ["book"] => book(&root),
        ["dist"] => dist::dist(&root),
        ["dist", "--short"] => dist::short(&root),
        ["share", prefix] => dist::share(&root, Path::new(prefix)),
        ["bench", rest @ ..] => bench(&root, rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("`{}` is no command\n\n{USAGE}", words.join(" ")),
    }
}

fn book(root: &Path) -> Result<()> {
    if !shell::works("mdbook", &["--version"]) {
        bail!("there is no `mdbook`\n  hint: `cargo install --locked mdbook`");
    }
    shell::run(root, "mdbook", &["build", "docs"])
}

fn bench(root: &Path, arguments: &[&str]) -> Result<()> {
    setup::for_bench(root)?;
    shell::run(root, "cargo", &["build", "--release", "--package", "feedrate"])?;
    shell::run(root, "python3", &[&["bench/run.py"], arguments].concat())
}

fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
