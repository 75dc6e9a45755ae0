//! Elements of variable length: each refers to an object in a heap of the file. As in the HDF5 library, a heap is read
//! completely, and kept for the next references: neighbours can be in different heaps.

use super::super::payload_range::PayloadRange;
use super::blocks::FileBlocks;
use super::message::ElementType;
use super::{FormatError, MEMORY_BYTES_MAX, Need, PayloadSink};
use std::collections::VecDeque;
use std::ops::Range;

/// Upper limit on the kept heaps, unless one is longer: the initial metadata cache of the library.
const KEPT_BYTES_MAX: usize = 2 << 20;
/// Length of the first read of a heap: no heap of the library is shorter.
const HEAD_BYTES: u64 = 4096;

/// References of a sample, and the heaps that were read last.
#[derive(Default)]
pub(super) struct References {
    /// The elements. Their fields of variable length contain: number of items, address of the heap, number of the object.
    pub(super) elements: Vec<u8>,
    /// Type of the elements.
    pub(super) element: ElementType,
    /// Number of the next field in the elements.
    next: usize,
    /// Complete heaps, the oldest first.
    kept: VecDeque<Heap>,
    /// The heap that is being read.
    heap: Heap,
    range: PayloadRange,
    is_reading: bool,
    /// Bytes of heaps that were read for the sample.
    read_bytes: u64,
}

/// A heap, from its start.
#[derive(Default)]
struct Heap {
    address: u64,
    bytes: Vec<u8>,
    /// Ranges of the objects, by number.
    objects: Vec<Range<usize>>,
}

/// A field of variable length.
struct Reference {
    address: u64,
    object: u32,
}

impl References {
    /// Starts another sample.
    pub(super) fn begin(&mut self) {
        self.elements.clear();
        self.next = 0;
        self.is_reading = false;
        self.read_bytes = 0;
    }

    /// Starts another file.
    pub(super) fn begin_file(&mut self) {
        self.kept.clear();
    }

    /// The next read, [`Need::Buffered`] for an object in memory, or [`Need::Done`] after the last reference.
    pub(super) fn need(
        &mut self,
        blocks: &FileBlocks,
        piece_bytes: usize,
    ) -> Result<Need, FormatError> {
        if self.is_reading {
            return Ok(self.range.need(0, piece_bytes));
        }
        while let Some(reference) = self.reference(blocks)? {
            // Fields without data have no heap.
            if reference.address == blocks.base {
                self.next += 1;
                continue;
            }
            if self.kept_heap(reference.address).is_some() {
                return Ok(Need::Buffered);
            }
            self.heap.address = reference.address;
            self.heap.bytes.clear();
            let left = blocks.file_bytes.saturating_sub(reference.address);
            if left < 16 {
                return Err(FormatError::new(reference.address, "a heap beyond the end"));
            }
            self.start_range(blocks, HEAD_BYTES.min(left))?;
            return Ok(self.range.need(0, piece_bytes));
        }
        self.elements.clear();
        self.next = 0;
        Ok(Need::Done)
    }

    fn kept_heap(&self, address: u64) -> Option<&Heap> {
        self.kept.iter().find(|heap| heap.address == address)
    }

    /// Requests the next `bytes` bytes of the heap.
    fn start_range(&mut self, blocks: &FileBlocks, bytes: u64) -> Result<(), FormatError> {
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        let Heap { address, bytes: read, .. } = &self.heap;
        let read_bytes = read.len() as u64;
        let is_too_long = read_bytes.saturating_add(bytes) > MEMORY_BYTES_MAX;
        if self.read_bytes > blocks.file_bytes || is_too_long {
            return Err(FormatError::new(*address, "a sample refers to too many bytes"));
        }
        self.range = PayloadRange::new(address + read_bytes, bytes);
        self.is_reading = true;
        Ok(())
    }

