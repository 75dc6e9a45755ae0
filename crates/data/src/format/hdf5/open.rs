//! Finds the datasets that contain the samples of a file, and determines the shape of a sample.

use super::super::ahead::WantedSample;
use super::blocks::{FileBlocks, ParseResult, ParseStop, invalid};
use super::message::{self, RecordDataset};
use super::{Dims, FileShape, FormatError, describe_shape, group, superblock};

/// Upper limit on the datasets that share a record.
const DATASETS_MAX: usize = 256;
/// Upper limit on the objects that are compared in a file without `records_0`.
const OTHERS_MAX: usize = 256;
/// Upper limit on the length of the names that an error lists.
const NAMES_BYTES_MAX: usize = 200;

/// Contents of a file. The memory is reused for the next file.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) datasets: Vec<RecordDataset>,
    /// Object headers of `records_0`, `records_1`, …
    records: Vec<Option<u64>>,
    /// Object headers of the other objects.
    others: Vec<u64>,
    /// Names of the first objects, for errors.
    names: String,
}

impl Contents {
    fn add(&mut self, name: &[u8], address: u64) {
        let name = std::str::from_utf8(name).unwrap_or("?");
        // A name such as `records_01` is not one of the record datasets.
        let digits = name.strip_prefix("records_").unwrap_or_default();
        let number = digits.parse().ok().filter(|n| itoa::Buffer::new().format(*n) == digits);
        match number.filter(|number: &usize| *number < DATASETS_MAX) {
            Some(number) => {
                self.records.resize(self.records.len().max(number + 1), None);
                self.records[number] = Some(address);
            }
            None if self.others.len() < OTHERS_MAX => self.others.push(address),
            None => {}
        }
        if self.names.len() + name.len() < NAMES_BYTES_MAX {
            self.names.push_str(if self.names.is_empty() { "`" } else { ", `" });
            self.names.push_str(name);
            self.names.push('`');
        }
    }

    /// Finds the datasets and returns the shape of the file.
    pub(super) fn open(&mut self, blocks: &mut FileBlocks) -> ParseResult<FileShape> {
        self.datasets.clear();
        self.records.clear();
        self.others.clear();
        self.names.clear();
        let root = superblock::read_root_address(blocks)?;
        group::for_each_link(blocks, root, &mut |name, address| {
            self.add(name, address);
            Ok(())
        })?;
        for (number, address) in self.records.iter().enumerate() {
            let Some(address) = address else {
                let message = format!(
                    "`records_{number}` is missing, but there are datasets with higher numbers"
                );
                return invalid(0, message);
            };
            self.datasets.push(message::read_dataset(blocks, *address)?);
        }
        if self.datasets.is_empty() {
            self.datasets.push(self.largest_dataset(blocks, root)?);
        }
        self.check(blocks.file_bytes)?;
        self.shape()
    }

    /// The largest dataset, for files without `records_0`. Fails if this dataset cannot be read, because a smaller one, such
    /// as labels, must not be read instead.
    fn largest_dataset(&self, blocks: &FileBlocks, root: u64) -> ParseResult<RecordDataset> {
        if self.others.len() == OTHERS_MAX {
            let message = format!(
                "no dataset `records_0`, and {OTHERS_MAX} objects or more, which are too many to find the largest"
            );
            return invalid(0, message);
        }
        let mut largest = None;
        let mut largest_bytes = 0;
        for &address in &self.others {
            let (bytes, found) = match message::read_dataset(blocks, address) {
                Ok(found) if found.rank == 0 => continue,
                Ok(found) => (found.bytes(), Ok(found)),
                Err(ParseStop::Invalid(error)) => match message::array_bytes(blocks, address)? {
                    Some(bytes) => (bytes, Err(error)),
                    None => continue,
                },
                Err(missing) => return Err(missing),
            };
            if largest.is_none() || largest_bytes < bytes {
                largest = Some((address, found));
                largest_bytes = bytes;
            }
        }
        match largest {
            Some((_, Ok(largest))) => Ok(largest),
            Some((address, Err(error))) => {
                let name = object_name(blocks, root, address)?;
                let message =
                    format!("`{name}`, the largest dataset, cannot be read: {}", error.message);
                invalid(error.offset, message)
            }
            None if self.names.is_empty() => invalid(0, "the root group is empty: no `records_0`"),
            None => invalid(
                0,
                format!(
                    "no dataset `records_0`, and no other dataset to read instead: the file contains {}",
                    self.names
                ),
            ),
        }
    }

    fn check(&self, file_bytes: u64) -> ParseResult<()> {
        let first = &self.datasets[0];
        for dataset in &self.datasets {
            if dataset.rank == 0 {
                return invalid(0, "a dataset without dimensions: it holds no samples");
            }
            if dataset.dims() != first.dims() || dataset.element != first.element {
                return invalid(0, "the datasets that share a record differ in shape or type");
            }
            dataset.check(file_bytes)?;
        }
        Ok(())
    }

    /// Shape of the file. The parts in the datasets are joined along the record's first dimension.
    fn shape(&self) -> ParseResult<FileShape> {
        let first = &self.datasets[0];
        let mut dims = first.dims;
        let mut rank = first.rank;
        let datasets = self.datasets.len() as u64;
        if datasets > 1 {
            // A part that is one element has no dimension.
            let part = if rank == 1 { 1 } else { dims[1] };
            dims[1] = part.saturating_mul(datasets);
            rank = rank.max(2);
        }
        let Some(sample) = Dims::new(&dims[1..rank]) else {
            return invalid(0, "samples of too many dimensions");
        };
        Ok(FileShape { dims: sample, element: first.element, samples: dims[0] })
    }

    /// Checks the found shape against the plan, and returns it. Equivalent dimensions are replaced by the plan's.
    pub(super) fn check_plan(
        &self,
        found: FileShape,
        wanted: &WantedSample,
    ) -> Result<FileShape, FormatError> {
        let datasets = self.datasets.len() as u64;
        // DLIO leaves out a part's first dimension if it is 1.
        let plan = wanted.expected.as_ref().filter(|plan| match plan.dims.as_slice() {
            [first, rest @ ..] => *first == datasets && rest == &self.datasets[0].dims()[1..],
            [] => false,
        });
        let shape = plan.map_or(found, |plan| FileShape { dims: plan.dims, ..found });
        wanted.check(&shape)?;
        if shape.sample_bytes() == 0 {
            let message = format!("holds {}: nothing to read", describe_shape(&shape));
            return Err(FormatError::new(0, message));
        }
        Ok(shape)
    }
}

/// The name of the object at `address`.
fn object_name(blocks: &FileBlocks, root: u64, address: u64) -> ParseResult<String> {
    let mut found = String::new();
    group::for_each_link(blocks, root, &mut |name, other| {
        if other == address {
            let shown = &name[..name.len().min(NAMES_BYTES_MAX)];
            found = String::from_utf8_lossy(shown).escape_debug().to_string();
        }
        Ok(())
    })?;
    Ok(found)
}
