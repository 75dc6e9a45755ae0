//! `feedrate diagnose`: the ceilings of a workload side by side, what is needed, and the part that loses the most of it.

use super::calibrate;
use crate::cli::{DataArguments, OUTPUT, StepArguments};
use crate::exit::Exit;
use crate::{interrupt, messages, text, time};
use clap::Args;
use feedrate_report::ceilings as words;
use feedrate_report::draw::{Look, draw};
use feedrate_report::output::Schema;
use feedrate_report::plot::ceilings as picture;
use feedrate_results::diagnosis::Diagnosis;
use feedrate_session::ceilings::{DiagnosisRequest, MeasuredCeilings, SavedDiagnosis};
use feedrate_session::output::{refuse_existing, write_output};
use feedrate_session::request::Request;
use feedrate_spec::plan::LoaderPlan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use std::path::{Path, PathBuf};

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

/// From this share of a sample's bytes on it is told that the page cache gives them again.
const AGAIN_SHARE: f64 = 0.05;

/// Measures the ceilings, and prints them.
pub(super) fn diagnose(arguments: &DiagnoseArguments) -> anyhow::Result<Exit> {
    let json = arguments.data.json;
    if let Some(out) = &arguments.out {
        refuse_picture(out, arguments.force)?;
    }
    let mut request = Request { processes: Some(1), ..arguments.data.request() };
    request.overrides.extend(arguments.step.clone().take());
    let request = DiagnosisRequest {
        request,
        budget_s: arguments.budget,
        drops_metadata: arguments.cold,
        results: arguments.results.clone(),
        write_yaml: arguments.write_yaml.clone(),
    };
    let measured = request.measure(&interrupt::signals(), &arguments.data.listener())?;
    let MeasuredCeilings { workload, plan, diagnosis, is_interrupted } = &measured;
    if *is_interrupted {
        if json {
            print_diagnosis(diagnosis, None, true)?;
        } else {
            let answer = "interrupted: the largest drop is not known";
            messages::print_page(&page(diagnosis, answer, None))?;
        }
        messages::say("interrupted: the diagnosis is not kept");
        return Ok(Exit::Interrupted);
    }
    let picture = picture::figure(&[diagnosis]).map(|figure| draw(&figure, &Look::default()).svg);
    let SavedDiagnosis { folder, unsaved } = request.save(&measured, picture.as_deref())?;
    print_diagnosis(diagnosis, folder.as_deref(), json)?;
    if workload.dataset_foreign && plan.loader.client.is_none() {
        let name = Path::new(&request.request.workload);
        messages::note(own_code(&plan.loader, arguments.write_yaml.as_deref().unwrap_or(name)));
    }
    if let (Some(out), Some(svg)) = (&arguments.out, &picture) {
        write_output(out, svg.as_bytes(), Some(arguments.force))?;
    }
    unsaved.map_or(Ok(Exit::Fine), |unsaved| Err(unsaved.into()))
}

/// The next question, of files that others made.
fn own_code(loader: &LoaderPlan, file: &Path) -> String {
    let command = calibrate::command(loader, &file.display().to_string());
    format!("Your own code takes no time here. Measure it:\n  {command}")
}

fn refuse_picture(out: &Path, force: bool) -> Result<(), Refusal> {
    if out.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("svg")) {
        let hint = "`feedrate plot ceilings` draws PNG, of the folder of a run beside it";
        return refuse(format!("`--out {}` is no `.svg`", out.display()), hint);
    }
    refuse_existing(out, Some(force))
}

/// Print a diagnosis.
pub(super) fn print_diagnosis(
    diagnosis: &Diagnosis,
    folder: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        messages::print_json(Schema::Diagnose, diagnosis)?;
    } else {
        messages::print_page(&page(diagnosis, &answer(diagnosis), folder))?;
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
        text::table_with_numbers(["ceiling", "samples/s", "±", "bytes/s", "how"], rows, &[1, 2, 3]);
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
