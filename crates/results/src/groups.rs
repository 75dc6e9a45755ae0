//! Runs of one experiment against the bar that is set for it: as they report themselves, and over all steps.

use crate::import::Bound;
use crate::run::{Activity, Run, Submission, grouped};
use crate::setting::by_number;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::stats::mean;
use feedrate_spec::units::GIB;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;

/// Runs of one source, system, workload, accelerators and setting, of those that may be used.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Run`")]
pub struct ResultGroup {
    pub source: String,
    pub submission: Option<Submission>,
    pub workload: String,
    pub accelerators: Option<u32>,
    pub parameter: String,
    pub value: String,
    /// Runs that may be used, as indexes.
    pub runs: Vec<usize>,
    /// Those that must not be.
    pub left_out: usize,
    /// The least utilisation asked for; `None` where it is not known, or not the same for all.
    pub bar_percent: Option<f64>,
    pub reported_percent: Option<f64>,
    pub all_steps_percent: Option<f64>,
    /// The side on which that of a run lies, where it is no more than a bound.
    pub bound: Option<Bound>,
    /// Runs that reach the bar.
    pub passes_reported: Passes,
    pub passes_all_steps: Passes,
    pub first_step_s: Option<f64>,
    /// The same in units of reading threads × compute of a step: what threads can stock up while one step computes.
    pub first_step_units: Option<f64>,
}

/// Runs by whether they reach the bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Passes {
    pub yes: usize,
    pub no: usize,
    pub unknown: usize,
}

impl Passes {
    /// By the AU of all steps.
    pub fn over_all_steps<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        Self::count(runs, reaches_over_all_steps)
    }

    /// By the AU that the runs report.
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

/// Whether a run reaches its bar; `None` where that is not known.
type Reaches = fn(&Run) -> Option<bool>;

/// Whether a run reaches its bar as it reports itself, and not over all steps.
pub fn passes_as_reported_alone(run: &Run) -> bool {
    [reaches_as_reported(run), reaches_over_all_steps(run)] == [Some(true), Some(false)]
}

/// The groups: those of one source, system and workload together, by accelerators and what is set.
pub fn result_groups(runs: &[Run]) -> Vec<ResultGroup> {
    let groups = groups_of(runs, Run::is_result);
    groups.iter().map(|members| group(runs, members)).collect()
}

/// Runs of one source, system, workload and accelerators that wrote or read checkpoints and trained nothing. Means of what those report that report it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Run`")]
pub struct CheckpointGroup {
    pub source: String,
    pub submission: Option<Submission>,
    pub workload: String,
    pub accelerators: Option<u32>,
    /// As indexes.
    pub runs: Vec<usize>,
    pub bytes: Option<f64>,
    pub written_bytes_per_second: Option<f64>,
    pub read_bytes_per_second: Option<f64>,
}

/// Their groups, in the same order.
pub fn checkpoint_groups(runs: &[Run]) -> Vec<CheckpointGroup> {
    let groups = groups_of(runs, |run| run.activity == Activity::Checkpoints);
    let groups = groups.into_iter().map(|members| {
        let first = &runs[members[0]];
        let told = |key: &str| {
            let told = members.iter().filter_map(|&index| runs[index].reported.get(key));
            mean(&told.filter(|gib| 0.0 < **gib).map(|gib| gib * GIB).collect::<Vec<f64>>())
        };
        CheckpointGroup {
            source: first.source.clone(),
            submission: first.submission.clone(),
            workload: first.workload.clone(),
            accelerators: first.accelerators,
            bytes: told("checkpoint_size_GB"),
            written_bytes_per_second: told("save_checkpoint_io_mean_GB_per_second"),
            read_bytes_per_second: told("load_checkpoint_io_mean_GB_per_second"),
            runs: members,
        }
    });
    groups.collect()
}

fn system(run: &Run) -> (&str, Option<&Submission>, &str, Option<u32>) {
    (&run.source, run.submission.as_ref(), &run.workload, run.accelerators)
}

fn groups_of(runs: &[Run], is_member: impl Fn(&Run) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> =
        grouped(runs, is_member, Run::experiment_key).into_values().collect();
    groups.sort_unstable();
    groups.sort_by(|a, b| {
        let [a, b] = [&runs[a[0]], &runs[b[0]]];
        let levels = a.settings.iter().zip(&b.settings);
        let mut levels =
            levels.map(|(a, b)| a.0.cmp(b.0).then(by_number(a.1, b.1)).then(a.1.cmp(b.1)));
        system(a)
            .cmp(&system(b))
            .then_with(|| levels.find(|by| by.is_ne()).unwrap_or(Ordering::Equal))
    });
    groups
}

