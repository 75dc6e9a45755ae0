//! Snapshots of the numbers that `analyze`, `compare`, `report` and `plot` print for fixed DLIO results, so that no change of the code changes
//! them unnoticed.

use crate::harness::Test;
use feedrate_results::import::fake::Fake;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Writes results for several numbers of processes and reading threads: three replicates each, with noise of a few percent.
fn write_study(root: &Path) {
    let mut minute = 0;
    for (ranks, threads, slower) in [(1, 4, 1.0), (2, 4, 1.2), (4, 4, 1.5), (4, 8, 0.9)] {
        for noise in [0.97, 1.0, 1.04] {
            let name = if threads == 4 { ranks.to_string() } else { "4_read_threads_8".into() };
            let overrides = if threads == 4 { vec![] } else { vec!["reader.read_threads=8"] };
            let fake = Fake {
                ranks,
                threads,
                overrides,
                load_s: |rank, step| 0.2 + 0.01 * f64::from(rank) + 0.002 * (step % 5) as f64,
                slower: slower * noise,
                start_s: 36_000.0 + 60.0 * f64::from(minute),
                ..Fake::default()
            };
            fake.write(root, &format!("fake/{name}/2025-11-30-10-{minute:02}-00"));
            minute += 1;
        }
    }
}

/// Writes each number of a JSON value on a line, with its path and six digits. Keys are in alphabetical order.
fn write_numbers(path: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in fields {
                // Left out: these keys are no data, or have other tests.
                if !["facts", "look", "size", "width", "height"].contains(&key.as_str()) {
                    write_numbers(&format!("{path}.{key}"), value, text);
                }
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, item)| write_numbers(&format!("{path}[{i}]"), item, text));
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            let _ = writeln!(text, "{path} = {}", format!("{number:.5e}").parse::<f64>().unwrap());
        }
        _ => {}
    }
}

fn numbers_in(test: &Test, arguments: &[&str], keys: &[&str]) -> String {
    let answer = test.feedrate(arguments);
    let whole: Value = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", answer.stderr));
    let mut text = String::new();
    keys.iter().for_each(|key| write_numbers(key, &whole[*key], &mut text));
    assert!(text.lines().count() > 5, "{arguments:?} prints too few numbers: {whole}");
    text
}

fn with_study() -> Test {
    let test = Test::new();
    write_study(&test.path("results"));
    test
}

#[test]
fn analyze_prints_the_same_numbers_as_before() {
    insta::assert_snapshot!(numbers_in(
        &with_study(),
        &["analyze", "results", "--json"],
        &["runs"]
    ));
}

#[test]
fn compare_prints_the_same_numbers_as_before() {
    let test = with_study();
    let sides = ["compare", "results/fake/4", "results/fake/4_read_threads_8", "--json"];
    let mut text = String::new();
    for response in ["au_all_steps_percent", "samples_per_second", "stall_percent"] {
        let _ = writeln!(text, "{response}");
        let arguments = [&sides[..], &["--response", response]].concat();
        text += &numbers_in(&test, &arguments, &["findings"]);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn report_prints_the_same_numbers_as_before() {
    let keys = ["findings", "experiments"];
    insta::assert_snapshot!(numbers_in(&with_study(), &["report", "results", "--json"], &keys));
}

#[test]
fn plots_draw_the_same_numbers_as_before() {
    let test = with_study();
    let mut text = String::new();
    for plot in ["au_processes", "scaling", "factor_levels", "stall", "phases", "latency"] {
        let _ = writeln!(text, "{plot}");
        text += &numbers_in(&test, &["plot", plot, "results", "--json"], &["figure"]);
    }
    insta::assert_snapshot!(text);
}
