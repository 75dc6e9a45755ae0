//! The notebook of python/notebooks as its readers run it: executed as it stands, by nbconvert, on its tiny study. Needs `.venv`, as wheel.rs.

use crate::harness::{Test, venv_python};
use serde_json::Value;
use std::fs;
use std::path::Path;

const NAME: &str = "io_patterns_analysis.ipynb";
/// Runs of its tiny study.
const RUNS: usize = 18;

fn notebook() -> (String, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/notebooks").join(NAME);
    let text = fs::read_to_string(path).unwrap();
    let parsed = serde_json::from_str(&text).unwrap();
    (text, parsed)
}

fn code(notebook: &Value) -> impl Iterator<Item = &Value> {
    notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code")
}

/// Executed in the test's folder.
fn executed(test: &Test) -> Value {
    test.write(NAME, notebook().0);
    let python = venv_python();
    let programs = Path::new(env!("CARGO_BIN_EXE_feedrate")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let arguments = ["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done", NAME];
    let output = test
        .program(std::path::absolute(python).unwrap(), &arguments)
        .env("PATH", path)
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src"))
        // Nothing of the user's own settings, and nothing left in their home.
        .env("HOME", test.path("home"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n  hint: run `cargo xtask setup`");
    serde_json::from_slice(&fs::read(test.path("done.ipynb")).unwrap()).unwrap()
}

/// What cells show, of one kind.
fn shown<'a>(notebook: &'a Value, kind: &'a str) -> Vec<String> {
    let outputs = code(notebook).flat_map(|cell| cell["outputs"].as_array().unwrap());
    let text = |value: &Value| match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().unwrap_or_default().to_string(),
    };
    outputs.filter_map(|output| output["data"].get(kind)).map(text).collect()
}

#[test]
fn the_notebook_goes_from_its_design_to_its_findings() {
    let test = Test::new();
    let done = executed(&test);
    for cell in code(&done) {
        assert!(cell["execution_count"].is_u64(), "{cell:#}");
        assert!(!cell["outputs"].as_array().unwrap().iter().any(|o| o["output_type"] == "error"));
    }
    let study = fs::read_to_string(test.path("io_patterns/tiny.csv")).unwrap();
    assert_eq!(study.lines().filter(|line| line.ends_with(",Y")).count(), RUNS, "{study}");
    assert!(!test.path("io_patterns/data").exists());

    let pictures = shown(&done, "image/png");
    assert_eq!(pictures.len(), 3);
    // The signature of PNG in base64.
    assert!(pictures.iter().all(|png| png.starts_with("iVBORw0KGgo") && 5_000 < png.len()));
    let tables = shown(&done, "text/html");
    let rows = |word: &str| {
        let table = tables.iter().find(|table| table.contains(word));
        let table = table.unwrap_or_else(|| panic!("no table has `{word}`"));
        // But the header.
        table.matches("<tr").count() - 1
    };
    // The machine, the design, the loaded runs, the shaded ones.
    assert!(3 <= rows("Kernel"));
    assert_eq!(rows("<td>++workload.reader.read_threads=4</td>"), RUNS);
    assert_eq!(rows("<th>AU sustained (%)</th>"), RUNS);
    assert_eq!(rows("background-color"), RUNS);
    assert!(2 <= rows("explains"), "the factors of the tiny study matter");
}

#[test]
fn the_notebook_is_kept_without_outputs() {
    for cell in code(&notebook().1) {
        assert_eq!(cell["outputs"], serde_json::json!([]));
        assert_eq!(cell["execution_count"], Value::Null);
    }
}
