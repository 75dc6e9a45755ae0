//! numpy: `npz`, `npy`, `indexed_binary`, `mmap_indexed_binary`, `raw`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Compression, Element, Encoding};

#[test]
fn numpy_reads_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    let zip = Encoding { compression: Compression::Zip, ..Encoding::default() };
    for (format, encoding) in [
        ("npz", Encoding::default()),
        ("npz", zip),
        ("npy", Encoding::default()),
        ("indexed_binary", Encoding::default()),
        ("mmap_indexed_binary", Encoding::default()),
        ("raw", Encoding::default()),
    ] {
        for element in Element::ALL {
            for (samples, dims) in [(1, &[61, 67][..]), (3, &[7, 5, 3]), (2, &[700, 701])] {
                let packed = encoding.compression.name();
                let name = format!("{format}/{packed}/{}/{samples}", element.name());
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
    for compression_level in [0, 1, 9] {
        let compression = Compression::Zip;
        let encoding = Encoding { compression, compression_level, ..Encoding::default() };
        let case_folder = folder.path().join(format!("npz/zip/level_{compression_level}"));
        cases.extend(write_dataset(
            &case_folder,
            "npz",
            &encoding,
            Element::Float32,
            2,
            &[300, 301],
        ));
    }
    check_written("check_arrays.py", folder.path(), cases);
}

#[test]
fn feedrate_reads_files_of_numpy() {
    read_written("write_arrays.py", 100);
}
