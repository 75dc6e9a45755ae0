//! Lets `zune-jpeg` read a complete file in memory. The crate's own cursor copies byte by byte through
//! `std::io::Read`, which takes a sixth of the decoding time.

use zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZSeekFrom};

pub(super) struct FileBytes<'f> {
    bytes: &'f [u8],
    /// Position, which may be beyond the end of the file.
    offset: usize,
}

impl<'f> FileBytes<'f> {
    pub(super) fn new(bytes: &'f [u8]) -> Self {
        FileBytes { bytes, offset: 0 }
    }

    fn rest(&self) -> &'f [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }
}

impl ZByteReaderTrait for FileBytes<'_> {
    #[inline(always)]
    fn read_byte_no_error(&mut self) -> u8 {
        let byte = self.bytes.get(self.offset).copied().unwrap_or(0);
        self.offset += 1;
        byte
    }

    #[inline(always)]
    fn read_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        self.peek_exact_bytes(buffer)?;
        self.offset += buffer.len();
        Ok(())
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        let count = self.peek_bytes(buffer)?;
        self.offset += count;
        Ok(count)
    }

    fn peek_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        let count = self.rest().len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest()[..count]);
        Ok(count)
    }

    #[inline(always)]
    fn peek_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        match self.bytes.get(self.offset..self.offset + buffer.len()) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(ZByteIoError::NotEnoughBytes(self.rest().len(), buffer.len())),
        }
        Ok(())
    }

    #[inline(always)]
    fn z_seek(&mut self, from: ZSeekFrom) -> Result<u64, ZByteIoError> {
        let (origin, distance) = match from {
            ZSeekFrom::Start(distance) => (0, i64::try_from(distance)?),
            ZSeekFrom::End(distance) => (self.bytes.len(), distance),
            ZSeekFrom::Current(distance) => (self.offset, distance),
        };
        self.offset = usize::try_from((origin as i64).saturating_add(distance))?;
        Ok(self.offset as u64)
    }

    #[inline(always)]
    fn is_eof(&mut self) -> Result<bool, ZByteIoError> {
        Ok(self.offset >= self.bytes.len())
    }

    fn z_position(&mut self) -> Result<u64, ZByteIoError> {
        Ok(self.offset as u64)
    }

    fn read_remaining(&mut self, sink: &mut Vec<u8>) -> Result<usize, ZByteIoError> {
        let rest = self.rest();
        sink.extend_from_slice(rest);
        self.offset += rest.len();
        Ok(rest.len())
    }
}
