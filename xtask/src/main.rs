//! Commands for developers and CI: `cargo xtask ci|quick|setup|tidy|chaos|long|dist|bench`. They are not part of the product.

#![expect(clippy::disallowed_methods, reason = "commands for developers list intact folders")]

mod shell;
mod setup;
mod tidy;
mod chaos;
mod dist;
mod ci;
mod long;

use anyhow::{Result, bail};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Commands for developers and CI.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Run CI: setup, tidy, format, lints, tests, the short forms of `chaos` and `dist`, docs
    Ci,
    /// Run the checks after an edit: tidy, format, lints, and the short tests of changed crates and their dependents
    Quick {
        /// Revision to compare with; by default the commit where the branch left main
        revision: Option<String>,
    },
    /// Install the requirements of the tests, with Python libraries in .venv
    Setup {
        /// Also install the requirements of the benchmarks
        #[arg(long)]
        bench: bool,
    },
    /// Check the rules of the source tree (also run by `cargo test -p xtask`)
    Tidy,
    /// Inject faults into the real programs, and check results and files of users
    Chaos(chaos::Options),
    /// Run the campaigns that exceed the time of CI: all cases of `chaos`, mutated files, DLIO's tests; takes hours
    Long,
    /// Build the searchable site of docs/ in target/book; needs mdbook
    Book,
    /// Build all packages into target/dist, and test each in a clean environment; takes about ten minutes
    Dist {
        /// Run only the part that CI runs
        #[arg(long)]
        short: bool,
    },
    /// Install manual, completions and documents for the programs in PREFIX/bin
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
            Task::Setup { bench: false } => setup::install_for_tests(root),
            Task::Setup { bench: true } => {
                setup::install_for_tests(root).and_then(|()| setup::install_for_bench(root))
            }
            Task::Tidy => tidy::tidy(root),
            Task::Chaos(options) => chaos::chaos(root, options),
            Task::Long => long::long(root),
            Task::Book => book(root),
            Task::Dist { short: false } => dist::dist(root),
            Task::Dist { short: true } => dist::check_briefly(root),
            Task::Share { prefix } => dist::install_shared_files(root, prefix),
            Task::Bench { arguments } => bench(root, arguments),
        }
    }
}

fn book(root: &Path) -> Result<()> {
    if !shell::succeeds("mdbook", &["--version"]) {
        bail!("there is no `mdbook`\n  hint: `cargo install --locked mdbook`");
    }
    shell::run(root, "mdbook", &["build", "docs"])
}

fn bench(root: &Path, arguments: &[String]) -> Result<()> {
    setup::install_for_bench(root)?;
    shell::run(root, "cargo", &["build", "--release", "--package", "feedrate"])?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    shell::run(root, "python3", &[&["bench/run.py"], &words[..]].concat())
}

fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
