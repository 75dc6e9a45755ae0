//! Figures of a run that no metric of a record has: what was reported, rates in MiB, and parts of the waiting.

use super::Case;

/// Ends of DLIO's names, and their units: its MB and GB are 2^20 and 2^30 bytes.
const UNITS: [(&str, &str); 6] = [
    ("_percentage", "percent"),
    ("_samples_per_second", "samples/s"),
    ("_MB_per_second", "MiB/s"),
    ("_GB_per_second", "GiB/s"),
    ("_seconds", "s"),
    ("_GB", "GiB"),
];

impl Case {
    /// Name, unit and number of each; `None` where it is not known. What was reported has DLIO's names.
    pub fn figures(&self) -> Vec<(&str, &'static str, Option<f64>)> {
        let (rates, stall, skew) = (&self.throughput, &self.stall, &self.skew);
        let (percent, mib, samples) = ("percent", "MiB/s", "samples/s");
        let unit = |name: &str| {
            let known = UNITS.iter().find(|(end, _)| name.ends_with(end));
            known.map_or("", |(_, unit)| *unit)
        };
        let steps = (self.steps > 0).then_some(self.steps as f64);
        let mut figures = vec![
            ("reported_samples_per_second", samples, rates.reported_samples_per_second),
            ("reported_mib_per_second", mib, rates.reported_mib_per_second),
            ("windowed_mib_per_second", mib, rates.windowed_mib_per_second),
            ("whole_mib_per_second", mib, rates.whole_mib_per_second),
            ("whole_read_mib_per_second", mib, rates.whole_read_mib_per_second),
            ("load_s_per_step", "s", stall.load_s_per_step),
            ("compute_s_per_step", "s", self.compute_s_per_step),
            ("load_percent", percent, stall.load_percent),
            ("excluded_percent", percent, stall.excluded_percent),
            ("barrier_percent", percent, stall.barrier_percent),
            ("windowed_lowest_percent", percent, skew.windowed_lowest_percent),
            ("windowed_highest_percent", percent, skew.windowed_highest_percent),
            ("own_time_percent", percent, skew.own_time_percent),
            ("mean_sample_bytes", "bytes", self.mean_sample_bytes),
            ("steps_per_epoch", "steps", steps),
        ];
        let reported = self.reported.iter();
        figures.extend(reported.map(|(name, value)| (name.as_str(), unit(name), Some(*value))));
        figures
    }
}

#[cfg(test)]
mod tests {
    use crate::case::load;
    use crate::import::Kind;
    use crate::import::fake::Fake;
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
        let case = load(&run, Kind::Dlio, "").unwrap().case;
        let save = ("save_checkpoint_io_mean_GB_per_second", "GiB/s", Some(1.5));
        assert!(case.figures().contains(&save), "{:?}", case.figures());
        assert_eq!(case.reported.len(), 1);
        assert!(case.figures().contains(&("steps_per_epoch", "steps", None)));
    }
}
