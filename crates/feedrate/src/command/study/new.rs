//! `feedrate study new`: turns an experimental design into the CSV of its runs. Nothing is run.

use crate::cli::{names_parser, parse_count};
use crate::exit::Exit;
use crate::messages::{self, StdoutError};
use crate::progress::TERMINAL;
use anyhow::Context;
use clap::Args;
use feedrate_measure::record::file::read_text;
use feedrate_report::output::Schema;
use feedrate_results::file_kind::FileKind;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::setting::Setting;
use feedrate_results::table::Table;
use feedrate_session::output::{refuse_existing, refuse_missing_folder, write_output};
use feedrate_session::resolve::{self, WorkloadSource};
use feedrate_session::surroundings::ProcessSurroundings;
use feedrate_spec::problem::Problems;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{self as spec, Content, Strictness, Workload};
use feedrate_study::chosen::refuse_secrets;
use feedrate_study::design::Aliases;
use feedrate_study::design_file::{self, DesignText};
use feedrate_study::randomization::{Blocking, RunOrder};
use feedrate_study::resolved_design::{NewStudy, ResolvedDesign};
use feedrate_study::row_command::{RowCommand, find_workload, note_local_workloads};
use feedrate_study::settings;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Default name of the CSV.
const DEFAULT_CSV: &str = "study.csv";
/// Maximum number of experiments that are planned as a check. It is large enough to cover each level, and planning is still fast.
const PLANNED_MAX: usize = 50;
/// Name of the CSV that stands for stdout.
const STDOUT: &str = "-";

/// `feedrate study new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate study new --design full_factorial --model unet3d_h100 \\
    --factor reader.read_threads=1,4,16 --factor processes=1,2,4 --replicates 3
  feedrate study new design.toml && feedrate study run design.csv")]
