//! Derives properties of a run from folder names and overrides: its workload, its number of processes, the varied parameters, and whether a study put
//! it aside.

use crate::experiment::Experiment;
use crate::import::OTHER_BENCHMARKS;
use crate::place::{INCOMPLETE, SUPERSEDED};
use crate::setting::Setting;
use feedrate_spec::workload::KEYS;
use std::path::Path;

/// Sections and keys of overrides that control the workflow and locations, and are not varied parameters.
const NOT_VARIED: [&str; 8] = [
    "workflow.generate_data",
    "workflow.train",
    "workflow.evaluation",
    "dataset.data_folder",
    "output.folder",
    "checkpoint.checkpoint_folder",
    "storage.storage_root",
    "hydra.",
];

/// Names of the folders around a run's folder.
#[derive(Clone, Debug, Default)]
pub struct FolderNames {
    experiment: Option<Experiment>,
    /// Name of the folder around the experiment.
    pub workload: Option<String>,
    /// `incomplete` or `superseded`, if the run is in such a folder.
    pub put_aside: Option<String>,
}

impl FolderNames {
    /// Parses a path `<workload>/<processes>[_<parameter>_<value>]/[incomplete|superseded/]<time>/`, or `training/<workload>/run/<time>/` as in MLPerf
    /// Storage.
    pub fn new(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let above = absolute.ancestors().skip(1).filter_map(|folder| folder.file_name());
        let mut above = above.map(|name| name.to_string_lossy().into_owned());
        let mut parent = above.next();
        let put_aside = parent.take_if(|name| [INCOMPLETE, SUPERSEDED].contains(&name.as_str()));
        if put_aside.is_some() {
            parent = above.next();
        }
        let experiment = parent.as_deref().and_then(Experiment::parse);
        let is_mlperf = parent.as_deref().is_some_and(|name| ["run", "datagen"].contains(&name));
        let mut workload = if experiment.is_some() || is_mlperf { above.next() } else { None };
        if is_mlperf && above.any(|name| OTHER_BENCHMARKS.contains(&&*name)) {
            workload = None;
        }
        FolderNames { experiment, workload, put_aside }
    }

    /// Drops experiment and workload if the folder's name is only a number and not the number of accelerators, such as the number of a job.
    #[must_use]
    pub fn checked(mut self, accelerators: Option<u32>) -> Self {
        let is_other_number = |experiment: &Experiment| {
            experiment.settings.is_empty()
                && accelerators.is_some_and(|accelerators| accelerators != experiment.processes)
        };
        if self.experiment.take_if(|experiment| is_other_number(experiment)).is_some() {
            self.workload = None;
        }
        self
    }

    /// Returns the number of processes in the name of the experiment.
    pub fn processes(&self) -> Option<u32> {
        self.experiment.as_ref().map(|experiment| experiment.processes)
    }

    /// Returns the varied parameters and their values, each joined by commas. They come from `overrides`, or from the name of the experiment if there
    /// are no overrides. Settings in `shared` are left out. If nothing is varied, the parameter is `processes`.
    pub fn varied_parameters(
        &self,
        overrides: &[String],
        shared: &[String],
        accelerators: Option<u32>,
    ) -> (String, String) {
        let parse = |texts: &[String]| -> Vec<Setting> {
            texts.iter().filter_map(|text| Setting::parse(text).ok()).collect()
        };
        let shared_settings = parse(shared);
        let mut settings = parse(overrides);
        settings.retain(|setting| !shared_settings.contains(setting));
        if settings.is_empty() {
            let from_name = self.experiment.iter().flat_map(|experiment| &experiment.settings);
            settings
                .extend(from_name.filter(|setting| !shared_settings.contains(setting)).cloned());
        }
        if settings.is_empty() {
            let value = accelerators.map_or_else(String::new, |count| count.to_string());
            return ("processes".into(), value);
        }
        let keys: Vec<&str> = settings.iter().map(short_key).collect();
        let values: Vec<&str> =
            settings.iter().map(|setting| setting.value.as_deref().unwrap_or("")).collect();
        (keys.join(","), values.join(","))
    }
}

