//! The workloads embedded in the binary: one row for each file of `workloads/`.

/// A bundled workload.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// Its name; the file is `workloads/<name>.yaml`.
    pub(crate) name: &'static str,
    /// The file.
    pub(crate) yaml: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(Bundled { name: $name, yaml: include_str!(concat!("../../../workloads/", $name, ".yaml")) }),*]
    };
}

/// Every bundled workload, in the order docs show them.
pub(crate) static WORKLOADS: &[Bundled] = bundled![
    "quickstart",
    "default",
    "unet3d_v100",
    "unet3d_a100",
    "unet3d_h100",
    "unet3d_b200",
    "unet3d_mi355",
    "cosmoflow_v100",
    "cosmoflow_a100",
    "cosmoflow_h100",
    "resnet50_v100",
    "resnet50_a100",
    "resnet50_h100",
    "retinanet",
    "flux",
    "bert_v100",
    "dlrm",
    "dlrm_parquet",
    "megatron_deepspeed_LLNL",
    "llama3_8b",
    "llama3_70b",
    "llama3_405b",
    "llama3_1t",
    "llama_7b",
    "llama_7b_zero3",
    "llama_70b",
    "unet3d_h100_custom",
    "cosmoflow_h100_custom",
    "default_custom",
    "dlrm_custom",
    "megatron_deepspeed_LLNL_custom",
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
];

impl Bundled {
    /// Its purpose: the first sentence of its comment.
    pub(crate) fn summary(&self) -> String {
        let comment: Vec<&str> =
            self.yaml.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let text = comment.join(" ");
        let text = text.trim();
        text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_row() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names: Vec<String> = WORKLOADS.iter().map(|w| w.name.to_string()).collect();
        names.sort();
        assert_eq!(names, files);
    }

    #[test]
    fn every_file_says_what_it_stands_for() {
        for workload in WORKLOADS {
            assert!(workload.summary().len() > 20, "{}", workload.name);
        }
    }
}
