//! Results of MLPerf Storage's workloads, judged by its rules: which runs count, whether they keep the rules, and whether each submission has enough
//! of them.

use crate::import::PROVENANCE;
use crate::run::{Activity, MlperfCheck, RuleOutcome, Run, has_warm_up};
use feedrate_measure::dlio::micros;
use feedrate_spec::mlperf::rules::{Edition, SubmissionFacts, judge_submission};
use feedrate_spec::units::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All results of one workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MlperfWorkload<'a> {
    /// Name of the workload.
    pub workload: &'a str,
    /// Number of results that keep all rules. A result is a training run, or the one or two runs that wrote and read checkpoints.
    pub kept: usize,
    /// Number of results that break a rule.
    pub not_kept: usize,
    /// Number of results that break no rule, but could not be checked completely.
    pub unknown: usize,
    /// Outcomes of the rules on all runs of a submission, for each submission.
    pub submissions: Vec<RuleOutcome>,
    /// The results.
    #[serde(skip)]
    pub results: Vec<MlperfResult<'a>>,
}

/// A training run, or the runs that wrote and read checkpoints.
#[derive(Clone, Debug)]
pub struct MlperfResult<'a> {
    /// The runs.
    pub runs: Vec<&'a Run>,
    /// The outcomes of the rules.
    pub check: MlperfCheck,
}

/// A run with the outcomes of the rules for it alone.
struct JudgedRun<'a> {
    run: &'a Run,
    check: MlperfCheck,
}

/// Judges the runs of MLPerf Storage's workloads, sorted by workload. The warm-up runs of submissions do not count.
pub fn judge_workloads<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<MlperfWorkload<'a>> {
    let mut groups: BTreeMap<_, Vec<JudgedRun>> = BTreeMap::new();
    for run in runs {
        let Some(check) = run.mlperf() else { continue };
        let ((source, submission, workload), accelerators, parameter, value) = run.experiment_key();
        // Runs that are named one by one may be those of a submission.
        let source = Path::new(source);
        let root = if run.path == source { source.parent() } else { Some(source) };
        let study = (root, submission, workload);
        // Writing and reading have different settings. A run with other settings is still one of its submission.
        let is_varied = run.activity == Activity::Training && run.submission.is_none();
        let setting = is_varied.then_some((parameter, value));
        groups
            .entry((&*run.workload, study, accelerators, setting))
            .or_default()
            .push(JudgedRun { run, check });
    }
    let mut workloads: Vec<MlperfWorkload> = Vec::new();
    for ((workload, ..), mut members) in groups {
        members.sort_by(|a, b| a.run.start_key().cmp(&b.run.start_key()));
        if workloads.last().is_none_or(|last| last.workload != workload) {
            workloads.push(MlperfWorkload {
                workload,
                kept: 0,
                not_kept: 0,
                unknown: 0,
                submissions: Vec::new(),
                results: Vec::new(),
            });
        }
        let Some(found) = workloads.last_mut() else { continue };
        let first = members[0].run;
        let is_training = first.activity == Activity::Training;
        let edition = first.mlperf_edition().filter(|_| is_training);
        // A run that is named alone is judged without the others of its submission.
        let is_alone = members.len() == 1 && first.path == Path::new(&first.source);
        let is_whole = first.submission.is_some() && !is_alone;
        if let Some(edition) = edition.filter(|_| is_whole) {
            let facts = submission_facts(&members);
            found.submissions.extend(judge_submission(facts, edition).into_iter().map(Into::into));
            if has_warm_up(edition, facts.runs) {
                members.remove(0);
            }
        }
        let results = if is_training {
            members.into_iter().map(|judged| vec![judged]).collect()
        } else {
            paired_invocations(members)
        };
        for mut judged in results {
            let runs: Vec<&Run> = judged.iter().map(|judged| judged.run).collect();
            let check = match runs.len() {
                1 => judged.pop().map(|judged| judged.check),
                _ => MlperfCheck::for_checkpoints(&runs),
            };
            let Some(check) = check else { continue };
            *match check.keeps {
                Some(true) => &mut found.kept,
                Some(false) => &mut found.not_kept,
                None => &mut found.unknown,
            } += 1;
            found.results.push(MlperfResult { runs, check });
        }
    }
    workloads
}

