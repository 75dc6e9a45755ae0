//! The dataset was generated with settings that differ from the plan.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use feedrate_spec::plan::DatasetPlan;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "stale_data",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "The run read files that were generated with other settings: its numbers describe another dataset, and its nominal MB/s assume a sample size that it did not read. For results of DLIO this is a warning, because their logs and configs only suggest it.",
        evidence: "the dataset and the plan disagree: {differs:.99}",
        advice: "generate the dataset again before each run whose settings change it, in a separate folder, and repeat the run",
    },
    needs_loader: false,
    check: Some(|derived| {
        let record = derived.record;
        let found = settings(record.found_dataset.as_ref()?);
        let pairs = found.into_iter().zip(settings(&record.plan.dataset));
        let differences = pairs.filter(|(found, planned)| found != planned).map(
            |((key, found), (_, planned))| format!("{key} is {found}, and {planned} was planned"),
        );
        Facts::from_list("differs", differences.collect())
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "num_samples_per_file is 4, and 1 was planned; record_length_bytes is 262144, and 1 was planned",
            |r| {
                r.plan.dataset = DatasetPlan {
                    samples_per_file: 1,
                    record_bytes: 1.0,
                    ..DatasetPlan::default()
                };
                r.found_dataset = Some(DatasetPlan {
                    samples_per_file: 4,
                    record_bytes: 262_144.0,
                    ..DatasetPlan::default()
                });
            },
        ),
        super::tests::silent(|r| {
            let planned = r.plan.dataset.clone();
            r.found_dataset = Some(DatasetPlan { files_eval: 8, content_seed: 7, ..planned });
        }),
    ],
};

/// Keys in section `dataset` and values of the settings that determine the size and the storage layout of a sample. The format is left
/// out because a run does not find files with the extension of another format.
fn settings(dataset: &DatasetPlan) -> [(&'static str, String); 14] {
    let encoding = &dataset.encoding;
    let redundancy = &dataset.redundancy;
    [
        ("num_samples_per_file", dataset.samples_per_file.to_string()),
        ("record_length_bytes", dataset.record_bytes.to_string()),
        ("record_length_bytes_stdev", dataset.record_stdev_bytes.to_string()),
        ("record_dims", format!("{:?}", dataset.record_dims)),
        ("record_element_type", dataset.element.name().into()),
        ("compression", encoding.compression.name().into()),
        ("compression_level", encoding.compression_level.to_string()),
        ("hdf5.chunk_dims", format!("{:?}", encoding.chunk_dims)),
        ("hdf5.max_shape", format!("{:?}", encoding.max_shape)),
        ("hdf5.num_dset_per_record", encoding.datasets_per_record.to_string()),
        ("row_group_samples", encoding.row_group_samples.to_string()),
        ("parquet.columns", format!("{:?}", encoding.columns)),
        ("compressible_percent", redundancy.compressible_percent.to_string()),
        ("duplicate_percent", redundancy.duplicate_percent.to_string()),
    ]
}
