//! Splits the waiting time of a run's accelerators by cause, for verdicts, answers and figures. This module draws no conclusions.

use crate::derived::Derived;
use crate::metric::{
    BARRIER_S, STALL_CLIENT, STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ, STALL_SKEW,
    client_share_of_decoding,
};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Cause of waiting time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum WaitCause {
        /// Opening and closing files and querying their lengths.
        Open = "open",
        /// Reading.
        Read = "read",
        /// Checking and decoding.
        Decode = "decode",
        /// The client's own work.
        Client = "client",
        /// Slower accelerators, apart from the causes above.
        Skew = "skew",
    }
}

/// The main cause of waiting, with its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitPart {
    /// The cause.
    pub cause: WaitCause,
    /// Share of the total waiting time.
    pub percent: f64,
}

/// Mean waiting time of an accelerator over all steps of the run, by cause, in seconds.
///
/// A step waits for its last accelerator. A wait for other accelerators therefore counts as a wait for data if the last accelerator waited for
/// data. Queueing time is distributed over the work of the workers, in proportion to its duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Opening and closing files and querying their lengths.
    pub open_s: f64,
    /// Reading.
    pub read_s: f64,
    /// Checking and decoding that does not count as the client's work.
    pub decode_s: f64,
    /// The client's own work, including decoding that counts as such.
    pub client_s: f64,
    /// The part of `client_s` spent in the training process, which starts workers and receives batches.
    pub receive_s: f64,
    /// Slower accelerators. In records without the last accelerator of each step, all waits for other accelerators.
    pub skew_s: f64,
}

impl Waits {
    /// Computes the waits of a run; `None` if no step was finished.
    pub fn new(derived: &Derived) -> Option<Self> {
        if derived.steps == 0 {
            return None;
        }
        let io = &derived.io;
        let queue_s = derived.value(&STALL_QUEUE)?;
        let busy_ns = (io.open_ns + io.read_ns + io.decode_ns + io.client_ns).max(1) as f64;
        let queue_part_s = |ns: u64| queue_s * ns as f64 / busy_ns;
        let open_s = derived.value(&STALL_OPEN)? + queue_part_s(io.open_ns);
        let read_s = derived.value(&STALL_READ)? + queue_part_s(io.read_ns);
        let loader = &derived.record.plan.loader;
        let client_share = client_share_of_decoding(loader, |count| count(io));
        let decode_queue_s = queue_part_s(io.decode_ns);
        let decode_s = derived.value(&STALL_DECODE)? + decode_queue_s * (1.0 - client_share);
        let client_queue_s = queue_part_s(io.client_ns) + decode_queue_s * client_share;
        let client_s = derived.value(&STALL_CLIENT).unwrap_or(0.0) + client_queue_s;
        let accelerators = f64::from(derived.record.plan.accelerators.max(1));
        let receive_s = io.receive_ns as f64 / 1e9 / accelerators;
        let skew_s = derived.value(&STALL_SKEW).or(derived.value(&BARRIER_S))?;
        Some(Waits {
            open_s,
            read_s,
            decode_s,
            client_s,
            receive_s: receive_s.min(client_s),
            skew_s,
        })
    }

    /// Total wait for data.
    pub fn data_s(&self) -> f64 {
        self.open_s + self.read_s + self.decode_s + self.client_s
    }

    /// Whether most of the client's work was in the training process, where more workers do not help.
    pub fn is_client_in_training_process(&self) -> bool {
        self.client_s < 2.0 * self.receive_s
    }

    /// Finds the main cause: skew if accelerators waited longer for each other than for data, otherwise the largest part of the wait for data.
    /// `None` if there was no wait.
    pub fn main_part(&self) -> Option<WaitPart> {
        // Of equally long parts, the last is chosen.
        let data_parts = [
            (WaitCause::Read, self.read_s),
            (WaitCause::Open, self.open_s),
            (WaitCause::Decode, self.decode_s),
            (WaitCause::Client, self.client_s),
        ];
        let (cause, part_s) = if self.data_s() < self.skew_s {
            (WaitCause::Skew, self.skew_s)
        } else {
            data_parts.into_iter().reduce(
                |longest, part| {
                    if part.1 < longest.1 { longest } else { part }
                },
            )?
        };
        let percent = 100.0 * part_s / (self.data_s() + self.skew_s);
        (part_s > 0.0).then_some(WaitPart { cause, percent })
    }
}
