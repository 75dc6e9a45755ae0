//! Datasets that are not those of the run that read them.

use super::{analysed, check, large};
use crate::import::fake::Fake;
use feedrate_measure::metric::DELIVERED_WHOLE;
use feedrate_spec::units::MIB;
use std::fs;
use std::path::Path;

#[test]
fn a_run_that_read_what_another_generated_is_stale() {
    let stale = ["4_read_threads_4/later"];
    let rows = |root: &Path, slower: f64| {
        Fake { start_s: 100.0, generate: true, train: false, ..Fake::default() }
            .write(root, "fake/4/made");
        Fake { start_s: 200.0, ..Fake::default() }.write(root, "fake/4/first");
        let over = vec!["dataset.record_length_bytes=400000000"];
        let made = Fake {
            start_s: 300.0,
            generate: true,
            train: false,
            overrides: over.clone(),
            ..large()
        };
        made.write(root, "fake/4_record_length_bytes_400000000/made");
        Fake { start_s: 400.0, overrides: over, ..large() }
            .write(root, "fake/4_record_length_bytes_400000000/run");
        let later = Fake {
            start_s: 500.0,
            slower,
            overrides: vec!["reader.read_threads=4"],
            ..Fake::default()
        };
        later.write(root, "fake/4_read_threads_4/later");
    };
    check("stale_data", &stale, "made last by `4_record_length_bytes_400000000/made`", |root| {
        rows(root, 4.0)
    });
    check("stale_data", &stale, "to 0.0 %", |root| rows(root, 4.0));
    // Its steps are those of its own dataset: somebody made it again.
    check("stale_data", &[], "", |root| rows(root, 1.0));
    // It is like neither: a cache may have made it so.
    check("stale_data", &stale, "misses that of", |root| rows(root, 2.0));
    let (_folder, analysis) = analysed(|root| rows(root, 4.0));
    let run = analysis.runs.iter().find(|run| run.path.ends_with("later")).unwrap();
    assert_eq!(run.mean_sample_bytes, Some(400_000_000.0), "what it read");
    let read = run.metric(&DELIVERED_WHOLE).unwrap() / MIB;
    for (name, evidence) in [
        ("stale_data", format!("over whole epochs it read {read:.0} MiB/s")),
        ("cache_unseen", "the dataset has 67.2 GB".into()),
    ] {
        let doubt = run.doubts.iter().find(|doubt| doubt.name == name).unwrap();
        assert!(doubt.evidence.contains(&evidence), "{}", doubt.evidence);
    }
}

#[test]
fn what_clears_a_run_clears_those_after_it() {
    let rows = |root: &Path, slower: f64| {
        Fake { start_s: 200.0, ..Fake::default() }.write(root, "fake/4/first");
        let over = vec!["dataset.record_length_bytes=400000000"];
        let name = "fake/4_record_length_bytes_400000000";
        let large = || Fake { overrides: over.clone(), ..large() };
        Fake { start_s: 300.0, generate: true, train: false, ..large() }
            .write(root, &format!("{name}/made"));
        Fake { start_s: 400.0, ..large() }.write(root, &format!("{name}/run"));
        // Its own dataset again, or not; and one of which nothing else can be told.
        Fake { start_s: 500.0, slower, ..Fake::default() }.write(root, "fake/4/again");
        Fake { start_s: 600.0, slower, ranks: 2, ..Fake::default() }.write(root, "fake/2/after");
    };
    check("stale_data", &[], "", |root| rows(root, 1.0));
    check("stale_data", &["2/after", "4/again"], "made last by", |root| rows(root, 4.0));
}

