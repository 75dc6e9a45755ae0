//! Facts from names of folders and overrides: a run's workload, its accelerators, what was varied, and whether it was put aside.

use crate::experiment::Experiment;
use crate::import::OTHER_BENCHMARKS;
use crate::place::{INCOMPLETE, SUPERSEDED};
use crate::setting::Setting;
use feedrate_spec::workload::KEYS;
use std::path::Path;

/// Overrides of these sections and keys say what a run does and where it lies, not what is studied.
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

/// The names above a run's folder.
#[derive(Clone, Debug, Default)]
pub struct FolderNames {
    experiment: Option<Experiment>,
    /// The folder above the experiment's.
    pub workload: Option<String>,
    /// `incomplete` or `superseded`.
    pub put_aside: Option<String>,
}

impl FolderNames {
    /// From `<workload>/<processes>[_<parameter>_<value>]/[incomplete|superseded/]<time>/`, or of MLPerf Storage's
    /// `training/<workload>/run/<time>/`.
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

    /// Processes, where there is an experiment's folder.
    pub fn processes(&self) -> Option<u32> {
        self.experiment.as_ref().map(|experiment| experiment.processes)
    }

    /// Parameter and value, of the overrides or, without any, of the experiment's folder; without those that are `shared` with all other runs.
    pub fn varied(
        &self,
        overrides: &[String],
        shared: &[String],
        accelerators: Option<u32>,
    ) -> (String, String) {
        let [mut settings, shared] = [overrides, shared].map(|texts| {
            texts.iter().filter_map(|text| Setting::parse(text).ok()).collect::<Vec<Setting>>()
        });
        settings.retain(|setting| !shared.contains(setting));
        if settings.is_empty() {
            let of_name = self.experiment.iter().flat_map(|experiment| &experiment.settings);
            settings.extend(of_name.filter(|setting| !shared.contains(setting)).cloned());
        }
        if settings.is_empty() {
            let value = accelerators.map_or_else(String::new, |count| count.to_string());
            return ("processes".into(), value);
        }
        let keys: Vec<&str> = settings.iter().map(short).collect();
        let values: Vec<&str> =
            settings.iter().map(|one| one.value.as_deref().unwrap_or("")).collect();
        (keys.join(","), values.join(","))
    }
}

/// Older names of keys are as short as today's.
fn short(setting: &Setting) -> &str {
    let is_older = KEYS.iter().any(|known| known.aliases.contains(&setting.key.as_str()));
    match setting.key.rsplit_once('.') {
        Some((_, leaf)) if is_older => leaf,
        _ => setting.short_key(),
    }
}

/// `workload=NAME` among overrides.
pub(super) fn workload(overrides: &[String]) -> Option<String> {
    let name = overrides.iter().find_map(|text| text.strip_prefix("workload="))?;
    Some(name.trim().to_string()).filter(|name| !name.is_empty())
}

/// Those that may be what is studied.
pub(super) fn varied_overrides(overrides: &[String]) -> Vec<String> {
    let varied = overrides.iter().filter(|text| {
        let key = text.trim_start_matches(['+', '~']).strip_prefix("workload.");
        key.is_some_and(|key| !NOT_VARIED.iter().any(|not| key.starts_with(not)))
    });
    varied.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, overrides: &[&str], expected: (&str, &str, Option<&str>)) {
        let names = FolderNames::new(Path::new(path));
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_string()).collect();
        let (parameter, value) =
            names.varied(&varied_overrides(&overrides), &[], names.processes().or(Some(3)));
        assert_eq!((parameter.as_str(), value.as_str(), names.workload.as_deref()), expected);
    }

    #[test]
    fn what_was_varied_is_told_by_overrides_or_folders() {
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
    fn runs_that_were_put_aside_are_of_their_experiment() {
        let names = FolderNames::new(Path::new("/r/unet/4_batch_size_1/superseded/2025"));
        assert_eq!((names.put_aside.as_deref(), names.processes()), (Some("superseded"), Some(4)));
        assert_eq!(names.workload.as_deref(), Some("unet"));
    }
}
