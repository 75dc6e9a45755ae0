//! `safetensors`: one tensor a sample, called `sample_<number>`; a JSON header says where each lies, then come their
//! bytes one after another. Byte for byte what `safetensors.numpy.save` writes of the same tensors.
//!
//! Reads what others write too: sample `k` is the `k`-th tensor as they lie in the file, whatever its name. Element
//! types that numpy does not have (`BF16`, `F8_E4M3`, `BOOL`, …) are read as the bytes they are.

mod header;
mod tensors;
#[cfg(test)]
mod tests;

use super::located::LocatedCursor;
use super::{
    Format, FormatError, check_sample, compare_shapes, cut_off, length_of, packed, shape_of_bytes,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "safetensors",
    summary: "One tensor a sample behind a JSON header; a sample is read by itself.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::EvenReads],
};

/// The longest header that is written and read; the library itself stops at 100 MB.
const HEADER_BYTES_MAX: u64 = 16 << 20;
/// Length of the field at the start of a file that states the header's length.
const PREFIX_BYTES: u64 = 8;

pub(super) static FORMAT: Format = Format {
    begins,
    ..Format::new(
        FormatEntry {
            unfit,
            ..FormatEntry::new(&MEMBER, |shape, _| {
                let front = PREFIX_BYTES.saturating_add(header::bytes(shape));
                front.saturating_add(shape.payload_bytes())
            })
        },
        |shape, _, content, sink| {
            sink.write(0, &header::bytes(shape).to_le_bytes())?;
            header::write(shape, &mut String::new(), &mut |text| sink.write(0, text))?;
            packed::write_samples(shape, content, sink)
        },
        |options| Box::new(LocatedCursor::<tensors::Tensors>::new(options.piece_bytes)),
    )
};

/// Whether it begins with the length of a header, and that header.
fn begins(head: &[u8]) -> bool {
    let bytes = head.first_chunk().map_or(u64::MAX, |len| u64::from_le_bytes(*len));
    bytes <= HEADER_BYTES_MAX && head.get(8) == Some(&b'{')
}

fn unfit(shape: &FileShape, _encoding: &Encoding) -> Option<Unfit> {
    let fits = header::bytes(shape) <= HEADER_BYTES_MAX;
    (!fits).then(|| Unfit {
        key: "dataset.num_samples_per_file",
        message: format!(
            "`{}` tensors need a header of more than {HEADER_BYTES_MAX} bytes",
            shape.samples
        ),
        hint: "use more files, of at most 40000 samples each".to_string(),
    })
}
