//! One answer everywhere: `show` and `report` give the same verdict, utilisation, need and help for made-up results of every kind, as text and
//! as JSON.

use crate::harness::{TINY, Test};
use feedrate_measure::example::{block, checkpoint_only_record, epoch, plan, record, simple};
use feedrate_measure::record::{Record, file};
use feedrate_results::import::fake::Fake;
use feedrate_spec::workload::TimeSpec;
use serde_json::Value;

/// A result folder with the paths of its runs.
struct Results {
    name: &'static str,
    runs: Vec<String>,
}

impl Results {
    /// Writes the records as runs of a folder, or as the folder itself if there is one record.
    fn write(test: &Test, name: &'static str, records: Vec<Record>) -> Self {
        let is_single = records.len() == 1;
        let save = |(index, mut record): (usize, Record)| {
            let run = if is_single { name.into() } else { format!("{name}/{index}") };
            std::fs::create_dir_all(test.path(&run)).unwrap();
            record.started = format!("2026-11-21T10:{index:02}:00.000000");
            file::write(&test.path(&run), &record).unwrap();
            run
        };
        Results { name, runs: records.into_iter().enumerate().map(save).collect() }
    }
}

/// A run of 40 steps of 100 ms that wait for their data.
fn waiting(load_ms: u64) -> Record {
    let mut record = simple(&[(load_ms, 100, 0, 4_000_000); 40]);
    record.plan.train.compute = TimeSpec::Constant { mean: 0.1 };
    record
}

/// Two accelerators, the second of which computes twice as long.
fn with_slow_accelerator() -> Record {
    let blocks = vec![
        vec![block(0, &[(0, 100, 100, 2_000_000); 40])],
        vec![block(0, &[(0, 200, 0, 2_000_000); 40])],
    ];
    record(plan(2, 40), vec![epoch(1, blocks)])
}

fn changed(mut record: Record, change: impl Fn(&mut Record)) -> Record {
    change(&mut record);
    record
}

fn all_results(test: &Test) -> Vec<Results> {
    let cached = |record: &mut Record| {
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(160_000_000);
    };
    let study = (0..6).map(|index| {
        changed(waiting([1, 40, 160][index % 3] + index as u64), |record| {
            record.plan.loader.workers = 1 << (index % 3);
        })
    });
    vec![
        Results::write(test, "fed", vec![waiting(1)]),
        Results::write(test, "not_fed", vec![waiting(100)]),
        Results::write(test, "unknown", vec![changed(waiting(1), cached)]),
        Results::write(
            test,
            "checkpoints",
            vec![changed(checkpoint_only_record(3), |record| record.complete = true)],
        ),
        Results::write(test, "incomplete", vec![changed(waiting(50), |r| r.complete = false)]),
        Results::write(test, "invalid", vec![changed(waiting(50), |r| r.epochs.clear())]),
        Results::write(test, "slow_accelerator", vec![with_slow_accelerator()]),
        Results::write(test, "several", vec![waiting(100), waiting(101), waiting(102)]),
        Results::write(test, "study", study.collect()),
    ]
}

/// The text of a page or of a Markdown file without its markup.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut is_tag = false;
    for c in text.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            '`' | '\\' | '*' => {}
            c if !is_tag => plain.push(c),
            _ => {}
        }
    }
    plain.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", "\"").replace("&amp;", "&")
}

fn report(test: &Test, name: &str) -> (Value, [String; 2]) {
    let json = test.feedrate(&["report", name, "--json"]).json();
    let markdown = test.feedrate(&["report", name]).stdout;
    let page = format!("{name}.html");
    test.feedrate(&["report", name, "-o", &page]).warns(&[]);
    let html = std::fs::read_to_string(test.path(&page)).unwrap();
    // In Markdown a backslash precedes characters that may be markup, also `<`.
    let markdown = markdown.replace("\\<", "&lt;").replace("\\>", "&gt;");
    (json, [plain(&markdown), plain(&html)])
}

