//! The bundled workloads: one row for each file of `workloads/`.

use MlperfStatus::{Chosen, Official, WhatIf};

/// A bundled workload.
#[derive(Debug)]
pub struct Bundled {
    /// Name of the workload. Its file is `workloads/<group>/<name>.yaml`.
    pub name: &'static str,
    /// Folder of the file.
    pub group: Group,
    /// Content of the file.
    pub yaml: &'static str,
    /// Whether DLIO's package has a workload of this name too.
    pub is_in_dlio: bool,
    /// Status in MLPerf Storage v3.0; `None` for a workload that is not MLPerf's.
    pub status: Option<MlperfStatus>,
}

/// Origin of a bundled workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Made for feedrate, to begin with.
    Start,
    /// MLPerf Storage.
    Mlperf,
    /// DLIO's package.
    Dlio,
    /// The study perf_2025.
    Study,
    /// Applications whose I/O was analysed.
    Applications,
}

/// Status of a workload in MLPerf Storage v3.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlperfStatus {
    /// The workload has the official numbers and is accepted in submissions.
    Official,
    /// The workload has the official numbers and is not accepted in submissions.
    WhatIf,
    /// The workload is accepted in submissions. The named numbers are not public, so feedrate chose them.
    Chosen(&'static str),
}

impl MlperfStatus {
    /// Returns the status in one word, followed by the numbers that feedrate chose.
    pub fn note(self) -> String {
        match self {
            MlperfStatus::Official => "official".into(),
            MlperfStatus::WhatIf => "whatif".into(),
            MlperfStatus::Chosen(figures) => format!("chosen, not official: {figures}"),
        }
    }

    /// Returns the note with an explanation.
    pub fn sentence(self) -> String {
        let meaning = match self {
            MlperfStatus::Official => ": figures of MLPerf Storage v3.0, can be submitted",
            MlperfStatus::WhatIf => ": MLPerf Storage v3.0 accepts no submissions of this workload",
            MlperfStatus::Chosen(_) => {
                "; can be submitted, but with the official figure, which is not public"
            }
        };
        self.note() + meaning
    }
}

macro_rules! bundled {
    (@status) => { None };
    (@status $status:expr) => { Some($status) };
    ($($group:ident in $folder:literal { $($name:literal $($of_dlio:ident)? $(: $status:expr)?),* $(,)? })*) => {
        &[$($(Bundled {
            name: $name,
            group: Group::$group,
            yaml: include_str!(concat!("../workloads/", $folder, "/", $name, ".yaml")),
            is_in_dlio: !matches!(stringify!($($of_dlio)?).as_bytes(), []),
            status: bundled!(@status $($status)?),
        }),*),*]
    };
}

/// All bundled workloads, in the order of the documentation. MLPerf's begin with those that are accepted in submissions.
pub static WORKLOADS: &[Bundled] = bundled![
    Start in "." {
        "quickstart",
    }
    Mlperf in "mlperf" {
        "unet3d_b200": Official,
        "unet3d_mi355": Chosen("0.162 s a batch"),
        "retinanet_b200": Official,
        "retinanet_mi355": Official,
        "llama3_8b": Official,
        "llama3_70b": Official,
        "llama3_405b": Official,
        "llama3_1t": Official,
        "flux_b200": WhatIf,
        "flux_mi355": WhatIf,
        "dlrm_b200": WhatIf,
        "dlrm_mi355": WhatIf,
        "unet3d_h100" of_dlio: WhatIf,
        "unet3d_a100" of_dlio: WhatIf,
        "unet3d_v100" of_dlio: WhatIf,
        "resnet50_h100" of_dlio: WhatIf,
        "resnet50_a100" of_dlio: WhatIf,
        "resnet50_v100" of_dlio: WhatIf,
        "cosmoflow_h100" of_dlio: WhatIf,
        "cosmoflow_a100" of_dlio: WhatIf,
        "cosmoflow_v100" of_dlio: WhatIf,
    }
    Dlio in "dlio" {
        "default" of_dlio,
        "bert_v100" of_dlio,
        "dlrm" of_dlio,
        "megatron_deepspeed_LLNL" of_dlio,
        "llama_7b" of_dlio,
        "llama_7b_zero3" of_dlio,
        "llama_70b" of_dlio,
    }
    Study in "perf_2025" {
        "unet3d_h100_custom",
        "cosmoflow_h100_custom",
        "default_custom",
        "dlrm_custom",
        "megatron_deepspeed_LLNL_custom",
    }
    Applications in "applications" {
        "imagenet_cnn",
        "cosmic_tagger",
        "ffn",
        "climate_segmentation",
        "cosmoflow_io",
        "candle_nt3",
        "l2hmc",
        "bert_mrpc",
        "mma_adsp",
        "frnn",
    }
];

