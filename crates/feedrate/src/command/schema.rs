//! `feedrate schema`: the JSON Schema of each object that `--json` prints.
//! Types that are serialised have their own schema; of objects that are put together by hand the keys are here once more, and a test
//! holds what the commands print to them.

use super::clean::CleanItem;
use super::list::Listed;
use crate::exit::Exit;
use crate::folder::FoundFolder;
use crate::messages;
use clap::Args;
use clap::builder::PossibleValuesParser;
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_report::output::Schema;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// `feedrate schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate schema              names of all schemas
  feedrate schema run          of `run --json` and `show --json`")]
pub(super) struct SchemaArguments {
    /// The schema, as `schema` in the object names it, without its version.
    #[arg(value_parser = PossibleValuesParser::new(Schema::ALL.map(Schema::name)), hide_possible_values = true)]
    name: Option<String>,
}

/// Print the schema, or the names.
pub(super) fn schema(arguments: &SchemaArguments) -> anyhow::Result<Exit> {
    match arguments.name.as_deref().and_then(Schema::named) {
        Some(schema) => messages::print(&serde_json::to_string_pretty(&schema_of(schema))?)?,
        None => messages::print(&Schema::ALL.map(Schema::versioned).join("\n"))?,
    }
    Ok(Exit::Fine)
}

fn schema_of(of: Schema) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = json!(root(of, settings.into_generator()));
    schema["title"] = json!(of.versioned());
    if let Some(keys) = schema["properties"].as_object_mut() {
        let program = json!({ "type": "string", "description": "Version of the program." });
        keys.shift_insert(0, "feedrate".into(), program);
        keys.shift_insert(1, "schema".into(), json!({ "const": of.versioned() }));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.splice(0..0, ["feedrate".into(), "schema".into()]);
    }
    if let (Schema::Run, Some(answer)) = (of, schema.pointer_mut("/$defs/Answer/properties")) {
        answer["helps"] = json!({ "type": "array", "items": { "type": "object" } });
        answer["client"] = json!({ "type": ["object", "null"] });
    }
    schema
}

/// An object whose keys are not told here.
type Object = Map<String, Value>;

