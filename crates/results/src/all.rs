//! All runs below some folders, with their numbers and the doubts they deserve, alone and among each other. Reads files; prints nothing.

use crate::case::{Case, Loaded, Names, load, number_replicates, tell_apart};
use crate::doubt;
use crate::import::{Found, Kind, find};
use crate::runs::{LeftOut, RunsError, folders_of_study};
use crate::set::Set;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, doubts as of_records};
use feedrate_measure::record::file::RECORD_FILE;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// In the order of their sources and paths.
    pub runs: Vec<Case>,
    /// Folders that are there and cannot be read.
    pub left_out: Vec<LeftOut>,
}

/// Analyse all runs below `sources`, each a folder or the CSV of a study, on so many threads.
///
/// # Errors
/// A source cannot be looked into, or none holds a run.
pub fn analyse(sources: &[PathBuf], threads: usize) -> Result<Analysis, RunsError> {
    let mut analysis = Analysis::default();
    let mut folders: Vec<(Found, String)> = Vec::new();
    let mut known = HashSet::new();
    for source in sources {
        let (found, closed) = folders_of(source)?;
        let name = source.display().to_string();
        analysis.left_out.extend(closed);
        for one in found {
            let path = std::fs::canonicalize(&one.path).unwrap_or_else(|_| one.path.clone());
            if known.insert(path) {
                folders.push((one, name.clone()));
            }
        }
    }
    for (folder, read) in folders.iter().zip(read_all(&folders, threads)) {
        match read {
            Ok(case) => analysis.runs.push(case),
            Err(why) => analysis.left_out.push(LeftOut { path: folder.0.path.clone(), why }),
        }
    }
    if analysis.runs.is_empty() && analysis.left_out.is_empty() {
        return Err(RunsError::Nothing(sources.first().cloned().unwrap_or_default()));
    }
    name_what_is_varied(&mut analysis.runs);
    tell_apart(&mut analysis.runs);
    number_replicates(&mut analysis.runs);
    judge(&mut analysis.runs);
    Ok(analysis)
}

fn folders_of(source: &Path) -> Result<(Vec<Found>, Vec<LeftOut>), RunsError> {
    if source.is_file() {
        let (folders, left_out) = folders_of_study(source)?;
        let kind = |path: &Path| match path.join(RECORD_FILE).is_file() {
            true => Kind::Record,
            false => Kind::Dlio,
        };
        let found = folders.into_iter().map(|path| Found { kind: kind(&path), path });
        return Ok((found.collect(), left_out));
    }
    let failed = |error| RunsError::Io { path: source.into(), source: error };
    let (found, closed) = find(source).map_err(failed)?;
    let closed = closed.into_iter().map(|(path, why)| LeftOut { path, why });
    Ok((found, closed.collect()))
}

/// In the order of `folders`. What a run's steps say is kept only as far as cases have it, so that memory does not grow with steps.
fn read_all(folders: &[(Found, String)], threads: usize) -> Vec<Result<Case, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((found, source)) = folders.get(index) else { return read };
            let loaded = load(&found.path, found.kind, source);
            read.push((index, loaded.map(with_own_doubts)));
        }
    };
    let mut all: Vec<(usize, Result<Case, String>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(read) => all.extend(read),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, read)| read).collect()
}

/// A case and the doubts that it deserves by itself.
fn with_own_doubts(loaded: Loaded) -> Case {
    let mut doubts = doubt::of_run(&loaded);
    let is_known = match &loaded.imported {
        None => true,
        // Where nothing was trained there is nothing to doubt.
        Some(imported) => imported.trains(),
    };
    if is_known {
        let knows_loader = loaded.imported.as_ref().is_none_or(|one| one.config.is_known());
        let of_loader = ["too_few_steps", "window_shorter_than_stock"];
        let derived = Derived::new(&loaded.record);
        let of_steps = of_records(&derived).into_iter();
        doubts.extend(of_steps.filter(|d| knows_loader || !of_loader.contains(&d.name.as_str())));
    }
    Case { doubts, ..loaded.case }
}

fn judge(cases: &mut [Case]) {
    let set = Set::of(cases);
    let of_set: Vec<Vec<Doubt>> =
        (0..cases.len()).map(|index| doubt::of_set(&set, index)).collect();
    let read: Vec<Option<f64>> = (0..cases.len())
        .map(|index| set.stale(index).map(|stale| cases[stale.of].mean_sample_bytes))
        .map(Option::flatten)
        .collect();
    let is_stale: Vec<bool> = (0..cases.len()).map(|index| set.stale(index).is_some()).collect();
    for (index, (case, doubts)) in cases.iter_mut().zip(of_set).enumerate() {
        if is_stale[index] {
            case.read_bytes(read[index]);
            // Of sizes that were not read.
            case.doubts.retain(|doubt| doubt.name != "nominal_bytes");
        }
        case.doubts.extend(doubts);
        doubt::in_order(&mut case.doubts);
    }
}

