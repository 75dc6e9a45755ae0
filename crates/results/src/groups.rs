//! Groups of runs of one experiment, compared with the required utilisation (the bar), both as reported and over all steps.

use crate::import::Bound;
use crate::run::{Activity, Run, Submission, group_runs};
use crate::setting::compare_levels;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::stats::mean;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;

/// Runs with the same source, system, workload, number of accelerators and settings. Values are means over the usable runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Run`")]
pub struct ResultGroup {
    pub source: String,
    pub submission: Option<Submission>,
    pub workload: String,
    pub accelerators: Option<u32>,
    pub parameter: String,
    pub value: String,
    /// Indices of the usable runs.
    pub runs: Vec<usize>,
    /// Number of runs that must not be used.
    pub left_out: usize,
    /// Required utilisation; `None` if it is unknown or differs between runs.
    pub bar_percent: Option<f64>,
    pub reported_percent: Option<f64>,
    pub all_steps_percent: Option<f64>,
    /// Whether the utilisation over all steps is only an upper or a lower bound.
    pub bound: Option<Bound>,
    /// Runs whose reported utilisation reaches the bar.
    pub passes_reported: Passes,
    /// Runs whose utilisation over all steps reaches the bar.
    pub passes_all_steps: Passes,
    pub first_step_s: Option<f64>,
    /// Duration of the first step ÷ (reading threads × compute time of a step). The divisor is the time that the threads can read while one step
    /// computes.
    pub first_step_units: Option<f64>,
}

/// Number of runs that reach the bar, miss it, or have an unknown utilisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names suffice")]
pub struct Passes {
    pub yes: usize,
    pub no: usize,
    pub unknown: usize,
}

impl Passes {
    /// Counts runs by their utilisation over all steps.
    pub fn over_all_steps<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        Self::count(runs, reaches_over_all_steps)
    }

    /// Counts runs by their reported utilisation.
    pub fn as_reported<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        Self::count(runs, reaches_as_reported)
    }

    fn count<'a>(runs: impl Iterator<Item = &'a Run>, reaches: Reaches) -> Self {
        let mut passes = Passes::default();
        for run in runs {
            *match reaches(run) {
                Some(true) => &mut passes.yes,
                Some(false) => &mut passes.no,
                None => &mut passes.unknown,
            } += 1;
        }
        passes
    }
}

/// Returns whether a run reaches its bar; `None` if unknown.
type Reaches = fn(&Run) -> Option<bool>;

/// Returns whether a run reaches its bar by its reported utilisation but not by the utilisation over all steps.
pub fn passes_only_as_reported(run: &Run) -> bool {
    reaches_as_reported(run) == Some(true) && reaches_over_all_steps(run) == Some(false)
}

/// Groups the results, sorted by source, system, workload, accelerators and settings.
pub fn result_groups(runs: &[Run]) -> Vec<ResultGroup> {
    let groups = sorted_groups(runs, Run::is_result);
    groups.iter().map(|members| result_group(runs, members)).collect()
}

/// Runs without training that wrote or read checkpoints, with the same source, system, workload and number of accelerators. Values are means over the
/// runs that have them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Run`")]
pub struct CheckpointGroup {
    pub source: String,
    pub submission: Option<Submission>,
    pub workload: String,
    pub accelerators: Option<u32>,
    /// Indices of the runs.
    pub runs: Vec<usize>,
    pub bytes: Option<f64>,
    pub written_bytes_per_second: Option<f64>,
    pub read_bytes_per_second: Option<f64>,
}

/// Groups the runs that only wrote or read checkpoints, in the order of [`result_groups`].
pub fn checkpoint_groups(runs: &[Run]) -> Vec<CheckpointGroup> {
    let groups = sorted_groups(runs, |run| run.activity == Activity::Checkpoints);
    let groups = groups.into_iter().map(|members| {
        let first = &runs[members[0]];
        let mean_of = |value: fn(&Run) -> Option<f64>| {
            mean(&members.iter().filter_map(|&index| value(&runs[index])).collect::<Vec<f64>>())
        };
        CheckpointGroup {
            source: first.source.clone(),
            submission: first.submission.clone(),
            workload: first.workload.clone(),
            accelerators: first.accelerators,
            bytes: mean_of(Run::checkpoint_bytes),
            written_bytes_per_second: mean_of(Run::written_bytes_per_second),
            read_bytes_per_second: mean_of(Run::read_bytes_per_second),
            runs: members,
        }
    });
    groups.collect()
}

fn system_key(run: &Run) -> (&str, Option<&Submission>, &str, Option<u32>) {
    (&run.source, run.submission.as_ref(), &run.workload, run.accelerators)
}

