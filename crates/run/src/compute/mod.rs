//! Compute kinds: one file per kind, one row in [`COMPUTES`].
//!
//! The engine decides the length of each step. The driver then waits for that time, or a kind with devices runs the step on them. To
//! add a kind: copy `sleep.rs` (or `cuda` for a kind with devices), add its `mod` line and its row.

mod none;
mod sleep;
mod cuda;

use crate::clock::Clock;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::TrainPlan;
use feedrate_spec::workload::TimeSpec;
use std::sync::Arc;

/// Devices that compute steps.
pub trait Devices: Send {
    /// Begins a step that lasts `step_ns` and returns at once. [`DeviceSetup::done`] is called when the step has ended.
    ///
    /// # Errors
    /// Returns the reason why the device refused.
    fn begin(&mut self, accelerator: u32, step_ns: u64) -> Result<(), String>;

    /// Checks that no device has failed.
    ///
    /// # Errors
    /// Returns a description of the failure. Steps that were started on that device never end.
    fn check(&mut self) -> Result<(), String>;
}

/// Parameters for opening devices.
pub struct DeviceSetup {
    /// Number of accelerators in earlier processes on this machine. Devices are assigned to them first.
    pub earlier_accelerators: u32,
    /// Accelerators of this process, assigned to the devices round-robin.
    pub accelerators: u32,
    /// Bytes copied to the device in each step.
    pub batch_bytes: u64,
    /// The run's clock, for calibration.
    pub clock: Clock,
    /// Called with the accelerator whose step has ended, from any thread.
    pub done: Arc<dyn Fn(u32) + Send + Sync>,
}

/// A compute kind.
pub struct ComputeKind {
    /// Name, summary, abilities.
    pub member: &'static Member,
    devices: Option<DeviceFunctions>,
}

/// Functions that find and open the devices of a kind.
struct DeviceFunctions {
    count: fn() -> Result<u32, String>,
    open: fn(DeviceSetup) -> Result<Box<dyn Devices>, String>,
}

/// All kinds, in the order in which the documentation lists them.
pub static COMPUTES: &[ComputeKind] = &[
    ComputeKind { member: &none::MEMBER, devices: None },
    ComputeKind { member: &sleep::MEMBER, devices: None },
    ComputeKind {
        member: &cuda::MEMBER,
        devices: Some(DeviceFunctions { count: cuda::count, open: cuda::open }),
    },
];

/// Returns the number of devices that the compute kind `name` can use, or why it can use none; `None` if it needs none.
pub fn count_devices(name: &str) -> Option<Result<u32, String>> {
    find_devices(name).map(|devices| (devices.count)())
}

/// Opens the devices of `plan`; `None` if its steps are waits.
///
/// # Errors
/// Returns the reason why they cannot be opened.
pub fn devices(plan: &TrainPlan, setup: DeviceSetup) -> Result<Option<Box<dyn Devices>>, String> {
    if plan.compute == TimeSpec::None {
        return Ok(None);
    }
    let devices = plan.on_devices.as_deref().and_then(find_devices);
    devices.map(|devices| (devices.open)(setup)).transpose()
}

fn find_devices(name: &str) -> Option<&'static DeviceFunctions> {
    COMPUTES.iter().find(|kind| kind.member.name == name)?.devices.as_ref()
}
