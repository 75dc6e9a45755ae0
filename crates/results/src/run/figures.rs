//! Figures of a run that no metric of a record has: what was reported, rates in MiB, and parts of the waiting.

use super::Run;
use feedrate_measure::metric::{DELIVERED_WHOLE, NOMINAL_WHOLE, NOMINAL_WINDOWED};
use feedrate_spec::units::MIB;

/// Ends of DLIO's names, and their units: its MB and GB are 2^20 and 2^30 bytes.
const UNITS: [(&str, &str); 6] = [
    ("_percentage", "percent"),
    ("_samples_per_second", "samples/s"),
    ("_MB_per_second", "MiB/s"),
    ("_GB_per_second", "GiB/s"),
    ("_seconds", "s"),
    ("_GB", "GiB"),
];

impl Run {
    /// Name, unit and number of each; `None` where it is not known. What was reported has DLIO's names.
    pub fn figures(&self) -> Vec<(&str, &'static str, Option<f64>)> {
        let times = &self.step_times;
        let in_mib = |metric| self.metric(metric).map(|bytes: f64| bytes / MIB);
        let steps = (self.steps > 0).then_some(self.steps as f64);
        let mut figures = vec![
            ("reported_samples_per_second", "samples/s", self.reported_samples_per_second()),
            ("reported_mib_per_second", "MiB/s", self.reported_mib_per_second()),
            ("windowed_mib_per_second", "MiB/s", in_mib(&NOMINAL_WINDOWED)),
            ("whole_mib_per_second", "MiB/s", in_mib(&NOMINAL_WHOLE)),
            ("whole_read_mib_per_second", "MiB/s", in_mib(&DELIVERED_WHOLE)),
            ("load_s_per_step", "s", times.load_s_per_step),
            ("compute_s_per_step", "s", times.compute_s_per_step),
            ("load_percent", "percent", times.load_percent),
            ("excluded_percent", "percent", times.excluded_percent),
            ("barrier_percent", "percent", times.barrier_percent),
            ("windowed_lowest_percent", "percent", times.windowed_lowest_percent),
            ("windowed_highest_percent", "percent", times.windowed_highest_percent),
            ("own_time_percent", "percent", times.own_time_percent),
            ("mean_sample_bytes", "bytes", self.mean_sample_bytes),
            ("steps_per_epoch", "steps", steps),
        ];
        let reported = self.reported.iter();
        figures.extend(reported.map(|(name, value)| (name.as_str(), unit_of(name), Some(*value))));
        figures
    }
}

fn unit_of(name: &str) -> &'static str {
    let known = UNITS.iter().find(|(end, _)| name.ends_with(end));
    known.map_or("", |(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use std::fs;

    #[test]
    fn all_that_was_reported_is_told_with_its_unit() {
        let folder = tempfile::tempdir().unwrap();
        let run = Fake { train: false, ..Fake::default() }.write(folder.path(), "a");
        let path = run.join("summary.json");
        let text = fs::read_to_string(&path).unwrap();
        let text =
            text.replace("GB_per_second\": NaN", "GB_per_second\": 1.5, \"x\": NaN, \"y\": [1]");
        fs::write(path, text).unwrap();
        let index = RunIndex::read(&[run], &ReadOptions::default()).unwrap();
        let run = &index.runs[0];
        let save = ("save_checkpoint_io_mean_GB_per_second", "GiB/s", Some(1.5));
        assert!(run.figures().contains(&save), "{:?}", run.figures());
        assert_eq!(run.reported.len(), 1);
        assert!(run.figures().contains(&("steps_per_epoch", "steps", None)));
    }
}
