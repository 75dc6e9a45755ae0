//! `feedrate study new`: from a design to the CSV of its runs. Runs nothing.

use super::{how, row};
use crate::cli::{Blocks, Order, StudyNewArguments};
use crate::exit::{Exit, UsageError};
use crate::messages;
use crate::resolve;
use anyhow::Context;
use feedrate_measure::record::file;
use feedrate_results::row::Row;
use feedrate_results::table::Table;
use feedrate_spec::problem::{Problem, Problems};
use feedrate_spec::workload::{self, Content, Strictness, Workload};
use feedrate_study::design_file::{self, DesignText};
use feedrate_study::randomization;
use feedrate_study::resolved_design::{Drawn, ResolvedDesign};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a CSV goes that no file names.
const NAME: &str = "study.csv";
/// Experiments that are planned to see whether they can be run: enough to meet each level, soon done.
const PLANNED_MAX: usize = 50;
/// Stdout.
const STDOUT: &str = "-";

/// Write the CSV of a design.
pub(crate) fn new(arguments: &StudyNewArguments) -> anyhow::Result<Exit> {
    let path = output(arguments);
    let mut text = asked(arguments)?;
    let found = |model: &str| workload_of(&row::workload(model, &path));
    if let (Some(model), Some(design)) = (&mut text.baseline.model, &arguments.file)
        && !Path::new(&row::workload(model, &path)).exists()
    {
        *model = row::workload(model, design);
    }
    let own = text.baseline.model.as_deref().map(found).transpose()?;
    let resolved = ResolvedDesign::new(&text, |key| value_in(own.as_ref()?, key))?;
    for warning in &resolved.warnings.0 {
        messages::say(warning);
    }
    let models = resolved.factors.iter().filter(|factor| factor.key == "model");
    for model in models.flat_map(|factor| &factor.levels) {
        found(model)?;
    }
    let drawn = resolved.draw()?;
    let csv = Table::new(drawn.rows.clone(), &drawn.comments).text();
    if path == Path::new(STDOUT) {
        messages::print(csv.trim_end());
        return Ok(Exit::Fine);
    }
    write(&path, &csv, arguments.force)?;
    warn_of_refused(&drawn.rows, &resolved.hooks, &path)?;
    tell(arguments, &resolved, &drawn, &path);
    Ok(Exit::Fine)
}

/// Read the file, and let flags override it.
fn asked(arguments: &StudyNewArguments) -> anyhow::Result<DesignText> {
    let mut text = match &arguments.file {
        Some(file) => read(file)?,
        None => DesignText::default(),
    };
    if let Some(kind) = &arguments.design {
        text.set_kind(kind);
    }
    let mut wrong = Vec::new();
    wrong.extend(arguments.options.iter().filter_map(|word| text.set_option(word).err()));
    wrong.extend(arguments.factors.iter().filter_map(|word| text.add_factor(word).err()));
    wrong.extend(arguments.hooks.iter().filter_map(|word| text.add_hook(word).err()));
    let baseline = &mut text.baseline;
    wrong.extend(arguments.overrides.iter().filter_map(|word| baseline.add_override(word).err()));
    if !wrong.is_empty() {
        return Err(Problems(wrong).into());
    }
    baseline.model = arguments.model.clone().or(baseline.model.take());
    baseline.epochs = arguments.epochs.or(baseline.epochs);
    baseline.processes = arguments.processes.or(baseline.processes);
    text.replicates = arguments.replicates.or(text.replicates);
    text.seed = arguments.seed.or(text.seed);
    text.sentinel = arguments.sentinel.or(text.sentinel);
    text.centre_points = arguments.centre_points.or(text.centre_points);
    let blocks = arguments.blocks.map(|blocks| match blocks {
        Blocks::Replicates => randomization::Blocks::Replicates,
        Blocks::None => randomization::Blocks::None,
    });
    text.blocks = blocks.or(text.blocks);
    let order = arguments.order.map(|order| match order {
        Order::Random => randomization::Order::Random,
        Order::Standard => randomization::Order::Standard,
    });
    text.order = order.or(text.order);
    Ok(text)
}

