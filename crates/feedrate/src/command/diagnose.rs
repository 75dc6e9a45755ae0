//! `feedrate diagnose`: the ceilings of a workload side by side, what is needed, and the part that loses the most of it.

use super::calibrate;
use crate::cli::{DataArguments, OUTPUT, StepArguments};
use crate::exit::Exit;
use crate::{interrupt, messages, text, time};
use anyhow::Context;
use clap::Args;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::record::file::write_atomically;
use feedrate_report::ceilings as words;
use feedrate_report::draw::{Look, draw};
use feedrate_report::output::Schema;
use feedrate_report::plot::ceilings as picture;
use feedrate_results::diagnosis::{
    Ceiling, DIAGNOSIS_FILE, DIAGNOSIS_FOLDER, Diagnosis, Rung, largest_drop,
};
use feedrate_run::ranks::Ranks;
use feedrate_run::system;
use feedrate_session::ceilings::Part;
use feedrate_session::dataset::{self, Files};
use feedrate_session::execute::Unsaved;
use feedrate_session::output::{refuse_there, write_output};
use feedrate_session::request::Request;
use feedrate_session::resolve::Resolved;
use feedrate_session::{folder, result_folder};
use feedrate_spec::plan::{LoaderPlan, Plan};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::resolved_yaml;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `feedrate diagnose`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each part is measured while all others cost nothing, once, in five slices that give its interval: by plain reads and opens of the \
workload's files, by runs of one worker, and by a run of the whole loader. Only the first files of the dataset are read, and dropped from the page cache. Without a workload the files of the folder are \
read as they are.

Examples:
  feedrate diagnose --data ~/photos --batch 64 --workers 4 --compute 50ms
  feedrate diagnose unet3d_h100 -n 4 --data /mnt/fs
  feedrate diagnose my.yaml --budget 2m --out ceilings.svg")]
pub(super) struct DiagnoseArguments {
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    step: StepArguments,
    /// Drop dentries and inodes of the whole machine too before files are opened, where that is allowed.
    #[arg(long, help_heading = "Cache")]
    cold: bool,
    /// Folder of all results [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    results: Option<PathBuf>,
    /// Time for all measurements together, without making the dataset: `90s`, `1m`.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "30s")]
    budget: f64,
    /// Write the workload as it is measured, with every override, to this file.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    write_yaml: Option<PathBuf>,
    /// Write the picture to this file too, as SVG.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Replace the picture if it exists.
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
}

/// The least time for a ceiling.
const LEAST: Duration = Duration::from_millis(50);
/// From this share of a sample's bytes on it is told that the page cache gives them again.
const AGAIN_SHARE: f64 = 0.05;

