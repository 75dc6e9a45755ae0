//! A channel beside MPI that tells of ranks that die, give up, are stopped or do not come: a closed connection is how a death is
//! seen, on any MPI and under any launcher, and a beat a second that is not answered how a stop is. A process of the same machine that
//! does not answer is lost only if `/proc` does not show it running: it may get no processor.
//!
//! Rank 0 starts the hub, a thread that listens on TCP and tells all what one rank tells, or does not tell any more. Each rank,
//! the first too, has one connection to it and one thread that listens; all of them sleep between beats.

mod addresses;
mod process;
mod message;
mod hub;
mod channel;

pub(super) use channel::ControlChannel;
pub(super) use hub::Hub;
pub(super) use message::OnTimeout;
