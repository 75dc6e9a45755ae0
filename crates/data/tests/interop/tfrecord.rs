//! PyPI's `tfrecord`, which reads and writes with Google's protobuf: `tfrecord`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Element, Encoding};

#[test]
fn tfrecord_reads_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for element in Element::ALL {
        for (samples, dims) in [(1, &[1][..]), (3, &[7, 5, 3]), (500, &[3]), (2, &[700, 701])] {
            let case_folder = folder.path().join(format!("{}/{samples}", element.name()));
            let encoding = Encoding::default();
            cases.extend(write_dataset(
                &case_folder,
                "tfrecord",
                &encoding,
                element,
                samples,
                dims,
            ));
        }
    }
    check_written("check_tfrecord.py", folder.path(), cases);
}

#[test]
fn feedrate_reads_files_of_tfrecord() {
    read_written("write_tfrecord.py", 30);
}