/// Measure, and tell.
pub(super) fn diagnose(arguments: &DiagnoseArguments) -> anyhow::Result<Exit> {
    let mut request = Request { processes: Some(1), ..arguments.data.request() };
    request.overrides.extend(arguments.step.clone().take());
    let listener = &arguments.data.listener();
    let json = arguments.data.json;
    let limit = limit_of(arguments.budget)?;
    if let Some(out) = &arguments.out {
        refuse_picture(out, arguments.force)?;
    }
    if let Some(file) = &arguments.write_yaml {
        refuse_there(file, None)?;
    }
    let Resolved { plan, workload, data_root, .. } = folder::resolve(&request, listener)?;
    if plan.is_checkpoints_alone() {
        return refuse("the workload reads no dataset", "`feedrate run` measures its checkpoints");
    }
    if let Some(file) = &arguments.write_yaml {
        write_output(file, resolved_yaml(&workload).as_bytes(), None)?;
    }
    let signals = interrupt::signals();
    system::raise_open_files();
    let names = tempfile::tempdir()?;
    let foreign = Files::Foreign { names: &names.path().join(NAMES_FILE), probed: None };
    let files = if workload.dataset_foreign { foreign } else { Files::Generated };
    let choice = dataset::choose(&plan, &data_root, files, listener)?;
    let ranks = Ranks::alone(plan.accelerators);
    let dataset = dataset::ready(&plan, Some(choice), None, &ranks, &signals, listener)?;
    let dataset = dataset.context("the workload reads no dataset")?;
    let (started, begun) = (result_folder::wall_now(), Instant::now());
    let mut part = Part::new(&plan, &dataset, &signals, limit, listener)?;
    part.drops_metadata = arguments.cold;
    let ceilings = part.all()?;
    let took_s = begun.elapsed().as_secs_f64();
    let mut diagnosis = diagnosis(&plan, &part, ceilings, started, took_s);
    if part.is_interrupted() {
        // The part that loses the most may be one of the others.
        diagnosis.largest_drop = None;
        if json {
            tell(&diagnosis, None, true)?;
        } else {
            let answer = "interrupted: the largest drop is not known";
            messages::print_page(&page(&diagnosis, answer, None))?;
        }
        messages::say("interrupted: the diagnosis is not kept");
        return Ok(Exit::Interrupted);
    }
    let root = result_folder::root(arguments.results.as_deref(), &workload)?;
    let model = root.join(result_folder::file_name(&plan.model));
    let picture = picture::figure(&[&diagnosis]).map(|of| draw(&of, &Look::default()).svg);
    let text = serde_json::to_string(&diagnosis)?;
    let (folder, unsaved) = match keep(&model, &text, picture.as_deref()) {
        Ok(folder) => (Some(folder), None),
        Err(error) => {
            let elsewhere = keep(&std::env::temp_dir(), &text, picture.as_deref()).ok();
            (elsewhere.clone(), Some(Unsaved { error, elsewhere }))
        }
    };
    tell(&diagnosis, folder.as_deref(), json)?;
    if workload.dataset_foreign && plan.loader.client.is_none() {
        let file = arguments.write_yaml.as_deref().unwrap_or(Path::new(&request.workload));
        messages::note(own_code(&plan.loader, file));
    }
    if let (Some(out), Some(svg)) = (&arguments.out, &picture) {
        write_output(out, svg.as_bytes(), Some(arguments.force))?;
    }
    unsaved.map_or(Ok(Exit::Fine), |unsaved| Err(unsaved.into()))
}

/// Time for each ceiling.
fn limit_of(budget_s: f64) -> Result<Duration, Refusal> {
    let limit = Duration::try_from_secs_f64(budget_s / Rung::ALL.len() as f64);
    match limit.ok().filter(|limit| *limit >= LEAST) {
        Some(limit) => Ok(limit),
        None => refuse(
            format!("a `--budget` of {} is no time to measure in", units::seconds(budget_s)),
            "each ceiling needs a moment: `30s`, `1m`",
        ),
    }
}

/// The next question, of files that others made.
fn own_code(loader: &LoaderPlan, file: &Path) -> String {
    let command = calibrate::command(loader, &file.display().to_string());
    format!("Your own code takes no time here. Measure it:\n  {command}")
}

/// Write a diagnosis into a new folder in `parent`.
fn keep(parent: &Path, text: &str, picture: Option<&str>) -> anyhow::Result<PathBuf> {
    let folder = result_folder::make_folder(parent, DIAGNOSIS_FOLDER)?;
    if let Some(svg) = picture {
        write_atomically(&folder.join("ceilings.svg"), svg.as_bytes())?;
    }
    write_atomically(&folder.join(DIAGNOSIS_FILE), text.as_bytes())?;
    Ok(folder)
}

fn refuse_picture(out: &Path, force: bool) -> Result<(), Refusal> {
    if out.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("svg")) {
        let hint = "`feedrate plot ceilings` draws PNG, of the folder of a run beside it";
        return refuse(format!("`--out {}` is no `.svg`", out.display()), hint);
    }
    refuse_there(out, Some(force))
}

