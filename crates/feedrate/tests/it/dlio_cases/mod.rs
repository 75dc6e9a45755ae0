//! What DLIO's own tests ask of it, asked of `dlio_benchmark`: the same settings, at 1 and at 2 ranks, as commands. Computation takes a
//! thousandth of the time. Where DLIO's test looks at its objects or its traces, the files that are left are looked at.

/// Of `dlio_benchmark_test.py`.
mod benchmark;
/// Of `dlio_dataset_dimension_test.py`.
mod dimensions;
/// Of `dlio_ai_logging_test.py`, `dlio_sample_shuffle_test.py` and `dlio_postprocessor_test.py`.
mod records;

use crate::harness::{Answer, Test, venv_python};
use crate::mpi::MPICH;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs wait for the disk most of the time.
const CASES_AT_ONCE: usize = 8;

type RanCheck = dyn Fn(&Ran) -> Result<(), String> + Sync;

/// One test of DLIO's.
struct Case {
    name: String,
    /// Overrides of one command after another.
    commands: Vec<Vec<String>>,
    /// What DLIO's test asks for.
    check: Box<RanCheck>,
    /// What `check.py` should find in the data.
    look: Option<Value>,
    /// What is not so here, in words of `check`; docs/guide/dlio.md tells why.
    differs: Option<&'static str>,
}

/// What a case left.
struct Ran {
    test: Test,
    ranks: usize,
    /// Of the last command.
    answer: Answer,
}

impl Case {
    fn new(
        name: impl Into<String>,
        overrides: &[&str],
        check: impl Fn(&Ran) -> Result<(), String> + Sync + 'static,
    ) -> Self {
        let commands = vec![overrides.iter().map(|text| text.to_string()).collect()];
        Case { name: name.into(), commands, check: Box::new(check), look: None, differs: None }
    }

    /// Run it, and look at what is left. Each command has a folder of results of its own, as in DLIO's tests.
    fn run(&self, ranks: usize) -> Result<Test, String> {
        let test = Test::new();
        let mut answers = self.commands.iter().enumerate().map(|(i, overrides)| {
            let output = format!("++workload.output.folder=output{i}");
            let times = [
                "++workload.train.computation_time=0.001",
                "++workload.evaluation.eval_time=0.001",
            ];
            let given = |time: &&str| {
                let key = time.split('=').next().unwrap();
                !overrides.iter().any(|text| text.starts_with(key))
            };
            let own = overrides.iter().map(|text| at(text, ranks));
            let arguments: Vec<String> = own
                .chain(times.into_iter().filter(given).map(String::from))
                .chain([output])
                .collect();
            dlio(&test, ranks, &arguments)
        });
        let mut answer = answers.next().unwrap();
        for next in answers {
            if answer.code != 0 {
                break;
            }
            answer = next;
        }
        let ran = Ran { ranks, answer, test };
        if ran.answer.stderr.contains("panicked") {
            return Err(ran.answer.stderr);
        }
        (self.check)(&ran).map_err(|reason| format!("{reason}\n{}", ran.answer.stderr))?;
        Ok(ran.test)
    }
}

/// An override with its `RANKS` told, or its `8*RANKS`.
fn at(text: &str, ranks: usize) -> String {
    match text.split_once("*RANKS") {
        Some((start, _)) => {
            let (key, each) = start.split_once('=').unwrap();
            format!("{key}={}", each.parse::<usize>().unwrap() * ranks)
        }
        None => text.replace("RANKS", &ranks.to_string()),
    }
}

fn dlio(test: &Test, ranks: usize, arguments: &[String]) -> Answer {
    let own = env!("CARGO_BIN_EXE_dlio_benchmark");
    let ranks = ranks.to_string();
    let (launcher, first) = MPICH;
    let (program, before) = match ranks.as_str() {
        "1" => (own, Vec::new()),
        _ => (launcher, [first, &[&ranks, own]].concat()),
    };
    let output = test.program(program, &before).args(arguments).output();
    Answer::of(&output.unwrap_or_else(|error| {
        panic!("cannot start `{program}`: {error}\n  hint: run `cargo xtask setup`")
    }))
}

impl Ran {
    fn went_well(&self) -> Result<(), String> {
        expect("exit code", &self.answer.code, &0)
    }

    /// The results of the last of several commands.
    fn results(&self) -> PathBuf {
        let last = (0..)
            .map(|i| self.test.path(&format!("output{i}")))
            .take_while(|path| path.exists())
            .last();
        last.unwrap_or_else(|| self.test.path("output0"))
    }

    /// Every rank left its own.
    fn trained(&self) -> Result<(), String> {
        self.went_well()?;
        let left = std::fs::read_dir(self.results()).map_err(|error| error.to_string())?;
        let names = left.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let outputs = names.filter(|name| name.ends_with("_output.json")).count();
        expect("`_output.json` of ranks", &outputs, &self.ranks)
    }

    fn record(&self) -> Result<Value, String> {
        let text =
            std::fs::read(self.results().join("record.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// Files below a folder that end so.
    fn files(&self, folder: &str, ending: &str) -> usize {
        self.test.files_below(folder, ending).len()
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, wanted {wanted:?}")) }
}

/// Run all at these ranks: each as it should be, but for those that are known to differ, which must differ as they are known to.
#[track_caller]
fn check(cases: &[Case], ranks: usize) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let made = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CASES_AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = match (case.run(ranks), case.differs) {
                        (Ok(_), Some(_)) => "is as in DLIO: take it off the list".to_string(),
                        (Err(reason), Some(known)) if reason.starts_with(known) => continue,
                        (Err(reason), _) => reason,
                        (Ok(test), None) => {
                            made.lock().unwrap().extend(case.look.as_ref().map(|look| {
                                let mut look = look.clone();
                                look["name"] = case.name.as_str().into();
                                look["folder"] = test.path("data").to_string_lossy().into();
                                (test, look)
                            }));
                            continue;
                        }
                    };
                    wrong.lock().unwrap().push(format!("{} at {ranks}: {told}", case.name));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.extend(looked_at(made.into_inner().unwrap()));
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// What is wrong with what was made, by one Python.
fn looked_at(made: Vec<(Test, Value)>) -> Vec<String> {
    if made.is_empty() {
        return Vec::new();
    }
    let test = Test::new();
    let looks: Vec<&Value> = made.iter().map(|(_, look)| look).collect();
    test.write("cases.json", serde_json::to_string(&looks).unwrap());
    let told = test.python(&venv_python(), "dlio_cases/check.py", ["cases.json"]);
    String::from_utf8(told).unwrap().lines().map(String::from).collect()
}

/// The shares that docs/guide/dlio.md tells.
#[test]
fn at_least_95_of_100_are_as_in_dlio() {
    let docs = include_str!("../../../../../docs/guide/dlio.md");
    let (mut differ, mut all) = (0, 0);
    for cases in [benchmark::cases(), dimensions::cases(), records::cases()] {
        let others = cases.iter().filter(|case| case.differs.is_some()).count();
        let told = format!("{} of {} cases", cases.len() - others, cases.len());
        assert!(docs.contains(&told), "{told}");
        (differ, all) = (differ + others, all + cases.len());
    }
    assert!(differ * 20 <= all, "{differ} of {all} differ");
}
