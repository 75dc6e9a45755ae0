//! The bytes of the state and nothing else. Incompressible, written in large pieces.

use super::Checkpoint;
use feedrate_data::content::Content;
use feedrate_spec::catalog::Member;
use feedrate_spec::shape::Element;
use std::fs::File;
use std::io::{self, Write};

static MEMBER: Member =
    Member { name: "raw", summary: "the bytes of the state and nothing else", abilities: &[] };

const PIECE_BYTES: usize = 1 << 20;
const SEED: u64 = 10;

/// The member.
#[derive(Debug)]
pub(super) struct Raw;

impl Checkpoint for Raw {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, file: &mut File, bytes: u64) -> io::Result<()> {
        let mut content = Content::new(SEED);
        let mut piece = vec![0; PIECE_BYTES];
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(PIECE_BYTES as u64) as usize;
            content.fill(0, done, Element::Uint8, &mut piece[..now]);
            file.write_all(&piece[..now])?;
            done += now as u64;
        }
        Ok(())
    }
}