/// Finds the parts that submissions of 3.0 need beside the steps of their runs, and that their folders lack. Rehearsals need none.
pub fn missing_parts<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let mut missing = BTreeSet::new();
    let mut without_provenance = 0;
    for run in runs {
        let submission = run.submission.as_ref().filter(|submission| !submission.is_rehearsal());
        let edition = run.mlperf_edition().or(run.rules_edition).unwrap_or(Edition::V3_0);
        if submission.is_none() || edition != Edition::V3_0 {
            continue;
        }
        let mut above = run.path.ancestors().skip(1);
        let workload = above.next().filter(|folder| folder.ends_with("run")).and(above.next());
        for (workload, part) in workload.into_iter().flat_map(|w| [(w, "datasize"), (w, "datagen")])
        {
            let name = workload.file_name().unwrap_or_default().display();
            if !workload.join(part).is_dir() {
                missing.insert(format!("`{part}/` of {name}"));
            }
        }
        let results = run.path.ancestors().find(|folder| folder.ends_with("results"));
        let submitter = results.and_then(Path::parent);
        if submitter.is_some_and(|submitter| !submitter.join("systems").is_dir()) {
            missing.insert("`systems/` beside `results/`".into());
        }
        without_provenance += u64::from(!run.path.join(PROVENANCE).is_file());
    }
    let provenance = (0 < without_provenance).then(|| {
        let runs = counted(without_provenance, "run");
        format!("`{PROVENANCE}` of {runs}, which only `mlpstorage` writes")
    });
    missing.into_iter().chain(provenance).collect()
}

/// Collects the facts of the runs of a submission, which are in the order of their starts.
fn submission_facts(judged: &[JudgedRun]) -> SubmissionFacts {
    let runs = judged.iter().map(|judged| judged.run);
    let times =
        runs.map(|run| Some([micros(run.started.as_ref()?)?, micros(run.ended.as_ref()?)?]));
    let times: Option<Vec<[i64; 2]>> = times.collect();
    let times = times.unwrap_or_default();
    let longest_gap = times.windows(2).map(|pair| pair[1][0] - pair[0][0]).max();
    let shortest_run = times.iter().map(|[start, end]| end - start).min().filter(|us| 0 < *us);
    SubmissionFacts {
        runs: judged.len() as u64,
        start_gap_ratio: longest_gap.zip(shortest_run).map(|(gap, run)| gap as f64 / run as f64),
    }
}