    /// The next field; `None` after the last.
    fn reference(&self, blocks: &FileBlocks) -> Result<Option<Reference>, FormatError> {
        let fields = self.element.variable.list();
        if fields.is_empty() {
            return Ok(None);
        }
        let start = self.next / fields.len() * self.element.bytes as usize
            + fields[self.next % fields.len()].offset;
        let Some(element) = self.elements.get(start..start + field_bytes(blocks)) else {
            return Ok(None);
        };
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let address_end = 4 + blocks.address_bytes;
        let address = number(&element[4..address_end]);
        match address.checked_add(blocks.base) {
            Some(address) => {
                Ok(Some(Reference { address, object: number(&element[address_end..]) as u32 }))
            }
            None => Err(FormatError::new(0, "a reference beyond any file")),
        }
    }

    /// Takes the requested bytes, or passes on the object in memory.
    pub(super) fn feed(
        &mut self,
        blocks: &FileBlocks,
        bytes: &[u8],
        sent_bytes: &mut u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if !self.is_reading {
            return self.send_object(blocks, sent_bytes, sink);
        }
        self.range.feed(bytes, &mut self.heap.bytes)?;
        if self.range.remaining() > 0 {
            return Ok(());
        }
        let Heap { address, bytes: heap, .. } = &self.heap;
        if !heap.starts_with(b"GCOL") {
            return Err(FormatError::new(*address, "no heap where a reference says"));
        }
        let heap_bytes = length(&heap[8..], blocks);
        let left = blocks.file_bytes - address;
        if heap_bytes > left {
            return Err(FormatError::new(*address, "a heap extends beyond the end"));
        }
        let read = heap.len() as u64;
        if read < heap_bytes {
            return self.start_range(blocks, heap_bytes - read);
        }
        self.is_reading = false;
        self.keep(blocks);
        Ok(())
    }

    /// Keeps the heap that was read, in place of the oldest ones.
    fn keep(&mut self, blocks: &FileBlocks) {
        let mut heap = std::mem::take(&mut self.heap);
        heap.list_objects(blocks);
        self.kept.push_back(heap);
        let mut bytes: usize = self.kept.iter().map(|heap| heap.bytes.len()).sum();
        while bytes > KEPT_BYTES_MAX && self.kept.len() > 1 {
            self.heap = self.kept.pop_front().unwrap_or_default();
            bytes -= self.heap.bytes.len();
        }
    }

    /// Passes on the object that the next field refers to.
    fn send_object(
        &mut self,
        blocks: &FileBlocks,
        sent_bytes: &mut u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some(reference) = self.reference(blocks)? else { return Ok(()) };
        self.next += 1;
        let object = self.kept_heap(reference.address).and_then(|heap| heap.object(&reference));
        let Some(object) = object else {
            return Err(FormatError::new(reference.address, "no object where a reference says"));
        };
        if !object.is_empty() {
            sink.payload(*sent_bytes, object)?;
            *sent_bytes += object.len() as u64;
        }
        Ok(())
    }
}

impl Heap {
    fn object(&self, reference: &Reference) -> Option<&[u8]> {
        self.bytes.get(self.objects.get(reference.object as usize)?.clone())
    }

    /// Finds the objects of a complete heap.
    fn list_objects(&mut self, blocks: &FileBlocks) {
        self.objects.clear();
        let head_bytes = 8 + blocks.length_bytes;
        let mut start = head_bytes;
        while let Some(head) = self.bytes.get(start..start + head_bytes) {
            let number = usize::from(u16::from_le_bytes([head[0], head[1]]));
            let bytes = length(&head[8..], blocks);
            let data = start + head_bytes;
            let end = usize::try_from(bytes).ok().and_then(|bytes| data.checked_add(bytes));
            // Object 0 is the free space at the end.
            let Some(end) = end.filter(|end| number > 0 && *end <= self.bytes.len()) else { break };
            if self.objects.len() <= number {
                self.objects.resize(number + 1, usize::MAX..usize::MAX);
            }
            self.objects[number] = data..end;
            start = data + (end - data).next_multiple_of(8);
        }
    }
}

/// Length of a field: number of items, address of the heap, number of the object.
fn field_bytes(blocks: &FileBlocks) -> usize {
    8 + blocks.address_bytes
}

/// A length field at the start of `bytes`, which has at least 8 bytes.
fn length(bytes: &[u8], blocks: &FileBlocks) -> u64 {
    let field = bytes.get(..blocks.length_bytes).unwrap_or_default();
    field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
