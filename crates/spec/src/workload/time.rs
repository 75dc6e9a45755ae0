//! Times as DLIO configures them (`utility.py:sleep`): a number of seconds, or a distribution.

use super::tree::{Content, Entry, Node};
use super::value::{ValueKind, number, wrong_kind};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// A time in seconds, constant or drawn from a distribution. As in DLIO, the absolute value of a draw is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "numpy's parameter names; in seconds, except `shape` and `lam`")]
pub enum TimeSpec {
    /// No wait.
    #[default]
    None,
    /// A constant time.
    Constant {
        mean: f64,
    },
    Normal {
        mean: f64,
        stdev: f64,
    },
    Uniform {
        min: f64,
        max: f64,
    },
    Gamma {
        shape: f64,
        scale: f64,
    },
    Exponential {
        scale: f64,
    },
    Poisson {
        lam: f64,
    },
}

impl TimeSpec {
    /// Returns the expected time in seconds: the mean of the absolute value of a draw.
    pub fn mean_s(&self) -> f64 {
        match *self {
            TimeSpec::None => 0.0,
            TimeSpec::Constant { mean } => mean.abs(),
            TimeSpec::Normal { mean, stdev } => mean_of_folded_normal(mean.abs(), stdev.abs()),
            TimeSpec::Uniform { min, max } if min < 0.0 && max > 0.0 => {
                (min * min + max * max) / (2.0 * (max - min))
            }
            TimeSpec::Uniform { min, max } => f64::midpoint(min, max).abs(),
            TimeSpec::Gamma { shape, scale } => shape * scale,
            TimeSpec::Exponential { scale } => scale,
            TimeSpec::Poisson { lam } => lam,
        }
    }
}

/// Returns the mean of the folded normal distribution |N(`mean`, `stdev`²)| (Leone, Nelson, Nottingham 1961).
fn mean_of_folded_normal(mean: f64, stdev: f64) -> f64 {
    if stdev == 0.0 {
        return mean;
    }
    let z = mean / stdev;
    let tail = (-z * z / 2.0).exp();
    stdev * (2.0 / std::f64::consts::PI).sqrt() * tail + mean * erf(z / 2.0_f64.sqrt())
}

/// Returns the error function for `x` ≥ 0, with an error of at most 1.5e-7 (Abramowitz and Stegun 7.1.26).
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .into_iter()
        .fold(0.0, |sum, factor| sum * t + factor);
    1.0 - poly * t * (-x * x).exp()
}

/// The value of keys that are times: a number or a distribution.
#[derive(Debug)]
pub(super) struct Time;

impl ValueKind for Time {
    type Value = TimeSpec;
    const NAME: &'static str = "seconds or distribution";

    fn parse(node: &Node) -> Result<TimeSpec, Problem> {
        match &node.content {
            Content::Scalar { .. } if node.is_null() => Ok(TimeSpec::None),
            Content::Scalar { .. } => {
                Ok(constant(number(node).map_err(|problem| with_example(node, problem))?))
            }
            Content::Map(entries) if entries.is_empty() => Ok(TimeSpec::None),
            Content::Map(entries) => distribution(node, entries),
            Content::List(_) => {
                Err(with_example(node, wrong_kind(node, "seconds, or a distribution")))
            }
        }
    }
}

impl TimeSpec {
    /// Adds a standard deviation that is configured by a separate key, such as `train.computation_time_stdev`.
    pub(super) fn with_stdev(self, stdev: f64) -> Result<Self, Problem> {
        match self {
            _ if stdev == 0.0 => Ok(self),
            TimeSpec::Constant { mean } | TimeSpec::Normal { mean, .. } => {
                Ok(TimeSpec::Normal { mean, stdev })
            }
            TimeSpec::None => Err(Problem::new(format!("a deviation of `{stdev}` without a mean"))
                .hint("give the time itself too")),
            TimeSpec::Uniform { .. }
            | TimeSpec::Gamma { .. }
            | TimeSpec::Exponential { .. }
            | TimeSpec::Poisson { .. } => Err(Problem::new(format!(
                "a deviation of `{stdev}` for a distribution that has none"
            ))
            .hint("leave it out, or use `type: normal`")),
        }
    }
}

