//! Commands for developers and CI: `cargo xtask ci|quick|setup|tidy|dist|bench`. No part of the product.

mod shell;
mod setup;
mod tidy;
mod chaos;
mod dist;
mod ci;

use anyhow::{Result, bail};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Commands for developers and CI.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// All that CI does: setup, tidy, format, lints, tests, the short forms of `chaos` and `dist`, docs
    Ci,
    /// As much of it as an edit needs: tidy, format, lints, and the short tests of the crates that differ and of those above them
    Quick {
        /// From which they differ; by default from where the branch left main
        revision: Option<String>,
    },
    /// Install whatever the tests need, Python libraries into .venv
    Setup {
        /// For the benchmarks too
        #[arg(long)]
        bench: bool,
    },
    /// Check the rules of the source tree (also run by `cargo test -p xtask`)
    Tidy,
    /// The campaign against the real programs
    Chaos(chaos::Options),
    /// Make the searchable site of docs/ in target/book; needs mdbook
    Book,
    /// Build every package into target/dist, and try each in a fresh place; some ten minutes
    Dist {
        /// The form that CI runs
        #[arg(long)]
        short: bool,
    },
    /// Install manual, completions and documents beside the programs in PREFIX/bin
    Share { prefix: PathBuf },
    /// Build for release and run bench/run.py with these arguments
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match Task::parse().run(&workspace_root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Task {
    fn run(&self, root: &Path) -> Result<()> {
        match self {
            Task::Ci => ci::ci(root),
            Task::Quick { revision } => ci::quick(root, revision.as_deref()),
            Task::Setup { bench: false } => setup::for_tests(root),
            Task::Setup { bench: true } => {
                setup::for_tests(root).and_then(|()| setup::for_bench(root))
            }
            Task::Tidy => tidy::tidy(root),
            Task::Chaos(options) => chaos::chaos(root, options),
            Task::Book => book(root),
            Task::Dist { short: false } => dist::dist(root),
            Task::Dist { short: true } => dist::short(root),
            Task::Share { prefix } => dist::share(root, prefix),
            Task::Bench { arguments } => bench(root, arguments),
        }
    }
}

fn book(root: &Path) -> Result<()> {
    if !shell::works("mdbook", &["--version"]) {
        bail!("there is no `mdbook`\n  hint: `cargo install --locked mdbook`");
    }
    shell::run(root, "mdbook", &["build", "docs"])
}

fn bench(root: &Path, arguments: &[String]) -> Result<()> {
    setup::for_bench(root)?;
    shell::run(root, "cargo", &["build", "--release", "--package", "feedrate"])?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    shell::run(root, "python3", &[&["bench/run.py"], &arguments[..]].concat())
}

fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
