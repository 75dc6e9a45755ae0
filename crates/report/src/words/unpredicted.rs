//! Renders the reasons why a record does not allow a prediction, and the runs that would allow it. Decides nothing.

use feedrate_analysis::predict::{DecidingRun, NotPredictable};
use feedrate_measure::noise::Noise;
use feedrate_spec::units;

/// The reason why there is no prediction, as a fragment.
pub fn why(reason: &NotPredictable) -> String {
    match reason {
        NotPredictable::NothingTrained => "no accelerator computed, so there is no AU".into(),
        NotPredictable::TooFewSteps { steps, needed } => {
            let steps = units::counted(*steps, "step");
            format!("the record has {steps}, and a prediction needs at least {needed}")
        }
        NotPredictable::TooNoisy { noise: Noise::BusyCores } => {
            "the cores were busy, so waits may have been for a core".into()
        }
        NotPredictable::TooNoisy { noise: Noise::WideInterval } => {
            "its steps differ so much that the 95 % interval of the AU is wider than half of the AU"
                .into()
        }
        NotPredictable::NotCounted => "the record does not count the reads".into(),
        NotPredictable::OnlyWatched => {
            "a loop was watched: its load and compute times do not show files, reads, decoding or the effect of more accelerators".into()
        }
        NotPredictable::ServedFromMemory => {
            "most bytes came from memory, so the speed of the storage is unknown".into()
        }
        NotPredictable::OtherFiles => {
            "it would read other files, or read them in another way, and the record does not show how long that takes"
                .into()
        }
        NotPredictable::OtherOrder => {
            "it would read samples in another order, and the record does not show how often files would be opened and how much of them would be read".into()
        }
        NotPredictable::CollectiveReads => "accelerators read together, or one reads for all, which is not modelled".into(),
        NotPredictable::LatencyOrBandwidth { least_percent, most_percent, .. } => format!(
            "the record does not show whether reads are limited by latency or by bandwidth: anything from {least_percent:.0} % to {most_percent:.0} % AU is possible"
        ),
        NotPredictable::NotSeen { key } => format!("`{key}` had no effect in this record"),
    }
}

/// Advice to make a run that would allow the prediction.
pub fn needed_run(reason: &NotPredictable) -> String {
    match reason {
        NotPredictable::NothingTrained => "run it with `train.computation_time` above 0".into(),
        NotPredictable::TooFewSteps { needed, .. } => {
            format!("run it with more epochs or steps, at least {needed} steps in all")
        }
        NotPredictable::TooNoisy { noise: Noise::BusyCores } => {
            "run it while the machine is idle".into()
        }
        NotPredictable::TooNoisy { noise: Noise::WideInterval } => {
            "run it with more epochs or steps, or on a quieter machine".into()
        }
        NotPredictable::NotCounted => "run it with feedrate itself".into(),
        NotPredictable::OnlyWatched => {
            "run a similar workload on the same storage with `feedrate run`".into()
        }
        NotPredictable::ServedFromMemory => {
            "run it on storage, not on a file system in memory, with `--cold` or with a dataset of at least five times the memory".into()
        }
        NotPredictable::OtherFiles | NotPredictable::OtherOrder => {
            "run it with this change".into()
        }
        NotPredictable::CollectiveReads => {
            "run it with this change, or with `reader.file_access=multi`".into()
        }
        NotPredictable::LatencyOrBandwidth {
            deciding_run: DecidingRun::MoreReadingThreads,
            ..
        } => "run it with twice the `reader.read_threads`".into(),
        NotPredictable::LatencyOrBandwidth {
            deciding_run: DecidingRun::OtherTransferSize, ..
        } => "run it with another `reader.transfer_size`".into(),
        NotPredictable::NotSeen { key } => {
            format!("give `{key}` a value instead of a factor")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_prediction_comes_with_the_needed_run() {
        let open = NotPredictable::LatencyOrBandwidth {
            least_percent: 31.2,
            most_percent: 96.8,
            deciding_run: DecidingRun::OtherTransferSize,
        };
        assert!(why(&open).ends_with("anything from 31 % to 97 % AU is possible"));
        assert_eq!(needed_run(&open), "run it with another `reader.transfer_size`");
        let key = "storage.bandwidth";
        let unseen = NotPredictable::NotSeen { key };
        assert!([why(&unseen), needed_run(&unseen)].iter().all(|text| text.contains(key)));
    }
}