/// Returns the short key of a setting, also for former names of keys.
fn short_key(setting: &Setting) -> &str {
    let is_older = KEYS.iter().any(|known| known.aliases.contains(&setting.key.as_str()));
    match setting.key.rsplit_once('.') {
        Some((_, leaf)) if is_older => leaf,
        _ => setting.short_key(),
    }
}

/// Returns NAME of the override `workload=NAME`.
pub(super) fn workload(overrides: &[String]) -> Option<String> {
    let name = overrides.iter().find_map(|text| text.strip_prefix("workload="))?;
    Some(name.trim().to_string()).filter(|name| !name.is_empty())
}

/// Returns the overrides that may be varied parameters.
pub(super) fn varied_overrides(overrides: &[String]) -> Vec<String> {
    let varied = overrides.iter().filter(|text| {
        let key = text.trim_start_matches(['+', '~']).strip_prefix("workload.");
        key.is_some_and(|key| !NOT_VARIED.iter().any(|prefix| key.starts_with(prefix)))
    });
    varied.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, overrides: &[&str], expected: (&str, &str, Option<&str>)) {
        let names = FolderNames::new(Path::new(path));
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_string()).collect();
        let (parameter, value) = names.varied_parameters(
            &varied_overrides(&overrides),
            &[],
            names.processes().or(Some(3)),
        );
        assert_eq!((parameter.as_str(), value.as_str(), names.workload.as_deref()), expected);
    }

    #[test]
    fn varied_parameters_come_from_overrides_or_folders() {
        check("/r/unet/4_batch_size_1/2025", &[], ("batch_size", "1", Some("unet")));
        check(
            "/r/unet/4_record_length_bytes_536870912/2025",
            &[],
            ("record_length_bytes", "536870912", Some("unet")),
        );
        check(
            "/r/unet/6/2025",
            &["workload=unet", "++workload.workflow.train=True"],
            ("processes", "6", Some("unet")),
        );
        check(
            "/r/unet/4_checkpoint_False/t",
            &["++workload.workflow.checkpoint=False"],
            ("checkpoint", "False", Some("unet")),
        );
        check(
            "/r/a",
            &["workload=x", "++workload.reader.batch_size=4", "hydra.run.dir=x"],
            ("batch_size", "4", None),
        );
        check(
            "/r/a",
            &[
                "++workload.reader.batch_size=4",
                "++workload.dataset.format=png",
                "++workload.dataset.data_folder=/d",
            ],
            ("batch_size,format", "4,png", None),
        );
        check("/results/training/unet3d/run/20250613", &[], ("processes", "3", Some("unet3d")));
        check("/results/kv_cache/llama3.1-8b/run/20260722", &[], ("processes", "3", None));
        check("x", &[], ("processes", "3", None));
        check("x", &["++workload.dataset.record_length=9"], ("record_length", "9", None));
    }

    #[test]
    fn a_number_other_than_that_of_accelerators_names_no_experiment() {
        let check = |path: &str, accelerators: Option<u32>, expected: Option<&str>| {
            let names = FolderNames::new(Path::new(path)).checked(accelerators);
            assert_eq!(names.workload.as_deref(), expected, "{path}");
        };
        check("/r/unet/4/2025", Some(4), Some("unet"));
        check("/r/unet/4/2025", None, Some("unet"));
        check("/jobs/12345/run1", Some(4), None);
        check("/r/unet/3_batch_size_1/2025", Some(4), Some("unet"));
    }

    #[test]
    fn runs_put_aside_keep_their_experiment() {
        let names = FolderNames::new(Path::new("/r/unet/4_batch_size_1/superseded/2025"));
        assert_eq!((names.put_aside.as_deref(), names.processes()), (Some("superseded"), Some(4)));
        assert_eq!(names.workload.as_deref(), Some("unet"));
    }
}
