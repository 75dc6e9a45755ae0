//! Numbers of a run that are not metrics of records: reported values, rates in MiB/s, and shares of waiting time.

use super::Run;
use feedrate_measure::metric::{
    DELIVERED_WHOLE, NOMINAL_WHOLE, NOMINAL_WINDOWED, Provenance, Value,
};
use feedrate_measure::record::CheckpointKind;
use feedrate_spec::units::{GIB, MIB};

/// Suffixes of DLIO's names and their units. DLIO's MB and GB are 2^20 and 2^30 bytes; in rates, the run decides what a GB is.
const UNITS: [(&str, &str); 5] = [
    ("_percentage", "percent"),
    ("_samples_per_second", "samples/s"),
    ("_MB_per_second", "MiB/s"),
    ("_seconds", "s"),
    ("_GB", "GiB"),
];

/// A number that is not a metric of records.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `measure::metric::Metric`")]
pub struct OtherNumber<'a> {
    pub name: &'a str,
    pub unit: &'static str,
    /// Value with its provenance; `None` if unknown.
    pub value: Option<Value>,
}

impl Run {
    /// Returns all numbers of the run that are not metrics of records. Reported numbers have DLIO's names.
    pub fn figures(&self) -> Vec<OtherNumber<'_>> {
        let imported = [Provenance::Reported, Provenance::Recomputed, Provenance::Estimated];
        let [reported, recomputed, estimated] =
            if self.is_from_feedrate() { [Provenance::Measured; 3] } else { imported };
        let times = &self.step_times;
        let mut figures = vec![
            (
                "reported_samples_per_second",
                "samples/s",
                self.reported_samples_per_second(),
                reported,
            ),
            ("reported_mib_per_second", "MiB/s", self.reported_mib_per_second(), reported),
        ];
        let rates = [
            ("windowed_mib_per_second", &NOMINAL_WINDOWED),
            ("whole_mib_per_second", &NOMINAL_WHOLE),
            ("whole_read_mib_per_second", &DELIVERED_WHOLE),
        ];
        figures.extend(rates.map(|(name, metric)| {
            let mib = self.metric(metric).map(|bytes| bytes / MIB);
            (name, "MiB/s", mib, self.provenance(metric).unwrap_or(recomputed))
        }));
        let steps = (self.steps > 0).then_some(self.steps as f64);
        figures.extend([
            ("load_s_per_step", "s", times.load_s_per_step, recomputed),
            ("compute_s_per_step", "s", times.compute_s_per_step, recomputed),
            ("load_percent", "percent", times.load_percent, recomputed),
            ("excluded_percent", "percent", times.excluded_percent, recomputed),
            ("barrier_percent", "percent", times.barrier_percent, recomputed),
            ("windowed_lowest_percent", "percent", times.windowed_lowest_percent, recomputed),
            ("windowed_highest_percent", "percent", times.windowed_highest_percent, recomputed),
            ("own_time_percent", "percent", times.own_time_percent, recomputed),
            ("mean_sample_bytes", "bytes", self.mean_sample_bytes, estimated),
            ("steps_per_epoch", "steps", steps, recomputed),
        ]);
        figures.extend(self.reported.iter().map(|(name, value)| {
            (name.as_str(), self.reported_unit(name), Some(*value), reported)
        }));
        let named = figures.into_iter().map(|(name, unit, number, provenance)| OtherNumber {
            name,
            unit,
            value: number.map(|number| Value { number, provenance }),
        });
        named.collect()
    }

    /// Returns the unit of a reported number; empty if it has none.
    fn reported_unit(&self, name: &str) -> &'static str {
        if name.ends_with("_GB_per_second") {
            let is_load = name.starts_with(CheckpointKind::Load.name());
            let kind = if is_load { CheckpointKind::Load } else { CheckpointKind::Save };
            return if self.reported_gb_bytes(kind) == GIB { "GiB/s" } else { "GB/s" };
        }
        let unit = UNITS.iter().find(|(suffix, _)| name.ends_with(suffix));
        unit.map_or("", |(_, unit)| *unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use crate::run::Activity;
    use feedrate_spec::mlperf::rules::Edition;
    use std::fs;

    #[test]
    fn reported_numbers_have_units() {
        let folder = tempfile::tempdir().unwrap();
        let run = Fake { train: false, ..Fake::default() }.write(folder.path(), "a");
        let path = run.join("summary.json");
        let text = fs::read_to_string(&path).unwrap();
        let text =
            text.replace("GB_per_second\": NaN", "GB_per_second\": 1.5, \"x\": NaN, \"y\": [1]");
        fs::write(path, text).unwrap();
        let index = RunIndex::read(&[run], &ReadOptions::default()).unwrap();
        let run = &index.runs[0];
        let found =
            |name: &str| run.figures().into_iter().find(|number| number.name == name).unwrap();
        let save = found("save_checkpoint_io_mean_GB_per_second");
        let reported = Value { number: 1.5, provenance: Provenance::Reported };
        assert_eq!((save.unit, save.value), ("GiB/s", Some(reported)));
        assert_eq!(run.reported.len(), 1);
        assert_eq!(found("steps_per_epoch").value, None);
    }

    #[test]
    fn the_unit_of_a_rate_of_checkpoints_fits_their_size_and_duration() {
        let check = |edition, durations: &[(&str, f64)], rate: f64, unit: &str, expected: f64| {
            let numbers =
                [("checkpoint_size_GB", 100.0), ("save_checkpoint_io_mean_GB_per_second", rate)];
            let numbers = numbers.iter().chain(durations);
            let run = Run {
                activity: Activity::Checkpoints,
                rules_edition: Some(edition),
                reported: numbers.map(|(name, number)| ((*name).to_string(), *number)).collect(),
                ..Run::default()
            };
            let name = "save_checkpoint_io_mean_GB_per_second";
            let figures = run.figures();
            let figure = figures.iter().find(|figure| figure.name == name).unwrap();
            let written = run.written_bytes_per_second().unwrap();
            assert_eq!((figure.unit, written), (unit, expected), "{edition:?} {rate}");
        };
        let steady = [
            ("save_checkpoint_duration_mean_seconds", 20.0),
            ("save_checkpoint_duration_stdev_seconds", 0.5),
        ];
        let varied = [steady[0], ("save_checkpoint_duration_stdev_seconds", 5.0)];
        for edition in [Edition::V2_0, Edition::V3_0] {
            check(edition, &steady, 5.0, "GiB/s", 5.0 * GIB);
            check(edition, &steady, 5.37, "GB/s", 5.37e9);
        }
        for durations in [&steady[..1], &varied, &[]] {
            check(Edition::V2_0, durations, 5.37, "GiB/s", 5.37 * GIB);
            check(Edition::V3_0, durations, 5.0, "GB/s", 5e9);
        }
        check(Edition::V3_0, &steady, 9.0, "GB/s", 9e9);
    }

    #[test]
    fn numbers_have_their_provenance() {
        let folder = tempfile::tempdir().unwrap();
        let run = Fake::default().write(folder.path(), "a");
        let index = RunIndex::read(&[run], &ReadOptions::default()).unwrap();
        let provenance = |name: &str| {
            let found = index.runs[0].figures().into_iter().find(|number| number.name == name);
            found.unwrap().value.unwrap().provenance
        };
        assert_eq!(provenance("whole_read_mib_per_second"), Provenance::Estimated);
        assert_eq!(provenance("mean_sample_bytes"), Provenance::Estimated);
        assert_eq!(provenance("whole_mib_per_second"), Provenance::Recomputed);
        assert_eq!(provenance("train_au_mean_percentage"), Provenance::Reported);
    }
}
