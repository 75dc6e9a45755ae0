//! Finds the datasets that contain the samples of a file, and determines the shape of a sample.
//!
//! Files of DLIO have their samples in `records_0`, `records_1`, …. In other files a sample is a row of each dataset that the
//! user named, or else of each dataset with as many rows as the largest and at least a tenth of its length.
//!
//! Long because the choice of datasets needs all properties that make one readable.

use super::super::ahead::WantedSample;
use super::super::{CursorOptions, FileMember, shape_of_bytes};
use super::blocks::{EXAMINED_BYTES_MAX, FileBlocks, ParseResult, ParseStop, invalid};
use super::group::VisitedLinks;
use super::message::{self, ObjectKind, RecordDataset};
use super::piece::ChunkGeometry;
use super::referenced::ReferencedBytes;
use super::{
    Dims, FileShape, FormatError, RANK_MAX, UNDEFINED, describe_shape, group, index, superblock,
};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Upper limit on the datasets that share a record.
const DATASETS_MAX: usize = 256;
/// Upper limit on the objects that are examined in a file. Samples could include the others, too, so they count as stored elsewhere.
const OBJECTS_MAX: usize = 16_384;
/// Upper limit on the length of a path of groups.
const PATH_BYTES_MAX: usize = 1024;
/// Upper limit on the length of the names that an error lists.
const NAMES_BYTES_MAX: usize = 200;
/// A dataset of less than the largest divided by this number is not read, unless the user names it.
const SHARE_DIVISOR: u64 = 10;
/// Number of chunks from which the length of a filtered dataset is estimated.
const CHUNKS_SAMPLED: u64 = 4;

/// Contents of a file. Opening continues where metadata was missing. The memory is reused for the next file.
pub(super) struct Contents {
    /// The datasets that are read.
    pub(super) datasets: Vec<RecordDataset>,
    /// Names of datasets that the user chose.
    chosen: Arc<[String]>,
    /// Whether all objects are examined, although some datasets were chosen.
    examines_all: bool,
    step: OpenStep,
    /// Object headers of `records_0`, `records_1`, …
    records: Vec<Option<u64>>,
    /// The root group and the objects below it, groups before their members.
    objects: Vec<FoundObject>,
    /// Names of all objects.
    names: String,
    /// Addresses of all objects.
    addresses: HashSet<u64>,
    /// Links that were listed in the group that is examined.
    links_listed: VisitedLinks,
    /// Whether further objects are not examined.
    is_cut: bool,
    referenced: ReferencedBytes,
    /// Whether the datasets that are read are known to be all data of the file.
    pub(super) are_all: bool,
    /// The first object with values that samples could include, but that are elsewhere.
    elsewhere: Option<usize>,
}

/// Progress of opening a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenStep {
    Root,
    /// The datasets that the user chose, from this number on, must be looked up by name.
    LookUp(usize),
    /// The objects from this number on must be examined.
    Examine(usize),
    /// The stored lengths of the objects from this number on must be found.
    Measure(usize),
    Choose,
    Done,
}

struct FoundObject {
    /// Position of the path in the names of all objects.
    name: Range<usize>,
    address: u64,
    content: ObjectContent,
    /// Length in the file.
    stored_bytes: u64,
    is_read: bool,
}

#[expect(
    clippy::large_enum_variant,
    reason = "most objects are datasets, in one vector that is reused"
)]
enum ObjectContent {
    Group,
    Dataset(RecordDataset),
    /// A dataset that cannot be read, with its length if it could be.
    Broken(u64, FormatError),
    /// An object in another file, which is not followed.
    Linked,
    /// The first object beyond the limit.
    Unexamined,
    /// Not examined, or neither a group nor an array.
    Other,
}

impl FoundObject {
    /// The array with samples; `None` for groups, scalars and empty arrays.
    fn array(&self) -> Option<&RecordDataset> {
        match &self.content {
            ObjectContent::Dataset(dataset) => {
                Some(dataset).filter(|dataset| dataset.rank > 0 && dataset.bytes() > 0)
            }
            _ => None,
        }
    }

