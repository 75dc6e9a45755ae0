//! Steps on NVIDIA GPUs: a copy of the batch's size from pinned memory, then a kernel that lasts for what is left of the step's
//! time. The driver's library is opened at run time; nothing needs it. Decides; what touches the driver is in `driver.rs`.

mod driver;

use self::driver::{Driver, Gpu};
use super::{DeviceSetup, Devices};
use crate::clock::Clock;
use feedrate_spec::catalog::{Ability, Member};

/// Steps of no length that are timed, of which the middle one counts; the first ones wake the GPU.
const TIMED: usize = 15;

pub(super) static MEMBER: Member = Member {
    name: "cuda",
    summary: "a copy of the batch's size and a kernel of the step's time, on NVIDIA GPUs; the accelerators take them in turn",
    abilities: &[Ability::NeedsDevices],
};

/// GPUs that the driver shows.
pub(super) fn count() -> Result<u32, String> {
    match Driver::open()?.devices()? {
        0 => Err("NVIDIA's driver shows no GPU".into()),
        count => Ok(count),
    }
}

pub(super) fn open(setup: DeviceSetup) -> Result<Box<dyn Devices>, String> {
    let driver = Driver::open()?;
    let all = driver.devices()?;
    let gpus = all.min(setup.accelerators);
    if gpus == 0 {
        return Err("NVIDIA's driver shows no GPU".into());
    }
    let mut opened = Vec::new();
    for number in 0..gpus {
        let lanes = (number..setup.accelerators).step_by(gpus as usize);
        let device = (setup.before + number) % all;
        let gpu = Gpu::open(&driver, device, setup.batch_bytes, lanes, &setup.done)?;
        opened.push(Calibrated { overhead_ns: overhead_ns(&gpu, setup.clock)?, gpu });
    }
    Ok(Box::new(Cuda { gpus: opened }))
}

/// Accelerator `a` has opened GPU `a` modulo their number, and is its lane number `a` ÷ their number.
struct Cuda {
    gpus: Vec<Calibrated>,
}

struct Calibrated {
    gpu: Gpu,
    /// Time of a step beside its kernel: to begin it, to copy, and to hear of its end.
    overhead_ns: u64,
}

impl Devices for Cuda {
    fn begin(&mut self, accelerator: u32, step_ns: u64) -> Result<(), String> {
        let (lane, number) = self.place(accelerator);
        let Calibrated { gpu, overhead_ns } = &self.gpus[number];
        // A step shorter than its copy lasts as long as that: what is measured says so.
        gpu.begin(lane, step_ns.saturating_sub(*overhead_ns))?;
        gpu.tell_end(lane)
    }

    fn check(&mut self) -> Result<(), String> {
        self.gpus.iter().try_for_each(|calibrated| calibrated.gpu.check())
    }
}

impl Cuda {
    fn place(&self, accelerator: u32) -> (usize, usize) {
        (accelerator as usize / self.gpus.len(), accelerator as usize % self.gpus.len())
    }
}

/// The middle one of some steps whose kernel has nothing to do.
fn overhead_ns(gpu: &Gpu, clock: Clock) -> Result<u64, String> {
    let mut lasted_ns = [0; TIMED];
    for lasted_ns in &mut lasted_ns {
        let start_ns = clock.now_ns();
        gpu.begin(0, 0)?;
        gpu.wait(0)?;
        *lasted_ns = clock.now_ns() - start_ns;
    }
    lasted_ns.sort_unstable();
    Ok(lasted_ns[TIMED / 2])
}
