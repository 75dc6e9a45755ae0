//! A user's request: a workload with overrides, the number of accelerators and the data folder.

use feedrate_spec::plan::{Cache, PlanOptions};
use std::path::{Path, PathBuf};

/// A request for a run, or only for its plan or dataset. The workload decides each setting that has its default value.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// A bundled workload, a YAML file, the folder of a run, `-` for standard input, or empty for the files in `data`.
    pub workload: String,
    /// Settings that override the workload's, as `KEY=VALUE`.
    pub overrides: Vec<String>,
    /// Number of emulated accelerators.
    pub accelerators: Option<u32>,
    /// Share of the workload's files and samples.
    pub scale: f64,
    /// Factor on the size of samples.
    pub shrink_records: f64,
    /// Folder of the datasets.
    pub data: Option<PathBuf>,
    /// Whether to read existing files in `data`, rather than a generated dataset.
    pub foreign: bool,
    /// Preparation of the page cache before epochs.
    pub cache: Cache,
    /// The time of `${now:…}` in the workload, in seconds since 1970; `None` for the current time.
    pub now_s: Option<i64>,
    /// Whether to compare every byte read with the generated content.
    pub verify: bool,
    /// Number of processes that share the accelerators; `None` if nothing is run.
    pub processes: Option<u32>,
    /// Number of these processes on the machine with the most; `None` for all.
    pub host_processes: Option<u32>,
    /// Whether only the dataset is needed.
    pub generate_only: bool,
}

impl Default for Request {
    fn default() -> Self {
        let PlanOptions { scale, shrink_records, cache, .. } = PlanOptions::default();
        Request {
            workload: String::new(),
            overrides: Vec::new(),
            accelerators: None,
            scale,
            shrink_records,
            data: None,
            foreign: false,
            cache,
            now_s: None,
            verify: false,
            processes: None,
            host_processes: None,
            generate_only: false,
        }
    }
}

/// Prefix of Hydra's argument that selects a workload.
pub const HYDRA_WORKLOAD: &str = "workload=";
/// The option for the time of a workload's interpolations.
pub(crate) const NOW: &str = "--now";
/// The option for the file of the progress line.
pub const LIVE_FILE: &str = "--live-file";

impl Request {
    /// Creates a request for a workload without changes.
    pub fn for_workload(name: impl Into<String>) -> Self {
        Request { workload: name.into(), ..Request::default() }
    }

    /// Moves `workload` to the overrides if it is an override, and takes the workload from an override `workload=NAME`.
    pub fn separate_overrides(mut self) -> Self {
        if self.workload.contains('=') && !Path::new(&self.workload).exists() {
            self.overrides.insert(0, std::mem::take(&mut self.workload));
        }
        let named = self.overrides.iter().position(|text| text.starts_with(HYDRA_WORKLOAD));
        if let Some(index) = named
            && self.workload.is_empty()
        {
            self.workload = self.overrides.remove(index)[HYDRA_WORKLOAD.len()..].to_string();
        }
        self
    }

    /// Whether the dataset is smaller than the workload's.
    pub fn is_shrunk(&self) -> bool {
        self.scale != 1.0 || self.shrink_records != 1.0
    }

    /// Returns the options of the plan for a workload called `name`.
    pub fn plan_options(&self, name: String) -> PlanOptions {
        PlanOptions {
            name,
            accelerators: self.accelerators,
            scale: self.scale,
            processes: self.processes,
            host_processes: self.host_processes,
            shrink_records: self.shrink_records,
            cache: self.cache,
            verify: self.verify,
            generate_only: self.generate_only,
            as_dlio: false,
        }
    }

    /// Returns the arguments of `feedrate run` for this request.
    pub fn run_arguments(&self) -> Vec<String> {
        let mut words = vec!["run".to_string()];
        words.extend(self.data_arguments());
        words.extend(self.accelerators.map(|number| format!("--accelerators={number}")));
        words.extend(self.cache_option().map(str::to_string));
        words
    }

    /// Returns the option for the page cache.
    pub(crate) fn cache_option(&self) -> Option<&'static str> {
        match self.cache {
            Cache::AsIs => None,
            Cache::Cold => Some("--cold"),
            Cache::Warm => Some("--warm"),
        }
    }

    /// Returns the arguments for the workload and its data, without the number of accelerators.
    pub fn data_arguments(&self) -> Vec<String> {
        let mut words = vec![self.workload.clone()];
        words.extend(self.overrides.iter().cloned());
        if let Some(folder) = &self.data {
            words.extend(["--data".into(), folder.display().to_string()]);
        }
        for (flag, share) in [("--scale", self.scale), ("--shrink-records", self.shrink_records)] {
            if share != 1.0 {
                words.extend([flag.into(), share.to_string()]);
            }
        }
        words.extend(self.foreign.then(|| "--foreign".into()));
        words.extend(self.now_s.map(|seconds| format!("{NOW}={seconds}")));
        words
    }
}
