//! Histories of one folder of data: which runs found the dataset of another.

use crate::import::fake::Fake;
use crate::index::{ReadOptions, RunIndex};
use crate::run::Run;
use std::fs;

/// A folder and what is changed in its files: name, from, to.
struct Step {
    name: &'static str,
    fake: Fake,
    edits: Vec<(&'static str, &'static str, &'static str)>,
    has_config: bool,
}

const CONFIG: &str = ".hydra/config.yaml";
const LARGE_MADE: &str = "4_record_length_bytes_400000000/made";
const LARGE_RUN: &str = "4_record_length_bytes_400000000/run";

impl Step {
    fn edit(mut self, file: &'static str, from: &'static str, to: &'static str) -> Self {
        self.edits.push((file, from, to));
        self
    }

    /// Add a line to `dataset`.
    fn dataset(self, from: &'static str, to: &'static str) -> Self {
        self.edit(CONFIG, from, to)
    }

    fn reader(self, to: &'static str) -> Self {
        self.edit(CONFIG, "read_threads: 4}", to)
    }

    fn with(mut self, change: impl Fn(&mut Fake)) -> Self {
        change(&mut self.fake);
        self
    }

    fn without_config(mut self) -> Self {
        self.has_config = false;
        self
    }

    /// Its generation ended in an error.
    fn failed(self) -> Self {
        self.edit("dlio.log", "Generation done", "Cannot write")
    }

