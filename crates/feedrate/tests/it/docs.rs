//! Runs the commands of the README and the book page by page, and compares their output with the output on the page.
//!
//! | block | meaning |
//! |---|---|
//! | ```` ```console ```` | the commands after `$ ` run in bash, in one folder per page; the lines below must equal stdout, or stderr if stdout is empty |
//! | ```` ```sh ```` | runs as one script, which must succeed |
//! | ```` ```yaml file=NAME ````, also `toml`, `csv` | is written to the file before the commands run |
//! | `<!--` and lines `$ …` | are commands that readers do not see |
//!
//! Words after the language: `varies`: numbers and doubts may differ, and on a busy machine the bottleneck may be unknown; `exit=3`: exit code of the last command; `not-run=WHY`: not run, counted in [`NOT_RUN`].
//! The variable `CHECKOUT` has the root of the source tree.
//! `[..]` and `...` match any text, as in snapbox. `UPDATE_DOCS=1` writes the actual output into the pages.

use crate::harness::Test;
use crate::object_servers::StoreServer;
use snapbox::IntoData;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of blocks that are not run, by the reason.
const NOT_RUN: &[(&str, usize)] = &[
    ("build", 2),
    ("cluster", 1),
    ("example", 2),
    ("gpu", 1),
    ("minutes", 6),
    ("mpi", 2),
    ("python", 5),
    ("storage", 11),
    ("tutorial", 1),
];

const OBJECTS_PAGE: &str = "docs/guide/objects.md";

/// Languages of blocks that hold no commands.
const LANGUAGES: &[&str] = &["yaml", "toml", "python", "csv", "json", "text"];

