//! A channel beside MPI that tells of ranks that die, give up or do not come. Silent while all goes well: a closed connection
//! is how a death is seen, on any MPI and under any launcher.
//!
//! Rank 0 is the hub: it listens on TCP, and tells all what one rank tells, or does not tell any more. Each process has one
//! thread for it, which sleeps.

mod addresses;
mod hub;
mod message;
mod spoke;
mod state;

pub(super) use state::State;

use self::hub::Hub;
use self::message::Meeting;
use self::spoke::Spoke;
use super::link::{Late, Link};
use super::place::{Places, share};
use crate::comm::{CommError, End};
use std::time::Duration;

/// What a rank says to the others.
pub(super) enum Voice {
    /// Of rank 0.
    Hub(Hub),
    /// Of another.
    Spoke(Spoke),
    /// Of a rank that could not reach rank 0: why.
    None(String),
}

/// Bring the ranks together. Collective.
pub(super) fn begin(link: &Link, places: &Places) -> Result<Voice, CommError> {
    let refused = |error: std::io::Error| CommError::Library {
        call: "the channel between ranks",
        reason: error.to_string(),
    };
    let mut hub = None;
    let mut meeting = None;
    if link.rank == 0 {
        let (own, place) = Hub::begin(link, places).map_err(refused)?;
        (hub, meeting) = (Some(own), Some(place));
    }
    let meeting: Option<Meeting> = share(link, meeting, |all| all.into_iter().flatten().next())?;
    let voice = match (hub, meeting) {
        (Some(hub), _) => Voice::Hub(hub),
        (None, Some(meeting)) => Spoke::begin(link, places, &meeting)
            .map_or_else(|error| Voice::None(error.to_string()), Voice::Spoke),
        (None, None) => Voice::None("rank 0 does not listen".to_owned()),
    };
    // None may leave before all have come.
    link.barrier(Late::Ends)?;
    Ok(voice)
}

impl Voice {
    /// Tell all that this rank goes no further.
    pub(super) fn give_up(&self, end: End) {
        match self {
            Voice::Hub(hub) => hub.give_up(end),
            Voice::Spoke(spoke) => spoke.give_up(end),
            Voice::None(_) => {}
        }
    }

    /// Ask who has not come to the operation that this rank has waited in for so long.
    pub(super) fn late(&self, operation: u64, waited: Duration, late: Late) {
        match self {
            Voice::Hub(hub) => hub.late(operation, waited, late),
            Voice::Spoke(spoke) => spoke.late(operation, waited, late),
            Voice::None(_) => {}
        }
    }

    /// Take leave, and wait a little for the others to do so where there was a failure.
    pub(super) fn leave(&self, orderly: bool) {
        match self {
            Voice::Hub(hub) => hub.leave(orderly),
            Voice::Spoke(spoke) => spoke.leave(orderly),
            Voice::None(_) => {}
        }
    }

    /// Why this rank's death would not be seen, if so.
    pub(super) fn unheard(&self) -> Option<&str> {
        match self {
            Voice::None(why) => Some(why),
            _ => None,
        }
    }
}
