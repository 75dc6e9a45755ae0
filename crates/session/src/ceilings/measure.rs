//! Carries out a diagnosis: resolves the workload, prepares its dataset, measures the ceilings, and saves the result.

use super::{CeilingMeasurement, SLICES};
use crate::dataset::{self, Files};
use crate::execute::Unsaved;
use crate::folder;
use crate::output::{refuse_below, refuse_existing, write_output};
use crate::request::Request;
use crate::resolve::Resolved;
use crate::result_folder;
use anyhow::Context;
use feedrate_measure::record::file::{NAMES_FILE, write_atomically};
use feedrate_results::diagnosis::{
    Ceiling, DIAGNOSIS_FILE, DIAGNOSIS_FOLDER, Diagnosis, NotMeasured, PipelineStage, largest_drop,
    noise,
};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_run::system;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::{Workload, resolved_yaml};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum time of a slice of a ceiling.
const SLICE_MIN: Duration = Duration::from_millis(10);

/// A request to measure the ceilings of a workload.
pub struct DiagnosisRequest {
    /// The workload and its data.
    pub request: Request,
    /// Total time for all measurements.
    pub budget_s: f64,
    /// Whether to drop the machine's dentries and inodes before opening files.
    pub drops_metadata: bool,
    /// Parent folder of all results.
    pub results: Option<PathBuf>,
    /// Output file for the workload with its overrides.
    pub write_yaml: Option<PathBuf>,
}

