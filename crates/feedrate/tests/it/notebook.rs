//! Executes the notebook in python/notebooks unchanged by nbconvert, on its tiny study. The tests need `.venv`, which `cargo xtask setup`
//! installs.

use crate::harness::{Test, venv_python};
use serde_json::Value;
use std::fs;
use std::path::Path;

const NAME: &str = "io_patterns_analysis.ipynb";
/// Number of runs in the tiny study.
const RUNS: usize = 18;

fn notebook() -> (String, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/notebooks").join(NAME);
    let text = fs::read_to_string(path).unwrap();
    let parsed = serde_json::from_str(&text).unwrap();
    (text, parsed)
}

fn code_cells(notebook: &Value) -> impl Iterator<Item = &Value> {
    notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code")
}

/// Executes the notebook in the test's folder.
fn execute_notebook(test: &Test) -> Value {
    test.write(NAME, notebook().0);
    let python = venv_python();
    let programs = Path::new(env!("CARGO_BIN_EXE_feedrate")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let arguments = ["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done", NAME];
    let output = test
        .program(std::path::absolute(python).unwrap(), &arguments)
        .env("PATH", path)
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src"))
        // Neither reads the user's settings nor writes to the user's home.
        .env("HOME", test.path("home"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
    serde_json::from_slice(&fs::read(test.path("done.ipynb")).unwrap()).unwrap()
}

/// The outputs of all cells with this media type.
fn outputs_of_type<'a>(notebook: &'a Value, kind: &'a str) -> Vec<String> {
    let outputs = code_cells(notebook).flat_map(|cell| cell["outputs"].as_array().unwrap());
    let text = |value: &Value| match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().unwrap_or_default().to_string(),
    };
    outputs.filter_map(|output| output["data"].get(kind)).map(text).collect()
}

#[test]
fn the_notebook_runs_from_the_design_to_the_findings() {
    let test = Test::new();
    let executed = execute_notebook(&test);
    for cell in code_cells(&executed) {
        assert!(cell["execution_count"].is_u64(), "{cell:#}");
        assert!(!cell["outputs"].as_array().unwrap().iter().any(|o| o["output_type"] == "error"));
    }
    let study = fs::read_to_string(test.path("io_patterns/tiny.csv")).unwrap();
    assert_eq!(study.lines().filter(|line| line.ends_with(",Y")).count(), RUNS, "{study}");
    assert!(!test.path("io_patterns/data").exists());

    let images = outputs_of_type(&executed, "image/png");
    assert_eq!(images.len(), 3);
    // The signature of PNG in base64.
    assert!(images.iter().all(|png| png.starts_with("iVBORw0KGgo") && 5_000 < png.len()));
    let tables = outputs_of_type(&executed, "text/html");
    let rows = |word: &str| {
        let table = tables.iter().find(|table| table.contains(word));
        let table = table.unwrap_or_else(|| panic!("no table has `{word}`"));
        // Without the header.
        table.matches("<tr").count() - 1
    };
    // Tables of the machine, the design, the loaded runs and the shaded runs.
    assert!(3 <= rows("Kernel"));
    assert_eq!(rows("<td>++workload.reader.read_threads=4</td>"), RUNS);
    assert_eq!(rows("<th>AU sustained (%)</th>"), RUNS);
    assert_eq!(rows("background-color"), RUNS);
    assert!(2 <= rows("explains"), "the factors of the tiny study matter");
}

#[test]
fn the_notebook_in_the_repository_has_no_outputs() {
    for cell in code_cells(&notebook().1) {
        assert_eq!(cell["outputs"], serde_json::json!([]));
        assert_eq!(cell["execution_count"], Value::Null);
    }
}