/// Of runs of the same source and workload that differ, what all of them set is not what is varied.
fn name_what_is_varied(cases: &mut [Case]) {
    let mut studies: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        studies.entry((case.source.clone(), case.workload.clone())).or_default().push(index);
    }
    for members in studies.into_values() {
        let of_results = members.iter().map(|&index| &cases[index]).filter(|case| case.is_result());
        let told = of_results.map(|case| (case.accelerators, &case.overrides));
        let told: Vec<(Option<u32>, &Vec<String>)> = told.collect();
        let Some((first, rest)) = told.split_first() else { continue };
        if rest.iter().all(|other| other == first) {
            continue;
        }
        let is_shared = |text: &&String| rest.iter().all(|(_, others)| others.contains(text));
        let shared: Vec<String> = first.1.iter().filter(is_shared).cloned().collect();
        for &index in &members {
            let case = &mut cases[index];
            (case.parameter, case.value) =
                Names::of(&case.path).varied_beside(&case.overrides, &shared, case.accelerators);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fake::Fake;
    use std::fs;

    /// A linear congruential generator (Knuth, TAOCP 3.3.4, table 1, line 26), so that damage is the same each time.
    fn next(seed: &mut u64) -> usize {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize
    }

    #[test]
    fn no_damage_stops_the_analysis() {
        let folder = tempfile::tempdir().unwrap();
        let small = Fake { ranks: 2, files: 28, stdev: 1000, ..Fake::default() };
        let run = small.write(folder.path(), "fake/2/2025-11-30-10-00-00");
        let names = [
            "summary.json",
            "0_output.json",
            "1_per_epoch_stats.json",
            "dlio.log",
            ".hydra/config.yaml",
            ".hydra/overrides.yaml",
        ];
        let with: [&[u8]; 10] =
            [b"", b"\"", b"-", b"9999999999", b"NaN", b"[", b"{}", b"\xff", b"null", b"\\"];
        let mut seed = 7;
        for name in names {
            let path = run.join(name);
            let whole = fs::read(&path).unwrap();
            for _ in 0..60 {
                let mut bytes = whole.clone();
                for _ in 0..=next(&mut seed) % 3 {
                    let at = next(&mut seed) % bytes.len();
                    let end = (at + next(&mut seed) % 4).min(bytes.len());
                    bytes.splice(at..end, with[next(&mut seed) % with.len()].iter().copied());
                }
                if next(&mut seed).is_multiple_of(4) {
                    bytes.truncate(next(&mut seed) % whole.len());
                }
                fs::write(&path, &bytes).unwrap();
                let found = analyse(&[folder.path().to_path_buf()], 1).unwrap();
                assert_eq!(found.runs.len(), 1, "{name}: {}", String::from_utf8_lossy(&bytes));
                assert!(serde_json::to_string(&found.runs).is_ok());
            }
            fs::write(path, whole).unwrap();
        }
    }

    #[test]
    fn what_all_runs_override_is_not_what_is_varied() {
        let folder = tempfile::tempdir().unwrap();
        for (name, batch) in [("a", "reader.batch_size=7"), ("b", "reader.batch_size=14")] {
            let overrides = vec!["dataset.num_files_train=168", batch];
            Fake { overrides, ..Fake::default() }.write(folder.path(), name);
        }
        let found = analyse(&[folder.path().to_path_buf()], 2).unwrap();
        let varied: Vec<(&str, &str)> =
            found.runs.iter().map(|run| (run.parameter.as_str(), run.value.as_str())).collect();
        assert_eq!(varied, [("batch_size", "7"), ("batch_size", "14")]);
        let one = analyse(&[folder.path().join("a")], 2).unwrap();
        assert_eq!(one.runs[0].parameter, "num_files_train,batch_size");
        let twice = analyse(&[folder.path().to_path_buf(), folder.path().join("a")], 2).unwrap();
        assert_eq!(twice.runs.len(), 2, "a folder is one run, however often it is named");
    }

    #[test]
    fn what_all_runs_set_names_no_baseline() {
        let folder = tempfile::tempdir().unwrap();
        let all = "dataset.num_files_train=168";
        for (ranks, name, own) in [
            (2, "2_num_files_train=168", None),
            (4, "4_num_files_train=168", None),
            (4, "4_num_files_train=168,read_threads=8", Some("reader.read_threads=8")),
        ] {
            let overrides: Vec<&str> = [all].into_iter().chain(own).collect();
            let fake = Fake { ranks, overrides, ..Fake::default() };
            fake.write(folder.path(), &format!("fake/{name}/2025-11-30-10-00-00"));
        }
        let found = analyse(&[folder.path().to_path_buf()], 2).unwrap();
        let varied: Vec<String> =
            found.runs.iter().map(|run| format!("{} {}", run.parameter, run.value)).collect();
        assert_eq!(varied, ["processes 2", "processes 4", "read_threads 8"]);
    }

    fn edit(run: &Path, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(run.join(name)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(run.join(name), text.replace(from, to)).unwrap();
    }

    #[test]
    fn every_override_is_a_setting_but_those_of_places() {
        let folder = tempfile::tempdir().unwrap();
        let overrides = vec![
            "workflow.checkpoint=True",
            "evaluation.eval_time=0.5",
            "reader.preprocess_time={mean: 0.1}",
            "dataset.data_folder=/elsewhere",
            "metric.au=0.7",
        ];
        let run = Fake { overrides, ..Fake::default() }.write(folder.path(), "a");
        edit(&run, ".hydra/config.yaml", "checkpoint: false", "checkpoint: true");
        edit(
            &run,
            ".hydra/config.yaml",
            "  train: {",
            "  evaluation: {eval_time: 0.5}\n  train: {",
        );
        edit(&run, ".hydra/config.yaml", "reader: {", "reader: {preprocess_time: {mean: 0.1}, ");
        let settings = |run: &Path| analyse(&[run.into()], 1).unwrap().runs[0].settings.clone();
        let found = settings(&run);
        for (key, expected) in [
            ("checkpoint.format", Some("true")),
            ("evaluation.eval_time", Some("0.5")),
            ("reader.preprocess_time.mean", Some("0.1")),
            ("loader.prefetch_size", Some("2")),
            ("dataset.data_folder", None),
            ("metric.au", None),
        ] {
            assert_eq!(found.get(key).map(String::as_str), expected, "{key}");
        }
        // Overrides alone tell some of it.
        fs::remove_file(run.join(".hydra/config.yaml")).unwrap();
        assert_eq!(settings(&run).get("evaluation.eval_time").map(String::as_str), Some("0.5"));
    }

    #[test]
    fn an_edited_config_and_another_machine_make_no_replicates() {
        let folder = tempfile::tempdir().unwrap();
        let write = |second: u32, hostname: &'static str| {
            let start_s = 36_000.0 + 60.0 * f64::from(second);
            let fake = Fake { start_s, hostname, ..Fake::default() };
            fake.write(folder.path(), &format!("fake/4/2025-11-30-10-0{second}-00"))
        };
        let edited: Vec<PathBuf> = [(1, "node1"), (2, "node1"), (3, "node2"), (4, "node1")]
            .map(|(second, host)| write(second, host))
            .into();
        edit(
            &edited[1],
            ".hydra/config.yaml",
            "record_length_bytes_stdev: 0",
            "record_length_bytes_stdev: 5",
        );
        edit(&edited[1], ".hydra/config.yaml", "{name: fake, ", "{name: fake, x: y, ");
        let varied = || -> Vec<(String, String, Option<u32>)> {
            let found = analyse(&[folder.path().into()], 1).unwrap().runs.into_iter();
            found.map(|run| (run.parameter, run.value, run.replicate)).collect()
        };
        let one = |parameter: &str, value: &str, replicate: u32| {
            (parameter.to_string(), value.to_string(), Some(replicate))
        };
        let expected = [
            one("processes", "4", 1),
            one("record_length_bytes_stdev,model.x", "5,y", 1),
            one("host", "node2", 1),
            one("processes", "4", 2),
        ];
        assert_eq!(varied(), expected);
        // Of two machines with two runs each none is the usual one.
        write(2, "node2");
        let hosts: Vec<String> = varied().into_iter().map(|(_, value, _)| value).collect();
        assert_eq!(hosts, ["node1", "node2", "node2", "node1"]);
        let found = analyse(&[folder.path().into()], 1).unwrap();
        let mut doubts = found.runs.iter().flat_map(|run| &run.doubts);
        assert!(!doubts.any(|doubt| doubt.name == "other_machine"));
    }
}
