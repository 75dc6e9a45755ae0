//! Gives access to the values of a run's `summary.json` without changing them.

use super::json::{self, Fields, number};
use feedrate_spec::units::MIB;
use serde_json::Value;

/// Size of a sample up to which it is unknown.
const UNKNOWN_SAMPLE_BYTES_MAX: f64 = 1.5;

/// The contents of `summary.json`.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    root: Fields,
}

impl Reported {
    pub(super) fn new(root: Fields) -> Self {
        Reported { root }
    }

    /// Returns the text at `key`.
    pub fn text(&self, key: &str) -> Option<String> {
        self.root.get(key)?.as_str().map(str::to_string)
    }

    /// Returns the count at `key`.
    pub fn count(&self, key: &str) -> Option<u64> {
        let number = number(self.root.get(key)?);
        let is_count = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        is_count.then_some(number as u64)
    }

    /// Returns the number or the list of numbers at `key`. Entries that are not numbers become NaN.
    pub fn numbers(&self, key: &str) -> Vec<f64> {
        match self.root.get(key) {
            Some(Value::Array(items)) => items.iter().map(number).collect(),
            value => value.map(number).into_iter().collect(),
        }
    }

    /// Returns the name of the processor from `/proc/cpuinfo`, which only x86 has.
    pub fn cpu_model(&self) -> Option<String> {
        self.root.get("host_cpuinfo")?.get("model name")?.as_str().map(str::to_string)
    }

    /// Returns `MemTotal` of rank 0's host in GiB.
    pub fn memory_gib(&self) -> Option<f64> {
        json::memory_total_gib(&self.root)
    }

    /// Returns the entries of `metric`.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &Value)> {
        let metrics = self.root.get("metric").and_then(Value::as_object).into_iter().flatten();
        metrics.map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the entries of `metric` that are finite numbers.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        let all = self.metrics().map(|(name, value)| (name, number(value)));
        all.filter(|(_, number)| number.is_finite())
    }

    /// Returns a finite number of `metric`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metric_or_nan(name).filter(|value| value.is_finite())
    }

    /// Returns a number of `metric`, or NaN for an entry that is not a number.
    pub fn metric_or_nan(&self, name: &str) -> Option<f64> {
        Some(number(self.root.get("metric")?.get(name)?))
    }

    /// Returns a list of `metric`.
    pub fn list(&self, name: &str) -> Option<Vec<f64>> {
        let items = self.root.get("metric")?.get(name)?.as_array()?;
        Some(items.iter().map(number).collect())
    }

    /// Returns the size of a sample in bytes that follows from the throughputs in MB and in samples. `None` if it is unknown: DLIO reports one byte
    /// if it does not know the record length.
    pub fn sample_bytes(&self) -> Option<f64> {
        let samples = self.metric("train_throughput_mean_samples_per_second");
        let mib_per_second = self.metric("train_io_mean_MB_per_second")?;
        let bytes = mib_per_second * MIB / samples.filter(|rate| *rate != 0.0)?;
        (UNKNOWN_SAMPLE_BYTES_MAX < bytes).then_some(bytes)
    }
}