/// Joins a run that only wrote checkpoints with the next one, if that only read them.
fn paired_invocations(runs: Vec<JudgedRun>) -> Vec<Vec<JudgedRun>> {
    let counts = |judged: &JudgedRun| {
        judged.run.checkpoints.map(|all| [all.alone, all.reads].map(|n| 0 < n.unwrap_or(0)))
    };
    let mut results: Vec<Vec<JudgedRun>> = Vec::new();
    for judged in runs {
        match results.last_mut() {
            Some(last)
                if last.len() == 1
                    && counts(&last[0]) == Some([true, false])
                    && counts(&judged) == Some([false, true]) =>
            {
                last.push(judged);
            }
            _ => results.push(vec![judged]),
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use feedrate_spec::bundled;
    use std::path::PathBuf;

    fn read(root: &Path) -> Vec<Run> {
        read_named(&[root.into()])
    }

    /// Reads runs of which each is named.
    fn read_named(roots: &[PathBuf]) -> Vec<Run> {
        RunIndex::read(roots, &ReadOptions::default()).unwrap().runs
    }

    const H100_S: f64 = 0.323;
    const B200_S: f64 = 0.162;

    /// Writes a run of MLPerf Storage's unet3d: 4 ranks, 500 steps of `compute_s`, and the given memory of the host in GiB.
    fn publish(root: &Path, name: &str, number: u32, memory_gib: Option<f64>, compute_s: f64) {
        let is_older = compute_s == H100_S;
        let fake = Fake {
            files: 7 * 4 * 500,
            record_length: 146_600_628,
            compute_s,
            load_s: |_, step| if step == 0 { 2.0 } else { 0.001 },
            // Runs with equal times would count as copies.
            slower: 1.0 + f64::from(number) / 1e4,
            // A run with the older accelerator takes 14 minutes, one with the newer 7.
            start_s: if is_older { 1000.0 } else { 500.0 } * f64::from(number),
            epochs: 5,
            is_older,
            overrides: vec!["profiling.profiler=none"],
            ..Fake::default()
        };
        let run = fake.publish(root, &format!("closed/x/results/{name}/{number}"));
        let [hydra, workload] =
            if is_older { ["configs", "unet3d_h100"] } else { ["dlio_config", "unet3d_b200"] };
        let official = bundled::find(workload).unwrap().yaml;
        let indented = official.lines().map(|line| match line.split_once("num_files_train: ") {
            Some((before, _)) => format!("  {before}num_files_train: 14000\n"),
            None => format!("  {line}\n"),
        });
        let config = format!("workload:\n{}", indented.collect::<String>());
        let config =
            config.replace("computation_time: 0.162", &format!("computation_time: {compute_s}"));
        std::fs::write(run.join(hydra).join("config.yaml"), config).unwrap();
        edit(
            &run.join(hydra).join("overrides.yaml"),
            "workload=fake",
            &format!("workload={workload}"),
        );
        let memory = memory_gib.map_or("[]".into(), |gib| format!("[{gib}]"));
        edit(&run.join("summary.json"), "[100.0]", &memory);
    }

    fn edit(path: &Path, from: &str, to: &str) {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    #[test]
    fn published_runs_keep_the_rules_unless_their_dataset_is_too_small() {
        let folder = tempfile::tempdir().unwrap();
        // The dataset has 1911.4 GiB.
        for (system, memory_gib) in [
            ("exact", Some(382.3)),
            ("rounded", Some(386.0)),
            ("small", Some(490.0)),
            ("unknown", None),
        ] {
            for number in 1..=5 {
                let name = format!("{system}/unet3d-h100/run_1");
                publish(folder.path(), &name, number, memory_gib, H100_S);
            }
        }
        let runs = read(folder.path());
        let found = judge_workloads(runs.iter());
        let [unet3d] = &found[..] else { panic!("{found:?}") };
        assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.unknown), (10, 5, 5), "{unet3d:?}");
        assert_eq!(unet3d.submissions.len(), 4);
        assert!(unet3d.submissions.iter().all(|outcome| outcome.keeps == Some(true)));
    }

    #[test]
    fn a_submission_of_3_0_has_a_warm_up_that_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=6 {
            let name = "one/training/unet3d_b200/run";
            publish(folder.path(), name, number, Some(100.0), B200_S);
        }
        for number in 11..=15 {
            publish(folder.path(), "two/training/unet3d_b200/run", number, Some(100.0), B200_S);
        }
        for number in 21..=26 {
            publish(folder.path(), "edited/training/unet3d_b200/run", number, Some(100.0), 0.2);
        }
        let runs = read(folder.path());
        let found = judge_workloads(runs.iter());
        let [unet3d] = &found[..] else { panic!("{found:?}") };
        assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.unknown), (10, 5, 0), "{unet3d:?}");
        let keeps = |name| {
            let outcomes = unet3d.submissions.iter().filter(|outcome| outcome.name == name);
            outcomes.map(|outcome| outcome.keeps).collect::<Vec<_>>()
        };
        assert_eq!(keeps("runs"), [Some(true), Some(true), Some(false)]);
        assert_eq!(keeps("gap between starts"), [Some(true); 3]);
        let unused: Vec<&Run> = runs.iter().filter(|run| run.unusable.is_some()).collect();
        assert_eq!(unused.len(), 2);
        assert!(unused.iter().any(|run| run.path.ends_with("one/training/unet3d_b200/run/1")));
        let scored = unet3d.results.iter().flat_map(|result| &result.runs);
        assert!(scored.clone().all(|run| !run.path.ends_with("one/training/unet3d_b200/run/1")));
    }

    #[test]
    fn a_submission_of_3_0_names_its_missing_parts() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=2 {
            publish(folder.path(), "one/training/unet3d/run", number, Some(100.0), B200_S);
        }
        let missing = || missing_parts(read(folder.path()).iter());
        let expected = [
            "`datagen/` of unet3d",
            "`datasize/` of unet3d",
            "`systems/` beside `results/`",
            "`provenance.json` of 2 runs, which only `mlpstorage` writes",
        ];
        assert_eq!(missing(), expected);
        let submitter = folder.path().join("closed/x");
        std::fs::create_dir(submitter.join("systems")).unwrap();
        std::fs::create_dir(submitter.join("results/one/training/unet3d/datagen")).unwrap();
        assert_eq!(missing(), [expected[1], expected[3]]);
        std::fs::rename(submitter, folder.path().join("closed/rehearsal")).unwrap();
        assert_eq!(missing(), Vec::<String>::new());
    }

    #[test]
    fn a_run_with_other_settings_or_named_alone_does_not_split_its_submission() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=6 {
            publish(folder.path(), "one/training/unet3d_b200/run", number, Some(100.0), B200_S);
        }
        let last = folder.path().join("closed/x/results/one/training/unet3d_b200/run/6");
        let list = last.join("dlio_config/overrides.yaml");
        edit(&list, "profiling.profiler=none", "reader.batch_size=8");
        edit(&last.join("dlio_config/config.yaml"), "batch_size: 7", "batch_size: 8");
        let judge = |root: &Path| {
            let runs = read(root);
            let found = judge_workloads(runs.iter());
            let [unet3d] = &found[..] else { panic!("{found:?}") };
            let keeps = unet3d.submissions.iter().map(|outcome| outcome.keeps);
            (unet3d.kept, unet3d.not_kept, keeps.collect::<Vec<_>>())
        };
        assert_eq!(judge(folder.path()), (4, 1, vec![Some(true), Some(true)]));
        assert_eq!(judge(&last), (0, 1, vec![]));
        // All runs named one by one are a submission too, with its warm-up.
        let one_by_one: Vec<PathBuf> =
            (1..=6).map(|number| last.with_file_name(number.to_string())).collect();
        let runs = read_named(&one_by_one);
        let found = judge_workloads(runs.iter());
        let [unet3d] = &found[..] else { panic!("{found:?}") };
        assert_eq!((unet3d.kept, unet3d.not_kept, unet3d.submissions.len()), (4, 1, 2));
    }

    #[test]
    fn the_gap_between_starts_is_relative_to_the_shortest_run() {
        let run = |started: &str, ended: &str| Run {
            started: Some(format!("2026-11-21T10:{started}.000000")),
            ended: Some(format!("2026-11-21T10:{ended}.000000")),
            ..Run::default()
        };
        let check = |runs: &[Run], expected: Option<f64>| {
            let check = || MlperfCheck { edition: "v3.0", keeps: None, rules: Vec::new() };
            let judged: Vec<_> = runs.iter().map(|run| JudgedRun { run, check: check() }).collect();
            assert_eq!(submission_facts(&judged).start_gap_ratio, expected, "{runs:?}");
        };
        let first = || run("00:00", "05:00");
        check(&[first(), run("06:00", "10:00"), run("11:00", "16:00")], Some(1.5));
        // The pauses of overlapping runs would be negative.
        check(&[first(), run("03:00", "08:00")], Some(0.6));
        check(&[first(), run("12:00", "12:00")], None);
        check(&[first(), Run { ended: None, ..run("06:00", "11:00") }], None);
        check(&[first()], None);
    }

    #[test]
    fn writing_and_reading_are_one_result() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, start_s: f64, writes: u32, reads: u32, fsync: bool| {
            let name = format!("closed/x/results/{name}");
            let fake = Fake { train: false, ranks: 8, start_s, ..Fake::default() };
            let run = fake.write(folder.path(), &name);
            edit(&run.join(".hydra/overrides.yaml"), "workload=fake", "workload=llama3_8b");
            let checkpoint = format!(
                "checkpoint: true}}\n  checkpoint: {{fsync: {fsync}, num_checkpoints_write: {writes}, num_checkpoints_read: {reads}}}"
            );
            edit(&run.join(".hydra/config.yaml"), "checkpoint: false}", &checkpoint);
        };
        write("a/checkpointing/llama3-8b/run/20260101_000001", 1000.0, 10, 0, true);
        write("a/checkpointing/llama3-8b/run/20260101_000002", 1010.0, 0, 10, true);
        write("b/checkpointing/llama3-8b/run/20260101_000003", 2000.0, 10, 10, false);
        let runs = read(folder.path());
        let found = judge_workloads(runs.iter());
        let [llama] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            llama.results.iter().map(|result| result.runs.len()).collect::<Vec<_>>(),
            [2, 1]
        );
        let outcome = |result: usize, name: &str| {
            let rules = &llama.results[result].check.rules;
            rules.iter().find(|rule| rule.name == name).unwrap().keeps
        };
        assert_eq!(
            [outcome(0, "writes and reads"), outcome(1, "writes and reads")],
            [Some(true); 2]
        );
        assert_eq!([outcome(0, "fsync"), outcome(1, "fsync")], [Some(true), Some(false)]);
        assert_eq!([outcome(0, "processes"), outcome(0, "subset mode")], [Some(true); 2]);
    }
}