/// Measures plain reads of a workload's files in about `budget_s`, with the size of its requests and its number of readers.
///
/// # Errors
/// Fails if the workload has no dataset, or if the dataset cannot be prepared or read.
pub fn plain_reads(
    request: Request,
    budget_s: f64,
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<Ceiling> {
    let stage = PipelineStage::FileSystem;
    let request = DiagnosisRequest {
        request,
        budget_s,
        drops_metadata: false,
        results: None,
        write_yaml: None,
    };
    let measured = request.measure_stages(&[stage], signals, listener)?;
    let ceiling = measured.diagnosis.ceilings.into_iter().next();
    Ok(ceiling.unwrap_or(Ceiling::not_measured(stage, NotMeasured::NoFiles)))
}

/// The result of measuring ceilings.
pub struct MeasuredCeilings {
    /// The workload.
    pub workload: Workload,
    /// Plan of the workload.
    pub plan: Plan,
    /// Diagnosis from the ceilings. An interrupted one has no largest drop.
    pub diagnosis: Diagnosis,
    /// Whether the user interrupted the measurement.
    pub is_interrupted: bool,
}

/// The folder of a saved diagnosis.
pub struct SavedDiagnosis {
    /// The folder; `None` if the diagnosis could not be saved.
    pub folder: Option<PathBuf>,
    /// Set if the diagnosis could not be saved in the folder of the results.
    pub unsaved: Option<Unsaved>,
}

impl DiagnosisRequest {
    /// Measures the ceilings.
    ///
    /// # Errors
    /// Fails if the workload has no dataset, or if the dataset cannot be prepared or read.
    pub fn measure(
        &self,
        signals: &Signals,
        listener: &dyn Listener,
    ) -> anyhow::Result<MeasuredCeilings> {
        self.measure_stages(&PipelineStage::ALL, signals, listener)
    }

    fn measure_stages(
        &self,
        stages: &[PipelineStage],
        signals: &Signals,
        listener: &dyn Listener,
    ) -> anyhow::Result<MeasuredCeilings> {
        let limit = self.limit(stages)?;
        if let Some(file) = &self.write_yaml {
            refuse_existing(file, None)?;
        }
        let Resolved { plan, workload, data_root, .. } = folder::resolve(&self.request, listener)?;
        if plan.is_checkpoint_only() {
            return refuse(
                "the workload reads no dataset",
                "`feedrate run` measures its checkpoints",
            );
        }
        if let Some(results) = self.results.as_ref().filter(|_| workload.dataset_foreign) {
            refuse_below(results, &data_root, "--results")?;
        }
        if let Some(file) = &self.write_yaml {
            write_output(file, resolved_yaml(&workload).as_bytes(), None)?;
        }
        system::raise_open_files();
        let names = tempfile::tempdir()?;
        let names = &names.path().join(NAMES_FILE);
        let foreign = Files::Foreign { names, probed: None, members: None };
        let files = if workload.dataset_foreign { foreign } else { Files::Generated };
        let choice = dataset::choose(&plan, &data_root, files, listener)?;
        let ranks = Ranks::single_process(plan.accelerators);
        let dataset = dataset::prepare(&plan, Some(choice), None, &ranks, signals, listener)?
            .context("the workload reads no dataset")?;
        let started = result_folder::local_time_now();
        let start = Instant::now();
        let mut measurement = CeilingMeasurement::new(&plan, &dataset, signals, limit, listener)?;
        measurement.drops_metadata = self.drops_metadata;
        let ceilings = measurement.measure_stages(stages)?;
        let is_interrupted = measurement.is_interrupted();
        let took_s = start.elapsed().as_secs_f64();
        let mut diagnosis = diagnosis(&plan, &measurement, ceilings, started, took_s);
        if is_interrupted {
            // A ceiling that was not measured may have a larger drop.
            diagnosis.largest_drop = None;
        }
        Ok(MeasuredCeilings { workload, plan, diagnosis, is_interrupted })
    }

    /// Returns the time for each ceiling, and for the first slice of the loader, from which other ceilings are computed.
    fn limit(&self, stages: &[PipelineStage]) -> Result<Duration, Refusal> {
        let others = stages.iter().filter(|stage| **stage != PipelineStage::Loader).count();
        let limit = Duration::try_from_secs_f64(self.budget_s / (others + 1) as f64);
        match limit.ok().filter(|limit| *limit >= SLICE_MIN * SLICES as u32) {
            Some(limit) => Ok(limit),
            None => refuse(
                format!("a `--budget` of {} is too short", units::seconds(self.budget_s)),
                "give more time, such as `30s` or `1m`",
            ),
        }
    }

    /// Saves a diagnosis and its chart in a new result folder, or in a temporary folder if that fails.
    ///
    /// # Errors
    /// Fails if the folder of the results is the root of the file system.
    pub fn save(
        &self,
        measured: &MeasuredCeilings,
        chart: Option<&str>,
    ) -> anyhow::Result<SavedDiagnosis> {
        let root = result_folder::root(self.results.as_deref(), &measured.workload)?;
        let model = root.join(result_folder::file_name(&measured.plan.model));
        let text = serde_json::to_string(&measured.diagnosis)?;
        Ok(match save_in(&model, &text, chart) {
            Ok(folder) => SavedDiagnosis { folder: Some(folder), unsaved: None },
            Err(error) => {
                let temporary_folder = save_in(&std::env::temp_dir(), &text, chart).ok();
                let unsaved = Some(Unsaved { error, temporary_folder: temporary_folder.clone() });
                SavedDiagnosis { folder: temporary_folder, unsaved }
            }
        })
    }
}

fn save_in(parent: &Path, text: &str, chart: Option<&str>) -> anyhow::Result<PathBuf> {
    let folder = result_folder::make_folder(parent, DIAGNOSIS_FOLDER)?;
    if let Some(svg) = chart {
        write_atomically(&folder.join("ceilings.svg"), svg.as_bytes())?;
    }
    write_atomically(&folder.join(DIAGNOSIS_FILE), text.as_bytes())?;
    Ok(folder)
}

fn diagnosis(
    plan: &Plan,
    measurement: &CeilingMeasurement<'_>,
    ceilings: Vec<Ceiling>,
    started: String,
    took_s: f64,
) -> Diagnosis {
    let sample = measurement.per_sample;
    let step_samples = plan.loader.batch_size as f64 * f64::from(plan.accelerators);
    let needed = (measurement.compute_s > 0.0).then(|| step_samples / measurement.compute_s);
    Diagnosis {
        workload: plan.workload.clone(),
        accelerators: plan.accelerators,
        needed_samples_per_second: needed,
        needed_bytes_per_second: needed.zip(sample).map(|(rate, sample)| rate * sample.bytes),
        largest_drop: largest_drop(&ceilings, needed),
        noise: noise(&ceilings, needed),
        ceilings,
        bytes_per_sample: sample.map(|sample| sample.bytes),
        device_bytes_per_sample: sample.and_then(|sample| sample.device_bytes),
        opens_per_sample: sample.map(|sample| sample.opens),
        files: measurement.files.len() as u64,
        file_bytes: measurement.files.iter().map(|file| file.bytes).sum(),
        cores: measurement.cores,
        took_s,
        started,
        dataset: plan.dataset.clone(),
        storage: plan.storage.clone(),
        loader: plan.loader.clone(),
    }
}
