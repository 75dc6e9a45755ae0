//! `feedrate diagnose`: measures the ceilings of a workload's parts one by one, compares them with the required rate, and names the
//! bottleneck.

use super::calibrate;
use super::plot::picture_format;
use crate::cli::{DataArguments, OUTPUT, STORAGE, StepArguments, WORKLOAD};
use crate::exit::Exit;
use crate::{interrupt, messages, text, time};
use clap::Args;
use feedrate_report::ceilings as words;
use feedrate_report::draw::{DEFAULT_DPI, DrawOptions, draw};
use feedrate_report::output::Schema;
use feedrate_report::plot::ceilings as ceilings_plot;
use feedrate_results::diagnosis::Diagnosis;
use feedrate_session::ceilings::{DiagnosisRequest, MeasuredCeilings, SavedDiagnosis};
use feedrate_session::folder;
use feedrate_session::output::{refuse_existing, write_output};
use feedrate_session::request::Request;
use feedrate_spec::listener::Silent;
use feedrate_spec::plan::LoaderPlan;
use feedrate_spec::units;
use std::path::{Path, PathBuf};

/// `feedrate diagnose`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each part is measured while the other parts cost nothing: by plain reads and opens of the workload's files, by runs of one worker, and by a \
run of the whole loader. Each measurement has five slices, which give an interval. Only the first files of the dataset are read; they are \
dropped from the page cache first. Without a workload, the files of the `--data` folder are read.

Examples:
  feedrate diagnose --data ~/photos --batch 64 --workers 4 --compute 50ms
  feedrate diagnose unet3d_h100 -n 4 --data /mnt/fs --out ceilings.pdf")]
pub(super) struct DiagnoseArguments {
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    step: StepArguments,
    /// Measure your own loader's cost, and include it.
    #[arg(long, value_name = "SCRIPT:FUNCTION", help_heading = WORKLOAD)]
    client: Option<String>,
    /// Python for `--client`.
    #[arg(long, value_name = "PROGRAM", default_value = "python3", help_heading = WORKLOAD, requires = "client")]
    python: PathBuf,
    /// Also drop the cached metadata of the whole machine before files are opened, if permitted.
    #[arg(long, help_heading = STORAGE)]
    cold: bool,
    /// Folder of all results [default: `output.folder`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    results: Option<PathBuf>,
    /// Total time of the measurements, without generating the dataset.
    #[arg(long, value_name = "TIME", value_parser = time::seconds, default_value = "30s")]
    budget: f64,
    /// Write the workload with all overrides.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    write_yaml: Option<PathBuf>,
    /// Also write the plot to this file: `.pdf`, `.svg` or `.png`.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Replace the plot if it exists.
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
}

/// Maximum fraction of a sample's bytes that may come from the page cache without a note.
const CACHED_FRACTION: f64 = 0.05;

/// Measures the ceilings, and prints them.
pub(super) fn diagnose(arguments: &DiagnoseArguments) -> anyhow::Result<Exit> {
    let json = arguments.data.json;
    if let Some(out) = &arguments.out {
        picture_format(out)?;
        refuse_existing(out, Some(arguments.force))?;
    }
    let mut request = Request { processes: Some(1), ..arguments.data.request() };
    request.overrides.extend(arguments.step.clone().take_overrides());
    if let Some(source) = &arguments.client {
        // A wrong request is refused before the user's code runs.
        folder::resolve(&request, &Silent)?;
        let client = calibrate::client_overrides(source, &arguments.step, &arguments.python)?;
        // Other overrides replace those of the client.
        request.overrides.splice(0..0, client);
    }
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
            let answer = "interrupted, so the bottleneck is not known";
            messages::print_page(&page(diagnosis, answer, None))?;
        }
        messages::say("interrupted: the diagnosis is not saved");
        return Ok(Exit::Interrupted);
    }
    let drawing =
        ceilings_plot::figure(&[diagnosis]).map(|figure| draw(&figure, &DrawOptions::default()));
    let svg = drawing.as_ref().map(|drawing| &*drawing.svg);
    let SavedDiagnosis { folder, unsaved } = request.save(&measured, svg)?;
    print_diagnosis(diagnosis, folder.as_deref(), json)?;
    if workload.dataset_foreign && plan.loader.client.is_none() {
        let name = Path::new(&request.request.workload);
        messages::note(calibrate_note(
            &plan.loader,
            arguments.write_yaml.as_deref().unwrap_or(name),
        ));
    }
    if let (Some(out), Some(drawing)) = (&arguments.out, &drawing) {
        let bytes = drawing.encode(picture_format(out)?, DEFAULT_DPI)?;
        write_output(out, &bytes, Some(arguments.force))?;
    }
    unsaved.map_or(Ok(Exit::Fine), |unsaved| Err(unsaved.into()))
}