/// Name of a distribution, numpy's names of its parameters, and a function that makes the time from their values.
type Distribution = (&'static str, &'static [&'static str], fn(f64, f64) -> TimeSpec);

const DISTRIBUTIONS: &[Distribution] = &[
    ("normal", &["mean", "stdev"], |mean, stdev| TimeSpec::Normal { mean, stdev }),
    ("uniform", &["min", "max"], |min, max| TimeSpec::Uniform { min, max }),
    ("gamma", &["shape", "scale"], |shape, scale| TimeSpec::Gamma { shape, scale }),
    ("exponential", &["scale"], |scale, _| TimeSpec::Exponential { scale }),
    ("poisson", &["lam"], |lam, _| TimeSpec::Poisson { lam }),
];

fn constant(mean: f64) -> TimeSpec {
    if mean == 0.0 { TimeSpec::None } else { TimeSpec::Constant { mean } }
}

fn distribution(node: &Node, entries: &[Entry]) -> Result<TimeSpec, Problem> {
    let Some(kind) = node.get("type") else {
        check_fields(entries, &["mean", "stdev"], "a time without `type`")?;
        let mean = field(node, "mean", "a time without `type`")?;
        let stdev = node.get("stdev").map_or(Ok(0.0), |stdev| parameter("stdev", stdev))?;
        return Ok(if stdev > 0.0 { TimeSpec::Normal { mean, stdev } } else { constant(mean) });
    };
    let name = match &kind.content {
        Content::Scalar { text, .. } => text.as_str(),
        Content::List(_) | Content::Map(_) => "",
    };
    let Some((name, fields, make)) = DISTRIBUTIONS.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = DISTRIBUTIONS.iter().map(|(name, ..)| *name).collect();
        let message = format!("expected one of `{}`, found `{}`", names.join("`, `"), kind.brief());
        return Err(Problem::new(message).in_field("type", kind).did_you_mean(name, names));
    };
    let subject = format!("`type: {name}`");
    let mut allowed = vec!["type"];
    allowed.extend(*fields);
    check_fields(entries, &allowed, &subject)?;
    let first = field(node, fields[0], &subject)?;
    let second = fields.get(1).map_or(Ok(0.0), |second| field(node, second, &subject))?;
    match make(first, second) {
        TimeSpec::Uniform { min, max } if min > max => {
            Err(Problem::new(format!("`min` `{min}` is above `max` `{max}`")).hint("swap them"))
        }
        time => Ok(time),
    }
}

fn field(node: &Node, name: &str, subject: &str) -> Result<f64, Problem> {
    match node.get(name) {
        Some(value) => parameter(name, value),
        None => Err(Problem::new(format!("{subject} needs `{name}`"))
            .hint(format!("add `{name}: …` in seconds"))),
    }
}

fn parameter(name: &str, value: &Node) -> Result<f64, Problem> {
    number(value).map_err(|problem| problem.in_field(name, value))
}

fn check_fields(entries: &[Entry], known: &[&str], subject: &str) -> Result<(), Problem> {
    let Some(unknown) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) else {
        return Ok(());
    };
    let problem = Problem::new(format!("{subject} has no `{}`", unknown.key))
        .hint(format!("it has `{}`", known.join("`, `")))
        .did_you_mean(&unknown.key, known.iter().copied());
    Err(problem.with_location(Some(unknown.key_location.clone())))
}

fn with_example(node: &Node, problem: Problem) -> Problem {
    match (&problem.hint, &node.content) {
        (None, Content::Scalar { .. } | Content::List(_)) => {
            problem.hint("write seconds, such as `0.323`, or `{mean: 0.323, stdev: 0.01}`")
        }
        _ => problem,
    }
}
