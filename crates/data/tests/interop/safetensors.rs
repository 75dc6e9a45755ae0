//! The `safetensors` library.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Element, Encoding};

#[test]
fn safetensors_reads_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for element in Element::ALL {
        for (samples, dims) in [(1, &[61, 67][..]), (3, &[7, 5, 3]), (2, &[700, 701]), (101, &[9])]
        {
            let place = folder.path().join(format!("{}/{samples}", element.name()));
            let encoding = Encoding::default();
            cases.extend(write_dataset(&place, "safetensors", &encoding, element, samples, dims));
        }
    }
    check_written("check_safetensors.py", folder.path(), cases);
}

#[test]
fn we_read_what_safetensors_writes() {
    read_written("write_safetensors.py", 30);
}