macro_rules! pages {
    ($($name:ident: $path:literal),* $(,)?) => {
        /// Pages with commands, a test each.
        const PAGES: &[&str] = &[$($path),*];
        $(#[test] fn $name() { check_page($path) })*
    };
}

pages! {
    readme: "README.md",
    first_run: "docs/guide/first-run.md",
    buy_storage: "docs/task/buy-storage.md",
    mlperf: "docs/task/mlperf.md",
    slow_training: "docs/task/slow-training.md",
    paper: "docs/task/paper.md",
    ci: "docs/task/ci.md",
    troubleshooting: "docs/troubleshooting.md",
    advice: "docs/guide/advice.md",
    analyze: "docs/guide/analyze.md",
    client: "docs/guide/client.md",
    checkpoints: "docs/guide/checkpoints.md",
    compare: "docs/guide/compare.md",
    diagnose: "docs/guide/diagnose.md",
    folder: "docs/guide/folder.md",
    objects: "docs/guide/objects.md",
    plots: "docs/guide/plots.md",
    report: "docs/guide/report.md",
    slurm: "docs/guide/slurm.md",
    studies: "docs/guide/studies.md",
    trace: "docs/guide/trace.md",
}

/// A fenced block, or a comment with commands.
#[derive(Clone, Debug)]
struct Block {
    /// Number of its first line, from 0.
    first_line: usize,
    /// Number of the line that ends it.
    end_line: usize,
    language: String,
    words: Vec<String>,
    text: String,
}

impl Block {
    fn word(&self, name: &str) -> Option<&str> {
        self.words.iter().find_map(|word| match word.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            _ => (word == name).then_some(""),
        })
    }

    /// The commands of the block, each with its output on the page.
    fn commands(&self) -> Vec<(String, String)> {
        let mut commands: Vec<(String, String)> = Vec::new();
        let mut continues = false;
        for line in self.text.lines() {
            let begins = match self.language.as_str() {
                "sh" => (!line.trim().is_empty()).then_some(line),
                _ => line.strip_prefix("$ "),
            };
            match (begins, commands.last_mut()) {
                (_, Some((command, _))) if continues => *command = format!("{command}\n{line}"),
                (Some(command), _) => commands.push((command.to_string(), String::new())),
                (None, Some((_, output))) => *output += &format!("{line}\n"),
                (None, None) => assert!(line.is_empty(), "output before a command: {line}"),
            }
            continues = line.ends_with('\\');
        }
        commands
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(Block, String)> = None;
    for (number, line) in page.lines().enumerate() {
        let fence = line.len() - line.trim_start_matches('`').len();
        match &mut open {
            Some((block, end)) if line.trim_end() == end => {
                block.end_line = number;
                blocks.push(block.clone());
                open = None;
            }
            Some((block, _)) => block.text += &format!("{line}\n"),
            None if fence >= 3 || line == "<!--" => {
                let (end, info) =
                    if fence >= 3 { line.split_at(fence) } else { ("-->", "comment") };
                let mut words = info.split_whitespace().map(String::from);
                let language = words.next().unwrap_or_default();
                let (words, text) = (words.collect(), String::new());
                let block = Block { first_line: number, end_line: number, language, words, text };
                open = Some((block, end.to_string()));
            }
            None => {}
        }
    }
    assert!(open.is_none(), "a block has no end: {open:?}");
    blocks
}

/// Runs the commands of a page, and compares or updates the outputs.
fn check_page(path: &str) {
    let text = page(path);
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    // Commands of one page use a bucket.
    let store = (path == OBJECTS_PAGE).then(StoreServer::seaweed);
    let test = store.as_ref().map_or_else(Test::new, StoreServer::test);
    let mut differences = Vec::new();
    let mut shift = 0;
    for block in blocks(&text) {
        if let Some(name) = block.word("file") {
            test.write(name, &block.text);
        }
        if block.word("not-run").is_some() || LANGUAGES.contains(&block.language.as_str()) {
            continue;
        }
        let printed = run_block(&test, path, &block);
        if block.language != "console" {
            continue;
        }
        let [actual, shown] = [&printed, &block.text].map(|text| normalized(text, &block));
        let outcome =
            snapbox::Assert::new().try_eq(None, (&actual).into_data(), (&shown).into_data());
        let Err(difference) = outcome else { continue };
        if block.word("varies").is_some() && only_says_that_cores_were_busy(&actual, &shown) {
            continue;
        }
        differences.push(format!("{path}:{}: {difference}", block.first_line + 1));
        let within = (block.first_line + 1).wrapping_add(shift)..block.end_line.wrapping_add(shift);
        let new: Vec<String> = printed.lines().map(String::from).collect();
        shift = shift.wrapping_add(new.len()).wrapping_sub(within.len());
        lines.splice(within, new);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), lines.join("\n") + "\n").unwrap();
    } else {
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

/// Whether a command found no bottleneck because the cores were busy, where the page has one, and the machine was busy in fact. The program is
/// then right, though its output is not the one on the page.
fn only_says_that_cores_were_busy(actual: &str, shown: &str) -> bool {
    let says_so =
        |text: &str| ["cpu-saturated", "cores were busy"].iter().any(|words| text.contains(words));
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = load.split_whitespace().next().unwrap().parse().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    says_so(actual) && !says_so(shown) && load > cores as f64
}

/// Runs a block. Returns its commands with their output, in the format of a console block.
fn run_block(test: &Test, path: &str, block: &Block) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_feedrate")).parent().unwrap();
    let search = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let commands = match block.language.as_str() {
        "sh" => vec![(format!("set -e\n{}", block.text), String::new())],
        _ => block.commands(),
    };
    assert!(!commands.is_empty(), "{path}:{}: no command", block.first_line + 1);
    let mut shown = String::new();
    for (number, (command, _)) in commands.iter().enumerate() {
        let mut bash = test.program("bash", &["-c", command]);
        let output = bash
            .env("PATH", &search)
            .env("COLUMNS", "100")
            .env("CHECKOUT", root())
            .output()
            .unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let is_last = number + 1 == commands.len();
        let expected =
            block.word("exit").filter(|_| is_last).map_or(0, |code| code.parse().unwrap());
        assert_eq!(output.status.code(), Some(expected), "{path}: {command}\n{stdout}{stderr}");
        let printed = if stdout.is_empty() { stderr } else { stdout };
        let printed = printed.replace(&test.path("").display().to_string(), "/here/");
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        shown += &format!("$ {command}\n{}", printed.join("\n"));
        shown = format!("{}\n", shown.trim_end());
    }
    shown
}

