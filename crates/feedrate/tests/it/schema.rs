//! The output of `--json` matches the schemas of `feedrate schema`, and docs/reference/schemas.json has the current schemas.

use crate::harness::{TINY, Test, venv_python};
use feedrate_measure::record::file;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Schemas whose commands are slow. The tests of these commands call [`assert_matches_schema`].
const CHECKED_ELSEWHERE: &[&str] =
    &["calibrate", "diagnose", "rehearsal", "repeat", "scale", "trials"];

const MEMORY: [&str; 2] = ["storage.storage_type=memory", "train.computation_time=0.05"];

/// A log with one read of a file.
const STRACE: &str = "\
5 1.000000 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>
5 2.000000 openat(AT_FDCWD, \"/d/1.npz\", O_RDONLY) = 3 <0.00005>
5 2.000100 read(3, \"\", 8192) = 5000 <0.000200>
";

fn schema_of(test: &Test, name: &str) -> Value {
    let printed = test.feedrate(&["schema", name]);
    assert_eq!(printed.code, 0, "{name}: {}", printed.stderr);
    printed.json()
}

/// Names with versions, as `feedrate schema` lists them.
fn versioned_names(test: &Test) -> Vec<String> {
    test.feedrate(&["schema"]).stdout.lines().map(String::from).collect()
}

#[test]
fn the_output_of_commands_matches_their_schemas() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let first = test.run_json(&["--results", "a"])["run_dir"].as_str().unwrap().to_string();
    test.run_json(&["--results", "b"]);
    // Predictions refuse runs on busy cores.
    let idle_run = test.run_json(&[&MEMORY[..], &["train.epochs=8", "--results", "m"]].concat());
    let idle_run = idle_run["run_dir"].as_str().unwrap();
    let mut record = file::read(&test.path(idle_run)).unwrap();
    record.epochs.iter_mut().for_each(|epoch| epoch.host.cpu_busy_share = Some(0.1));
    record.doubts.clear();
    file::write(&test.path(idle_run), &record).unwrap();
    test.write("study.csv", "model,epochs,processes,overrides,run\nquickstart,1,1,,\n");
    test.write("tiny.csv", "model,epochs,processes,overrides,run\nworkload.yaml,1,1,,\n");
    test.write("job.strace", STRACE);
    let design = "design = \"full_factorial\"\n[baseline]\nmodel = \"quickstart\"\n[factors]\nprocesses = [1, 2]\n";
    test.write("new.toml", design);
    std::fs::create_dir(test.path("foreign")).unwrap();
    for name in ["1.raw", "2.raw", "3.raw"] {
        test.write(&format!("foreign/{name}"), "0123456789");
    }
    let mut pairs = Vec::new();
    let mut tried = BTreeSet::from_iter(CHECKED_ELSEWHERE.iter().map(ToString::to_string));
    for (name, words) in [
        ("generate", &["generate", "workload.yaml"][..]),
        ("run", &["run", "workload.yaml"]),
        ("run", &["run", "workload.yaml", "checkpoint.steps_between_checkpoints=1"]),
        ("run", &["run", "--data", "foreign", "--results", "f"]),
        ("run", &["show", &first]),
        ("plan", &["plan", "workload.yaml"]),
        ("verify", &["generate", "--verify", "workload.yaml"]),
        ("scan", &["scan", "foreign"]),
        ("import", &["import", "job.strace"]),
        ("analyze", &["analyze", "a"]),
        ("compare", &["compare", "a", "b"]),
        ("compare_logs", &["compare", "job.strace", &first]),
        ("compare_logs", &["compare", "a", "job.strace"]),
        ("report", &["report", "a"]),
        ("plot", &["plot", "stall", "a"]),
        ("advise", &["advise", &first]),
        ("whatif", &["advise", idle_run, "--set", "reader.read_threads=4"]),
        ("list", &["list", "formats"]),
        ("list", &["list", "format"]),
        ("describe", &["list", "formats", "npz"]),
        (
            "scale_dry_run",
            &["scale", "workload.yaml", "--au", "90", "--dry-run", "--response", "au_all_steps"],
        ),
        ("system", &["system"]),
        ("clean", &["clean", "data"]),
        ("study_status", &["study", "status", "study.csv"]),
        ("study_show", &["study", "status", "study.csv", "#1"]),
        ("study_dry_run", &["study", "run", "study.csv", "--dry-run"]),
        ("study_new", &["study", "new", "new.toml"]),
        ("study_run", &["study", "run", "tiny.csv", "--results", "s"]),
    ] {
        let answer = test.feedrate(&[words, &["--json"]].concat());
        let object: Value = serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {answer:?}"));
        assert!(versioned_names(&test).iter().any(|name| object["schema"] == **name), "{words:?}");
        assert_eq!(object["schema"].as_str().unwrap().split('/').next(), Some(name), "{words:?}");
        assert_eq!(object["feedrate"], env!("CARGO_PKG_VERSION"), "{words:?}");
        pairs.push(json!({ "schema": schema_of(&test, name), "object": object }));
        tried.insert(name.to_string());
    }
    let bench = test.feedrate(&["bench-crc", "--seconds", "0.01"]).json();
    pairs.push(json!({ "schema": schema_of(&test, "bench"), "object": bench }));
    tried.insert("bench".into());
    let all = versioned_names(&test);
    assert_eq!(tried, all.iter().map(|name| name.split('/').next().unwrap().to_string()).collect());
    check(&test, &pairs);
}

#[track_caller]
fn check(test: &Test, pairs: &[Value]) {
    test.write("pairs.json", json!(pairs).to_string());
    let checked = test.python(&venv_python(), "schema.py", ["pairs.json"]);
    assert_eq!(String::from_utf8(checked).unwrap().trim(), pairs.len().to_string());
}

/// Checks that the output of a command matches the schema `name`.
#[track_caller]
pub(crate) fn assert_matches_schema(name: &str, object: &Value) {
    assert!(CHECKED_ELSEWHERE.contains(&name), "{name}");
    let test = Test::new();
    let schema = schema_of(&test, name);
    assert_eq!(object["schema"], schema["title"], "{object}");
    check(&test, &[json!({ "schema": schema, "object": object })]);
}

#[test]
fn an_incompatible_schema_needs_a_new_version() {
    let test = Test::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas.json");
    let known: Map<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let now = versioned_names(&test).into_iter().map(|name| {
        let schema = schema_of(&test, name.split('/').next().unwrap());
        (name, schema)
    });
    let now: Map<String, Value> = now.collect();
    for (versioned, schema) in &known {
        let is_broken = now.get(versioned).is_some_and(|now| !is_compatible(schema, now));
        assert!(
            !is_broken,
            "{versioned}: a key was removed or changed: raise the version in `Schema::version`"
        );
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, format!("{:#}\n", json!(now))).unwrap();
    } else {
        assert!(known == now, "the schemas have changed: run this test with UPDATE_DOCS=1");
    }
}

/// Whether objects of the new schema are valid in the old schema. The new schema may have more keys.
fn is_compatible(old: &Value, new: &Value) -> bool {
    match (old, new) {
        // Any value is allowed; only a description was added.
        (Value::Bool(true), Value::Object(new)) => new.keys().all(|key| key == "description"),
        (Value::Object(old), Value::Object(new)) => old.iter().all(|(key, old)| {
            key == "description" || new.get(key).is_some_and(|new| is_compatible(old, new))
        }),
        (Value::Array(old), Value::Array(new)) => {
            old.iter().all(|old| new.iter().any(|new| is_compatible(old, new)))
        }
        _ => old == new,
    }
}

#[test]
fn a_schema_without_a_key_of_the_old_one_is_incompatible() {
    let old = json!({ "properties": { "au": { "type": "number" } }, "required": ["au"] });
    let more = json!({
        "properties": { "au": { "type": "number" }, "steps": { "type": "integer" } },
        "required": ["au", "steps"],
    });
    let retyped = json!({ "properties": { "au": { "type": "string" } }, "required": ["au"] });
    assert!(is_compatible(&old, &more));
    assert!(!is_compatible(&more, &old) && !is_compatible(&old, &retyped));
}