/// Checks that a report contains each sentence in all outputs.
fn contains(outputs: &[String; 2], sentences: &Value, name: &str) {
    for sentence in sentences.as_array().unwrap() {
        let sentence = plain(sentence.as_str().unwrap());
        for output in outputs {
            assert!(output.contains(&sentence), "{name}: no `{sentence}` in {output}");
        }
    }
}

/// Checks that both objects have equal values of all keys of an answer.
fn same_answer(shown: &Value, reported: &Value, name: &str) {
    let keys = shown.as_object().unwrap().keys();
    for key in keys.filter(|key| !["helps", "client"].contains(&key.as_str())) {
        assert_eq!(shown[key], reported[key], "{name}: {key}");
    }
}

#[test]
fn show_and_report_give_one_answer() {
    let test = Test::new();
    for Results { name, runs } in all_results(&test) {
        let (json, outputs) = report(&test, name);
        for run in &runs {
            let shown = test.feedrate(&["show", run, "--json"]).json();
            let listed = json["runs"].as_array().unwrap().iter();
            let mut listed = listed.filter(|entry| entry["path"].as_str().unwrap() == run);
            same_answer(&shown["answer"], &listed.next().unwrap()["answer"], run);
        }
        let [run] = runs.as_slice() else {
            let says = Value::from_iter(
                json["answers"].as_array().unwrap().iter().map(|group| group["says"].clone()),
            );
            assert!(!says.as_array().unwrap().is_empty(), "{name}");
            contains(&outputs, &says, name);
            continue;
        };
        let shown = test.feedrate(&["show", run, "--json"]).json();
        same_answer(&shown["answer"], &json["answer"], name);
        let says = json["answer"]["says"].as_array().unwrap();
        let text = test.feedrate(&["show", run]).stdout;
        let lines: Vec<&str> = text.lines().take(says.len()).collect();
        assert_eq!(lines, says.iter().map(|says| says.as_str().unwrap()).collect::<Vec<_>>());
        contains(&outputs, &json["answer"]["says"], name);
        // The report lists the advice of `show`, except advice without a prediction.
        let helps = |object: &Value, list: &str| -> Vec<String> {
            let all = object[list].as_array().unwrap().iter();
            all.map(|help| help["name"].as_str().unwrap().to_string()).collect()
        };
        let named = helps(&shown["answer"], "helps");
        assert!(name != "not_fed" || !named.is_empty(), "{shown}");
        for advice in json["advice"].as_array().unwrap() {
            for change in helps(advice, "changes") {
                assert!(named.contains(&change), "{name}: {change} is not in {named:?}");
            }
        }
    }
}

#[test]
fn run_gives_the_answer_of_show_and_report() {
    let test = Test::with_workload(TINY);
    let slow = ["storage.throttle.bytes_per_second=200kB/s", "train.computation_time=0.01"];
    let run = test.feedrate(&[&["run", "workload.yaml", "--json", "--quiet"], &slow[..]].concat());
    let run = run.json();
    let dir = run["run_dir"].as_str().unwrap();
    let shown = test.feedrate(&["show", dir, "--json"]).json();
    assert_eq!(run["answer"]["kind"], "no", "{run}");
    assert_ne!(run["answer"]["helps"], Value::Array(Vec::new()), "{run}");
    assert_eq!(run["answer"], shown["answer"]);
    same_answer(&shown["answer"], &test.feedrate(&["report", dir, "--json"]).json()["answer"], dir);
}

#[test]
fn results_of_dlio_have_one_answer() {
    let test = Test::new();
    for (index, slower) in [1.0, 1.01, 4.0].into_iter().enumerate() {
        let start_s = 36_000.0 + 100.0 * index as f64;
        let fake = Fake { slower, start_s, ..Fake::default() };
        fake.write(&test.path("dlio"), &format!("fake/4/{index}"));
    }
    let (json, outputs) = report(&test, "dlio");
    let says = &json["answers"][0]["says"];
    assert!(says.as_str().unwrap().contains("of 3 runs reach the target"), "{says}");
    contains(&outputs, &Value::from_iter([says.clone()]), "dlio");
    let analyzed = test.feedrate(&["analyze", "dlio"]).stdout;
    assert!(plain(&analyzed).contains(&plain(says.as_str().unwrap())), "{says}: {analyzed}");
}
