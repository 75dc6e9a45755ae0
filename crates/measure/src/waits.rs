//! The waits of a run's accelerators: the one split that verdict, answers and figures share. No judgement here.

use crate::derived::Derived;
use crate::metric::{
    BARRIER_S, STALL_CLIENT, STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ, STALL_SKEW,
};
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Cause of waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum WaitCause {
        /// Opening, asking lengths and closing.
        Open = "open",
        /// Reading.
        Read = "read",
        /// Checking and decoding.
        Decode = "decode",
        /// The client's own work.
        Client = "client",
        /// Others that take longer, for another reason than these.
        Skew = "skew",
    }
}

/// The part of the wait that decides, beside all of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitPart {
    /// The cause that was waited for.
    pub cause: WaitCause,
    /// Its share.
    pub percent: f64,
}

/// Seconds that an accelerator waited over all steps of the run, in the mean, by their cause: for data, its own or that of the last of the
/// step, and for others. Queueing is for what the workers were busy with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Opening, asking lengths and closing.
    pub open_s: f64,
    /// Reading.
    pub read_s: f64,
    /// Checking and decoding, but for what the client owes anyhow.
    pub decode_s: f64,
    /// The client's own work, decoding that counts as such among it.
    pub client_s: f64,
    /// The part of it for the training's own process, which starts workers and takes batches over.
    pub receive_s: f64,
    /// Others that took longer. Of records that do not tell who came last: all waits for others.
    pub skew_s: f64,
}

impl Waits {
    /// The waits of a run; `None` where no step was finished.
    pub fn new(derived: &Derived) -> Option<Self> {
        if derived.steps == 0 {
            return None;
        }
        let (io, queue_s) = (&derived.io, derived.value(&STALL_QUEUE)?);
        let busy_ns = (io.open_ns + io.read_ns + io.decode_ns + io.client_ns).max(1) as f64;
        let of_queue_s = |ns: u64| queue_s * ns as f64 / busy_ns;
        let [open_s, read_s, decode_s] =
            [(&STALL_OPEN, io.open_ns), (&STALL_READ, io.read_ns), (&STALL_DECODE, io.decode_ns)]
                .map(|(stall, ns)| Some(derived.value(stall)? + of_queue_s(ns)));
        let client_s = derived.value(&STALL_CLIENT).unwrap_or(0.0) + of_queue_s(io.client_ns);
        let accelerators = f64::from(derived.record.plan.accelerators.max(1));
        let receive_s = io.receive_ns as f64 / 1e9 / accelerators;
        let skew_s = derived.value(&STALL_SKEW).or(derived.value(&BARRIER_S));
        let owed_s = decode_s? * clients_share(derived);
        Some(Waits {
            open_s: open_s?,
            read_s: read_s?,
            decode_s: decode_s? - owed_s,
            client_s: client_s + owed_s,
            receive_s: receive_s.min(client_s),
            skew_s: skew_s?,
        })
    }

    /// For data.
    pub fn data_s(&self) -> f64 {
        self.open_s + self.read_s + self.decode_s + self.client_s
    }

    /// Whether most of what was waited for of the client is for the training's own process, to which more workers are no help.
    pub fn are_for_training(&self) -> bool {
        self.client_s < 2.0 * self.receive_s
    }

    /// Others, where they were waited for longer than data was; else the part of the wait for data that is longest. `None`: there was no
    /// wait.
    pub fn main_part(&self) -> Option<WaitPart> {
        // Of parts that are equally long the last.
        let for_data = [
            (WaitCause::Read, self.read_s),
            (WaitCause::Open, self.open_s),
            (WaitCause::Decode, self.decode_s),
            (WaitCause::Client, self.client_s),
        ];
        let (cause, part_s) = if self.data_s() < self.skew_s {
            (WaitCause::Skew, self.skew_s)
        } else {
            for_data.into_iter().reduce(|most, one| if one.1 < most.1 { most } else { one })?
        };
        let percent = 100.0 * part_s / (self.data_s() + self.skew_s);
        (part_s > 0.0).then_some(WaitPart { cause, percent })
    }
}

/// Share of decoding that would be the client's work if the loader did none of it: processor time that counted towards what it owes.
fn clients_share(derived: &Derived) -> f64 {
    let (io, loader) = (&derived.io, &derived.record.plan.loader);
    let Some(client) = &loader.client else { return 0.0 };
    let samples = io.samples as f64;
    let batches = samples / loader.batch_size.max(1) as f64;
    let owed_ns = 1e9 * client.worker_s(samples, batches, io.read_bytes as f64);
    (owed_ns.min(io.client_own_ns as f64) / io.decode_ns.max(1) as f64).min(1.0)
}