    /// Whether its values, or some of them, are in other files or in structures that are not followed. Datasets of less than
    /// `comparable_bytes` that cannot be read do not count.
    fn is_elsewhere(&self, comparable_bytes: u64) -> bool {
        match &self.content {
            ObjectContent::Broken(bytes, _) => comparable_bytes <= *bytes,
            ObjectContent::Linked | ObjectContent::Unexamined => true,
            _ => self.array().is_some_and(RecordDataset::has_unread_references),
        }
    }

    /// Bytes of the samples after decoding; of elements of variable length, with what they refer to.
    fn decoded_bytes(&self, array: &RecordDataset) -> u64 {
        if array.element.is_reference() { self.stored_bytes } else { array.bytes() }
    }
}

impl Contents {
    pub(super) fn new(options: &CursorOptions) -> Self {
        Contents {
            datasets: Vec::new(),
            chosen: Arc::clone(&options.members),
            examines_all: options.examines_members || options.members.is_empty(),
            step: OpenStep::Root,
            records: Vec::new(),
            objects: Vec::new(),
            names: String::new(),
            addresses: HashSet::new(),
            links_listed: VisitedLinks::default(),
            is_cut: false,
            referenced: ReferencedBytes::new(),
            are_all: false,
            elsewhere: None,
        }
    }

    /// Starts opening another file.
    pub(super) fn begin(&mut self) {
        self.step = OpenStep::Root;
        self.elsewhere = None;
        self.datasets.clear();
        self.records.clear();
        self.objects.clear();
        self.names.clear();
        self.addresses.clear();
        self.links_listed = VisitedLinks::default();
        self.is_cut = false;
    }

    /// Finds the datasets and returns the shape of the file.
    pub(super) fn open(&mut self, blocks: &mut FileBlocks) -> ParseResult<FileShape> {
        loop {
            self.step = match self.step {
                OpenStep::Root => {
                    let address = superblock::read_root_address(blocks)?;
                    self.add_object(0..0, address, ObjectContent::Other);
                    self.objects[0].content = ObjectContent::Group;
                    if self.examines_all { OpenStep::Examine(0) } else { OpenStep::LookUp(0) }
                }
                OpenStep::LookUp(i) if i < self.chosen.len() => match self.look_up(blocks, i)? {
                    Some(dataset) => {
                        self.objects.push(dataset);
                        OpenStep::LookUp(i + 1)
                    }
                    // All objects are listed, for the message.
                    None => {
                        self.objects.truncate(1);
                        self.names.clear();
                        OpenStep::Examine(0)
                    }
                },
                OpenStep::LookUp(_) if self.needs_measures() => OpenStep::Measure(0),
                OpenStep::LookUp(_) => OpenStep::Choose,
                OpenStep::Examine(i) if i < self.objects.len() && self.has_enough(blocks) => {
                    self.is_cut = true;
                    self.objects[i].content = ObjectContent::Unexamined;
                    self.objects.truncate(i + 1);
                    OpenStep::Examine(i + 1)
                }
                OpenStep::Examine(i) if i < self.objects.len() => {
                    if self.leads_to_chosen(i) {
                        self.examine(blocks, i)?;
                    }
                    if self.is_record_file() { OpenStep::Choose } else { OpenStep::Examine(i + 1) }
                }
                OpenStep::Examine(_) if self.needs_measures() => OpenStep::Measure(0),
                OpenStep::Examine(_) => OpenStep::Choose,
                OpenStep::Measure(i) if i < self.objects.len() => {
                    if let Some(dataset) = self.objects[i].array() {
                        let bytes = stored_bytes(blocks, dataset, &mut self.referenced)?;
                        self.objects[i].stored_bytes = bytes;
                    }
                    OpenStep::Measure(i + 1)
                }
                OpenStep::Measure(_) => OpenStep::Choose,
                OpenStep::Choose => {
                    self.choose(blocks)?;
                    let comparable_bytes = self.comparable_bytes();
                    self.elsewhere = self.objects.iter().position(|object| {
                        self.examines_all && object.is_elsewhere(comparable_bytes)
                    });
                    OpenStep::Done
                }
                OpenStep::Done => {
                    for dataset in &self.datasets {
                        dataset.check(blocks.file_bytes)?;
                    }
                    return self.shape();
                }
            };
        }
    }

