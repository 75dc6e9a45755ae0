//! `feedrate schema`: the JSON Schema of each object that `--json` prints.
//! Types that are serialised have their own schema; of objects that are put together by hand the keys are here once more, and a test
//! holds what the commands print to them. Long because each key says what it means.

use super::clean::CleanItem;
use super::list::Listed;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use clap::builder::PossibleValuesParser;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::verdict::Bound;
use feedrate_report::output::Schema;
use feedrate_session::folder::FoundFolder;
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

pub(super) fn schema_of(of: Schema) -> Value {
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
        /// The folder of the run.
        run_dir: String,
        /// Its workload.
        workload: String,
        /// Whether the storage kept up; `null` is unknown.
        fed: Option<bool>,
        /// The utilisation that decides.
        au_percent: Option<f64>,
        /// The bound on the run's speed.
        verdict: Bound,
        /// The answer in one sentence.
        says: String,
        /// Each rule that applies, the best first: its change, its evidence, its prediction.
        advice: Vec<Object>,
    }
    Analyze {
        /// Folders that were looked through.
        sources: Vec<String>,
        /// Each run: numbers with provenance, settings, doubts.
        runs: Vec<Object>,
        /// Runs of the same experiment, together.
        groups: Vec<Object>,
        /// Runs of checkpoints alone.
        checkpoints: Vec<Object>,
        /// Folders that are no usable run, and why.
        left_out: Vec<Object>,
    }
    Bench {
        /// Rate of the checksum alone.
        bytes_per_second: f64,
        /// The checksum, so that it is computed.
        crc: u32,
    }
    Calibrate {
        /// Costs by the keys of `client`; `null` is not known.
        client: BTreeMap<String, Option<f64>>,
        /// They follow from a run that was watched, and were not measured.
        #[serde(skip_serializing_if = "Option::is_none")] is_estimate: Option<bool>,
        /// The cost of a sample and that of its bytes were told apart.
        #[serde(skip_serializing_if = "Option::is_none")] told_apart: Option<bool>,
        /// Different samples that were read.
        #[serde(skip_serializing_if = "Option::is_none")] samples: Option<u64>,
        /// Bytes of a sample, in the mean.
        #[serde(skip_serializing_if = "Option::is_none")] sample_bytes: Option<f64>,
        /// Samples in a batch.
        #[serde(skip_serializing_if = "Option::is_none")] batch_size: Option<u64>,
        /// Worker processes.
        #[serde(skip_serializing_if = "Option::is_none")] workers: Option<u32>,
        /// Batches that the costs of workers are the mean of.
        #[serde(skip_serializing_if = "Option::is_none")] batches: Option<u64>,
        /// Processor time of a batch in its worker, by the number of workers.
        #[serde(skip_serializing_if = "Option::is_none")] batch_cpu_seconds: Option<BTreeMap<u32, f64>>,
    }
    Clean {
        /// Whether the items were removed, as `--yes` asks for.
        removed: bool,
        /// Bytes of all items.
        bytes: u64,
        /// Each thing that is removed, or would be.
        items: Vec<CleanItem>,
    }
    Compare {
        /// Settings in which all of A differ from all of B.
        differs_in: Vec<Object>,
        /// The verdict on each experiment and response, with values, intervals and p.
        findings: Vec<Object>,
        /// Experiments that B lacks.
        only_in_a: Vec<String>,
        /// Experiments that A lacks.
        only_in_b: Vec<String>,
        /// Runs of A that were not compared, and why.
        left_out_of_a: Vec<Object>,
        /// Runs of B that were not compared, and why.
        left_out_of_b: Vec<Object>,
        /// Doubts of A.
        doubts_of_a: Vec<Object>,
        /// Doubts of B.
        doubts_of_b: Vec<Object>,
        /// The first argument.
        a: String,
        /// The second.
        b: String,
        /// The question in words.
        asked: String,
        /// Whether it holds for every experiment.
        met: bool,
        /// Remarks on both sides.
        notes: Vec<String>,
    }
    CompareLogs {
        /// Each aspect of the access patterns, with the figures of both.
        aspects: Vec<Object>,
        /// Path and kind of the first.
        a: Object,
        /// Path and kind of the second.
        b: Object,
    }
    Describe {
        /// Family: `workloads`, `keys`, `metrics` and so on.
        family: String,
        #[serde(flatten)] listed: Listed,
    }
    Diagnose {
        /// The workload.
        workload: String,
        /// Emulated accelerators.
        accelerators: u32,
        /// Rate that full utilisation needs.
        needed_samples_per_second: Option<f64>,
        /// The same in bytes.
        needed_bytes_per_second: Option<f64>,
        /// Each part: its rate.
        ceilings: Vec<Object>,
        /// The part behind which the rate falls the most.
        largest_drop: Option<Object>,
        /// Bytes that are read for a sample.
        bytes_per_sample: Option<f64>,
        /// Bytes of them that came from the device.
        device_bytes_per_sample: Option<f64>,
        /// Files that are opened for a sample.
        opens_per_sample: Option<f64>,
        /// Files of the dataset.
        files: u64,
        /// Their bytes.
        file_bytes: u64,
        /// Cores of the machine.
        cores: u32,
        /// Time that all measurements took.
        took_s: f64,
        /// Local time of the first.
        started: String,
        /// The dataset as planned.
        dataset: Object,
        /// The storage as planned.
        storage: Object,
        /// The loader as planned.
        loader: Object,
    }
    Generate {
        /// The folder of the dataset.
        folder: String,
        /// Files of the dataset.
        files: u64,
        /// Their bytes.
        file_bytes: u64,
        /// Files that were made now.
        files_written: u64,
        /// Their bytes.
        bytes_written: u64,
        /// Time that took.
        seconds: f64,
    }
    Import {
        /// The log.
        log: String,
        /// Its kind: `strace`, `darshan`, `dftracer`.
        kind: String,
        /// The job, as far as the log tells of it.
        job: Object,
        /// Time between its first and its last call.
        duration_s: f64,
        /// Sizes and order of reads.
        access: Option<Object>,
        /// Bytes that were read.
        bytes: Option<u64>,
        /// Latencies of reads.
        latency: Object,
        /// The workload as YAML.
        workload: String,
        /// Values that the log does not tell.
        assumed: Vec<String>,
        /// Facts of the log that no workload can say.
        lost: Vec<String>,
    }
    List {
        /// All of the family.
        members: Vec<Listed>,
    }
    Plan {
        /// All that is decided before the run.
        plan: Object,
        /// Consequences: bytes, memory, times, the required rate.
        estimate: Object,
        /// Free bytes of the file system of the data.
        free_bytes: Option<u64>,
        /// Checkpoints; `null` for none.
        checkpoint: Option<Object>,
        /// MLPerf Storage's rules for it: the least files, and utilisation; `null` of a workload without rules.
        mlperf: Option<Object>,
        /// Keys that are given and change nothing.
        without_effect: Vec<Value>,
        /// The workload with every override, as YAML.
        config: String,
    }
    Plot {
        /// The plot's name.
        plot: String,
        /// The picture; `null` where none was written.
        file: Option<String>,
        /// Runs that are not drawn, and why.
        left_out: Vec<Object>,
        /// All values that are drawn.
        figure: Object,
    }
    Report {
        /// The title.
        title: String,
        /// The program and its version.
        program: String,
        /// Lines of the first screen.
        opening: Vec<Object>,
        /// Folders that were read.
        sources: Vec<Object>,
        /// The answer of all runs.
        answer: Option<Object>,
        /// Two sources side by side.
        comparison: Option<Object>,
        /// Findings, the most important first.
        findings: Vec<Object>,
        /// Runs to make next.
        recommendations: Vec<Object>,
        /// Advice, and what came of it.
        advice: Vec<Object>,
        /// Doubts, the worst first.
        doubts: Vec<Object>,
        /// Figures with their values.
        figures: Vec<Object>,
        /// Figures that cannot be drawn, and why.
        not_drawn: Vec<Object>,
        /// Each run.
        runs: Vec<Object>,
        /// Folders that are no usable run, and why.
        left_out: Vec<Object>,
        /// Methods, as a paper states them.
        methods: Vec<Object>,
        /// Machines and storages.
        setups: Vec<Object>,
        /// Settings that are the same in all runs.
        configuration: Object,
        /// Experiments with means and intervals.
        experiments: Vec<Object>,
    }
    Run {
        #[serde(flatten)] summary: AnsweredSummary,
        /// The folder of files that was run.
        #[serde(skip_serializing_if = "Option::is_none")] found: Option<FoundFolder>,
    }
    Scale {
        /// The workload.
        workload: String,
        /// The number that is searched: `accelerators` or another key.
        key: String,
        /// The metric that has to hold.
        response: String,
        /// Its bound.
        bound: f64,
        /// `largest` or `smallest`.
        find: String,
        /// The number that is certain; `null` where none is.
        certain: Option<u64>,
        /// First and last number that is open.
        not_decided: Option<[u64; 2]>,
        /// The first number that certainly fails.
        fails: Option<u64>,
        /// Rate that lacks there.
        lacks_bytes_per_second: Option<f64>,
        /// The bound there, in words.
        why: String,
        /// Reason for which the search ended early.
        stopped: Option<String>,
        /// Runs that were made.
        runs: u64,
        /// Time they took.
        took_s: f64,
        /// Local start of the oldest of them.
        oldest_run: Option<String>,
        /// First number of the range.
        from: u64,
        /// Last number of the range.
        max: u64,
        /// Each number that was run, with its values.
        numbers: Vec<Object>,
        /// Numbers that would be run next.
        again: Vec<u64>,
        /// The dataset that all runs read.
        dataset: Option<Object>,
        /// Settings of every run.
        overrides: Vec<String>,
        /// Remarks on the range.
        notes: Vec<String>,
        /// The folder of the results.
        results: String,
    }
    ScaleDryRun {
        /// Runs, if none has to be repeated.
        runs_without_noise: u64,
        /// Runs at most.
        max_runs: u64,
        /// Bytes of the dataset.
        dataset_bytes: u64,
        /// Free bytes of the file system of the data.
        free_bytes: Option<u64>,
        /// Each dataset that would be read.
        datasets: Vec<Object>,
        /// Time of the runs by the rate of the storage.
        if_storage_delivers: Vec<Object>,
        /// Bytes that the smallest and the largest run read.
        read_bytes_per_run: [u64; 2],
        /// Bytes that all read.
        read_bytes: u64,
        /// Time of a run, if no accelerator waits.
        seconds_per_run_least: f64,
        /// The same of all.
        seconds_least: f64,
        /// Time after which no run is started.
        budget_s: f64,
        /// First number of the range.
        from: u64,
        /// Last number of the range.
        max: u64,
        /// Settings of every run.
        overrides: Vec<String>,
        /// Remarks on the range.
        notes: Vec<String>,
    }
    Scan { #[serde(flatten)] found: FoundFolder }
    StudyDryRun {
        /// Each run that would be made.
        runs: Vec<Object>,
        /// Time of all runs.
        run_s: f64,
        /// Time of making datasets.
        generation_s: f64,
        /// Bytes of datasets that would be made.
        generate_bytes: u64,
        /// Whether they fit on the disk.
        fits_disk: bool,
    }
    StudyNew {
        /// The CSV that was written.
        csv: String,
        /// The design.
        design: String,
        /// Effects that it estimates.
        estimates: String,
        /// Rows.
        runs: u64,
        /// Factors with their levels.
        factors: Vec<Object>,
        /// Runs of each experiment.
        replicates: u64,
        /// Seed of the order.
        seed: u64,
        /// Effects that cannot be told apart.
        aliases: Option<Object>,
        /// Comments of the CSV.
        comments: Vec<String>,
    }
    StudyRun {
        /// Runs that finished.
        finished: u64,
        /// Runs that failed, and why.
        failed: Vec<Object>,
        /// Whether it was stopped.
        stopped: bool,
        /// Each row and what became of it.
        rows: Vec<Object>,
    }
    StudyShow {
        /// The plan of each run that was asked for.
        runs: Vec<Object>,
    }
    StudyStatus {
        /// The CSV.
        study: String,
        /// Rows by state.
        overview: Object,
        /// Time that the rest takes; `null` is unknown.
        left_s: Option<f64>,
        /// Each row and its state.
        rows: Vec<Object>,
        /// How well the metric is known, with `--until`.
        precision: Value,
        /// Results that belong to no row.
        without_a_row: Vec<Value>,
    }
    System {
        /// The machine's name.
        hostname: String,
        /// Programs and libraries, with versions.
        components: Vec<[String; 2]>,
        /// Cores that may be used.
        cpus: u32,
        /// Cores that are online.
        cpus_online: Option<u32>,
        /// Sockets.
        #[serde(skip_serializing_if = "Option::is_none")] sockets: Option<u32>,
        /// Cores of all sockets.
        #[serde(skip_serializing_if = "Option::is_none")] cores: Option<u32>,
        /// Memory.
        memory_bytes: Option<u64>,
        /// Kind of processor.
        processor: String,
        /// The kernel.
        kernel: String,
        /// Lines of `/proc/cpuinfo`.
        cpuinfo: Vec<[String; 2]>,
        /// Lines of `/proc/meminfo`.
        meminfo: Vec<[String; 2]>,
        /// Network interfaces.
        networks: Vec<Object>,
        /// The file system of the data.
        data_mount: Option<Object>,
        /// The file system of the results.
        results_mount: Option<Object>,
    }
    Trials {
        /// The workload.
        workload: String,
        /// Overrides that were given.
        asked: Vec<String>,
        /// The plan of the workload as it is.
        #[serde(skip_serializing_if = "Option::is_none")] plan: Option<Object>,
        /// `au` or `throughput`, where settings were tried for a goal.
        goal: Option<String>,
        /// Overrides of the change to use; `null` where none helps for certain.
        best: Option<Vec<String>>,
        /// Its runs as it is; `null` where none finished.
        baseline: Option<Object>,
        /// Each change: prediction, what was tried, outcome.
        advice: Vec<Object>,
        /// Reason for which the trials ended early.
        stopped: Option<String>,
        /// Runs that were made.
        runs: u64,
        /// Time they took.
        took_s: f64,
        /// Local start of the oldest of them.
        oldest_run: Option<String>,
        /// The folder of the results.
        results: String,
    }
    Verify {
        /// The folder of the dataset.
        folder: String,
        /// Files that were compared.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Files that differ.
        bad_files: u64,
        /// Their names and what differs.
        bad: Vec<String>,
    }
    Whatif {
        /// The folder of the run.
        run_dir: String,
        /// Utilisation as measured.
        measured_au_percent: Option<f64>,
        /// Prediction without a change, which tells how good predictions are.
        as_it_was: Option<Object>,
        /// Each change and its prediction.
        whatif: Vec<Object>,
        /// Changes that would bring something, where one has no effect.
        binds: Vec<Object>,
    }
}
