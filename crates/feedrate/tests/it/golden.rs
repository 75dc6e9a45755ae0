//! The numbers that `analyze`, `compare`, `report` and `plot` tell of one tree of DLIO's results: kept, so that no rebuilding changes them unseen.

use crate::harness::Test;
use feedrate_results::import::fake::Fake;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Processes and reading threads, each point three times, with noise of a few percent that differs from run to run.
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

/// Each number of a JSON value on a line of its own, to six digits; lists by index, keys in alphabetical order. The data of a plot only.
fn numbers(at: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in fields {
                // Not data, or told by their own tests.
                if !["facts", "look", "size", "width", "height"].contains(&key.as_str()) {
                    numbers(&format!("{at}.{key}"), value, text);
                }
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, item)| numbers(&format!("{at}[{i}]"), item, text));
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            let _ = writeln!(text, "{at} = {}", format!("{number:.5e}").parse::<f64>().unwrap());
        }
        _ => {}
    }
}

fn told(test: &Test, arguments: &[&str], of: &[&str]) -> String {
    let answer = test.feedrate(arguments);
    let whole: Value = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", answer.stderr));
    let mut text = String::new();
    of.iter().for_each(|key| numbers(key, &whole[*key], &mut text));
    assert!(text.lines().count() > 5, "{arguments:?} tells next to nothing: {whole}");
    text
}

fn study() -> Test {
    let test = Test::new();
    write_study(&test.path("results"));
    test
}

#[test]
fn analyze_tells_the_same_numbers_as_ever() {
    insta::assert_snapshot!(told(&study(), &["analyze", "results", "--json"], &["runs"]));
}

#[test]
fn compare_tells_the_same_numbers_as_ever() {
    let test = study();
    let sides = ["compare", "results/fake/4", "results/fake/4_read_threads_8", "--json"];
    let mut text = String::new();
    for response in ["au_all_steps_percent", "samples_per_second", "stall_percent"] {
        let _ = writeln!(text, "{response}");
        let arguments = [&sides[..], &["--response", response]].concat();
        text += &told(&test, &arguments, &["findings"]);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn report_tells_the_same_numbers_as_ever() {
    let keys = ["findings", "experiments"];
    insta::assert_snapshot!(told(&study(), &["report", "results", "--json"], &keys));
}

#[test]
fn plots_draw_the_same_numbers_as_ever() {
    let test = study();
    let mut text = String::new();
    for plot in ["au_processes", "scaling", "factor_levels", "stall", "phases", "latency"] {
        let _ = writeln!(text, "{plot}");
        text += &told(&test, &["plot", plot, "results", "--json"], &["figure"]);
    }
    insta::assert_snapshot!(text);
}