    fn on(self, hostname: &'static str) -> Self {
        self.with(|fake| fake.hostname = hostname)
    }
}

fn run(name: &'static str) -> Step {
    Step { name, fake: Fake::default(), edits: Vec::new(), has_config: true }
}

/// A run whose records are four times as long.
fn large(name: &'static str) -> Step {
    run(name).with(|fake| fake.record_length = 400_000_000)
}

fn made(step: Step) -> Step {
    step.with(|fake| (fake.generate, fake.train) = (true, false))
}

/// Small records are made and read, then large ones.
fn history(then: Vec<Step>) -> Vec<Step> {
    let mut steps =
        vec![made(run("4/made")), run("4/first"), made(large(LARGE_MADE)), large(LARGE_RUN)];
    steps.extend(then);
    steps
}

/// Checks that of `steps`, a quarter of an hour apart, the `expected` runs are stale.
fn check(why: &str, steps: Vec<Step>, expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for (place, step) in steps.into_iter().enumerate() {
        let fake = Fake { start_s: 900.0 * (place + 1) as f64, ..step.fake };
        let written = fake.write(folder.path(), &format!("fake/{}", step.name));
        for (file, from, to) in step.edits {
            let path = written.join(file);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{why}: no {from} in {text}");
            fs::write(path, text.replace(from, to)).unwrap();
        }
        if !step.has_config {
            fs::remove_dir_all(written.join(".hydra")).unwrap();
        }
    }
    let index = RunIndex::read(&[folder.path().into()], &ReadOptions::default()).unwrap();
    let is_stale = |run: &&Run| run.doubts.iter().any(|doubt| doubt.name == "stale_data");
    let stale: Vec<String> = index.runs.iter().filter(is_stale).map(Run::short_path).collect();
    assert_eq!(stale, expected, "{why}");
}

#[test]
fn whatever_a_later_run_varies_it_read_the_last_dataset() {
    let stale = |step: Step| {
        let name = step.name;
        check(name, history(vec![step]), &[name]);
    };
    stale(run("4/again"));
    let eight = "read_threads: 4, prefetch_size: 8}";
    stale(run("4_prefetch_size_8/x").reader(eight));
    stale(run("4_batch_size_14/x").with(|fake| fake.batch = 14));
    stale(run("4_epochs_5/x").with(|fake| fake.epochs = 5));
    stale(run("2/x").with(|fake| fake.ranks = 2));
    stale(run("4_num_files_train_84/x").with(|fake| fake.files = 84));
    stale(run("4_record_length_bytes_200000000/x").with(|fake| fake.record_length = 200_000_000));
    stale(
        run("4_checkpoint_False/x").with(|fake| fake.overrides = vec!["workflow.checkpoint=False"]),
    );
}

#[test]
fn a_run_of_what_was_made_for_it_is_not_stale() {
    let fine = |why: &str, then: Vec<Step>| check(why, history(then), &[]);
    fine("made again", vec![made(run("4/made2")), run("4/x")]);
    fine("made by itself", vec![run("4/x").with(|fake| fake.generate = true)]);
    fine("read again", vec![large("4_record_length_bytes_400000000/again")]);
    let at_work = made(large(LARGE_MADE)).edit(
        "dlio.log",
        "0.000000 Generation",
        "0.000000 x\n[OUTPUT] 2025-11-30T23:00:00.000000 Generation",
    );
    check("made only later", vec![made(run("4/made")), at_work, run("4/x")], &[]);
    let png = || run("4_format_png/x").with(|fake| fake.format = "png");
    fine("another format", vec![made(png()), png()]);
    check(
        "chains",
        history(vec![run("4/x"), run("4/y"), made(run("4/made2")), run("4/z"), run("4/zz")]),
        &["4/x", "4/y"],
    );
}

#[test]
fn without_logs_and_configs_nothing_is_known() {
    check("no generation", vec![run("4/first"), large(LARGE_RUN), run("4/x")], &[]);
    check("no config", history(vec![run("4_read_threads_4/x").without_config()]), &[]);
}

#[test]
fn a_generation_that_failed_made_nothing() {
    let name = "4_record_length_bytes_400000000/x";
    let with = |step: Step| vec![made(run("4/made")), run("4/first"), step];
    let both = || large(name).with(|fake| fake.generate = true);
    check("it made its own", with(both()), &[]);
    check("it did not", with(both().failed()), &[name]);
    let then = |step: Step| vec![made(run("4/made")), made(large(LARGE_MADE)).failed(), step];
    check("another run made nothing for it", then(large(name)), &[name]);
    check("what lay there before lies there still", then(run("4/x")), &[]);
}

#[test]
fn folders_of_one_name_are_one_where_jobs_and_hosts_allow_it() {
    let with = |made: Step, step: Step| vec![run("4/first"), made, step];
    let there = || made(large(LARGE_MADE));
    let elsewhere = with(there().on("node2"), run("4/x").on("node3"));
    check("made on another host", elsewhere, &["4/x"]);
    let other_job = there().edit("dlio.log", "/scratch/job", "/scratch/job2");
    check("another job's folder", with(other_job, run("4/x")), &[]);
    let absolute = |step: Step| step.dataset("data_folder: data/fake/", "data_folder: /data/fake");
    let other_job = absolute(there()).edit("dlio.log", "/scratch/job", "/scratch/job2");
    check("its whole path", with(other_job, absolute(run("4/x"))), &["4/x"]);
    let other_folder = run("4/x").dataset("data/fake/", "data/other/");
    check("another folder", with(there(), other_folder), &[]);
}

#[test]
fn settings_that_change_no_file_make_nothing_stale() {
    let after = |why: &str, step: Step, expected: &[&str]| {
        check(why, vec![made(run("4/made")), step], expected);
    };
    for (from, to) in [
        ("format: npz", "format: npz\n    enable_chunking: true\n    chunk_size: 1048576"),
        ("format: npz", "format: npz\n    record_length_bytes_resize: 2097152"),
        ("format: npz", "format: npz\n    file_prefix: other"),
        ("format: npz", "format: npz\n    generation_buffer_size: 1"),
        ("format: npz", "format: npz\n    record_element_bytes: 8"),
        ("format: npz", "format: npz\n    compression: zip\n    compression_level: 9"),
        ("format: npz", "format: npz\n    record_element_type: uint8\n    record_dims: []"),
        ("format: npz", "format: npz\n    hdf5: {chunk_dims: [1]}"),
        ("format: npz", "format: npz\n    num_files_eval: 8\n    num_subfolders_eval: 2"),
        ("record_length_bytes: 100000000", "record_length: 100000000.0"),
        ("data/fake/", "./data/fake"),
    ] {
        after(to, run("4/x").dataset(from, to), &[]);
    }
    for to in [
        "format: npz\n    record_element_type: float32",
        "format: npz\n    num_samples_per_file: 2",
        "format: npz\n    record_dims: [10, 10]",
    ] {
        after(to, run("4/x").dataset("format: npz", to), &["4/x"]);
    }
    let stdev = run("4/x").dataset("bytes_stdev: 0", "bytes_stdev: 1000000");
    after("drawn sizes", stdev, &["4/x"]);
    let hdf5 = |step: Step| step.with(|fake| fake.format = "hdf5");
    let gzip = hdf5(run("4/x")).dataset("format: hdf5", "format: hdf5\n    compression: gzip");
    check("compressed hdf5", vec![made(hdf5(run("4/made"))), gzip], &["4/x"]);
}

#[test]
fn how_many_files_lie_there_is_not_what_is_in_them() {
    let files = |step: Step, files: u64| step.with(|fake| fake.files = files);
    check("few of many", vec![made(files(run("4/made"), 336)), run("4/x")], &[]);
    let few = made(files(run("4/few"), 84));
    check("many beside few", vec![made(run("4/made")), few, run("4/x")], &[]);
    let spread =
        made(large(LARGE_MADE)).dataset("format: npz", "format: npz\n    num_subfolders_train: 2");
    check("in folders that it does not read", vec![made(run("4/made")), spread, run("4/x")], &[]);
    let gone = large(LARGE_RUN).dataset("format: npz", "format: npz\n    keep_files: false");
    check("removed", vec![made(large(LARGE_MADE)), gone, run("4/x")], &[]);
}
