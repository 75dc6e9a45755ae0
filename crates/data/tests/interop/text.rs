//! pandas, and Python's `csv` and `json`: `csv`, `json`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Compression, Element, Encoding};

#[test]
fn python_reads_text_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for (format, compression) in [
        ("csv", Compression::None),
        ("csv", Compression::Gzip),
        ("json", Compression::None),
        ("json", Compression::Gzip),
    ] {
        for element in Element::ALL {
            for (samples, dims) in [(1, &[61, 67][..]), (3, &[7, 5, 3]), (9, &[1])] {
                let name = format!("{format}/{}/{}/{samples}", compression.name(), element.name());
                let encoding = Encoding { compression, ..Encoding::default() };
                let case_folder = folder.path().join(name);
                cases.extend(write_dataset(
                    &case_folder,
                    format,
                    &encoding,
                    element,
                    samples,
                    dims,
                ));
            }
        }
    }
    check_written("check_text.py", folder.path(), cases);
}

#[test]
fn feedrate_reads_text_of_python() {
    read_written("write_text.py", 400);
}