macro_rules! keys {
    ($($schema:ident { $($(#[$of:meta])* $key:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "its schema alone is wanted")]
            struct $schema { $($(#[$of])* $key: $type),* }
        )*

        fn root(of: Schema, generator: SchemaGenerator) -> schemars::Schema {
            match of { $(Schema::$schema => generator.into_root_schema_for::<$schema>(),)* }
        }
    };
}

keys! {
    Advise {
        run_dir: String, workload: String, fed: Option<bool>, au_percent: Option<f64>, verdict: Bound, says: String,
        advice: Vec<Object>,
    }
    Analyze {
        sources: Vec<String>, runs: Vec<Object>, groups: Vec<Object>, checkpoints: Vec<Object>, left_out: Vec<Object>,
    }
    Bench { bytes_per_second: f64, crc: u32 }
    Calibrate { client: BTreeMap<String, Option<f64>> }
    Clean { removed: bool, bytes: u64, items: Vec<CleanItem> }
    Compare {
        differs_in: Vec<Object>, findings: Vec<Object>, only_in_a: Vec<String>, only_in_b: Vec<String>,
        left_out_of_a: Vec<Object>, left_out_of_b: Vec<Object>, doubts_of_a: Vec<Object>, doubts_of_b: Vec<Object>,
        a: String, b: String, asked: String, met: bool, notes: Vec<String>,
    }
    CompareLogs { aspects: Vec<Object>, a: Object, b: Object, says: String }
    Describe { family: String, #[serde(flatten)] listed: Listed }
    Diagnose {
        workload: String, accelerators: u32, needed_samples_per_second: Option<f64>, needed_bytes_per_second: Option<f64>,
        ceilings: Vec<Object>, largest_drop: Option<Object>, bytes_per_sample: Option<f64>,
        device_bytes_per_sample: Option<f64>, opens_per_sample: Option<f64>, files: u64, file_bytes: u64, cores: u32,
        took_s: f64, started: String, dataset: Object, storage: Object, loader: Object,
    }
    Generate { folder: String, files: u64, file_bytes: u64, files_written: u64, bytes_written: u64, seconds: f64 }
    Import {
        log: String, kind: String, job: Object, duration_s: f64, access: Option<Object>, bytes: Option<u64>, latency: Object,
        workload: String, assumed: Vec<String>, lost: Vec<String>,
    }
    List { members: Vec<Listed> }
    Plan { plan: Object, estimate: Object, free_bytes: Option<u64>, checkpoint: Option<Object>, without_effect: Vec<Value>, config: String }
    Plot { plot: String, file: Option<String>, left_out: Vec<Object>, figure: Object }
    Report {
        title: String, program: String, opening: Vec<Object>, sources: Vec<Object>, answer: Option<Object>,
        comparison: Option<Object>, findings: Vec<Object>, recommendations: Vec<Object>, advice: Vec<Object>,
        doubts: Vec<Object>, figures: Vec<Object>, not_drawn: Vec<Object>, runs: Vec<Object>, left_out: Vec<Object>,
        methods: Vec<Object>, setups: Vec<Object>, configuration: Object, experiments: Vec<Object>,
    }
    Run {
        #[serde(flatten)] summary: Summary,
        /// The folder of files that was run.
        #[serde(skip_serializing_if = "Option::is_none")] found: Option<FoundFolder>,
    }
    Scale {
        workload: String, key: String, response: String, bound: f64, find: String, certain: Option<u64>,
        not_decided: Option<[u64; 2]>, fails: Option<u64>, lacks_bytes_per_second: Option<f64>, why: String,
        stopped: Option<String>, runs: u64, took_s: f64, from: u64, max: u64, numbers: Vec<Object>, again: Vec<u64>,
        dataset: Option<Object>, overrides: Vec<String>, notes: Vec<String>, results: String,
    }
    ScaleDryRun {
        runs_without_noise: u64, max_runs: u64, dataset_bytes: u64, free_bytes: Option<u64>, datasets: Vec<Object>,
        if_storage_delivers: Vec<Object>, read_bytes_per_run: [u64; 2], read_bytes: u64,
        seconds_per_run_least: f64, seconds_least: f64, budget_s: f64, from: u64, max: u64, overrides: Vec<String>,
        notes: Vec<String>,
    }
    Scan { #[serde(flatten)] found: FoundFolder }
    StudyDryRun { runs: Vec<Object>, run_s: f64, generation_s: f64, generate_bytes: u64, fits_disk: bool }
    StudyNew {
        csv: String, design: String, estimates: String, runs: u64, factors: Vec<Object>, replicates: u64, seed: u64,
        aliases: Option<Object>, comments: Vec<String>,
    }
    StudyRun { finished: u64, failed: Vec<Object>, stopped: bool, rows: Vec<Object> }
    StudyShow { runs: Vec<Object> }
    StudyStatus {
        study: String, overview: Object, left_s: Option<f64>, rows: Vec<Object>, precision: Value, without_a_row: Vec<Value>,
    }
    System {
        hostname: String, components: Vec<[String; 2]>, cpus: u32, cpus_online: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")] sockets: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")] cores: Option<u32>,
        memory_bytes: Option<u64>, processor: String, kernel: String, cpuinfo: Vec<[String; 2]>,
        meminfo: Vec<[String; 2]>, networks: Vec<Object>, data_mount: Option<Object>, results_mount: Option<Object>,
    }
    Trials {
        workload: String, asked: Vec<String>, #[serde(skip_serializing_if = "Option::is_none")] plan: Option<Object>,
        baseline: Option<Object>, advice: Vec<Object>, stopped: Option<String>, runs: u64, took_s: f64, results: String,
    }
    Tune {
        workload: String, goal: String, best: Object, decided: bool, stopped: Option<String>,
        client_leaves_percent: Option<f64>, left_out: Vec<Object>, compared_at_accelerators: Option<u64>,
        fed_accelerators: Option<u64>, settings: u64, runs: u64, took_s: f64, tried: Vec<Object>, yaml: String,
        command: String, results: String,
    }
    Verify { folder: String, files: u64, bytes: u64, bad_files: u64, bad: Vec<String> }
    Whatif { run_dir: String, measured_au_percent: Option<f64>, as_it_was: Option<Object>, whatif: Vec<Object> }
}
