//! numpy: `npz`, `npy`, `indexed_binary`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Element, Encoding};

#[test]
fn numpy_reads_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for format in ["npz", "npy", "indexed_binary"] {
        for element in Element::ALL {
            for (samples, dims) in [(1, &[61, 67][..]), (3, &[7, 5, 3]), (2, &[700, 701])] {
                let place = folder.path().join(format!("{format}/{}/{samples}", element.name()));
                let encoding = Encoding::default();
                cases.extend(write_dataset(&place, format, &encoding, element, samples, dims));
            }
        }
    }
    check_written("check_arrays.py", folder.path(), cases);
}

#[test]
fn we_read_what_numpy_writes() {
    read_written("write_arrays.py", 100);
}
