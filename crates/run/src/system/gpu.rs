//! Samples the GPUs of the machine with NVML, which is optional and opened at run time.

use feedrate_measure::record::timeline::GpuSample;
use nvml_wrapper::{Device, Nvml};

/// GPUs that can be sampled.
pub trait Gpus: Send {
    /// Returns the models.
    fn names(&self) -> Vec<String>;

    /// Samples each GPU, in the order of `names`. Values that a GPU does not report are unknown.
    fn sample(&mut self, samples: &mut Vec<GpuSample>);
}

/// Function that opens the GPUs, or returns the reason why there are none. May take seconds if the driver has to be loaded.
pub type OpenGpus = fn() -> Result<Box<dyn Gpus>, String>;

/// Opens the GPUs that NVML lists.
///
/// # Errors
/// Returns the reason why NVML cannot be used, or that it lists no GPU.
pub fn nvml_gpus() -> Result<Box<dyn Gpus>, String> {
    let nvml = Nvml::init().map_err(|error| format!("NVML cannot be used: {error}"))?;
    match nvml.device_count() {
        Ok(0) => Err("NVML lists no GPU".into()),
        Ok(count) => Ok(Box::new(NvmlGpus { nvml, count })),
        Err(error) => Err(format!("NVML cannot count the GPUs: {error}")),
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

    fn sample(&mut self, samples: &mut Vec<GpuSample>) {
        samples.clear();
        samples.extend(self.devices().map(|gpu| gpu.as_ref().map(sample).unwrap_or_default()));
    }
}

fn sample(gpu: &Device<'_>) -> GpuSample {
    GpuSample {
        utilisation_percent: gpu.utilization_rates().ok().map(|rates| u64::from(rates.gpu)),
        memory_bytes: gpu.memory_info().ok().map(|memory| memory.used),
        power_mw: gpu.power_usage().ok().map(u64::from),
    }
}