    /// Whether no further objects are examined. A group of which some links are listed is listed to its end.
    fn has_enough(&self, blocks: &FileBlocks) -> bool {
        EXAMINED_BYTES_MAX < blocks.metadata_bytes() && self.links_listed == VisitedLinks::default()
    }

    /// Whether the samples are in `records_0`, `records_1`, …
    fn is_record_file(&self) -> bool {
        self.chosen.is_empty() && !self.records.is_empty()
    }

    fn name(&self, object: &FoundObject) -> &str {
        &self.names[object.name.clone()]
    }

    fn add_object(&mut self, name: Range<usize>, address: u64, content: ObjectContent) {
        self.addresses.insert(address);
        self.objects.push(FoundObject { name, address, content, stored_bytes: 0, is_read: false });
    }

    /// Looks up a dataset that the user chose, as the HDF5 library opens one; `None` if no hard links lead to it.
    fn look_up(&mut self, blocks: &FileBlocks, i: usize) -> ParseResult<Option<FoundObject>> {
        let path = self.chosen[i].trim_start_matches('/');
        let mut address = self.objects[0].address;
        for name in path.split('/') {
            match group::find_link(blocks, address, name.as_bytes())? {
                Some(object) => address = object,
                None => return Ok(None),
            }
        }
        let is_known = self.objects.iter().any(|object| object.address == address);
        if is_known || message::read_kind(blocks, address)? != ObjectKind::Dataset {
            return Ok(None);
        }
        let content = read_content(blocks, address)?;
        let start = self.names.len();
        self.names.push_str(path);
        let name = start..self.names.len();
        Ok(Some(FoundObject { name, address, content, stored_bytes: 0, is_read: false }))
    }

    /// Reads the header of object `i`. The members of a group are added to the objects.
    fn examine(&mut self, blocks: &FileBlocks, i: usize) -> ParseResult<()> {
        let content = &self.objects[i].content;
        if matches!(content, ObjectContent::Linked | ObjectContent::Unexamined) {
            return Ok(());
        }
        let address = self.objects[i].address;
        let is_root = i == 0;
        let kind = match message::read_kind(blocks, address) {
            Err(ParseStop::Invalid(_)) if !is_root => ObjectKind::Dataset,
            kind => kind?,
        };
        match kind {
            ObjectKind::Dataset if !is_root => {
                self.objects[i].content = read_content(blocks, address)?;
                Ok(())
            }
            ObjectKind::Group | ObjectKind::Dataset => {
                self.objects[i].content = ObjectContent::Group;
                let mut done = self.links_listed;
                let listed =
                    group::for_each_link(blocks, address, &mut done, &mut |name, address| {
                        self.add_link(i, name, address)
                    });
                let is_listed = listed.is_ok() || self.is_cut;
                self.links_listed = if is_listed { VisitedLinks::default() } else { done };
                if is_listed { Ok(()) } else { listed }
            }
            ObjectKind::Other => Ok(()),
        }
    }