/// Former names of workloads, and the names that replace them.
const FORMER_NAMES: [(&str, &str); 3] =
    [("retinanet", "retinanet_b200"), ("flux", "flux_b200"), ("dlrm_parquet", "dlrm_b200")];

/// Returns the name that replaces the former name of a workload.
pub fn current_name(former: &str) -> Option<&'static str> {
    FORMER_NAMES.iter().find(|(name, _)| *name == former).map(|(_, current)| *current)
}

/// Finds the bundled workload with this name.
pub fn find(name: &str) -> Option<&'static Bundled> {
    WORKLOADS.iter().find(|bundled| bundled.name == name)
}

/// Returns the figures of a bundled workload that are not public and were chosen by feedrate; `None` if all are official.
pub fn chosen_figures(workload: &str) -> Option<&'static str> {
    match find(workload)?.status? {
        MlperfStatus::Chosen(figures) => Some(figures),
        MlperfStatus::Official | MlperfStatus::WhatIf => None,
    }
}

impl Bundled {
    /// Returns the name of the file for messages.
    pub fn file(&self) -> String {
        format!("{}.yaml", self.name)
    }

    /// Returns the purpose of the workload: the first sentence of the file's comment.
    pub fn summary(&self) -> String {
        let comment: Vec<&str> =
            self.yaml.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let joined = comment.join(" ");
        let text = joined.trim();
        text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Strictness, parse, resolved_yaml};

    #[test]
    fn every_file_has_a_row() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");
        let entries = |folder: &std::path::Path| {
            let entries = std::fs::read_dir(folder).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
        };
        let (folders, files): (Vec<_>, Vec<_>) =
            entries(root.as_ref()).into_iter().partition(|path| path.is_dir());
        let files = files.into_iter().chain(folders.iter().flat_map(|folder| entries(folder)));
        let mut found: Vec<String> =
            files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        found.sort();
        let mut names: Vec<String> =
            WORKLOADS.iter().map(|workload| workload.name.to_string()).collect();
        names.sort();
        assert_eq!(names, found);
    }

    #[test]
    fn former_names_are_replaced() {
        for (former, current) in FORMER_NAMES {
            assert!(find(former).is_none() && find(current).is_some(), "{former}");
        }
    }

    #[test]
    fn mlperf_workloads_have_a_status() {
        for workload in WORKLOADS {
            let is_from_mlperf = workload.group == Group::Mlperf;
            assert_eq!(workload.status.is_some(), is_from_mlperf, "{}", workload.name);
            let names_mlperf = workload.summary().starts_with("MLPerf Storage's");
            assert_eq!(names_mlperf, is_from_mlperf, "{}", workload.name);
        }
    }

    #[test]
    fn every_file_has_a_summary() {
        for workload in WORKLOADS {
            assert!(workload.summary().len() > 20, "{}", workload.name);
        }
    }

    /// Only the number of accelerators may differ, because the launcher determines it in DLIO.
    #[test]
    fn dlio_and_mlperf_workloads_equal_the_originals() {
        let text = include_str!("dlio_workloads.txt");
        let originals: Vec<(&str, &str)> =
            text.split("\n\n").filter_map(|part| part.split_once('\n')).collect();
        for (name, keys) in &originals {
            let yaml = find(name).unwrap().yaml;
            let (workload, warnings) = parse(name, yaml, &[], Strictness::Error).unwrap();
            assert_eq!(warnings.to_string(), "", "{name}");
            let mut ours = key_value_lines(&resolved_yaml(&workload));
            ours.retain(|line| !line.starts_with("accelerators "));
            if *name == "retinanet_b200" {
                // The official files are random bytes named `.jpeg`.
                ours.retain(|line| line != "reader.decode false");
            }
            ours.sort();
            assert_eq!(ours, keys.lines().collect::<Vec<_>>(), "{name}");
        }
        for workload in WORKLOADS.iter().filter(|workload| workload.is_in_dlio) {
            assert!(originals.iter().any(|(name, _)| *name == workload.name), "{}", workload.name);
        }
    }

    /// Flattens `.hydra/config.yaml` into lines "key value".
    fn key_value_lines(yaml: &str) -> Vec<String> {
        let mut path = Vec::new();
        let mut key_value_lines = Vec::new();
        for line in yaml.lines().skip(1) {
            let text = line.trim_start();
            let value = match text.strip_prefix("- ") {
                Some(item) => item,
                None => {
                    let (key, value) = text.split_once(':').unwrap();
                    path.truncate((line.len() - text.len()) / 2 - 1);
                    path.push(key);
                    value.trim_start()
                }
            };
            if !value.is_empty() {
                key_value_lines.push(format!("{} {value}", path.join(".")));
            }
        }
        key_value_lines
    }
}
