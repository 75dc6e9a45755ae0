//! Rows of HDF5 files in random order are read in as many requests as h5py reads them.

use crate::harness::{Test, venv_python};
use serde_json::Value;

/// Allowed difference of numbers of reads and bytes, because the order of rows differs.
const TOLERANCE: f64 = 0.1;
/// Reads of the metadata of a dataset.
const METADATA_READS_MAX: f64 = 8.0;
const METADATA_BYTES_MAX: f64 = 32_768.0;

#[test]
fn random_rows_are_requested_as_h5py_requests_them() {
    let test = Test::new();
    let printed = test.python(&venv_python(), "hdf5_requests.py", ["theirs"].map(String::from));
    let kinds: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(kinds.as_object().unwrap().len(), 5);
    for (kind, expected) in kinds.as_object().unwrap() {
        let data = format!("theirs/{kind}");
        let run = ["run", "--data", &data, "--json", "--quiet", "--workers", "1", "--batch", "1"];
        let answer = test.feedrate(&[&run[..], &["train.epochs=1"]].concat());
        assert_eq!(answer.code, 0, "{kind}: {}", answer.stderr);
        let json = answer.json();
        let datasets = expected["datasets"].as_f64().unwrap();
        for (found, expected, metadata_max) in [
            (&json["latency"]["read"]["count"], &expected["reads"], METADATA_READS_MAX),
            (&json["bytes"]["logical"], &expected["bytes"], METADATA_BYTES_MAX),
        ] {
            let [found, expected] = [found, expected].map(|number| number.as_f64().unwrap());
            let tolerance = TOLERANCE * expected + metadata_max * datasets;
            assert!((found - expected).abs() <= tolerance, "{kind}: {found} instead of {expected}");
        }
    }
}