    /// Adds a link of group number `parent`; without an address, to an object in another file. Fails beyond the limit on objects.
    fn add_link(&mut self, parent: usize, name: &[u8], address: Option<u64>) -> ParseResult<()> {
        let name = std::str::from_utf8(name).unwrap_or("?");
        let is_root = parent == 0;
        // A name such as `records_01` is not one of the record datasets.
        let digits = name.strip_prefix("records_").filter(|_| is_root).unwrap_or_default();
        let number = digits.parse().ok().filter(|n| itoa::Buffer::new().format(*n) == digits);
        let number = number.filter(|number: &usize| address.is_some() && *number < DATASETS_MAX);
        if let Some(number) = number {
            self.records.resize(self.records.len().max(number + 1), None);
            self.records[number] = address;
        }
        let parent = self.objects[parent].name.clone();
        let start = self.names.len();
        // An object can have several names, and a group can contain itself.
        if address.is_some_and(|address| self.addresses.contains(&address)) {
            return Ok(());
        }
        if self.is_cut {
            return refuse_more();
        }
        self.is_cut = self.objects.len() == OBJECTS_MAX;
        if parent.len() + 1 + name.len() > PATH_BYTES_MAX {
            return invalid(0, format!("a path of groups of more than {PATH_BYTES_MAX} bytes"));
        }
        if !parent.is_empty() {
            self.names.extend_from_within(parent);
            self.names.push('/');
        }
        self.names.push_str(name);
        let content = match address {
            _ if self.is_cut => ObjectContent::Unexamined,
            Some(_) => ObjectContent::Other,
            None => ObjectContent::Linked,
        };
        self.add_object(start..self.names.len(), address.unwrap_or(UNDEFINED), content);
        Ok(())
    }

    /// Whether object `i` can be, or contain, a dataset that is read.
    fn leads_to_chosen(&self, i: usize) -> bool {
        let path = self.name(&self.objects[i]);
        self.examines_all
            || self.chosen.iter().any(|name| {
                let rest = name.trim_start_matches('/').strip_prefix(path);
                rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'))
            })
    }

    /// Whether the lengths of the datasets are needed: to choose from them, or for the length of a sample.
    fn needs_measures(&self) -> bool {
        let arrays = || self.objects.iter().filter_map(FoundObject::array);
        if arrays().any(|array| array.element.is_reference()) {
            return true;
        }
        if !self.chosen.is_empty() {
            return false;
        }
        let largest = arrays().map(RecordDataset::bytes).max().unwrap_or(0);
        let samples = arrays().next().map(|array| array.dims[0]);
        arrays()
            .any(|array| Some(array.dims[0]) != samples || array.bytes() < largest / SHARE_DIVISOR)
    }

    /// Chooses the datasets that are read.
    fn choose(&mut self, blocks: &FileBlocks) -> ParseResult<()> {
        self.datasets.clear();
        self.are_all = false;
        if self.is_record_file() {
            return self.choose_records(blocks);
        }
        if self.chosen.is_empty() {
            self.choose_largest()?
        } else {
            self.choose_named()?
        }
        for object in self.objects.iter().filter(|object| object.is_read) {
            self.datasets.extend(object.array().copied());
        }
        let is_unread = |object: &FoundObject| match object.content {
            ObjectContent::Broken(..) | ObjectContent::Linked | ObjectContent::Unexamined => true,
            _ => object.array().is_some() && !object.is_read,
        };
        self.are_all = self.chosen.is_empty() && !self.objects.iter().any(is_unread);
        let samples = self.datasets[0].dims[0];
        if self.datasets.iter().any(|dataset| dataset.dims[0] != samples) {
            return invalid(0, "the datasets to read differ in their numbers of samples");
        }
        Ok(())
    }

    fn choose_records(&mut self, blocks: &FileBlocks) -> ParseResult<()> {
        for (number, address) in self.records.iter().enumerate() {
            let Some(address) = address else {
                let message = format!(
                    "`records_{number}` is missing, but there are datasets with higher numbers"
                );
                return invalid(0, message);
            };
            self.datasets.push(message::read_dataset(blocks, *address)?);
        }
        let first = &self.datasets[0];
        for dataset in &self.datasets {
            if dataset.rank == 0 {
                return invalid(0, "a dataset without dimensions: it holds no samples");
            }
            if dataset.dims() != first.dims() || dataset.element != first.element {
                return invalid(0, "the datasets that share a record differ in shape or type");
            }
        }
        for object in &mut self.objects {
            object.is_read = self.records.contains(&Some(object.address));
        }
        Ok(())
    }

