//! The words of what a record cannot tell: why, and which run would. Decides nothing.

use feedrate_analysis::predict::{DecidingRun, NotPredictable};

/// The reason, as a fragment.
pub fn why(of: &NotPredictable) -> String {
    match of {
        NotPredictable::NothingTrained => "no accelerator computed, so that there is no AU".into(),
        NotPredictable::NotCounted => "the record does not count the reads".into(),
        NotPredictable::OnlyWatched => {
            "a loop was watched: its load and compute times tell nothing of files, reads, decoding or more accelerators".into()
        }
        NotPredictable::ServedFromMemory => {
            "memory served most bytes, which tells nothing of the storage".into()
        }
        NotPredictable::OtherFiles => {
            "other files would be read, or another way, and the record does not tell what that takes"
                .into()
        }
        NotPredictable::OtherOrder => {
            "samples would come from the files in another order, and the record does not tell how often files are opened and how much of them is read then".into()
        }
        NotPredictable::CollectiveReads => "accelerators read together, or one for all, which is not modelled".into(),
        NotPredictable::LatencyOrBandwidth { least_percent, most_percent, .. } => format!(
            "the record does not tell whether reads wait for latency or for bandwidth: anything from {least_percent:.0} % to {most_percent:.0} % AU fits"
        ),
        NotPredictable::NotSeen { key } => format!("`{key}` had no effect that the record shows"),
    }
}

/// The run that would tell it.
pub fn run_that_tells(of: &NotPredictable) -> String {
    match of {
        NotPredictable::NothingTrained => {
            "a run with `train.computation_time` above 0 would tell".into()
        }
        NotPredictable::NotCounted => "a run of feedrate's own would tell".into(),
        NotPredictable::OnlyWatched => {
            "a run of a workload like it on the same storage would tell: `feedrate run`".into()
        }
        NotPredictable::ServedFromMemory => {
            "a run with `--cold`, or of a dataset of at least five times the memory, would tell"
                .into()
        }
        NotPredictable::OtherFiles | NotPredictable::OtherOrder => {
            "a run with this change would tell".into()
        }
        NotPredictable::CollectiveReads => {
            "a run with this change, or one with `reader.file_access=multi`, would tell".into()
        }
        NotPredictable::LatencyOrBandwidth {
            deciding_run: DecidingRun::MoreReadingThreads,
            ..
        } => "a run with twice the `reader.read_threads` would tell".into(),
        NotPredictable::LatencyOrBandwidth {
            deciding_run: DecidingRun::OtherTransferSize, ..
        } => "a run with another `reader.transfer_size` would tell".into(),
        NotPredictable::NotSeen { key } => {
            format!("give `{key}` a value instead of a factor")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_comes_with_the_run_that_would_tell() {
        let open = NotPredictable::LatencyOrBandwidth {
            least_percent: 31.2,
            most_percent: 96.8,
            deciding_run: DecidingRun::OtherTransferSize,
        };
        assert!(why(&open).ends_with("anything from 31 % to 97 % AU fits"));
        assert_eq!(run_that_tells(&open), "a run with another `reader.transfer_size` would tell");
        let key = "storage.bandwidth";
        let unseen = NotPredictable::NotSeen { key };
        assert!([why(&unseen), run_that_tells(&unseen)].iter().all(|text| text.contains(key)));
    }
}
