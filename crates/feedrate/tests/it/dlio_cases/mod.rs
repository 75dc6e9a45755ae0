//! DLIO's own tests, run on `dlio_benchmark`: those of its last release, and the commands of its newest tests ([`UPSTREAM`]) with 1, 2 or
//! 3 ranks and shorter compute times. The newest tests inspect Python objects and traces; these tests inspect the result files.

/// Commands of the workflow `ci.yml`.
mod commands;
/// Tests in `dlio_benchmark_test.py`.
mod benchmark;
/// Tests in `dlio_dataset_dimension_test.py`.
mod dimensions;
/// Tests in `dlio_ai_logging_test.py`, `dlio_sample_shuffle_test.py` and `dlio_postprocessor_test.py`.
mod records;
/// The tests of DLIO 2.0.0.
mod suite;

use crate::harness::{Answer, Test, venv_python};
use crate::mpi::MPICH;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The commit of github.com/argonne-lcf/dlio_benchmark whose tests the cases repeat.
const UPSTREAM: &str = "e1919d7b6ccffbe15143cd616517da9e5d7b26a7";

/// Number of cases that run at the same time. They mostly wait for the disk.
const CASES_AT_ONCE: usize = 8;

type CaseCheck = dyn Fn(&CaseResult) -> Result<(), String> + Sync;

/// One of DLIO's tests.
struct Case {
    name: String,
    /// Overrides of each command; the commands run one after another.
    commands: Vec<Vec<String>>,
    /// Checks the requirements of DLIO's test.
    check: Box<CaseCheck>,
    /// Properties of the generated files that `check.py` checks.
    file_properties: Option<Value>,
}

/// The test folder and last output of a case.
struct CaseResult {
    test: Test,
    ranks: usize,
    /// Output of the last command.
    answer: Answer,
}

impl Case {
    fn new(
        name: impl Into<String>,
        overrides: &[&str],
        check: impl Fn(&CaseResult) -> Result<(), String> + Sync + 'static,
    ) -> Self {
        let commands = vec![overrides.iter().map(|text| text.to_string()).collect()];
        Case { name: name.into(), commands, check: Box::new(check), file_properties: None }
    }

    /// Runs the commands and the check. Each command has its own result folder, as in DLIO's tests.
    fn run(&self, ranks: usize) -> Result<Test, String> {
        let test = Test::new();
        let mut answers = self.commands.iter().enumerate().map(|(i, overrides)| {
            let output = format!("++workload.output.folder=output{i}");
            let times = [
                "++workload.train.computation_time=0.001",
                "++workload.evaluation.eval_time=0.001",
            ];
            let is_needed = |time: &&str| {
                let key = time.split('=').next().unwrap();
                !overrides.iter().any(|text| text.starts_with(key))
            };
            let settings = overrides.iter().map(|text| with_ranks(text, ranks));
            let arguments: Vec<String> = settings
                .chain(times.into_iter().filter(is_needed).map(String::from))
                .chain([output])
                .collect();
            dlio_benchmark(&test, ranks, &arguments)
        });
        let mut answer = answers.next().unwrap();
        for next in answers {
            if answer.code != 0 {
                break;
            }
            answer = next;
        }
        let result = CaseResult { ranks, answer, test };
        if result.answer.stderr.contains("panicked") {
            return Err(result.answer.stderr);
        }
        (self.check)(&result).map_err(|reason| format!("{reason}\n{}", result.answer.stderr))?;
        Ok(result.test)
    }
}

/// Replaces `RANKS`, or a product such as `8*RANKS`, in an override.
fn with_ranks(text: &str, ranks: usize) -> String {
    match text.split_once("*RANKS") {
        Some((start, _)) => {
            let (key, each) = start.split_once('=').unwrap();
            format!("{key}={}", each.parse::<usize>().unwrap() * ranks)
        }
        None => text.replace("RANKS", &ranks.to_string()),
    }
}