/// The text to compare. In a block with `varies`, numbers and hashes become `0`, units become base units, several spaces become one, and
/// doubts and the words for certainty are removed.
fn normalized(text: &str, block: &Block) -> String {
    // A blank line between two commands has no meaning.
    let text = text.replace("\n\n$ ", "\n$ ");
    if block.word("varies").is_none() {
        return text;
    }
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("Doubt"));
    lines.map(|line| mask_numbers(line) + "\n").collect()
}

fn mask_numbers(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace("PROBABLY ", "").replace(" for certain", "");
    let line = line.split_inclusive(['-', '/']).map(mask_hash).collect::<String>();
    let mut masked = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let is_inside = ".,:-".contains(c)
            && masked.ends_with('0')
            && rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            '0'..='9' if masked.ends_with('0') => {}
            '0'..='9' => masked.push('0'),
            _ if is_inside => {}
            c => masked.push(c),
        }
    }
    for signed in [" +0", " -0", "[+0", "[-0"] {
        masked = masked.replace(signed, &signed.replace(['+', '-'], ""));
    }
    masked = masked.replace("p < 0", "p = 0").replace("; the difference is within its error", "");
    for (unit, base) in [("µs", "s"), ("ms", "s"), ("kB", "B"), ("MB", "B"), ("GB", "B")] {
        masked = masked.replace(&format!("0 {unit}"), &format!("0 {base}"));
    }
    // Equal numbers are one number, others a range.
    for range in ["0 % to 0 %", "0 to 0 %"] {
        masked = masked.replace(range, "0 %");
    }
    // Whether these follow depends on the machine.
    for text in ["; work outside of steps took 0 % of the run (0 s)", ", not enough"] {
        masked = masked.replace(text, "");
    }
    masked
}

/// Replaces the hash in the folder name of a search by `0`.
fn mask_hash(piece: &str) -> String {
    let word = piece.trim_end_matches(['-', '/']);
    let is_hash = word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { piece.replace(word, "0") } else { piece.to_string() }
}

#[test]
fn every_page_with_commands_is_run() {
    let mut not_run: BTreeMap<String, usize> = BTreeMap::new();
    for path in documents() {
        let blocks = blocks(&page(&path));
        for block in &blocks {
            let place = format!("{path}:{}", block.first_line + 1);
            let language = block.language.as_str();
            let has_commands = ["console", "sh", "comment"].contains(&language);
            assert!(has_commands || LANGUAGES.contains(&language), "{place}: `{language}`");
            let is_command = |line: &str| line.starts_with("$ ") || line.starts_with("feedrate ");
            let is_misplaced = !has_commands && block.text.lines().any(is_command);
            assert!(!is_misplaced, "{place}: write commands in a block `console` or `sh`");
            if let Some(why) = block.word("not-run") {
                *not_run.entry(why.to_string()).or_default() += 1;
            } else if has_commands {
                assert!(PAGES.contains(&path.as_str()), "add {path} to the pages of this test");
            }
        }
    }
    let expected = NOT_RUN.iter().map(|&(why, blocks)| (why.to_string(), blocks)).collect();
    assert_eq!(not_run, expected, "number of blocks that are not run, by the reason");
}

/// The examples for the reader's own storage can be planned, and their steps suffice for an answer.
#[test]
fn examples_for_own_storage_have_enough_steps() {
    let test = Test::new();
    let page = page("docs/guide/first-run.md");
    let examples = page.lines().filter(|line| line.contains("--data /mnt/fast"));
    let mut examples_count = 0;
    for example in examples {
        let command = example.split('#').next().unwrap().replace("/mnt/fast", ".");
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let plan = test.feedrate(&[&arguments[..], &["--dry-run"]].concat());
        assert_eq!(plan.code, 0, "{example}: {}", plan.stderr);
        assert!(!plan.stdout.contains("window_shorter_than_stock"), "{example}: {}", plan.stdout);
        examples_count += 1;
    }
    assert!(examples_count >= 3, "{examples_count}");
}

