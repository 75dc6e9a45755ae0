//! Samples the GPUs of the machine with NVML, which is optional and opened at run time.

use feedrate_measure::record::timeline::GpuSample;
use feedrate_spec::units;
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
    Ok(Box::new(NvmlGpus::open()?))
}

/// Describes the GPUs that NVML lists: `4 × NVIDIA GH200, 120 GB each`. May take seconds if the driver has to be loaded.
///
/// # Errors
/// As [`nvml_gpus`].
pub fn describe_gpus() -> Result<String, String> {
    let gpus = NvmlGpus::open()?;
    let installed = gpus.devices().map(|gpu| InstalledGpu {
        name: gpu.as_ref().and_then(|gpu| gpu.name().ok()),
        memory_bytes: gpu.and_then(|gpu| Some(gpu.memory_info().ok()?.total)),
    });
    Ok(describe(&installed.collect::<Vec<_>>()))
}

/// A GPU of the machine. `None` means unknown.
#[derive(PartialEq)]
struct InstalledGpu {
    name: Option<String>,
    memory_bytes: Option<u64>,
}

/// The number, name and memory of each kind of GPU.
fn describe(installed: &[InstalledGpu]) -> String {
    let mut kinds: Vec<&InstalledGpu> = Vec::new();
    for gpu in installed {
        if !kinds.contains(&gpu) {
            kinds.push(gpu);
        }
    }
    let texts = kinds.into_iter().map(|kind| {
        let count = installed.iter().filter(|gpu| *gpu == kind).count();
        let name = kind.name.as_deref().unwrap_or("GPU of unknown model");
        let each = if count == 1 { "" } else { " each" };
        let memory =
            kind.memory_bytes.map_or("unknown memory".into(), |bytes| units::bytes(bytes) + each);
        format!("{count} × {name}, {memory}")
    });
    texts.collect::<Vec<_>>().join("; ")
}

struct NvmlGpus {
    nvml: Nvml,
    count: u32,
}

impl NvmlGpus {
    fn open() -> Result<Self, String> {
        let nvml = Nvml::init().map_err(|error| format!("NVML cannot be used: {error}"))?;
        match nvml.device_count() {
            Ok(0) => Err("NVML lists no GPU".into()),
            Ok(count) => Ok(NvmlGpus { nvml, count }),
            Err(error) => Err(format!("NVML cannot count the GPUs: {error}")),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_by_model_and_memory() {
        let gpu = |name: &str, gigabytes: u64| InstalledGpu {
            name: Some(name.into()),
            memory_bytes: Some(gigabytes * 1_000_000_000),
        };
        let check = |installed: &[InstalledGpu], expected: &str| {
            assert_eq!(describe(installed), expected);
        };
        check(&[(); 4].map(|()| gpu("GH200", 120)), "4 × GH200, 120 GB each");
        check(&[gpu("H100", 80)], "1 × H100, 80 GB");
        let mixed = [gpu("H100", 80), gpu("A100", 40), gpu("H100", 80)];
        check(&mixed, "2 × H100, 80 GB each; 1 × A100, 40 GB");
        let unknown = InstalledGpu { name: None, memory_bytes: None };
        check(&[unknown], "1 × GPU of unknown model, unknown memory");
    }
}