    fn choose_named(&mut self) -> ParseResult<()> {
        for name in self.chosen.iter() {
            let path = name.trim_start_matches('/');
            let found = self.objects.iter().position(|object| self.name(object) == path);
            let Some(i) = found.filter(|i| *i > 0) else {
                let shown = escaped(name);
                return invalid(
                    0,
                    format!("no dataset `{shown}`: the file contains {}", self.listed_names()),
                );
            };
            if let ObjectContent::Broken(_, error) = &self.objects[i].content {
                let message = format!("`{}` cannot be read: {}", escaped(name), error.message);
                return invalid(error.offset, message);
            }
            if matches!(self.objects[i].content, ObjectContent::Linked) {
                let shown = escaped(name);
                return invalid(0, format!("`{shown}` is in another file, which is not followed"));
            }
            if self.objects[i].array().is_none() {
                return invalid(0, format!("`{}` is no dataset with samples", escaped(name)));
            }
            self.objects[i].is_read = true;
        }
        Ok(())
    }

    /// Chooses the largest dataset and those that are comparable with it. Fails if one that cannot be read is larger, because a
    /// smaller one, such as labels, must not be read instead.
    fn choose_largest(&mut self) -> ParseResult<()> {
        let arrays = || self.objects.iter().filter_map(|object| Some((object, object.array()?)));
        let lengths = arrays().map(|(object, array)| object.decoded_bytes(array));
        let largest_bytes = lengths.max().unwrap_or(0);
        let largest_stored = arrays().map(|(object, _)| object.stored_bytes).max().unwrap_or(0);
        for object in &self.objects {
            if let ObjectContent::Broken(bytes, error) = &object.content
                && largest_bytes < *bytes
            {
                let name = escaped(self.name(object));
                let message =
                    format!("`{name}`, the largest dataset, cannot be read: {}", error.message);
                return invalid(error.offset, message);
            }
        }
        let measured = arrays().filter(|(object, _)| object.stored_bytes == largest_stored);
        let Some((_, largest)) = measured.max_by_key(|(_, array)| array.bytes()) else {
            return self.refuse_empty();
        };
        let samples = largest.dims[0];
        let comparable = arrays()
            .filter(|(_, array)| array.dims[0] == samples)
            .map(|(object, array)| (object.decoded_bytes(array), object.stored_bytes));
        let (bytes, stored_bytes) = comparable.max().unwrap_or_default();
        let bytes_min = bytes / SHARE_DIVISOR;
        // Beside a dataset that was never written, labels have most of the stored bytes.
        let is_unwritten = stored_bytes == 0;
        let stored_min = largest_stored / SHARE_DIVISOR;
        for object in &mut self.objects {
            let stored_bytes = object.stored_bytes;
            object.is_read = object.array().is_some_and(|array| {
                let is_stored = !is_unwritten && 0 < stored_bytes && stored_min <= stored_bytes;
                let is_comparable = is_stored || bytes_min <= object.decoded_bytes(array);
                array.dims[0] == samples && is_comparable
            });
        }
        Ok(())
    }

    fn refuse_empty(&self) -> ParseResult<()> {
        if self.objects.len() == 1 {
            return invalid(0, "the root group is empty: no `records_0`");
        }
        if self.is_cut {
            return refuse_more();
        }
        let message = format!(
            "no dataset `records_0`, and no other dataset to read instead: the file contains {}",
            self.listed_names()
        );
        invalid(0, message)
    }