/// The README and all pages of the book, from the root.
fn documents() -> Vec<String> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "README.md", "docs/*.md"])
        .current_dir(root())
        .output()
        .unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let paths: Vec<String> =
        listing.lines().filter(|path| root().join(path).exists()).map(String::from).collect();
    assert!(paths.len() > 20, "{paths:?}");
    paths
}

/// Finds options that a command does not have.
#[test]
fn options_in_the_docs_exist() {
    let reference = page("docs/reference/cli.md");
    let mut wrong = Vec::new();
    for path in documents() {
        let text = page(&path);
        let spans = text.split('`').skip(1).step_by(2).map(String::from);
        let commands = blocks(&text).into_iter().filter(|block| block.language != "text");
        let commands = commands.flat_map(|block| {
            let has_commands = ["console", "sh", "comment"].contains(&block.language.as_str());
            if has_commands { block.commands() } else { Vec::new() }
        });
        for command in spans.chain(commands.map(|(command, _)| command)) {
            wrong.extend(
                unknown_option(&reference, &command).map(|option| format!("{path}: {option}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the first option that is not in the help of its command, or the command if it does not exist.
fn unknown_option(reference: &str, command: &str) -> Option<String> {
    let command = command.replace("\\\n", " ");
    let (_, command) = command.split_once("feedrate ").filter(|(before, _)| {
        before.is_empty() || before.ends_with(' ') && before.contains("-np ")
    })?;
    let end = [" #", " | ", " > ", " && ", ";"].iter().filter_map(|mark| command.find(mark)).min();
    let words: Vec<&str> = command[..end.unwrap_or(command.len())].split_whitespace().collect();
    let first = words.first().filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))?;
    let two = words.get(1).map(|second| format!("{first} {second}"));
    let section = two
        .into_iter()
        .chain([first.to_string()])
        .find_map(|name| reference.split_once(&format!("\n## feedrate {name}\n")));
    let Some((_, section)) = section else { return Some(format!("`feedrate {first}`")) };
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let general = reference.split_once("\n### General\n").map_or("", |(_, general)| general);
    let general = general.split_once("\n### ").map_or(general, |(general, _)| general);
    words.iter().filter(|word| word.starts_with("--")).find_map(|word| {
        let name = word.split('=').next()?;
        let name = name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let is_known = [section, general].into_iter().any(|options| {
            let mut found = options.match_indices(name);
            found.any(|(start, _)| {
                let rest = &options[start + name.len()..];
                !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
            })
        });
        (!is_known).then(|| format!("`{name}` of `feedrate {command}`"))
    })
}

#[test]
fn varying_blocks_differ_only_in_numbers_units_and_doubts() {
    let check = |text: &str, masked: &str| {
        let words = vec!["varies".to_string()];
        let language = "console".to_string();
        let block = Block { first_line: 0, end_line: 0, language, words, text: String::new() };
        assert_eq!(normalized(text, &block), masked);
    };
    check("55.8 % of 1,000  files\n", "0 % of 0 files\n");
    check("a 1. b-2 2-3 4\n", "a 0. b-0 0 0\n");
    check("results/2026-11-23-03-15-42\n", "results/0\n");
    check("results/scale-w-0e0c1d2f/w/1\n", "results/scale-w-0/w/0\n");
    check("PROBABLY 5 hold; 6 fail\n", "0 hold; 0 fail\n");
    check("5 hold for certain; 6 fail\n", "0 hold; 0 fail\n");
    check("Doubts: 1 note\nwaited 900 µs [1.2 ms, -3.4 s]\n", "waited 0 s [0 s, 0 s]\n");
    check("B / A  0.5, p < 0.0001\n", "B / A 0, p = 0\n");
    check("98 % to 99 %, 98 to 99 %\n", "0 %, 0 %\n");
    check("NO: 55 % AU, storage-bound\n", "NO: 0 % AU, storage-bound\n");
}