pub(in crate::command) struct StudyNewArguments {
    /// Design file in TOML; options override its settings.
    #[arg(value_name = "DESIGN")]
    file: Option<PathBuf>,
    /// CSV to write, `-` for stdout [default: the design file's name with `.csv`, else study.csv].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the CSV if it exists, including its marks of finished runs.
    #[arg(long)]
    force: bool,
    /// Kind of design; `feedrate list designs` lists them.
    #[arg(long, value_name = "NAME")]
    design: Option<String>,
    /// Option of the design: `p=2`, `generators=D=AB,E=AC`. May be repeated.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Workload of the baseline.
    #[arg(long, value_name = "WORKLOAD")]
    model: Option<String>,
    /// Epochs of the baseline [default: the workload's].
    #[arg(long, value_name = "N", value_parser = parse_count::<u32>)]
    epochs: Option<u32>,
    /// Emulated accelerators of the baseline [default: 1].
    #[arg(short = 'n', long, alias = "accelerators", value_name = "N", value_parser = parse_count::<u32>)]
    processes: Option<u32>,
    /// Setting of the baseline, such as `reader.batch_size=4`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Factor and its levels, such as `reader.read_threads=1,4,8` or `processes=1,2,4`, or a range `KEY=LOW..HIGH`, with `:log` appended
    /// for a logarithmic scale. May be repeated.
    #[arg(long = "factor", value_name = "KEY=LEVELS")]
    factors: Vec<String>,
    /// Command that sets the factor `study.hook.NAME`; it receives the level as `$1`. May be repeated.
    #[arg(long = "hook", value_name = "NAME=COMMAND")]
    hooks: Vec<String>,
    /// Number of runs of each point of the design [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_count::<u32>)]
    replicates: Option<u32>,
    /// Make each replicate a separate block, with all points once. `--blocks` alone means `replicates`.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "replicates", value_parser = names_parser(Blocking::ALL, Blocking::name, Blocking::meaning))]
    blocks: Option<Blocking>,
    /// Order of the runs in each block [default: random].
    #[arg(long, value_name = "HOW", value_parser = names_parser(RunOrder::ALL, RunOrder::name, RunOrder::meaning))]
    order: Option<RunOrder>,
    /// Seed of the random order [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Repeat the baseline at both ends of each block and after every N runs, to detect drift.
    #[arg(long, value_name = "N")]
    sentinel: Option<u32>,
    /// Number of runs per block with each numeric factor at its middle level [default: none].
    #[arg(long, value_name = "N")]
    centre_points: Option<u32>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Writes the CSV of a design.
pub(crate) fn new(arguments: &StudyNewArguments) -> anyhow::Result<Exit> {
    let path = output_path(arguments);
    let mut text = design_text(arguments)?;
    let parse_model = |model: &str| parse_workload(&find_workload(model, &path, None));
    if let (Some(model), Some(design)) = (&mut text.baseline.model, &arguments.file)
        && !Path::new(&find_workload(model, &path, None)).exists()
    {
        *model = find_workload(model, design, None);
    }
    let baseline = text.baseline.model.as_deref().map(parse_model).transpose()?;
    let resolved = ResolvedDesign::new(&text, |key| value_in(baseline.as_ref()?, key))?;
    for warning in &resolved.warnings.0 {
        messages::say(warning);
    }
    let models = resolved.factors.iter().filter(|factor| factor.key == "model");
    for model in models.flat_map(|factor| &factor.levels) {
        parse_model(model)?;
    }
    let drawn = resolved.create_study()?;
    let settings = drawn.rows.iter().flat_map(|row| &row.settings);
    let texts: BTreeSet<String> = settings.map(Setting::text).collect();
    refuse_secrets(texts.iter().map(String::as_str))?;
    let csv = Table::new(drawn.rows.clone(), &drawn.comments).text();
    if path == Path::new(STDOUT) {
        messages::print(csv.trim_end())?;
        return Ok(Exit::Fine);
    }
    write(&path, &csv, arguments.force)?;
    note_local_workloads(drawn.rows.iter().map(|row| &*row.model), &path, None, &TERMINAL);
    let planned = plan_rows(&drawn.rows, &resolved.hooks, &path)?;
    for key in factors_without_effect(&resolved, &planned) {
        messages::say(format!(
            "warning: `{key}` has no effect: the plans of its levels are equal, as far as they were compared, so its runs repeat others"
        ));
    }
    print_study(arguments, &resolved, &drawn, &path)?;
    Ok(Exit::Fine)
}

/// Reads the design file, and applies the options on the command line.
fn design_text(arguments: &StudyNewArguments) -> anyhow::Result<DesignText> {
    let mut text = match &arguments.file {
        Some(file) => read(file)?,
        None => DesignText::default(),
    };
    if let Some(kind) = &arguments.design {
        text.set_kind(kind);
    }
    let mut problems = Vec::new();
    problems.extend(arguments.options.iter().filter_map(|word| text.set_option(word).err()));
    problems.extend(arguments.factors.iter().filter_map(|word| text.add_factor(word).err()));
    problems.extend(arguments.hooks.iter().filter_map(|word| text.add_hook(word).err()));
    let baseline = &mut text.baseline;
    problems
        .extend(arguments.overrides.iter().filter_map(|word| baseline.add_override(word).err()));
    if !problems.is_empty() {
        return Err(Problems(problems).into());
    }
    baseline.model = arguments.model.clone().or(baseline.model.take());
    baseline.epochs = arguments.epochs.or(baseline.epochs);
    baseline.processes = arguments.processes.or(baseline.processes);
    text.replicates = arguments.replicates.or(text.replicates);
    text.seed = arguments.seed.or(text.seed);
    text.sentinel = arguments.sentinel.or(text.sentinel);
    text.centre_points = arguments.centre_points.or(text.centre_points);
    text.blocks = arguments.blocks.or(text.blocks);
    text.order = arguments.order.or(text.order);
    Ok(text)
}

fn read(file: &Path) -> anyhow::Result<DesignText> {
    let text = read_text(file).map_err(|error| {
        Refusal::new(
            format!("cannot read design `{}`: {error}", file.display()),
            "give a TOML file, or describe the design by `--design`, `--model` and `--factor`",
        )
    })?;
    if let Some(other) = FileKind::from_text(&text).filter(|kind| *kind != FileKind::Design) {
        let (message, hint) = other.mismatch(FileKind::Design, file);
        return refuse(message, hint);
    }
    let name = file.display().to_string();
    Ok(design_file::parse(&name, &text).map_err(Problems::from)?)
}

fn parse_workload(model: &str) -> anyhow::Result<Workload> {
    let WorkloadSource { file, yaml, .. } = resolve::find(model)?;
    Ok(spec::parse_in(&file, &yaml, &[], Strictness::Error, &ProcessSurroundings::now())?.0)
}

/// Value of a key in a workload file; `None` if the file does not set it.
fn value_in(workload: &Workload, key: &str) -> Option<String> {
    let path = if key == "epochs" { "train.epochs" } else { key };
    match &workload.tree().node_at(path)?.content {
        Content::Scalar { text, .. } => Some(text.clone()),
        Content::List(_) | Content::Map(_) => None,
    }
}

fn output_path(arguments: &StudyNewArguments) -> PathBuf {
    let stem = arguments.file.as_deref().and_then(Path::file_stem);
    let named = stem.map(|stem| Path::new(stem).with_added_extension("csv"));
    arguments.output.clone().or(named).unwrap_or_else(|| DEFAULT_CSV.into())
}

/// Writes the CSV. An existing CSV may have results, so only `--force` replaces it.
fn write(path: &Path, csv: &str, force: bool) -> anyhow::Result<()> {
    refuse_existing(path, Some(force))?;
    refuse_missing_folder(path)?;
    write_output(path, csv.as_bytes(), Some(force))
}

/// Finds the keys of factors whose levels have the same plans, with otherwise equal settings. `planned` are rows with the fingerprints of their
/// plans.
fn factors_without_effect<'a>(
    resolved: &'a ResolvedDesign,
    planned: &[(&Row, String)],
) -> Vec<&'a str> {
    let keys = resolved.factors.iter().map(|factor| factor.key.as_str());
    let has_no_effect = |key: &&str| {
        let mut groups: BTreeMap<RowKey, Vec<&str>> = BTreeMap::new();
        for (row, fingerprint) in planned {
            let mut other = Row { replicate: None, block: None, ..(*row).clone() };
            other.settings.retain(|setting| setting.key != *key);
            groups.entry(other.key()).or_default().push(fingerprint);
        }
        let mut varied = groups.values().filter(|plans| 1 < plans.len()).peekable();
        !key.starts_with("study.")
            && varied.peek().is_some()
            && varied.all(|plans| plans.iter().all(|plan| *plan == plans[0]))
    };
    keys.filter(has_no_effect).collect()
}