/// Groups runs by experiment, sorted by system and settings.
fn sorted_groups(runs: &[Run], is_member: impl Fn(&Run) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> =
        group_runs(runs, is_member, Run::experiment_key).into_values().collect();
    groups.sort_unstable();
    groups.sort_by(|a, b| {
        let a = &runs[a[0]];
        let b = &runs[b[0]];
        system_key(a).cmp(&system_key(b)).then_with(|| compare_settings(a, b))
    });
    groups
}

/// Compares settings in the order of their keys, and numbers by value.
fn compare_settings(a: &Run, b: &Run) -> Ordering {
    let pairs = a.settings.iter().zip(&b.settings);
    let mut orders = pairs.map(|((a_key, a_value), (b_key, b_value))| {
        a_key.cmp(b_key).then(compare_levels(a_value, b_value)).then(a_value.cmp(b_value))
    });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn result_group(runs: &[Run], members: &[usize]) -> ResultGroup {
    let first = &runs[members[0]];
    let used: Vec<usize> =
        members.iter().copied().filter(|&index| runs[index].unusable.is_none()).collect();
    let bar_percent = first
        .bar_percent
        .filter(|bar| members.iter().all(|&index| runs[index].bar_percent == Some(*bar)));
    let mean_of_used = |value: &dyn Fn(&Run) -> Option<f64>| {
        let values = used.iter().map(|&index| value(&runs[index]));
        mean(&values.collect::<Option<Vec<f64>>>()?)
    };
    ResultGroup {
        source: first.source.clone(),
        submission: first.submission.clone(),
        workload: first.workload.clone(),
        accelerators: first.accelerators,
        parameter: first.parameter.clone(),
        value: first.value.clone(),
        left_out: members.len() - used.len(),
        bar_percent,
        reported_percent: mean_of_used(&Run::reported_au_percent),
        all_steps_percent: mean_of_used(&|run| run.metric(&AU_ALL_STEPS)),
        bound: used.iter().find_map(|&index| runs[index].bound),
        passes_reported: Passes::as_reported(used.iter().map(|&index| &runs[index])),
        passes_all_steps: Passes::over_all_steps(used.iter().map(|&index| &runs[index])),
        first_step_s: mean_of_used(&|run| run.step_times.first_step_s),
        first_step_units: mean_of_used(&first_step_units),
        runs: used,
    }
}

fn reaches_as_reported(run: &Run) -> Option<bool> {
    Some(run.bar_percent? <= run.reported_au_percent()?)
}

/// Returns whether the utilisation over all steps reaches the bar. A bound decides only if it excludes one of the answers.
fn reaches_over_all_steps(run: &Run) -> Option<bool> {
    let reaches = run.bar_percent? <= run.metric(&AU_ALL_STEPS)?;
    let is_certain = match run.bound {
        None => true,
        Some(Bound::AtMost) => !reaches,
        Some(Bound::AtLeast) => reaches,
    };
    is_certain.then_some(reaches)
}

/// Returns the duration of the first step ÷ (reading threads × compute time of a step). The divisor is the time that the threads can read while one
/// step computes.
pub fn first_step_units(run: &Run) -> Option<f64> {
    let compute_s = run.step_times.compute_s_per_step.filter(|s| 0.0 < *s)?;
    let threads = run.read_threads.filter(|threads| 0 < *threads)?;
    Some(run.step_times.first_step_s? / (f64::from(threads) * compute_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use feedrate_measure::metric::{Provenance, Value};
    use feedrate_spec::units::GIB;
    use std::path::Path;

    fn runs(root: &Path) -> Vec<Run> {
        RunIndex::read(&[root.into()], &ReadOptions::default()).unwrap().runs
    }

    /// Returns a run of 40 steps with 0.3 s of compute and the given load times.
    fn run(load_s: fn(u32, u64) -> f64, start_s: f64) -> Fake {
        // Runs with equal times would count as copies.
        let slower = 1.0 + start_s % 1000.0 / 1e7;
        Fake { files: 1120, load_s, start_s, slower, is_older: true, ..Fake::default() }
    }

    #[test]
    fn each_system_is_compared_with_the_bar_as_reported_and_over_all_steps() {
        let folder = tempfile::tempdir().unwrap();
        let warm = |_, step| if step == 0 { 0.1 } else { 0.02 };
        let cold = |_, step| if step == 0 { 2.1 } else { 0.02 };
        for number in 1..=2 {
            let start_s = 36_000.0 + 100.0 * f64::from(number);
            let name =
                |system: &str| format!("closed/x/results/{system}/unet3d-h100/run_{number}/c1");
            run(warm, start_s).publish(folder.path(), &name("one"));
            run(cold, start_s + 9000.0).publish(folder.path(), &name("two"));
        }
        let mut runs = runs(folder.path());
        let only_as_reported: Vec<bool> = runs.iter().map(passes_only_as_reported).collect();
        assert_eq!(only_as_reported, [false, false, true, true]);
        let found = result_groups(&runs);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        let system = first.submission.as_ref().map(|submission| submission.system.as_str());
        assert_eq!(system, Some("one"));
        assert_eq!(
            (first.runs.len(), first.workload.as_str(), first.bar_percent),
            (2, "fake", Some(90.0))
        );
        let passes = |yes, no| Passes { yes, no, unknown: 0 };
        assert_eq!((first.passes_reported, first.passes_all_steps), (passes(2, 0), passes(2, 0)));
        assert_eq!((second.passes_reported, second.passes_all_steps), (passes(2, 0), passes(0, 2)));
        // 39 × 0.3 ÷ (39 × 0.32), and 40 × 0.3 ÷ (39 × 0.32 + 2.4).
        assert!((second.reported_percent.unwrap() - 93.75).abs() < 1e-3);
        assert!((second.all_steps_percent.unwrap() - 80.645_161).abs() < 1e-2);
        // 2.4 s in units of 4 × 0.3 s.
        assert!((second.first_step_units.unwrap() - 2.0).abs() < 1e-3, "{second:?}");
        runs.iter_mut().for_each(|run| run.bar_percent = Some(94.0));
        assert_eq!(result_groups(&runs)[0].passes_reported, passes(0, 2));
    }

    #[test]
    fn a_system_of_two_rounds_is_two_groups() {
        let folder = tempfile::tempdir().unwrap();
        for (round, start_s) in [("v1.0", 36_000.0), ("v2.0", 46_000.0)] {
            let name = format!("{round}/closed/x/results/one/unet3d-h100/run_1/c1");
            run(|_, _| 0.02, start_s).publish(folder.path(), &name);
        }
        let runs = runs(folder.path());
        let found = result_groups(&runs);
        let systems = found.iter().map(|group| group.submission.as_ref().unwrap().to_string());
        assert_eq!(systems.collect::<Vec<_>>(), ["v1.0/closed/x/one", "v2.0/closed/x/one"]);
    }

    #[test]
    fn writes_and_reads_of_checkpoints_are_one_group() {
        let folder = tempfile::tempdir().unwrap();
        let no_rate = r#""save_checkpoint_io_mean_GB_per_second": NaN"#;
        let summaries = [
            ("a", r#""checkpoint_size_GB": 1.0, "save_checkpoint_io_mean_GB_per_second": 2.0"#),
            ("b", r#""checkpoint_size_GB": 1.0, "load_checkpoint_io_mean_GB_per_second": 4.0"#),
        ];
        for (name, summary) in summaries {
            let name = format!("closed/x/results/y/checkpointing/llama3-8b/{name}");
            let run = Fake { train: false, ..Fake::default() }.write(folder.path(), &name);
            let edit = |file: &str, from: &str, to: &str| {
                let text = std::fs::read_to_string(run.join(file)).unwrap();
                assert!(text.contains(from), "{text}");
                std::fs::write(run.join(file), text.replace(from, to)).unwrap();
            };
            edit(".hydra/config.yaml", "checkpoint: false", "checkpoint: true");
            edit("summary.json", no_rate, summary);
        }
        let found = checkpoint_groups(&runs(folder.path()));
        let [group] = &found[..] else { panic!("{found:?}") };
        let rates = (group.written_bytes_per_second, group.read_bytes_per_second);
        assert_eq!(
            (group.runs.len(), group.bytes, rates),
            (2, Some(GIB), (Some(2.0 * GIB), Some(4.0 * GIB)))
        );
    }

    #[test]
    fn checkpoints_of_feedrate_have_measured_rates() {
        let record = feedrate_measure::example::checkpoint_only_record(3);
        let run = Run::from_record(std::path::Path::new("a"), &record);
        let [group] = &checkpoint_groups(&[run])[..] else { panic!("not one group") };
        // Two checkpoints of 1 GiB in 2 s and 1 s, and one that was read in half a second.
        let rates = (group.written_bytes_per_second, group.read_bytes_per_second);
        assert_eq!((group.bytes, rates), (Some(GIB), (Some(2.0 * GIB / 3.0), Some(2.0 * GIB))));
    }

    #[test]
    fn a_bound_decides_on_one_side_only() {
        let mut run = Run { bound: Some(Bound::AtMost), bar_percent: Some(90.0), ..Run::default() };
        let reaches = |run: &mut Run, percent| {
            let value = Value { number: percent, provenance: Provenance::Recomputed };
            run.values.insert(AU_ALL_STEPS.id, value);
            reaches_over_all_steps(run)
        };
        assert_eq!((reaches(&mut run, 91.0), reaches(&mut run, 89.0)), (None, Some(false)));
        run.bound = Some(Bound::AtLeast);
        assert_eq!((reaches(&mut run, 91.0), reaches(&mut run, 89.0)), (Some(true), None));
    }
}
