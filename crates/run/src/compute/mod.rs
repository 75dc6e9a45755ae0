//! Carries out the compute of steps: one file per kind, one row in [`COMPUTES`].
//!
//! The engine draws the length of each step; then the driver waits for as long, or a kind that has devices carries the step out
//! on them. To add one: copy `sleep.rs`, or `cuda` where there are devices, add its `mod` line and its row.

mod none;
mod sleep;
mod cuda;

use crate::clock::Clock;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::TrainPlan;
use feedrate_spec::workload::TimeSpec;
use std::sync::Arc;

/// Devices that carry steps out.
pub trait Devices: Send {
    /// Begin a step of an accelerator that is to last `step_ns`. It is told to [`DeviceSetup::done`] when it is over; nobody waits here.
    ///
    /// # Errors
    /// The device refused, in words.
    fn begin(&mut self, accelerator: u32, step_ns: u64) -> Result<(), String>;

    /// See whether all that was begun can still end.
    ///
    /// # Errors
    /// A device has failed: what was begun on it never ends.
    fn check(&mut self) -> Result<(), String>;
}

/// The work that devices are opened for.
pub struct DeviceSetup {
    /// Accelerators of other processes on this machine that take devices before these.
    pub before: u32,
    /// Accelerators, which share the devices in turn.
    pub accelerators: u32,
    /// Copied to the device in each step.
    pub batch_bytes: u64,
    /// The run's clock, for calibration.
    pub clock: Clock,
    /// Told the accelerator whose step is over, from any thread.
    pub done: Arc<dyn Fn(u32) + Send + Sync>,
}

/// A row of the table.
pub struct ComputeKind {
    /// Name, summary, abilities.
    pub member: &'static Member,
    devices: Option<OnDevices>,
}

/// How a kind finds and opens its devices.
struct OnDevices {
    count: fn() -> Result<u32, String>,
    open: fn(DeviceSetup) -> Result<Box<dyn Devices>, String>,
}

/// Every kind, in the order docs show them.
pub static COMPUTES: &[ComputeKind] = &[
    ComputeKind { member: &none::MEMBER, devices: None },
    ComputeKind { member: &sleep::MEMBER, devices: None },
    ComputeKind {
        member: &cuda::MEMBER,
        devices: Some(OnDevices { count: cuda::count, open: cuda::open }),
    },
];

/// Devices that the compute called `name` can use, or why it can use none; `None` where it needs none.
pub fn count_devices(name: &str) -> Option<Result<u32, String>> {
    on_devices(name).map(|devices| (devices.count)())
}

/// The devices of `plan`; `None` where its steps are waits.
///
/// # Errors
/// They cannot be opened, in words.
pub fn devices(plan: &TrainPlan, setup: DeviceSetup) -> Result<Option<Box<dyn Devices>>, String> {
    if plan.compute == TimeSpec::None {
        return Ok(None);
    }
    let devices = plan.on_devices.as_deref().and_then(on_devices);
    devices.map(|devices| (devices.open)(setup)).transpose()
}

fn on_devices(name: &str) -> Option<&'static OnDevices> {
    COMPUTES.iter().find(|kind| kind.member.name == name)?.devices.as_ref()
}