    /// The first names, for errors. Names of groups are left out if there are datasets.
    fn listed_names(&self) -> String {
        let is_dataset = |object: &&FoundObject| !matches!(object.content, ObjectContent::Group);
        let has_datasets = self.objects.iter().any(|object| is_dataset(&object));
        let listed = self.objects.iter().skip(1).filter(|o| !has_datasets || is_dataset(o));
        let mut text = String::new();
        for object in listed {
            let name = escaped(self.name(object));
            if text.len() + name.len() >= NAMES_BYTES_MAX {
                return format!("{text} and more");
            }
            let separator = if text.is_empty() { "" } else { ", " };
            let is_linked = matches!(object.content, ObjectContent::Linked);
            let place = if is_linked { " (in another file)" } else { "" };
            text = format!("{text}{separator}`{name}`{place}");
        }
        if text.is_empty() { "nothing".into() } else { text }
    }

    /// Shape of the file. Parts with equal dimensions and types are joined along the record's first dimension; otherwise a sample is
    /// a sequence of bytes.
    fn shape(&self) -> ParseResult<FileShape> {
        let first = &self.datasets[0];
        let mut dims = [1; RANK_MAX + 1];
        dims[..RANK_MAX].copy_from_slice(&first.dims);
        let mut rank = first.rank;
        let datasets = self.datasets.len() as u64;
        let is_equal =
            |other: &RecordDataset| other.dims() == first.dims() && other.element == first.element;
        let has_references = self.datasets.iter().any(|dataset| dataset.element.is_reference());
        if has_references || !self.datasets.iter().all(is_equal) {
            let bytes = self.objects.iter().filter(|object| object.is_read).map(|object| {
                let array = object.array();
                array.map_or(0, |array| object.decoded_bytes(array)) / dims[0].max(1)
            });
            return Ok(shape_of_bytes(bytes.fold(0, u64::saturating_add), dims[0]));
        }
        if datasets > 1 {
            // A part that is one element has no dimension.
            let part = if rank == 1 { 1 } else { dims[1] };
            dims[1] = part.saturating_mul(datasets);
            rank = rank.max(2);
        }
        let Some(element) = first.element.number else {
            dims[rank] = first.element.bytes;
            let bytes = super::product(&dims[1..=rank]);
            let plain = shape_of_bytes(bytes, dims[0]);
            let sample = Dims::new(&dims[1..=rank]);
            return Ok(sample.map_or(plain, |dims| FileShape { dims, ..plain }));
        };
        let Some(sample) = Dims::new(&dims[1..rank]) else {
            return invalid(0, "samples of too many dimensions");
        };
        Ok(FileShape { dims: sample, element, samples: dims[0] })
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

    /// The datasets of the file, in the order in which they were found. The only one with samples has all bytes of the file.
    pub(super) fn members(&self, file_bytes: u64) -> Vec<FileMember> {
        let arrays = || self.objects.iter().filter_map(|object| Some((object, object.array()?)));
        let is_alone = arrays().count() == 1;
        let comparable_bytes = self.comparable_bytes();
        // What no other dataset holds is in the heaps of the only one with elements of variable length.
        let is_plain = |array: &RecordDataset| !array.element.is_reference();
        let plain = arrays().filter(|(_, array)| is_plain(array));
        let plain_bytes =
            plain.fold(0, |bytes: u64, (object, _)| bytes.saturating_add(object.stored_bytes));
        let has_one_heap = arrays().filter(|(_, array)| !is_plain(array)).count() == 1;
        let heap_bytes = has_one_heap.then_some(file_bytes.saturating_sub(plain_bytes));
        let member = |object: &FoundObject| {
            let stored_bytes = match &object.content {
                ObjectContent::Broken(bytes, _) => *bytes,
                ObjectContent::Linked | ObjectContent::Unexamined => 0,
                _ => {
                    let array = object.array()?;
                    let exact = array.unfiltered_bytes();
                    let measured = Some(object.stored_bytes).filter(|bytes| *bytes > 0);
                    let alone = is_alone.then_some(file_bytes);
                    let heap = heap_bytes.filter(|_| !is_plain(array)).max(measured);
                    heap.or(alone).or(exact).unwrap_or(array.bytes())
                }
            };
            Some(FileMember {
                name: self.name(object).to_string(),
                stored_bytes: stored_bytes.min(file_bytes),
                is_read: object.is_read,
                is_elsewhere: object.is_elsewhere(comparable_bytes),
            })
        };
        self.objects.iter().filter_map(member).collect()
    }

    /// See [`Cursor::elsewhere`](super::Cursor::elsewhere).
    pub(super) fn elsewhere(&self) -> Option<&str> {
        self.elsewhere.map(|i| self.name(&self.objects[i]))
    }

    /// Least length of a dataset that is comparable with the largest.
    fn comparable_bytes(&self) -> u64 {
        let arrays = self.objects.iter().filter_map(|object| Some((object, object.array()?)));
        let lengths = arrays.map(|(object, array)| object.decoded_bytes(array));
        lengths.max().unwrap_or(0) / SHARE_DIVISOR
    }
}

/// Reads the header of a dataset.
fn read_content(blocks: &FileBlocks, address: u64) -> ParseResult<ObjectContent> {
    match message::read_dataset(blocks, address) {
        Ok(dataset) => Ok(ObjectContent::Dataset(dataset)),
        Err(ParseStop::Invalid(error)) => Ok(match message::array_bytes(blocks, address)? {
            Some(bytes) => ObjectContent::Broken(bytes, error),
            None => ObjectContent::Other,
        }),
        Err(missing) => Err(missing),
    }
}

/// Refuses a file that has no dataset among the objects that are examined.
fn refuse_more<T>() -> ParseResult<T> {
    let message = "more datasets and groups than are examined: name the datasets to read in `dataset.members`";
    invalid(0, message)
}

fn escaped(name: &str) -> String {
    let mut end = name.len().min(NAMES_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].escape_debug().to_string()
}

/// Length of a dataset in the file. Of a filtered dataset, some chunks are looked up; of elements of variable length, some rows.
fn stored_bytes(
    blocks: &FileBlocks,
    dataset: &RecordDataset,
    referenced: &mut ReferencedBytes,
) -> ParseResult<u64> {
    let measured = if dataset.element.is_reference() {
        referenced.estimate(blocks, dataset)
    } else if let Some(bytes) = dataset.unfiltered_bytes() {
        return Ok(bytes.min(blocks.file_bytes));
    } else {
        filtered_bytes(blocks, dataset)
    };
    match measured {
        // A broken index is noticed where it is read.
        Err(ParseStop::Invalid(_)) => Ok(dataset.bytes().min(blocks.file_bytes)),
        measured => Ok(measured?.min(blocks.file_bytes)),
    }
}

fn filtered_bytes(blocks: &FileBlocks, dataset: &RecordDataset) -> ParseResult<u64> {
    let geometry = ChunkGeometry::new(dataset)?;
    let mut stored = 0u64;
    let mut used = 0u64;
    for i in 0..CHUNKS_SAMPLED {
        let sample =
            u128::from(dataset.dims[0] - 1) * u128::from(i) / u128::from(CHUNKS_SAMPLED - 1);
        let sample = sample as u64;
        let mut grid = [0; RANK_MAX];
        grid[0] = sample / geometry.samples;
        let found = index::find(blocks, dataset, &grid[..dataset.rank], geometry.chunk_bytes)?;
        let bytes = found.map(|found| found.stored_bytes.unwrap_or(geometry.chunk_bytes));
        stored = stored.saturating_add(bytes.unwrap_or(0));
        used = used.saturating_add(geometry.used_bytes(sample));
    }
    let share = stored as f64 / used.max(1) as f64;
    Ok((dataset.bytes() as f64 * share) as u64)
}