fn group(runs: &[Run], members: &[usize]) -> ResultGroup {
    let first = &runs[members[0]];
    let used: Vec<usize> =
        members.iter().copied().filter(|&index| runs[index].unusable.is_none()).collect();
    let bar_percent = first
        .bar_percent
        .filter(|bar| members.iter().all(|&index| runs[index].bar_percent == Some(*bar)));
    let of = |value: &dyn Fn(&Run) -> Option<f64>| {
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
        reported_percent: of(&Run::reported_au_percent),
        all_steps_percent: of(&|run| run.metric(&AU_ALL_STEPS)),
        bound: used.iter().find_map(|&index| runs[index].bound),
        passes_reported: Passes::as_reported(used.iter().map(|&index| &runs[index])),
        passes_all_steps: Passes::over_all_steps(used.iter().map(|&index| &runs[index])),
        first_step_s: of(&|run| run.step_times.first_step_s),
        first_step_units: of(&first_step_units),
        runs: used,
    }
}

fn reaches_as_reported(run: &Run) -> Option<bool> {
    Some(run.bar_percent? <= run.reported_au_percent()?)
}

/// A bound tells only where it lies on the bar's other side.
fn reaches_over_all_steps(run: &Run) -> Option<bool> {
    let reaches = run.bar_percent? <= run.metric(&AU_ALL_STEPS)?;
    let is_told = match run.bound {
        None => true,
        Some(Bound::AtMost) => !reaches,
        Some(Bound::AtLeast) => reaches,
    };
    is_told.then_some(reaches)
}

/// Duration of the first step in units of reading threads × compute of a step: what the threads can read ahead while one step computes.
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
    use std::path::Path;

    fn runs(root: &Path) -> Vec<Run> {
        RunIndex::read(&[root.into()], &ReadOptions::default()).unwrap().runs
    }

    /// 40 steps of 0.3 s, of which the first waits for `first` seconds and all others 0.02 s.
    fn run(load_s: fn(u32, u64) -> f64, start_s: f64) -> Fake {
        // Runs of the same times would be copies.
        let slower = 1.0 + start_s % 1000.0 / 1e7;
        Fake { files: 1120, load_s, start_s, slower, is_older: true, ..Fake::default() }
    }

    #[test]
    fn each_system_is_held_to_the_bar_as_reported_and_over_all_steps() {
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
        let alone: Vec<bool> = runs.iter().map(passes_as_reported_alone).collect();
        assert_eq!(alone, [false, false, true, true]);
        let found = result_groups(&runs);
        let [one, two] = &found[..] else { panic!("{found:?}") };
        assert_eq!(one.submission.as_ref().map(|of| of.system.as_str()), Some("one"));
        assert_eq!(
            (one.runs.len(), one.workload.as_str(), one.bar_percent),
            (2, "fake", Some(90.0))
        );
        let all = |yes, no| Passes { yes, no, unknown: 0 };
        assert_eq!((one.passes_reported, one.passes_all_steps), (all(2, 0), all(2, 0)));
        assert_eq!((two.passes_reported, two.passes_all_steps), (all(2, 0), all(0, 2)));
        // 39 × 0.3 ÷ (39 × 0.32), and 40 × 0.3 ÷ (39 × 0.32 + 2.4).
        assert!((two.reported_percent.unwrap() - 93.75).abs() < 1e-3);
        assert!((two.all_steps_percent.unwrap() - 80.645_161).abs() < 1e-2);
        // 2.4 s in units of 4 × 0.3 s.
        assert!((two.first_step_units.unwrap() - 2.0).abs() < 1e-3, "{two:?}");
        runs.iter_mut().for_each(|run| run.bar_percent = Some(94.0));
        assert_eq!(result_groups(&runs)[0].passes_reported, all(0, 2));
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
        let systems = found.iter().map(|one| one.submission.as_ref().unwrap().to_string());
        assert_eq!(systems.collect::<Vec<_>>(), ["v1.0/closed/x/one", "v2.0/closed/x/one"]);
    }

    #[test]
    fn checkpoints_of_a_system_are_one_group_whoever_wrote_and_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let none = r#""save_checkpoint_io_mean_GB_per_second": NaN"#;
        let told = [
            ("a", r#""checkpoint_size_GB": 1.0, "save_checkpoint_io_mean_GB_per_second": 2.0"#),
            ("b", r#""checkpoint_size_GB": 1.0, "load_checkpoint_io_mean_GB_per_second": 4.0"#),
        ];
        for (name, told) in told {
            let name = format!("closed/x/results/y/checkpointing/llama3-8b/{name}");
            let run = Fake { train: false, ..Fake::default() }.write(folder.path(), &name);
            let edit = |file: &str, from: &str, to: &str| {
                let text = std::fs::read_to_string(run.join(file)).unwrap();
                assert!(text.contains(from), "{text}");
                std::fs::write(run.join(file), text.replace(from, to)).unwrap();
            };
            edit(".hydra/config.yaml", "checkpoint: false", "checkpoint: true");
            edit("summary.json", none, told);
        }
        let found = checkpoint_groups(&runs(folder.path()));
        let [one] = &found[..] else { panic!("{found:?}") };
        let rates = (one.written_bytes_per_second, one.read_bytes_per_second);
        assert_eq!(
            (one.runs.len(), one.bytes, rates),
            (2, Some(GIB), (Some(2.0 * GIB), Some(4.0 * GIB)))
        );
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
