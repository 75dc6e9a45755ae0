//! Python's `tarfile` and PyPI's `webdataset`: `webdataset`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Element, Encoding};

#[test]
fn webdataset_reads_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for element in Element::ALL {
        for (samples, dims) in [(1, &[61, 67][..]), (3, &[7, 5, 3]), (50, &[3]), (2, &[700, 701])] {
            let case_folder = folder.path().join(format!("{}/{samples}", element.name()));
            let encoding = Encoding::default();
            cases.extend(write_dataset(
                &case_folder,
                "webdataset",
                &encoding,
                element,
                samples,
                dims,
            ));
        }
    }
    check_written("check_webdataset.py", folder.path(), cases);
}

#[test]
fn feedrate_reads_files_of_webdataset() {
    read_written("write_webdataset.py", 60);
}