fn read(file: &Path) -> anyhow::Result<DesignText> {
    let text = std::fs::read_to_string(file).map_err(|error| UsageError {
        message: format!("cannot read design `{}`: {error}", file.display()),
        hint: Some("give a file in TOML or YAML, or the design by flags: `--design`, `--model`, `--factor`".into()),
    })?;
    let name = file.display().to_string();
    Ok(design_file::parse(&name, &text).map_err(|problem: Problem| Problems(vec![problem]))?)
}

fn workload_of(model: &str) -> anyhow::Result<Workload> {
    let (_, file, yaml) = resolve::find(model)?;
    Ok(workload::parse(&file, &yaml, &[], Strictness::Error)?.0)
}

/// Value of a workload for a factor's key. Defaults do not count: a level that equals the default is run all the same.
fn value_in(workload: &Workload, key: &str) -> Option<String> {
    let path = if key == "epochs" { "train.epochs" } else { key };
    match &workload.tree().at(path)?.content {
        Content::Scalar { text, .. } => Some(text.clone()),
        Content::List(_) | Content::Map(_) => None,
    }
}

fn output(arguments: &StudyNewArguments) -> PathBuf {
    let beside = arguments.file.as_deref().and_then(Path::file_stem);
    let named = || beside.map(|stem| Path::new(stem).with_added_extension("csv"));
    arguments.output.clone().or_else(named).unwrap_or_else(|| NAME.into())
}

/// A study that is there may have runs to its name: it is not touched unless that is asked for.
fn write(path: &Path, csv: &str, force: bool) -> anyhow::Result<()> {
    if !force && path.symlink_metadata().map_or_else(|e| e.kind() != ErrorKind::NotFound, |_| true)
    {
        return Err(UsageError {
            message: format!("`{}` is there already", path.display()),
            hint: Some("choose another name with `-o`, or overwrite it with `--force`".into()),
        }
        .into());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    Ok(file::write_atomically(path, csv.as_bytes())?)
}

/// Warn of runs that this machine would refuse; the study may be meant for another.
fn warn_of_refused(
    rows: &[Row],
    hooks: &BTreeMap<String, String>,
    csv: &Path,
) -> anyhow::Result<()> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let settings = how::new(csv, &here);
    let mut experiments = BTreeSet::new();
    let mut told: Vec<String> = Vec::new();
    for row in rows {
        let bare = Row { replicate: None, block: None, ..row.clone() };
        if experiments.len() == PLANNED_MAX || !experiments.insert(bare.key()) {
            continue;
        }
        let of_study = row::of_study(row, &settings, hooks).map_err(|p| Problems(vec![p]))?;
        let data = row::data_arguments(row, &of_study, &settings, csv);
        if let Err(problem) = row::plan(&data, &of_study.cache)
            && !told.contains(&problem)
        {
            let order = row.order.unwrap_or_default();
            let why = problem.trim_start_matches("error: ");
            messages::say(format!("warning: run {order} cannot be made here: {why}"));
            told.push(problem);
        }
    }
    Ok(())
}

fn tell(arguments: &StudyNewArguments, resolved: &ResolvedDesign, drawn: &Drawn, path: &Path) {
    if !arguments.json {
        messages::print(drawn.comments.join("\n"));
        let program = format!("feedrate study run {}", path.display());
        messages::say(format!("written to {}; run it with `{program}`", path.display()));
        return;
    }
    let factors: Vec<_> = resolved
        .factors
        .iter()
        .map(|factor| json!({ "name": factor.name, "key": factor.key, "levels": factor.levels }))
        .collect();
    messages::print(json!({
        "csv": path,
        "design": resolved.design.name,
        "estimates": resolved.design.estimates,
        "runs": drawn.rows.len(),
        "factors": factors,
        "replicates": resolved.arrangement.replicates,
        "seed": resolved.arrangement.seed,
        "aliases": drawn.aliases,
        "comments": drawn.comments,
    }));
}
