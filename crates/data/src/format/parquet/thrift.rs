//! The compact protocol of Thrift (`thrift-compact-protocol.md`), as far as parquet's metadata needs it. Reads without
//! allocation and stops at invalid bytes.

/// Upper limit on the nesting of values. Parquet's metadata has a depth of about 8.
const DEPTH_MAX: usize = 24;

/// Type codes.
const TRUE: u8 = 1;
pub(super) const I32: u8 = 5;
const I64: u8 = 6;
pub(super) const BINARY: u8 = 8;
const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Reason why a value cannot be read.
#[derive(Debug)]
pub(super) enum ThriftError {
    /// The bytes end within the value.
    Ends,
    /// The bytes are invalid.
    Broken,
    /// The value is valid Thrift but is refused for this reason.
    Refused(String),
}

use ThriftError::{Broken, Ends};

/// A value that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThriftValue<'b> {
    Bool(bool),
    /// An integer of 16, 32 or 64 bits.
    Int(i64),
    Binary(&'b [u8]),
    /// The end of a struct.
    End,
}

impl ThriftValue<'_> {
    /// A number that must not be negative.
    pub(super) fn unsigned(self) -> Result<u64, ThriftError> {
        match self {
            ThriftValue::Int(value) => u64::try_from(value).map_err(|_| Broken),
            _ => Err(Broken),
        }
    }
}

/// Receives values with the ids of the fields that contain them. Elements of a list have the ids of the list.
type ValueVisitor<'t, 'b> = dyn FnMut(&[i16], ThriftValue<'b>) -> Result<(), ThriftError> + 't;

/// Reads the struct at the start of `bytes`, passes its values to `visit`, and returns its length.
pub(super) fn read<'b>(
    bytes: &'b [u8],
    visit: &mut ValueVisitor<'_, 'b>,
) -> Result<usize, ThriftError> {
    let mut reader = ThriftReader { bytes, offset: 0, path: [0; DEPTH_MAX] };
    reader.read_fields(0, visit)?;
    Ok(reader.offset)
}

struct ThriftReader<'b> {
    bytes: &'b [u8],
    offset: usize,
    path: [i16; DEPTH_MAX],
}

impl<'b> ThriftReader<'b> {
    /// Reads a struct nested in `depth` fields.
    fn read_fields(
        &mut self,
        depth: usize,
        visit: &mut ValueVisitor<'_, 'b>,
    ) -> Result<(), ThriftError> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return visit(&self.path[..depth], ThriftValue::End);
            }
            id = match head >> 4 {
                0 => i16::try_from(zigzag(self.varint()?)).map_err(|_| Broken)?,
                step => id.checked_add(i16::from(step)).ok_or(Broken)?,
            };
            *self.path.get_mut(depth).ok_or(Broken)? = id;
            match head & 15 {
                code @ 1..=2 => visit(&self.path[..=depth], ThriftValue::Bool(code == TRUE))?,
                code => self.read_value(code, depth + 1, depth + 1, visit)?,
            }
        }
    }

    /// Reads a value nested in `depth` fields and `nested` values.
    fn read_value(
        &mut self,
        code: u8,
        depth: usize,
        nested: usize,
        visit: &mut ValueVisitor<'_, 'b>,
    ) -> Result<(), ThriftError> {
        if nested > DEPTH_MAX {
            return Err(Broken);
        }
        match code {
            // In lists and maps a boolean is one byte, so each element takes at least one byte.
            1..=3 => _ = self.bytes(1)?,
            4..=6 => {
                let value = zigzag(self.varint()?);
                visit(&self.path[..depth], ThriftValue::Int(value))?;
            }
            7 => _ = self.bytes(8)?,
            BINARY => {
                let len = self.varint()?;
                let bytes = self.bytes(len)?;
                visit(&self.path[..depth], ThriftValue::Binary(bytes))?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let short_count = u64::from(head >> 4);
                let count = if short_count == 15 { self.varint()? } else { short_count };
                for _ in 0..count {
                    self.read_value(head & 15, depth, nested + 1, visit)?;
                }
            }
            11 => {
                let count = self.varint()?;
                let codes = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.read_value(codes >> 4, depth, nested + 1, visit)?;
                    self.read_value(codes & 15, depth, nested + 1, visit)?;
                }
            }
            STRUCT => self.read_fields(depth, visit)?,
            13 => _ = self.bytes(16)?,
            _ => return Err(Broken),
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        Ok(self.bytes(1)?[0])
    }

    fn bytes(&mut self, len: u64) -> Result<&'b [u8], ThriftError> {
        let len = usize::try_from(len).map_err(|_| Broken)?;
        let end = self.offset.checked_add(len).ok_or(Broken)?;
        let bytes = self.bytes.get(self.offset..end).ok_or(Ends)?;
        self.offset = end;
        Ok(bytes)
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(Broken)
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Writes one value after another.
#[derive(Default)]
pub(super) struct ThriftWriter {
    pub(super) bytes: Vec<u8>,
    /// Id of the last field in each open struct.
    last: Vec<i16>,
}

impl ThriftWriter {
    /// Begins a struct that is not a field: the outermost one, or an element of a list.
    pub(super) fn begin(&mut self) {
        self.last.push(0);
    }

    pub(super) fn end(&mut self) {
        self.last.pop();
        self.bytes.push(0);
    }

    pub(super) fn begin_field(&mut self, id: i16) {
        self.field(id, STRUCT);
        self.begin();
    }

    pub(super) fn i32(&mut self, id: i16, value: i64) {
        self.field(id, I32);
        self.zigzag(value);
    }

    /// Writes a number in 5 bytes, regardless of its value. The last groups of 7 bits may be 0.
    pub(super) fn wide_i32(&mut self, id: i16, value: i64) {
        self.field(id, I32);
        let zigzag = (value << 1 ^ value >> 63) as u32;
        self.bytes.extend([0, 7, 14, 21].map(|shift| (zigzag >> shift) as u8 | 128));
        self.bytes.push((zigzag >> 28) as u8);
    }

    pub(super) fn i64(&mut self, id: i16, value: u64) {
        self.field(id, I64);
        self.zigzag(value as i64);
    }

    pub(super) fn text(&mut self, id: i16, value: &str) {
        self.field(id, BINARY);
        self.binary(value);
    }

    /// Writes the head of a list of `count` values, which the caller writes next.
    pub(super) fn list(&mut self, id: i16, code: u8, count: u64) {
        self.field(id, LIST);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | code);
        } else {
            self.bytes.push(0xf0 | code);
            self.varint(count);
        }
    }

    /// Writes the head of a field. Fields must have ascending ids, at most 15 apart.
    fn field(&mut self, id: i16, code: u8) {
        if let Some(last) = self.last.last_mut() {
            self.bytes.push(((id - *last) as u8) << 4 | code);
            *last = id;
        }
    }

    pub(super) fn binary(&mut self, value: &str) {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    pub(super) fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 128 {
            self.bytes.push(value as u8 | 128);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