/// Plans the experiments, and warns of runs that would be refused on this machine. They are no error, since the study may be for another
/// machine. Returns planned rows with the fingerprints of their plans.
fn plan_rows<'a>(
    rows: &'a [Row],
    hooks: &BTreeMap<String, String>,
    csv: &Path,
) -> anyhow::Result<Vec<(&'a Row, String)>> {
    let folder = std::env::current_dir().context("the working directory is unknown")?;
    let settings = settings::defaults(csv, &folder);
    let mut experiments = BTreeSet::new();
    let mut reported: Vec<String> = Vec::new();
    let mut planned = Vec::new();
    for row in rows {
        let experiment = Row { replicate: None, block: None, ..row.clone() };
        if experiments.len() == PLANNED_MAX || !experiments.insert(experiment.key()) {
            continue;
        }
        let command = RowCommand::new(row, &settings, hooks, csv);
        let problem = match command.map_err(Problems::from)?.plan() {
            Ok(found) => {
                planned.push((row, found.plan.fingerprint));
                continue;
            }
            Err(problem) => problem,
        };
        if !reported.contains(&problem) {
            let order = row.order.unwrap_or_default();
            let why = problem.trim_start_matches("error: ");
            messages::say(format!("warning: run {order} cannot be made here: {why}"));
            reported.push(problem);
        }
    }
    Ok(planned)
}

fn print_study(
    arguments: &StudyNewArguments,
    resolved: &ResolvedDesign,
    drawn: &NewStudy,
    path: &Path,
) -> Result<(), StdoutError> {
    if !arguments.json {
        messages::print_page(&drawn.comments.join("\n"))?;
        let keys: Vec<&str> = resolved.factors.iter().map(|factor| factor.key.as_str()).collect();
        if keys.contains(&"reader.batch_size") && !keys.contains(&"train.computation_time") {
            messages::note(
                "note: `train.computation_time` is per step, so `reader.batch_size` also changes the compute time per sample",
            );
        }
        let trust = if resolved.hooks.is_empty() { "" } else { " --trust" };
        let program = format!("feedrate study run {}{trust}", path.display());
        messages::note(format!("written to {}; run it with `{program}`", path.display()));
        return Ok(());
    }
    let factors = resolved.factors.iter();
    let factors = factors.map(|factor| NewFactor {
        name: &factor.name,
        key: &factor.key,
        levels: &factor.levels,
    });
    let output = StudyNewOutput {
        csv: path,
        design: resolved.design.name,
        estimates: resolved.design.estimates,
        runs: drawn.rows.len(),
        factors: factors.collect(),
        replicates: resolved.arrangement.replicates,
        seed: resolved.arrangement.seed,
        aliases: drawn.aliases.as_ref(),
        comments: &drawn.comments,
    };
    messages::print_json(Schema::StudyNew, &output)
}

/// Output of `study new --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct StudyNewOutput<'a> {
    /// The written CSV.
    csv: &'a Path,
    /// Kind of design.
    design: &'static str,
    /// Effects that the design estimates.
    estimates: &'static str,
    /// Number of runs.
    runs: usize,
    /// Factors with their levels.
    factors: Vec<NewFactor<'a>>,
    /// Number of runs of each experiment.
    replicates: u32,
    /// Seed of the random order.
    seed: u64,
    /// Effects that the design cannot separate.
    aliases: Option<&'a Aliases>,
    /// Comments in the CSV.
    comments: &'a [String],
}

/// A factor of a design.
#[derive(Serialize, JsonSchema)]
struct NewFactor<'a> {
    /// Name of the factor.
    name: &'a str,
    /// Key that the factor sets.
    key: &'a str,
    /// Levels of the factor.
    levels: &'a [String],
}
