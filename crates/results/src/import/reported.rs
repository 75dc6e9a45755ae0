//! `summary.json` of a run, as it stands there.

use super::json::Number;
use serde_json::{Map, Value};

/// `summary.json`.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    root: Map<String, Value>,
}

impl Reported {
    pub(super) fn new(root: Map<String, Value>) -> Self {
        Reported { root }
    }

    /// Text at `key`.
    pub fn text(&self, key: &str) -> Option<String> {
        self.root.get(key)?.as_str().map(str::to_string)
    }

    /// A count at `key`.
    pub fn count(&self, key: &str) -> Option<u64> {
        let number = Number::new(self.root.get(key)?).0;
        let is_count = number.fract() == 0.0 && (0.0..9e15).contains(&number);
        is_count.then_some(number as u64)
    }

    /// Numbers at `key`: of a list all, as hosts have an entry each. Those that are none are NaN.
    pub fn numbers(&self, key: &str) -> Vec<f64> {
        match self.root.get(key) {
            Some(Value::Array(items)) => items.iter().map(|item| Number::new(item).0).collect(),
            Some(value) => vec![Number::new(value).0],
            None => Vec::new(),
        }
    }

    /// The name of the processor, as `/proc/cpuinfo` of x86 has it.
    pub fn cpu_model(&self) -> Option<String> {
        self.root.get("host_cpuinfo")?.get("model name")?.as_str().map(str::to_string)
    }

    /// The entries of `metric`.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &Value)> {
        let metrics = self.root.get("metric").and_then(Value::as_object).into_iter().flatten();
        metrics.map(|(name, value)| (name.as_str(), value))
    }

    /// All of `metric` that is one finite number.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        let of = |(name, value)| match Number::new(value).0 {
            number if number.is_finite() => Some((name, number)),
            _ => None,
        };
        self.metrics().filter_map(of)
    }

    /// A finite number of `metric`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.any_metric(name).filter(|value| value.is_finite())
    }

    /// A number of `metric`, even one that is none.
    pub fn any_metric(&self, name: &str) -> Option<f64> {
        let (_, value) = self.metrics().find(|(key, _)| *key == name)?;
        Some(Number::new(value).0)
    }

    /// A list of `metric`.
    pub fn list(&self, name: &str) -> Option<Vec<f64>> {
        let (_, value) = self.metrics().find(|(key, _)| *key == name)?;
        Some(value.as_array()?.iter().map(|item| Number::new(item).0).collect())
    }
}