/// Note after a diagnosis of the user's own files: it suggests measuring the user's code too.
fn calibrate_note(loader: &LoaderPlan, file: &Path) -> String {
    let command = calibrate::command(loader, &file.display().to_string());
    format!("The time of your own code is not included. Measure it by:\n  {command}")
}

/// Prints a diagnosis as JSON or text.
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

fn answer(diagnosis: &Diagnosis) -> String {
    let meaning = words::meaning(diagnosis);
    let meaning = meaning.map_or(String::new(), |says| format!("\nThat is: {says}"));
    format!("{}{meaning}", words::answer(diagnosis))
}

fn page(diagnosis: &Diagnosis, answer: &str, folder: Option<&Path>) -> String {
    let answer = format!("{}: {answer}", diagnosis.workload);
    let samples_text = |rate: Option<f64>| {
        let text = text::known(rate, |rate| units::per_second(rate, ""));
        text.trim_end_matches(" /s").to_string()
    };
    let bytes_text = |rate| text::known(rate, units::bytes_per_second_rounded);
    let mut rows: Vec<[String; 5]> = Vec::new();
    for ceiling in &diagnosis.ceilings {
        let half_width = ceiling.interval().and_then(|interval| interval.relative_half_width());
        rows.push([
            ceiling.name.title().into(),
            samples_text(ceiling.samples_per_second),
            text::known(half_width, |share| format!("{:.0} %", 100.0 * share)),
            bytes_text(ceiling.bytes_per_second),
            words::measurement_conditions(ceiling),
        ]);
    }
    let needed = diagnosis.needed_samples_per_second;
    let how = if needed.is_some() { "no accelerator waits" } else { "nothing is computed" };
    rows.push([
        "needed".into(),
        samples_text(needed),
        "-".into(),
        bytes_text(diagnosis.needed_bytes_per_second),
        how.into(),
    ]);
    let table =
        text::table_with_numbers(["ceiling", "samples/s", "±", "bytes/s", "how"], rows, &[1, 2, 3]);
    let read = format!(
        "Read: {} of {}, by {}, in {}",
        units::counted(diagnosis.files, "file"),
        units::bytes(diagnosis.file_bytes),
        units::counted(diagnosis.accelerators.into(), "accelerator"),
        units::seconds(diagnosis.took_s)
    );
    let sample_bytes = diagnosis.bytes_per_sample.zip(diagnosis.device_bytes_per_sample);
    let cached = sample_bytes
        .filter(|(read, device)| *device < (1.0 - CACHED_FRACTION) * read)
        .map(|(read, device)| {
            let read = units::bytes(read as u64);
            let device = units::bytes(device as u64);
            format!(
                "Each sample reads {read}: {device} from the device, the rest from the page cache"
            )
        });
    let results = folder.map(|folder| format!("Results: {}", folder.display()));
    let notes = [Some(read), cached, words::parts_not_compared(diagnosis), results];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    format!("{answer}\n\n{table}\n\n{}", notes.join("\n"))
}