fn diagnosis(
    plan: &Plan,
    part: &Part<'_>,
    ceilings: Vec<Ceiling>,
    started: String,
    took_s: f64,
) -> Diagnosis {
    let (step_s, per_sample) = (part.compute_s, part.per_sample);
    let step_samples = plan.loader.batch_size as f64 * f64::from(plan.accelerators);
    let needed = (step_s > 0.0).then(|| step_samples / step_s);
    Diagnosis {
        workload: plan.workload.clone(),
        accelerators: plan.accelerators,
        needed_samples_per_second: needed,
        needed_bytes_per_second: needed.zip(per_sample).map(|of| of.0 * of.1.bytes),
        largest_drop: largest_drop(&ceilings, needed),
        ceilings,
        bytes_per_sample: per_sample.map(|of| of.bytes),
        device_bytes_per_sample: per_sample.map(|of| of.device_bytes),
        opens_per_sample: per_sample.map(|of| of.opens),
        files: part.files.len() as u64,
        file_bytes: part.files.iter().map(|file| file.bytes).sum(),
        cores: part.cores,
        took_s,
        started,
        dataset: plan.dataset.clone(),
        storage: plan.storage.clone(),
        loader: plan.loader.clone(),
    }
}

/// Print it.
pub(super) fn tell(of: &Diagnosis, folder: Option<&Path>, json: bool) -> anyhow::Result<()> {
    if json {
        messages::print_json(Schema::Diagnose.object(serde_json::to_value(of)?))?;
    } else {
        messages::print_page(&page(of, &answer(of), folder))?;
    }
    Ok(())
}

fn answer(of: &Diagnosis) -> String {
    let meaning = words::meaning(of).map_or(String::new(), |says| format!("\nThat is: {says}"));
    format!("{}{meaning}", words::answer(of))
}

fn page(of: &Diagnosis, answer: &str, folder: Option<&Path>) -> String {
    let answer = format!("{}: {answer}", of.workload);
    let known = |rate: Option<f64>| text::known(rate, |rate| units::per_second(rate, ""));
    let known = |rate| known(rate).trim_end_matches(" /s").to_string();
    let bytes = |rate| text::known(rate, units::bytes_per_second_rounded);
    let mut rows: Vec<[String; 5]> = Vec::new();
    for one in &of.ceilings {
        let within = one.interval().and_then(|own| own.relative_half_width());
        rows.push([
            one.name.title().into(),
            known(one.samples_per_second),
            text::known(within, |share| format!("{:.0} %", 100.0 * share)),
            bytes(one.bytes_per_second),
            words::how(one),
        ]);
    }
    let (samples, rate) = (of.needed_samples_per_second, of.needed_bytes_per_second);
    let who = if samples.is_some() { "no accelerator waits" } else { "nothing is computed" };
    rows.push(["needed".into(), known(samples), "-".into(), bytes(rate), who.into()]);
    let table =
        text::table_of_numbers(["ceiling", "samples/s", "±", "bytes/s", "how"], rows, &[1, 2, 3]);
    let read = format!(
        "Read: {} of {}, by {}, in {}",
        units::counted(of.files, "file"),
        units::bytes(of.file_bytes),
        units::counted(of.accelerators.into(), "accelerator"),
        units::seconds(of.took_s)
    );
    let again = of.bytes_per_sample.zip(of.device_bytes_per_sample);
    let again = again.filter(|of| of.1 < (1.0 - AGAIN_SHARE) * of.0).map(|of| {
        let [all, device] = [of.0, of.1].map(|bytes| units::bytes(bytes as u64));
        format!(
            "A sample reads {all}, of which the device gives {device} and the page cache the rest"
        )
    });
    let results = folder.map(|folder| format!("Results: {}", folder.display()));
    let notes = [Some(read), again, words::passed(of), results];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    format!("{answer}\n\n{table}\n\n{}", notes.join("\n"))
}
