//! pyarrow and pandas: `parquet`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Compression, Element, Encoding};

#[test]
fn pyarrow_and_pandas_read_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    let shapes = [(1, &[61, 67][..]), (30, &[7, 5, 3]), (2, &[700, 701]), (301, &[9])];
    let settings = [
        (Compression::None, 64),
        (Compression::None, 7),
        (Compression::None, 1),
        (Compression::Gzip, 7),
    ];
    for (e, element) in Element::ALL.into_iter().enumerate() {
        for (s, (samples, dims)) in shapes.into_iter().enumerate() {
            // The settings rotate, so that each element and each shape meets all of them.
            let (compression, row_group_samples) = settings[(e + s) % settings.len()];
            let encoding = Encoding { compression, row_group_samples, ..Encoding::default() };
            let case_folder = folder.path().join(format!("{}/{samples}", element.name()));
            let mut written =
                write_dataset(&case_folder, "parquet", &encoding, element, samples, dims);
            for case in &mut written {
                case["row_group_samples"] = row_group_samples.into();
            }
            cases.extend(written);
        }
    }
    check_written("check_parquet.py", folder.path(), cases);
}

#[test]
fn feedrate_reads_files_of_pyarrow_and_pandas() {
    read_written("write_parquet.py", 120);
}