#[test]
fn waits_that_follow_the_own_sizes_clear_a_run() {
    // As far as generations tell, it read records of 512 MiB, whose first batches hardly differ.
    let run = |root: &Path, load_s: fn(u32, u64) -> f64| {
        let drawn = |record_length| Fake {
            record_length,
            stdev: 68_341_808,
            epochs: 3,
            load_s,
            ..Fake::default()
        };
        Fake { start_s: 200.0, generate: true, train: false, ..drawn(536_870_912) }
            .write(root, "w/4/made");
        Fake { start_s: 400.0, ..drawn(146_600_628) }.write(root, "w/4/run");
    };
    check("stale_data", &[], "", |root| run(root, follows));
    check("stale_data", &["4/run"], "those of its own by", |root| run(root, flat));
    // So it is where the generation had other ranks than the run.
    check("stale_data", &[], "", |root| {
        run(root, follows);
        let made = Fake { record_length: 536_870_912, stdev: 68_341_808, ..Fake::default() };
        Fake { ranks: 8, start_s: 300.0, generate: true, train: false, ..made }
            .write(root, "w/8/made");
    });
    // A cache makes the waits as short as those of its own would be, and leaves their shape.
    let cached = |root: &Path| {
        run(root, |rank, step| flat(rank, step) / 3.57);
        let twin =
            Fake { record_length: 536_870_912, stdev: 68_341_808, epochs: 3, ..Fake::default() };
        Fake { start_s: 300.0, load_s: flat, ..twin }.write(root, "w/4/twin");
    };
    check("stale_data", &["4/run"], "misses that of `4/twin` by 72.0 %", cached);
}

/// First batches of ranks 0 to 3 have 1.06, 0.95, 0.97 and 1.02 GB.
fn follows(rank: u32, step: u64) -> f64 {
    if step == 0 { [6.72, 5.92, 6.13, 6.43][rank as usize] } else { 0.0 }
}

fn flat(rank: u32, step: u64) -> f64 {
    if step == 0 { [15.3, 15.1, 15.2, 15.2][rank as usize] } else { 0.0 }
}

#[test]
fn of_two_datasets_that_took_as_long_both_runs_are_named() {
    check("sizes_not_seen", &["4/small", "4/x"], "it cannot be told which", |root| {
        Fake { slower: 4.0, ..Fake::default() }.write(root, "w/4/x");
        Fake { start_s: 37_000.0, record_length: 50_000_000, slower: 4.0, ..Fake::default() }
            .write(root, "w/4/small");
    });
}

#[test]
fn a_generation_that_left_only_a_log_counts_too() {
    // So DLIO leaves it without checkpoints: no summary, no host, no folder.
    let only_a_log = |root: &Path, log: bool| {
        let made = Fake { start_s: 36_000.0, generate: true, train: false, ranks: 0, ..large() };
        let made = made.write(root, "w/4_record_length_bytes_400000000/2025-11-30-10-00-00");
        fs::remove_file(made.join("summary.json")).unwrap();
        if log {
            let text = fs::read_to_string(made.join("dlio.log")).unwrap();
            fs::write(
                made.join("dlio.log"),
                text.split_once("[OUTPUT] 2025-11-30T10:00:00.000000 Saved").unwrap().0,
            )
            .unwrap();
        } else {
            fs::remove_file(made.join("dlio.log")).unwrap();
        }
        Fake { start_s: 37_000.0, ..Fake::default() }.write(root, "w/4/run");
    };
    check("stale_data", &["4/run"], "made last by `4_record_length", |root| only_a_log(root, true));
    check("stale_data", &["4/run"], "made last by `4_record_length", |root| {
        only_a_log(root, false)
    });
}

#[test]
fn waits_that_do_not_follow_sizes_are_told() {
    let drawn = |load_s: fn(u32, u64) -> f64| Fake {
        record_length: 146_600_628,
        stdev: 68_341_808,
        epochs: 3,
        load_s,
        ..Fake::default()
    };
    check("sizes_not_seen", &[], "", |root| drop(drawn(follows).write(root, "w/4/a")));
    // Of a run alone nobody knows whether the storage shows sizes at all.
    check("sizes_not_seen", &[], "", |root| drop(drawn(flat).write(root, "w/4/a")));
    check("sizes_not_seen", &["4/a"], "deviate by 5.1 % in bytes", |root| {
        drawn(flat).write(root, "w/4/a");
        drawn(follows).write(root, "w/4/b");
    });
    let slow_rank = |rank, step| follows(rank, step) * if rank == 2 { 2.5 } else { 1.0 };
    check("sizes_not_seen", &[], "", |root| drop(drawn(slow_rank).write(root, "w/4/a")));
}
