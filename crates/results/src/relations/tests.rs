//! Histories of one folder of data: what each run asked for, and which of them read something else.

use crate::import::fake::Fake;
use crate::index::{ReadOptions, RunIndex};
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

/// A run whose records are four times as long, and waits too.
fn large(name: &'static str) -> Step {
    run(name).with(|fake| (fake.record_length, fake.slower) = (400_000_000, 4.0))
}

/// A run that waits as one of large records.
fn slow(name: &'static str) -> Step {
    run(name).with(|fake| fake.slower = 4.0)
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

/// That of `steps`, a quarter of an hour apart, those runs are stale.
fn check(why: &str, steps: Vec<Step>, expected: &[&str]) {
    assert_eq!(doubted(why, steps)[0], expected, "{why}");
}

/// The runs that are stale, and those that may be.
fn doubted(why: &str, steps: Vec<Step>) -> [Vec<String>; 2] {
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
    let of = |name: &str| {
        let is_stale = |run: &&crate::run::Run| run.doubts.iter().any(|one| one.name == name);
        index.runs.iter().filter(is_stale).map(|run| run.short_path()).collect()
    };
    [of("stale_data"), of("sizes_not_seen")]
}

#[test]
fn whatever_a_later_run_varies_it_read_the_last_dataset() {
    let stale = |name: &'static str, step: Step| check(name, history(vec![step]), &[name]);
    stale("4/again", slow("4/again"));
    stale("4/cached", run("4/cached").with(|fake| fake.slower = 2.8));
    stale("4/neither", run("4/neither").with(|fake| fake.slower = 2.0));
    stale("4/slower", run("4/slower").with(|fake| fake.slower = 6.0));
    let eight = "read_threads: 4, prefetch_size: 8}";
    stale("4_prefetch_size_8/x", run("4_prefetch_size_8/x").reader(eight));
    stale("4_read_threads_8/x", run("4_read_threads_8/x").with(|fake| fake.threads = 8));
    stale("4_batch_size_14/x", run("4_batch_size_14/x").with(|fake| fake.batch = 14));
    stale("4_epochs_5/x", slow("4_epochs_5/x").with(|fake| fake.epochs = 5));
    stale("2/x", run("2/x").with(|fake| fake.ranks = 2));
    stale("4_odirect_true/x", run("4_odirect_true/x").reader("read_threads: 4, odirect: true}"));
    let fewer = run("4_num_files_train_84/x").with(|fake| fake.files = 84);
    stale("4_num_files_train_84/x", fewer);
    let third = run("4_record_length_bytes_200000000/x")
        .with(|fake| (fake.record_length, fake.slower) = (200_000_000, 4.0));
    stale("4_record_length_bytes_200000000/x", third);
    let no_checkpoint = slow("4_checkpoint_False/x")
        .with(|fake| fake.overrides = vec!["workflow.checkpoint=False"]);
    stale("4_checkpoint_False/x", no_checkpoint);
}

#[test]
fn a_run_of_what_was_made_for_it_is_not_stale() {
    let fine = |why: &str, then: Vec<Step>| check(why, history(then), &[]);
    fine("made again", vec![made(run("4/made2")), slow("4/x")]);
    fine("made by itself", vec![run("4/x").with(|fake| fake.generate = true)]);
    fine("read again", vec![large("4_record_length_bytes_400000000/again")]);
    fine("made again by what left nothing", vec![run("4/x")]);
    let at_work = made(large(LARGE_MADE)).edit(
        "dlio.log",
        "0.000000 Generation",
        "0.000000 x\n[OUTPUT] 2025-11-30T23:00:00.000000 Generation",
    );
    let ahead = run("4/x").reader("read_threads: 4, prefetch_size: 8}");
    check("made only later", vec![made(run("4/made")), at_work, ahead], &[]);
    fine(
        "made again by what left nothing, a fifth slower",
        vec![run("4/x").with(|fake| fake.slower = 1.2)],
    );
    let all = history(vec![run("4/x")]).into_iter();
    let computing = all.map(|step| step.with(|fake| fake.compute_s = 100.0)).collect();
    check("made again by what left nothing, though it mostly computed", computing, &[]);
    let png = || run("4_format_png/x").with(|fake| fake.format = "png");
    fine("another format", vec![made(png()), png()]);
    let superseded = large("4_record_length_bytes_400000000/superseded/x");
    fine("put aside", vec![superseded, large("4_record_length_bytes_400000000/later")]);
    // The other way round, too.
    check(
        "the larger again after the smaller were made",
        history(vec![
            made(run("4/made2")),
            run("4/x"),
            large("4_record_length_bytes_400000000/y").with(|fake| fake.slower = 1.0),
        ]),
        &["4_record_length_bytes_400000000/y"],
    );
    check(
        "chains",
        history(vec![slow("4/x"), slow("4/y"), made(run("4/made2")), run("4/z"), run("4/zz")]),
        &["4/x", "4/y"],
    );
}

#[test]
fn a_generation_that_failed_made_nothing() {
    let both = || {
        large("4_record_length_bytes_400000000/x")
            .with(|fake| (fake.generate, fake.slower) = (true, 1.0))
    };
    let first = || vec![made(run("4/made")), run("4/first")];
    let with = |step: Step| first().into_iter().chain([step]).collect();
    check("it made its own", with(both()), &[]);
    check("it did not", with(both().failed()), &["4_record_length_bytes_400000000/x"]);
    let then = |step: Step| {
        let made = made(large(LARGE_MADE));
        first().into_iter().chain([made.failed(), step.with(|fake| fake.slower = 1.0)]).collect()
    };
    let name = "4_record_length_bytes_400000000/x";
    check("another run made nothing for it", then(large(name)), &[name]);
    check("what lay there before lies there still", then(run("4/x")), &[]);
}

#[test]
fn other_hosts_see_the_same_folder_unless_it_is_their_own() {
    let there = || made(large(LARGE_MADE));
    let first = || vec![made(run("4/made")), run("4/first")];
    let with = |then: Vec<Step>| first().into_iter().chain(then).collect();
    check(
        "made on another host",
        with(vec![there().on("node2"), slow("4/x").on("node3")]),
        &["4/x"],
    );
    let back = with(vec![there().on("node2"), slow("4/x")]);
    check("made on another host after its own", back, &["4/x"]);
    let each = |then: Vec<Step>| {
        let mut steps = vec![made(run("4/made2")).on("node2"), there().on("node2")];
        steps.extend(then);
        with(steps)
    };
    let ahead = run("4/x").reader("read_threads: 4, prefetch_size: 8}");
    check("each host made its own", each(vec![ahead]), &[]);
    let alike = each(vec![large(LARGE_RUN).on("node2"), slow("4/x")]);
    check("but its waits are those of the other", alike, &["4/x"]);
    let local = |step: Step| step.edit("dlio.log", "/scratch/job", "/local/nvme0/job");
    let steps = vec![local(there().on("node2")), local(slow("4/x").on("node3"))];
    check("a disk of the host", with(steps), &[]);
    let shared = |step: Step| step.edit("dlio.log", "/scratch/job", "/lustre/mlperf/run1/job");
    let steps = vec![shared(there().on("node2")), shared(slow("4/x").on("node3"))];
    check("a folder that is called as one of a host may be", steps, &["4/x"]);
    let other_job = there().edit("dlio.log", "/scratch/job", "/scratch/job2");
    check("another job's folder", with(vec![other_job, slow("4/x")]), &[]);
    let whole = there().dataset("data_folder: data/fake/", "data_folder: /scratch/job/data/fake");
    check("the same folder by its whole path", with(vec![whole, slow("4/x")]), &["4/x"]);
}

#[test]
fn a_folder_without_config_is_judged_by_its_name_and_those_beside_it() {
    let name = "4_record_length_bytes_400000000/x";
    check(
        "its name",
        history(vec![slow("4_read_threads_4/x").without_config()]),
        &["4_read_threads_4/x"],
    );
    check("its own dataset", history(vec![large(name).without_config()]), &[]);
    let steps = vec![
        made(run("4/made")),
        run("4/first"),
        made(large(LARGE_MADE)).without_config(),
        slow("4/x"),
    ];
    check("the maker's name", steps, &["4/x"]);
    let elsewhere = run("4/there").dataset("data/fake/", "data/other/");
    let steps = history(vec![elsewhere, slow("4_read_threads_4/x").without_config()]);
    check("which folder it read is not known", steps, &[]);
    check("nothing beside it", vec![slow("4_read_threads_4/x").without_config()], &[]);
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
    check(
        "many beside few",
        vec![made(run("4/made")), made(files(run("4/few"), 84)), run("4/x")],
        &[],
    );
    let few = || made(files(large(LARGE_MADE), 84));
    check(
        "the last were too few for it, and others lie there",
        vec![made(run("4/made")), few(), run("4/x")],
        &["4/x"],
    );
    check("the last were too few for it", vec![few(), run("4/x")], &[]);
    let spread =
        made(large(LARGE_MADE)).dataset("format: npz", "format: npz\n    num_subfolders_train: 2");
    check(
        "in folders that it does not look into",
        vec![made(run("4/made")), spread, run("4/x")],
        &[],
    );
    let gone = large(LARGE_RUN).dataset("format: npz", "format: npz\n    keep_files: false");
    check("removed", vec![made(large(LARGE_MADE)), gone, slow("4/x")], &[]);
}

#[test]
fn without_generations_waits_tell_only_where_nothing_else_makes_them() {
    let after = |why: &str, change: fn(Step) -> Step, expected: &[&str]| {
        let steps = [run("4/first"), large(LARGE_RUN), slow("4/x")];
        check(why, steps.map(change).into(), expected);
    };
    after("as long", |step| step, &["4/x"]);
    let left_nothing = vec![made(run("4/made")), run("4/first"), large(LARGE_RUN), slow("4/x")];
    check("unlike what was generated, so others were made since", left_nothing, &["4/x"]);
    check("as long as its own", vec![large(LARGE_RUN), run("4/x")], &[]);
    let computing = |step: Step| step.with(|fake| fake.compute_s = 100.0);
    after("both compute nearly all of the time", computing, &[]);
    let tiny = |step: Step, bytes: u64| step.with(|fake| fake.record_length = bytes);
    let finding = vec![tiny(run("4_record_length_bytes_4096/x"), 4096), tiny(run("4/x"), 8192)];
    check("files are found as fast whatever they hold", finding, &[]);
    after("work on each sample", |step| step.reader("read_threads: 4, preprocess_time: 0.5}"), &[]);
    let shuffled = slow("4_file_shuffle_random/x").reader("read_threads: 4, file_shuffle: random}");
    check(
        "DLIO's loader ignores it",
        vec![run("4/first"), large(LARGE_RUN), shuffled],
        &["4_file_shuffle_random/x"],
    );
    let ahead = slow("4/x").reader("read_threads: 4, prefetch_size: 16}");
    check("it reads otherwise", vec![large(LARGE_RUN), ahead], &[]);
    let there = slow("4/x").edit("dlio.log", "/scratch/job", "/scratch/other");
    check("it read elsewhere", vec![large(LARGE_RUN), there], &[]);
}

#[test]
fn of_two_that_waited_alike_a_third_tells_which_is_wrong() {
    let check = |why: &str, steps: Vec<Step>, stale: &[&str], unsure: &[&str]| {
        assert_eq!(doubted(why, steps), [stale, unsure], "{why}");
    };
    let (small, wrong, right) = (|| run("4/first"), || slow("4/x"), || large(LARGE_RUN));
    check("what the earlier varies was made for it", vec![right(), wrong()], &["4/x"], &[]);
    check("nothing tells", vec![wrong(), right()], &[], &["4/x", LARGE_RUN]);
    check("the later", vec![small(), right(), wrong()], &["4/x"], &[]);
    let other = || slow("4/other").with(|fake| fake.record_length = 200_000_000);
    check("two", vec![small(), right(), wrong(), other()], &["4/other", "4/x"], &[]);
    check("the earlier", vec![small(), wrong(), right(), large("4/right")], &["4/x"], &[]);
    check("by one that came last", vec![wrong(), right(), small()], &["4/x"], &[]);
    let near = || slow("4/x").with(|fake| fake.slower = 4.4);
    check("nearly alike", vec![small(), right(), near()], &[], &["4/x"]);
    check("nearly alike, nothing tells", vec![right(), near()], &[], &[]);
}
