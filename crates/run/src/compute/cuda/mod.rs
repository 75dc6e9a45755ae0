//! Compute on NVIDIA GPUs: a copy of the batch's size from pinned memory, then a kernel that takes the rest of the step's time. This
//! file assigns GPUs and calibrates; the calls of NVIDIA's driver are in `driver.rs`.

mod driver;

use self::driver::{Driver, Gpu};
use super::{DeviceSetup, Devices};
use crate::clock::Clock;
use feedrate_spec::catalog::{Ability, Member};

/// Number of empty steps that are timed for calibration. Their median counts, since the first ones wake the GPU.
const CALIBRATION_STEPS: usize = 15;

pub(super) static MEMBER: Member = Member {
    name: "cuda",
    summary: "a copy of the batch's size and a kernel of the step's time, on NVIDIA GPUs; the accelerators take them in turn",
    abilities: &[Ability::NeedsDevices],
};

/// Returns the number of GPUs that the driver lists.
pub(super) fn count() -> Result<u32, String> {
    match Driver::open()?.devices()? {
        0 => Err("NVIDIA's driver shows no GPU".into()),
        count => Ok(count),
    }
}

pub(super) fn open(setup: DeviceSetup) -> Result<Box<dyn Devices>, String> {
    let driver = Driver::open()?;
    let available = driver.devices()?;
    let gpus = available.min(setup.accelerators);
    if gpus == 0 {
        return Err("NVIDIA's driver shows no GPU".into());
    }
    let mut opened = Vec::new();
    for number in 0..gpus {
        let lanes = (number..setup.accelerators).step_by(gpus as usize);
        let device = (setup.earlier_accelerators + number) % available;
        let gpu = Gpu::open(&driver, device, setup.batch_bytes, lanes, &setup.done)?;
        opened.push(CalibratedGpu { overhead_ns: overhead_ns(&gpu, setup.clock)?, gpu });
    }
    Ok(Box::new(Cuda { gpus: opened }))
}

/// The opened GPUs. With `n` GPUs, accelerator `a` is lane `a / n` of GPU `a % n`.
struct Cuda {
    gpus: Vec<CalibratedGpu>,
}

struct CalibratedGpu {
    gpu: Gpu,
    /// Time of a step without its kernel: starting it, copying the batch, and the notification of the end.
    overhead_ns: u64,
}

impl Devices for Cuda {
    fn begin(&mut self, accelerator: u32, step_ns: u64) -> Result<(), String> {
        let (lane, number) = self.lane_and_gpu(accelerator);
        let CalibratedGpu { gpu, overhead_ns } = &self.gpus[number];
        // A step cannot be shorter than its copy; the measured compute time is then the time of the copy.
        gpu.begin(lane, step_ns.saturating_sub(*overhead_ns))?;
        gpu.notify_end(lane)
    }

    fn check(&mut self) -> Result<(), String> {
        self.gpus.iter().try_for_each(|calibrated| calibrated.gpu.check())
    }
}

impl Cuda {
    fn lane_and_gpu(&self, accelerator: u32) -> (usize, usize) {
        (accelerator as usize / self.gpus.len(), accelerator as usize % self.gpus.len())
    }
}

/// Measures the median time of steps with a kernel that ends at once.
fn overhead_ns(gpu: &Gpu, clock: Clock) -> Result<u64, String> {
    let mut steps_ns = [0; CALIBRATION_STEPS];
    for step_ns in &mut steps_ns {
        let start_ns = clock.now_ns();
        gpu.begin(0, 0)?;
        gpu.wait(0)?;
        *step_ns = clock.now_ns() - start_ns;
    }
    steps_ns.sort_unstable();
    Ok(steps_ns[CALIBRATION_STEPS / 2])
}
