//! Thrift's compact protocol (`thrift-compact-protocol.md`), as far as parquet's metadata needs it: reads in place,
//! without allocation, and stops at whatever the bytes cannot be.

/// The deepest nesting of values that are passed over; parquet's own goes to about 8.
const DEPTH_MAX: u32 = 24;

/// Reason that a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThriftError {
    /// The bytes end within it.
    Ends,
    /// No bytes that follow could make it whole.
    Broken,
}

use ThriftError::{Broken, Ends};

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Byte,
    /// An integer of 16, 32 or 64 bits.
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn from_code(code: u8) -> Result<Self, ThriftError> {
        Ok(match code {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4..=6 => Kind::Int,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return Err(Broken),
        })
    }
}

/// Reads one value after another.
#[derive(Clone, Copy)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Hand each field of a struct to `field`, which reads it or passes over it.
    pub(super) fn fields(
        &mut self,
        field: &mut dyn FnMut(&mut Self, i16, Kind) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let kind = Kind::from_code(head & 15)?;
            id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).map_err(|_| Broken)?,
                step => id.checked_add(i16::from(step)).ok_or(Broken)?,
            };
            field(self, id, kind)?;
        }
    }

    /// Hand each element of a list of `kind` to `element`.
    pub(super) fn list(
        &mut self,
        kind: Kind,
        element: &mut dyn FnMut(&mut Self) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        let (count, found) = self.list_head()?;
        if found != kind && count > 0 {
            return Err(Broken);
        }
        (0..count).try_for_each(|_| element(self))
    }

    pub(super) fn int(&mut self, kind: Kind) -> Result<i64, ThriftError> {
        match kind {
            Kind::Int => self.zigzag(),
            _ => Err(Broken),
        }
    }

    pub(super) fn bool(kind: Kind) -> Result<bool, ThriftError> {
        match kind {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(Broken),
        }
    }

    pub(super) fn binary(&mut self, kind: Kind) -> Result<&'b [u8], ThriftError> {
        if kind != Kind::Binary {
            return Err(Broken);
        }
        let len = usize::try_from(self.varint()?).map_err(|_| Broken)?;
        self.take(len)
    }

    /// A struct where one is due.
    pub(super) fn inner(
        &mut self,
        kind: Kind,
        field: &mut dyn FnMut(&mut Self, i16, Kind) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        if kind != Kind::Struct {
            return Err(Broken);
        }
        self.fields(field)
    }

    /// Pass over a field's value.
    pub(super) fn skip(&mut self, kind: Kind) -> Result<(), ThriftError> {
        self.skip_at(kind, 0)
    }

    fn skip_at(&mut self, kind: Kind, depth: u32) -> Result<(), ThriftError> {
        if depth > DEPTH_MAX {
            return Err(Broken);
        }
        match kind {
            Kind::True | Kind::False => {}
            Kind::Byte => _ = self.byte()?,
            Kind::Int => _ = self.varint()?,
            Kind::Double => _ = self.take(8)?,
            Kind::Uuid => _ = self.take(16)?,
            Kind::Binary => _ = self.binary(kind)?,
            Kind::Struct => self.fields(&mut |r, _, kind| r.skip_at(kind, depth + 1))?,
            Kind::List => {
                let (count, kind) = self.list_head()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth + 1))?;
            }
            Kind::Map => {
                let count = self.varint()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    let (key, value) = (Kind::from_code(kinds >> 4)?, Kind::from_code(kinds & 15)?);
                    for _ in 0..count {
                        self.skip_element(key, depth + 1)?;
                        self.skip_element(value, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Outside of structs a truth value is a byte of its own, so each element takes at least one.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<(), ThriftError> {
        match kind {
            Kind::True | Kind::False => self.byte().map(|_| ()),
            _ => self.skip_at(kind, depth),
        }
    }

    fn list_head(&mut self) -> Result<(u64, Kind), ThriftError> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        // An empty list may name no type.
        let kind = if count == 0 { Kind::Byte } else { Kind::from_code(head & 15)? };
        Ok((count, kind))
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let byte = *self.bytes.get(self.at).ok_or(Ends)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, len: usize) -> Result<&'b [u8], ThriftError> {
        let end = self.at.checked_add(len).ok_or(Broken)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Ends)?;
        self.at = end;
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

    fn zigzag(&mut self) -> Result<i64, ThriftError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// Writes one value after another.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    /// The last field of each struct that is open.
    last: Vec<i16>,
}

impl Writer {
    /// A struct that is no field: the whole, or an element of a list.
    pub(super) fn begin(&mut self) {
        self.last.push(0);
    }

    pub(super) fn end(&mut self) {
        self.last.pop();
        self.bytes.push(0);
    }

    pub(super) fn begin_field(&mut self, id: i16) {
        self.field(id, 12);
        self.begin();
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, 5);
        self.zigzag(value.into());
    }

    /// Write the number in 5 bytes, however small it is: the last groups of 7 bits may be 0.
    pub(super) fn wide_i32(&mut self, id: i16, value: i32) {
        self.field(id, 5);
        let zigzag = (value << 1 ^ value >> 31) as u32;
        self.bytes.extend([0, 7, 14, 21].map(|shift| (zigzag >> shift) as u8 | 128));
        self.bytes.push((zigzag >> 28) as u8);
    }

    pub(super) fn i64(&mut self, id: i16, value: u64) {
        self.field(id, 6);
        self.zigzag(value as i64);
    }

    pub(super) fn text(&mut self, id: i16, value: &str) {
        self.field(id, 8);
        self.binary(value);
    }

    pub(super) fn list_of_structs(&mut self, id: i16, count: u64) {
        self.list(id, 12, count);
    }

    pub(super) fn list_of_ints(&mut self, id: i16, values: &[i32]) {
        self.list(id, 5, values.len() as u64);
        values.iter().for_each(|&value| self.zigzag(value.into()));
    }

    pub(super) fn list_of_texts(&mut self, id: i16, values: &[&str]) {
        self.list(id, 8, values.len() as u64);
        values.iter().for_each(|value| self.binary(value));
    }

    fn list(&mut self, id: i16, code: u8, count: u64) {
        self.field(id, 9);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | code);
        } else {
            self.bytes.push(0xf0 | code);
            self.varint(count);
        }
    }

    /// Fields come in ascending order, at most 15 apart.
    fn field(&mut self, id: i16, code: u8) {
        if let Some(last) = self.last.last_mut() {
            self.bytes.push(((id - *last) as u8) << 4 | code);
            *last = id;
        }
    }

    fn binary(&mut self, value: &str) {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    fn zigzag(&mut self, value: i64) {
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
