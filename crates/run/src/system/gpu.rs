//! The GPUs of the machine, where NVML is installed: it is opened at run time, and nothing needs it.

use feedrate_measure::record::timeline::GpuSample;
use nvml_wrapper::{Device, Nvml};

/// GPUs that can be looked at.
pub trait Gpus: Send {
    /// Their models.
    fn names(&self) -> Vec<String>;

    /// Look at each now, in the order of names. Unknown is what one does not tell.
    fn look(&mut self, shown: &mut Vec<GpuSample>);
}

/// Opens them, or says why there are none to look at. May take seconds, where a driver has to be woken.
pub type OpenGpus = fn() -> Result<Box<dyn Gpus>, String>;

/// Those that NVIDIA's library knows.
///
/// # Errors
/// The library is not installed, finds no driver, or knows no GPU: in words.
pub fn nvml_gpus() -> Result<Box<dyn Gpus>, String> {
    let nvml = Nvml::init().map_err(|error| format!("NVML cannot be used: {error}"))?;
    match nvml.device_count() {
        Ok(0) => Err("NVML knows no GPU".into()),
        Ok(count) => Ok(Box::new(NvmlGpus { nvml, count })),
        Err(error) => Err(format!("NVML does not say how many GPUs there are: {error}")),
    }
}

struct NvmlGpus {
    nvml: Nvml,
    count: u32,
}

impl NvmlGpus {
    fn devices(&self) -> impl Iterator<Item = Option<Device<'_>>> {
        (0..self.count).map(|i| self.nvml.device_by_index(i).ok())
    }
}

impl Gpus for NvmlGpus {
    fn names(&self) -> Vec<String> {
        self.devices().map(|gpu| gpu?.name().ok()).map(Option::unwrap_or_default).collect()
    }

    fn look(&mut self, shown: &mut Vec<GpuSample>) {
        shown.clear();
        shown.extend(self.devices().map(|gpu| gpu.as_ref().map(sample).unwrap_or_default()));
    }
}

fn sample(gpu: &Device<'_>) -> GpuSample {
    GpuSample {
        utilisation_percent: gpu.utilization_rates().ok().map(|rates| u64::from(rates.gpu)),
        memory_bytes: gpu.memory_info().ok().map(|memory| memory.used),
        power_mw: gpu.power_usage().ok().map(u64::from),
    }
}
