//! Writes small generated files as seeds, in all variants of each format: `cargo run --bin seeds FOLDER`.

use feedrate_data::content::Content;
use feedrate_data::format::{FORMATS, FileSink, Format, SinkError};
use feedrate_spec::catalog::Ability;
use feedrate_spec::shape::{Compression, Dims, Element, Encoding, FileShape};
use std::path::Path;

/// A sink that keeps the parts of a file in memory.
struct Memory {
    parts: Vec<Vec<u8>>,
    space: Vec<u8>,
}

impl FileSink for Memory {
    fn space(&mut self, _part: usize) -> &mut [u8] {
        &mut self.space
    }

    fn advance(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.parts[part].extend_from_slice(&self.space[..len]);
        Ok(())
    }

    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        self.write(part, &vec![0; len])
    }

    fn patch(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.parts[part][offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// Creates a seed: the required parts of a file and its plan, joined as `crates/data/tests/corpus/contract.rs` expects.
fn seed(format: &Format, shape: &FileShape, encoding: &Encoding) -> Vec<u8> {
    let parts = format.parts.iter().map(|_| Vec::new()).collect();
    let mut sink = Memory { parts, space: vec![0; 4096] };
    let mut content = Content::new(3);
    content.select_file(5);
    (format.encode)(shape, encoding, &mut content, &mut sink)
        .expect("writing to memory cannot fail");
    let dims: String = shape.dims.as_slice().iter().map(|dim| format!(" {dim}")).collect();
    let plan = format!("{} {}{dims}", shape.element.name(), shape.samples).into_bytes();
    let required = sink.parts.into_iter().zip(format.parts).filter(|(_, part)| !part.optional);
    let parts: Vec<Vec<u8>> = required.map(|(bytes, _)| bytes).chain([plan]).collect();
    parts.join(&b"\n=part=\n"[..])
}

/// Whether files of the format can be generated.
fn is_generated(format: &Format) -> bool {
    !format.member().has(Ability::NoFiles) && !format.member().has(Ability::ReadOnly)
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("a folder to write to");
    let shape = |dims: &[u64], element, samples| FileShape {
        dims: Dims::new(dims).expect("a few dimensions"),
        element,
        samples,
    };
    let mut shapes = vec![
        shape(&[4, 5], Element::Float32, 3),
        shape(&[4, 5], Element::Uint8, 1),
        shape(&[7, 9, 3], Element::Uint8, 1),
        shape(&[3, 4], Element::Uint16, 1),
        shape(&[3], Element::Int16, 40),
        shape(&[61, 67], Element::Uint8, 1),
    ];
    shapes.extend(Element::ALL.map(|element| shape(&[7], element, 2)));
    for format in FORMATS.iter().filter(|format| is_generated(format)) {
        let entry = format.entry;
        let folder = Path::new(&folder).join(entry.member.name);
        std::fs::create_dir_all(&folder)?;
        for (i, shape) in shapes.iter().enumerate() {
            for chunk_dims in [vec![], [vec![1], shape.dims.as_slice().to_vec()].concat()] {
                for &compression in [Compression::None].iter().chain(entry.compressions) {
                    let is_contiguous = chunk_dims.is_empty();
                    let encoding = Encoding {
                        compression,
                        chunk_dims: chunk_dims.clone(),
                        ..Encoding::default()
                    };
                    let is_supported =
                        is_contiguous || entry.encoding_keys.contains(&"dataset.hdf5.chunk_dims");
                    if is_supported && (entry.unsupported_setting)(shape, &encoding).is_none() {
                        let name = format!("ours_{i}_{}_{is_contiguous}", compression.name());
                        std::fs::write(folder.join(name), seed(format, shape, &encoding))?;
                    }
                }
            }
        }
    }
    Ok(())
}