fn dlio_benchmark(test: &Test, ranks: usize, arguments: &[String]) -> Answer {
    let dlio_benchmark = env!("CARGO_BIN_EXE_dlio_benchmark");
    let ranks = ranks.to_string();
    let (launcher, first) = MPICH;
    let (program, before) = match ranks.as_str() {
        "1" => (dlio_benchmark, Vec::new()),
        _ => (launcher, [first, &[&ranks, dlio_benchmark]].concat()),
    };
    let output = test.program(program, &before).args(arguments).output();
    Answer::from_output(&output.unwrap_or_else(|error| {
        panic!("cannot start `{program}`: {error}\n  hint: run `cargo xtask setup`")
    }))
}

impl CaseResult {
    fn check_success(&self) -> Result<(), String> {
        expect("exit code", &self.answer.code, &0)
    }

    /// Result folder of the last command.
    fn results(&self) -> PathBuf {
        let last = (0..)
            .map(|i| self.test.path(&format!("output{i}")))
            .take_while(|path| path.exists())
            .last();
        last.unwrap_or_else(|| self.test.path("output0"))
    }

    /// Checks that the command succeeded and that each rank wrote its file.
    fn check_training(&self) -> Result<(), String> {
        self.check_success()?;
        let entries = std::fs::read_dir(self.results()).map_err(|error| error.to_string())?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let outputs = names.filter(|name| name.ends_with("_output.json")).count();
        expect("`_output.json` of ranks", &outputs, &self.ranks)
    }

    fn record(&self) -> Result<Value, String> {
        let text =
            std::fs::read(self.results().join("record.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// Number of files below a folder with this ending.
    fn count_files(&self, folder: &str, ending: &str) -> usize {
        self.test.files_below(folder, ending).len()
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, wanted {wanted:?}")) }
}

/// Runs all cases with this number of ranks.
#[track_caller]
fn check(cases: &[Case], ranks: usize) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let to_inspect = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CASES_AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match case.run(ranks) {
                        Err(reason) => failures
                            .lock()
                            .unwrap()
                            .push(format!("{} at {ranks}: {reason}", case.name)),
                        Ok(test) => {
                            let properties = case.file_properties.as_ref().map(|properties| {
                                let mut properties = properties.clone();
                                properties["name"] = case.name.as_str().into();
                                properties["folder"] = test.path("data").to_string_lossy().into();
                                (test, properties)
                            });
                            to_inspect.lock().unwrap().extend(properties);
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.extend(inspect_files(to_inspect.into_inner().unwrap()));
    assert!(failures.is_empty(), "{} of {}\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Checks the generated files of all cases by one call of `check.py`. Returns the errors.
fn inspect_files(to_inspect: Vec<(Test, Value)>) -> Vec<String> {
    if to_inspect.is_empty() {
        return Vec::new();
    }
    let test = Test::new();
    let expected: Vec<&Value> = to_inspect.iter().map(|(_, properties)| properties).collect();
    test.write("cases.json", serde_json::to_string(&expected).unwrap());
    let errors = test.python(&venv_python(), "dlio_cases/check.py", ["cases.json"]);
    String::from_utf8(errors).unwrap().lines().map(String::from).collect()
}

#[test]
fn the_documentation_has_the_numbers_of_cases() {
    let docs = include_str!("../../../../../docs/guide/dlio.md");
    assert!(docs.contains(&format!("commit {}", &UPSTREAM[..7])), "{UPSTREAM}");
    let suites = [benchmark::cases(), dimensions::cases(), records::cases()];
    let count: usize = suites.iter().map(|cases| cases.len()).sum();
    assert!(docs.contains(&format!("all {count} cases")), "{count}");
    let commands: usize = commands::cases().iter().map(|case| case.commands.len()).sum();
    let share = format!("{commands} of the {} commands", commands::ALL);
    assert!(docs.contains(&share), "{share}");
}
