//! `summary.json` of a run, as it stands there.

use super::json::{Fields, number};
use feedrate_spec::units::MIB;
use serde_json::Value;

/// `summary.json`.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    root: Fields,
}

impl Reported {
    pub(super) fn new(root: Fields) -> Self {
        Reported { root }
    }

    /// Text at `key`.
    pub fn text(&self, key: &str) -> Option<String> {
        self.root.get(key)?.as_str().map(str::to_string)
    }

    /// A count at `key`.
    pub fn count(&self, key: &str) -> Option<u64> {
        let number = number(self.root.get(key)?);
        let is_count = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        is_count.then_some(number as u64)
    }

    /// Numbers at `key`: of a list all, as hosts have an entry each. Those that are none are NaN.
    pub fn numbers(&self, key: &str) -> Vec<f64> {
        match self.root.get(key) {
            Some(Value::Array(items)) => items.iter().map(number).collect(),
            value => value.map(number).into_iter().collect(),
        }
    }

    /// The name of the processor, as `/proc/cpuinfo` of x86 has it.
    pub fn cpu_model(&self) -> Option<String> {
        self.root.get("host_cpuinfo")?.get("model name")?.as_str().map(str::to_string)
    }

    /// `MemTotal` of the host of rank 0.
    pub fn memory_gib(&self) -> Option<f64> {
        let total = self.root.get("host_meminfo")?.get("MemTotal")?.as_str()?;
        let kib: f64 = total.strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib / f64::from(1 << 20))
    }

    /// The entries of `metric`.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &Value)> {
        let metrics = self.root.get("metric").and_then(Value::as_object).into_iter().flatten();
        metrics.map(|(name, value)| (name.as_str(), value))
    }

    /// All of `metric` that is one finite number.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        let all = self.metrics().map(|(name, value)| (name, number(value)));
        all.filter(|(_, number)| number.is_finite())
    }

    /// A finite number of `metric`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.any_metric(name).filter(|value| value.is_finite())
    }

    /// A number of `metric`, even one that is none.
    pub fn any_metric(&self, name: &str) -> Option<f64> {
        Some(number(self.root.get("metric")?.get(name)?))
    }

    /// A list of `metric`.
    pub fn list(&self, name: &str) -> Option<Vec<f64>> {
        let items = self.root.get("metric")?.get(name)?.as_array()?;
        Some(items.iter().map(number).collect())
    }

    /// Bytes of a sample by the two rates of training.
    pub fn sample_bytes(&self) -> Option<f64> {
        let samples = self.metric("train_throughput_mean_samples_per_second");
        let mib = self.metric("train_io_mean_MB_per_second")?;
        Some(mib * MIB / samples.filter(|rate| *rate != 0.0)?)
    }
}
