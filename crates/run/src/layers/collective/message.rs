//! Requests of a member to its reader, and the answers: numbers of fixed length, then bytes of a length they say.

use serde::{Deserialize, Serialize};

pub(super) const REQUEST_BYTES: usize = 32;
pub(super) const ANSWER_BYTES: usize = 16;
/// The request of a member that asks no more.
pub(super) const LEAVE: [u8; REQUEST_BYTES] = Request::Leave.bytes();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Open a file, whose path of so many bytes follows. Answered by its number.
    Open { path_bytes: u64 },
    /// Answered by its length.
    Length { file: u64 },
    /// Answered by how many bytes follow.
    Read { file: u64, offset: u64, len: u64 },
    /// Not answered.
    Close { file: u64 },
    /// Not answered, and the last.
    Leave,
}

impl Request {
    pub(super) const fn bytes(self) -> [u8; REQUEST_BYTES] {
        let numbers = match self {
            Request::Open { path_bytes } => [1, path_bytes, 0, 0],
            Request::Length { file } => [2, file, 0, 0],
            Request::Read { file, offset, len } => [3, file, offset, len],
            Request::Close { file } => [4, file, 0, 0],
            Request::Leave => [5, 0, 0, 0],
        };
        let mut bytes = [0; REQUEST_BYTES];
        let mut at = 0;
        while at < REQUEST_BYTES {
            bytes[at] = numbers[at / 8].to_le_bytes()[at % 8];
            at += 1;
        }
        bytes
    }

    /// `None` where it is none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [kind, file, offset, len] = numbers(bytes)?;
        Some(match kind {
            1 => Request::Open { path_bytes: file },
            2 => Request::Length { file },
            3 => Request::Read { file, offset, len },
            4 => Request::Close { file },
            5 => Request::Leave,
            _ => return None,
        })
    }
}

/// A number, or that so many bytes of a [`Refusal`] follow.
pub(super) type Answer = Result<u64, u64>;

pub(super) fn answer_bytes(answer: Answer) -> [u8; ANSWER_BYTES] {
    let numbers = match answer {
        Ok(number) => [0, number],
        Err(bytes) => [1, bytes],
    };
    let mut bytes = [0; ANSWER_BYTES];
    for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        to.copy_from_slice(&u64::to_le_bytes(number));
    }
    bytes
}

pub(super) fn answer_of(bytes: &[u8]) -> Option<Answer> {
    match numbers(bytes)? {
        [0, number] => Some(Ok(number)),
        [1, bytes] => Some(Err(bytes)),
        _ => None,
    }
}

/// The reader's storage refused.
#[derive(Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) path: std::path::PathBuf,
    /// The system's number.
    pub(super) os_error: Option<i32>,
    pub(super) words: String,
}

fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return None;
    }
    let words: &[[u8; 8]; N] = words.try_into().ok()?;
    Some(words.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_understood() {
        for request in [
            Request::Open { path_bytes: 300 },
            Request::Length { file: 1 },
            Request::Read { file: u64::MAX, offset: 1 << 40, len: 7 },
            Request::Close { file: 2 },
            Request::Leave,
        ] {
            assert_eq!(Request::from_bytes(&request.bytes()), Some(request));
        }
        assert_eq!(Request::from_bytes(&[9; REQUEST_BYTES]), None);
        assert_eq!(Request::from_bytes(&[1; 8]), None);
        for answer in [Ok(u64::MAX), Err(20)] {
            assert_eq!(answer_of(&answer_bytes(answer)), Some(answer));
        }
    }
}
