//! The rate of plain reads beside the answer of a search: what the storage itself delivers, without the work of a loader.

use crate::interrupt;
use feedrate_measure::noise::is_too_wide;
use feedrate_report::ceilings::measurement_conditions;
use feedrate_results::diagnosis::{Ceiling, NotMeasured};
use feedrate_session::ceilings;
use feedrate_session::failure::on_one_line;
use feedrate_session::request::Request;
use feedrate_spec::listener::Listener;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time for the measurement.
const BUDGET_S: f64 = 2.0;
/// Minimum rate of plain reads relative to that of the runs. A lower rate is not that of the storage, which gave more before.
const RATIO_TO_RUNS_MIN: f64 = 0.95;

/// Rates of the runs at a number; `None` if unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRates {
    /// Rate at which no accelerator would wait.
    pub(super) needed_bytes_per_second: Option<f64>,
    /// Rate of the runs' reads.
    pub(super) delivered_bytes_per_second: Option<f64>,
}

/// Plain reads with the size and the number of readers of a number that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(in crate::command) struct PlainRead {
    /// The number.
    pub(super) number: u64,
    /// Rate of plain reads; `null` if unknown.
    pub(super) bytes_per_second: Option<f64>,
    /// Rate at which no accelerator would wait in the runs of this number; `null` if unknown.
    pub(super) needed_bytes_per_second: Option<f64>,
    /// Reason why the rate is unknown; `null` if it is known.
    pub(super) unknown_because: Option<String>,
}

/// Measures plain reads as the runs of `request` at `number` make them. `None` if the workload has no files on a storage.
pub(super) fn measure(
    number: u64,
    request: Request,
    rates: RunRates,
    listener: &dyn Listener,
) -> Option<PlainRead> {
    let rate = match ceilings::plain_reads(request, BUDGET_S, &interrupt::signals(), listener) {
        Ok(ceiling) if ceiling.not_measured == Some(NotMeasured::NoFiles) => return None,
        Ok(ceiling) => known_rate(&ceiling, rates.delivered_bytes_per_second),
        Err(error) => Err(on_one_line(&error)),
    };
    Some(PlainRead {
        number,
        bytes_per_second: rate.as_ref().ok().copied(),
        needed_bytes_per_second: rates.needed_bytes_per_second,
        unknown_because: rate.err(),
    })
}

/// The rate of a ceiling, or the reason why it is unknown. The runs read with `delivered_bytes_per_second`.
fn known_rate(ceiling: &Ceiling, delivered_bytes_per_second: Option<f64>) -> Result<f64, String> {
    let is_below_runs = |rate: f64| {
        delivered_bytes_per_second.filter(|delivered| rate < RATIO_TO_RUNS_MIN * delivered)
    };
    match ceiling.bytes_per_second {
        None => Err(measurement_conditions(ceiling)),
        Some(_) if ceiling.interval().as_ref().is_some_and(is_too_wide) => {
            Err("it varied by more than half of its value".into())
        }
        Some(_) if ceiling.may_be_slowed_by_busy_cores() => {
            Err("the cores of this machine were busy".into())
        }
        Some(rate) => match is_below_runs(rate) {
            Some(delivered) => {
                let [rate, delivered] = [rate, delivered].map(units::bytes_per_second_rounded);
                Err(format!("measured {rate}, but the runs read {delivered}"))
            }
            None => Ok(rate),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::diagnosis::PipelineStage;

    #[test]
    fn a_noisy_or_missing_rate_is_unknown() {
        let missing = Ceiling::not_measured(PipelineStage::FileSystem, NotMeasured::StaysInMemory);
        assert_eq!(known_rate(&missing, None), Err("files stay in memory".into()));
        let with_slices = |slices: [f64; 3]| Ceiling {
            samples_per_second: Some(10.0),
            bytes_per_second: Some(10e6),
            slices_samples_per_second: slices.into(),
            not_measured: None,
            ..missing.clone()
        };
        let steady = with_slices([9.9, 10.0, 10.1]);
        assert_eq!(known_rate(&steady, None), Ok(10e6));
        assert!(known_rate(&with_slices([2.0, 10.0, 18.0]), None).is_err());
        assert_eq!(known_rate(&steady, Some(10.4e6)), Ok(10e6));
        let below = "measured 10 MB/s, but the runs read 17.5 MB/s";
        assert_eq!(known_rate(&steady, Some(17.5e6)), Err(below.into()));
        let mut busy = Ceiling { cpu_busy_share: Some(0.99), ..steady };
        let cores = "the cores of this machine were busy";
        assert_eq!(known_rate(&busy, None), Err(cores.into()));
        busy.is_emulated = true;
        assert_eq!(known_rate(&busy, None), Ok(10e6));
    }
}
