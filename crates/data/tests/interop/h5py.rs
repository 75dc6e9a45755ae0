//! h5py: `hdf5`.

use super::{check_written, read_written, write_dataset};
use feedrate_spec::shape::{Compression, Element, Encoding};
use serde_json::{Value, json};
use std::path::Path;

fn write_cases(
    case_folder: &Path,
    encoding: &Encoding,
    element: Element,
    shape: (u64, &[u64]),
) -> Vec<Value> {
    let (samples, dims) = shape;
    let mut cases = write_dataset(case_folder, "hdf5", encoding, element, samples, dims);
    for case in &mut cases {
        case["chunks"] = json!(encoding.chunk_dims);
        case["max_shape"] = json!(encoding.max_shape);
        case["datasets"] = json!(encoding.datasets_per_record);
        case["level"] = json!(encoding.compression_level);
    }
    cases
}

#[test]
fn h5py_reads_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let gzip = Encoding { compression: Compression::Gzip, ..Encoding::default() };
    let mut all = Vec::new();
    for element in Element::ALL {
        for (i, dims) in
            [&[61, 67][..], &[6, 5, 3], &[1, 40, 30], &[130, 257], &[9]].iter().enumerate()
        {
            let case_folder = folder.path().join(format!("{}/{i}", element.name()));
            let shape = (i as u64 + 1, *dims);
            all.extend(write_cases(
                &case_folder.join("plain"),
                &Encoding::default(),
                element,
                shape,
            ));
            all.extend(write_cases(&case_folder.join("gzip"), &gzip, element, shape));
        }
    }
    let chunked = |chunk_dims: &[u64], max_shape: &[u64], datasets_per_record| Encoding {
        chunk_dims: chunk_dims.to_vec(),
        max_shape: max_shape.to_vec(),
        datasets_per_record,
        ..Encoding::default()
    };
    for (i, (samples, dims, encoding)) in [
        (5, &[40, 30][..], chunked(&[1, 40, 30], &[], 1)),
        (5, &[40, 30], chunked(&[2, 40, 30], &[], 1)),
        (5, &[40, 30], chunked(&[1, 7, 30], &[], 1)),
        (5, &[40, 30], chunked(&[1, 7, 11], &[], 1)),
        (5, &[40, 30], chunked(&[3, 1, 11], &[], 1)),
        (5, &[40, 30], chunked(&[], &[0, 40, 30], 1)),
        (5, &[40, 30], chunked(&[7, 64, 30], &[10, 0, 30], 1)),
        (5, &[40, 30], chunked(&[2, 5, 15], &[0, 40, 0], 4)),
        (5, &[40, 30], chunked(&[], &[0, 30], 1)),
        (2, &[40, 30], chunked(&[], &[], 8)),
        (2, &[3, 9, 8, 1, 8], chunked(&[], &[], 3)),
        (4, &[5], chunked(&[], &[], 5)),
        (1, &[256, 3], chunked(&[], &[], 128)),
        (3, &[4, 1, 6, 5], chunked(&[2, 3, 1, 4, 2], &[], 1)),
        (1, &[90, 200], chunked(&[1, 2, 3], &[], 1)),
        (300, &[20], chunked(&[1, 1], &[], 1)),
        (300, &[2], chunked(&[2, 2], &[0, 2], 1)),
        (300, &[1, 3], chunked(&[4, 3], &[], 1)),
    ]
    .iter()
    .enumerate()
    {
        for level in [None, Some(0), Some(1), Some(9)] {
            let case_folder = folder.path().join(format!("chunks/{i}/{level:?}"));
            let compression = level.map_or(Compression::None, |_| Compression::Gzip);
            let compression_level = level.unwrap_or(4);
            let encoding = Encoding { compression, compression_level, ..encoding.clone() };
            all.extend(write_cases(&case_folder, &encoding, Element::Int16, (*samples, *dims)));
        }
    }
    check_written("check_hdf5.py", folder.path(), all);
}

#[test]
fn feedrate_reads_files_of_h5py() {
    read_written("write_hdf5.py", 300);
}
