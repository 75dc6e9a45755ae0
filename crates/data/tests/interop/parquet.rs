//! pyarrow and pandas.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Compression, Element, Encoding};

#[test]
fn pyarrow_and_pandas_read_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    let shapes = [(1, &[61, 67][..]), (30, &[7, 5, 3]), (2, &[700, 701]), (301, &[9])];
    let ways = [
        (Compression::None, 64),
        (Compression::None, 7),
        (Compression::None, 1),
        (Compression::Gzip, 7),
    ];
    for (e, element) in Element::ALL.into_iter().enumerate() {
        for (s, (samples, dims)) in shapes.into_iter().enumerate() {
            // Every element with every way, every shape with every way.
            let (compression, row_group_samples) = ways[(e + s) % ways.len()];
            let encoding = Encoding { compression, row_group_samples, ..Encoding::default() };
            let place = folder.path().join(format!("{}/{samples}", element.name()));
            let mut written = write_dataset(&place, "parquet", &encoding, element, samples, dims);
            for case in &mut written {
                case["row_group_samples"] = row_group_samples.into();
            }
            cases.extend(written);
        }
    }
    check_written("check_parquet.py", folder.path(), cases);
}

#[test]
fn we_read_what_pyarrow_and_pandas_write() {
    read_written("write_parquet.py", 80);
}
