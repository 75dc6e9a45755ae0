//! What users own: nothing of it is removed, written over or mixed with ours, wherever it lies.

use crate::dlio_benchmark::{dlio, with_workloads};
use crate::harness::{Mounted, TINY, Test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Three rows with a dataset each.
const STUDY: &str = "\
model,processes,overrides,run
workload.yaml,1,dataset.record_length_bytes=30000,N
workload.yaml,1,,N
workload.yaml,1,dataset.record_length_bytes=29000,N
";

/// Put files of the user's at these places.
fn strangers(folder: &Path, places: &[&str]) {
    for place in places {
        let path = folder.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, *place).unwrap();
    }
}

#[track_caller]
fn are_there(folder: &Path, places: &[&str]) {
    for place in places {
        assert_eq!(fs::read_to_string(folder.join(place)).ok().as_deref(), Some(*place));
    }
}

/// Every file below a folder, with what it holds.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(contents(&entry));
        } else {
            found.insert(entry.clone(), fs::read(entry).unwrap());
        }
    }
    found
}

const EVERYWHERE: [&str; 7] = [
    "thesis.txt",
    "train/notes.txt",
    "train/mine/a.bin",
    "train/.mydownload.part",
    "valid/a.bin",
    "checkpoints/global_epoch1_step5/model_states-0.pt",
    // Instead of one of ours.
    "train/img_3_of_8.npz",
];

#[test]
fn a_study_deletes_its_datasets_without_what_others_have_in_and_beside_them() {
    let test = Test::with(TINY);
    test.write("study.csv", STUDY);
    let _disk = Mounted::tmpfs(&test.path("data"), "size=800k");
    let run = |policy: &str, more: &[&str]| {
        let study = ["study", "run", "study.csv", "--datasets", policy];
        test.feedrate(&[&study, more].concat())
    };
    let first = run("keep", &["--limit", "1"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let dataset = fs::read_dir(test.path("data")).unwrap().next().unwrap().unwrap().path();
    let name = dataset.file_name().unwrap().to_string_lossy().into_owned();
    let beside = |ending: &str| test.path("data").join(format!("{name}.{ending}"));
    strangers(&beside("deleted"), &EVERYWHERE);
    // A copy that the user made, with all that says that it is the study's.
    copy(&dataset, &beside("bak"));
    let copied = contents(&beside("bak"));
    strangers(&dataset, &EVERYWHERE);
    let answer = run("make-room", &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let told = format!("{name} is kept, as it contains other files: `");
    assert!(answer.stderr.contains(&told), "{}", answer.stderr);
    are_there(&dataset, &EVERYWHERE);
    are_there(&beside("deleted"), &EVERYWHERE);
    assert_eq!(contents(&beside("bak")), copied);
    assert_eq!(contents(&dataset).len(), EVERYWHERE.len());
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_folder_with_results_of_others_is_not_taken_for_a_run() {
    let test = Test::with(TINY);
    for left in
        ["3_output.json", "31_per_epoch_stats.json", "summary.json", "dlio.log", "record.json"]
    {
        let folder = test.path(left);
        strangers(&folder, &[left, "notes.txt"]);
        let answer = test.feedrate(&["run", "workload.yaml", "--run-dir", left]);
        answer.refuses(2, &["contains results of another run", left, "hint:"]);
        are_there(&folder, &[left, "notes.txt"]);
        assert_eq!(contents(&folder).len(), 2);
    }
    // What is no result stays beside them.
    strangers(&test.path("rd"), &["notes.txt", "configs/config.yaml"]);
    let json = test.run_json(&["--run-dir", "rd"]);
    assert_eq!(json["complete"], true);
    are_there(&test.path("rd"), &["notes.txt", "configs/config.yaml"]);
}

/// The same folder for each run, the first with more accelerators.
#[test]
fn dlio_benchmark_puts_the_results_of_other_runs_aside() {
    let test = with_workloads();
    let run = |more: &[&str]| {
        let all = ["workload=tiny", "++workload.workflow.generate_data=True", "hydra.run.dir=hr"];
        let answer = dlio(&test, &[&all[..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer
    };
    strangers(&test.path("hr"), &["notes.txt"]);
    assert!(
        !run(&["++workload.accelerators=4", "++workload.reader.batch_size=1"])
            .stderr
            .contains("were moved to")
    );
    let first = contents(&test.path("hr"));
    assert!(first.contains_key(&test.path("hr/3_output.json")));
    let answer = run(&[]);
    assert!(
        answer.stderr.contains("results of other runs in `hr` were moved to `hr/superseded/"),
        "{}",
        answer.stderr
    );
    assert!(test.path("hr/0_output.json").exists() && !test.path("hr/1_output.json").exists());
    are_there(&test.path("hr"), &["notes.txt"]);
    let aside = |number: usize| {
        let folders = fs::read_dir(test.path("hr/superseded")).unwrap();
        let mut folders: Vec<PathBuf> = folders.map(|folder| folder.unwrap().path()).collect();
        folders.sort();
        folders.swap_remove(number)
    };
    for (path, bytes) in &first {
        let name = path.strip_prefix(test.path("hr")).unwrap();
        if name != Path::new("notes.txt") {
            assert_eq!(&fs::read(aside(0).join(name)).unwrap(), bytes, "{}", name.display());
        }
    }
    // What others have made is kept as well.
    fs::write(test.path("hr/7_output.json"), "of DLIO itself").unwrap();
    run(&[]);
    assert_eq!(fs::read(aside(1).join("7_output.json")).unwrap(), b"of DLIO itself");
    assert!(!test.path("hr/7_output.json").exists());
    let analyzed = test.feedrate(&["analyze", "hr", "--json"]);
    let analyzed: Value = serde_json::from_str(&analyzed.stdout).unwrap();
    assert_eq!(analyzed["runs"].as_array().map(Vec::len), Some(1), "{analyzed}");
}

#[test]
fn a_checkpoint_of_others_is_neither_written_over_nor_removed() {
    let checkpoint = [
        "workflow.checkpoint=true",
        "checkpoint.steps_between_checkpoints=1",
        "checkpoint.keep_last=1",
    ];
    let (first, second) = ("checkpoints/global_epoch1_step1", "checkpoints/global_epoch2_step2");
    let test = Test::with(TINY);
    let theirs = ["thesis.txt", "manifest.json"];
    strangers(&test.path(first), &theirs);
    for _ in 0..2 {
        test.run_json(&checkpoint);
        are_there(&test.path(first), &theirs);
        assert_eq!(contents(&test.path(first)).len(), 2, "ours gave way to the next");
    }
    // All is told before the first epoch, but for what lies where none is to be written.
    let test = Test::with(TINY);
    let theirs =
        [".global_epoch1_step1.manifest.json", "global_epoch2_step2", "global_epoch3_step1"];
    strangers(&test.path("checkpoints"), &theirs);
    strangers(&test.path(first), &["model_states-0.pt"]);
    let answer = test.feedrate(&[&["run", "workload.yaml"][..], &checkpoint].concat());
    let told =
        [&format!("{first}/model_states-0.pt"), &format!("checkpoints/{}", theirs[0]), second]
            .map(|path| format!("`./{path}`"))
            .join(", ");
    answer
        .refuses(1, &[&told, "exist where", "no manifest says that feedrate wrote them", "hint:"]);
    assert!(answer.stderr.contains("nothing was measured"), "{}", answer.stderr);
    are_there(&test.path("checkpoints"), &theirs);
    are_there(&test.path(first), &["model_states-0.pt"]);
    assert_eq!(contents(&test.path("checkpoints")).len(), 5, "and the lock");
}

#[test]
fn clean_knows_checkpoints() {
    let test = Test::with(TINY);
    let checkpoint = ["workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=1"];
    test.run_json(&checkpoint);
    let theirs = ["global_epoch1_step2/thesis.txt", "global_epoch9_step9/model_states-0.pt"];
    strangers(&test.path("checkpoints"), &theirs);
    let before = contents(&test.path("checkpoints"));
    let clean = |more: &[&str]| {
        let answer = test.feedrate(&[&["clean", ".", "--json"][..], more].concat());
        let mut told: Value = serde_json::from_str(&answer.stdout).unwrap();
        told["items"].take()
    };
    let only = ["--only", "checkpoints"];
    let shown = clean(&only);
    // One file and a manifest each, of two epochs of two steps.
    assert_eq!((&shown[0]["kind"], &shown[0]["files"]), (&"checkpoints".into(), &8.into()));
    assert_eq!(
        shown[0]["stays"],
        serde_json::json!([
            "global_epoch9_step9/model_states-0.pt",
            "global_epoch1_step2/thesis.txt"
        ])
    );
    assert_eq!(contents(&test.path("checkpoints")), before);
    assert_eq!(clean(&["--only", "checkpoints", "--yes"]), shown, "as it was shown");
    are_there(&test.path("checkpoints"), &theirs);
    assert_eq!(contents(&test.path("checkpoints")).len(), 2);
    assert!(clean(&only).as_array().unwrap().is_empty());
    assert_eq!(clean(&[]).as_array().unwrap().len(), 2, "the dataset and the results");
}

#[test]
fn the_root_of_the_file_system_is_no_folder_for_anything() {
    let test = Test::with(TINY);
    symlink("/", test.path("link")).unwrap();
    let before = fs::read_dir("/").unwrap().count();
    for root in ["/", "//", "/tmp/..", "link"] {
        for arguments in [
            &["generate", "workload.yaml", "--data", root][..],
            &["run", "workload.yaml", "--data", root],
            &["run", "workload.yaml", "--results", root],
            &["run", "workload.yaml", "--run-dir", root],
        ] {
            test.feedrate(arguments).refuses(2, &["root of the file system", "hint:"]);
        }
        let folder = format!("checkpoint.checkpoint_folder={root}");
        let answer = test.feedrate(&["run", "workload.yaml", "workflow.checkpoint=true", &folder]);
        answer.refuses(2, &["root of the file system", "checkpoint.checkpoint_folder"]);
    }
    let test = with_workloads();
    for more in
        ["++workload.dataset.data_folder=/", "hydra.run.dir=/", "++workload.output.folder=/"]
    {
        let all = ["workload=tiny", "++workload.workflow.generate_data=True", more];
        dlio(&test, &all).refuses(1, &["root of the file system"]);
    }
    assert_eq!(fs::read_dir("/").unwrap().count(), before);
}

#[test]
fn a_file_that_was_changed_is_not_generated_over() {
    let test = Test::with(TINY);
    let generate = || test.feedrate(&["generate", "workload.yaml"]);
    assert_eq!(generate().code, 0);
    let files = test.data_files(".npz");
    fs::write(&files[3], "mine").unwrap();
    fs::remove_file(&files[5]).unwrap();
    for _ in 0..2 {
        generate().refuses(1, &["img_3_of_8.npz", "it is not overwritten", "hint:"]);
        assert_eq!(fs::read(&files[3]).unwrap(), b"mine");
    }
    fs::remove_file(&files[3]).unwrap();
    // As of a disk that is not mounted.
    std::os::unix::fs::symlink("/nowhere/mine.npz", &files[3]).unwrap();
    generate().refuses(1, &["img_3_of_8.npz", "not a file but a link", "it is not overwritten"]);
    assert_eq!(fs::read_link(&files[3]).unwrap(), Path::new("/nowhere/mine.npz"));
    fs::remove_file(&files[3]).unwrap();
    assert_eq!(generate().code, 0);
    // A generation that was broken off may have left half a file.
    let manifest = &test.data_files("manifest.json")[0];
    let text = fs::read_to_string(manifest).unwrap();
    fs::write(manifest, text.replace("\"complete\"", "\"generating\"")).unwrap();
    fs::write(&files[3], "torn").unwrap();
    generate().warns(&["1 file of an interrupted generation", "generated again"]);
    assert_eq!(test.feedrate(&["generate", "--verify", "workload.yaml"]).code, 0);
}

#[test]
fn a_file_that_is_there_is_written_over_only_where_that_is_asked_for() {
    let test = Test::with(TINY);
    test.run_json(&["--run-dir", "rd"]);
    for (file, arguments) in [
        ("r.md", &["report", "rd", "-o"][..]),
        ("p.svg", &["plot", "timeline", "rd", "-o"]),
        ("s.sh", &["slurm", "workload.yaml", "-o"]),
        (
            "n.csv",
            &[
                "study",
                "new",
                "--design",
                "full_factorial",
                "--model",
                "workload.yaml",
                "--factor",
                "reader.read_threads=1,2",
                "-o",
            ],
        ),
    ] {
        test.write(file, "mine");
        let arguments = [arguments, &[file]].concat();
        test.feedrate(&arguments).refuses(2, &[file, "is there already", "--force"]);
        assert_eq!(fs::read(test.path(file)).unwrap(), b"mine");
        let forced = test.feedrate(&[&arguments[..], &["--force"]].concat());
        assert_eq!(forced.code, 0, "{}", forced.stderr);
        assert_ne!(fs::read(test.path(file)).unwrap(), b"mine");
    }
    // What is no file is written to.
    let answer = test.feedrate(&["report", "rd", "-o", "/dev/null", "--format", "markdown"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn clean_shows_what_it_would_remove_and_removes_that_alone() {
    let test = Test::with(TINY);
    let json = test.run_json(&[]);
    let run_dir = test.path(json["run_dir"].as_str().unwrap());
    let dataset = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    strangers(&dataset, &EVERYWHERE);
    strangers(&run_dir, &["notes.txt", "9_output.json"]);
    // Others have folders that look like ours.
    strangers(&test.path("data"), &["theirs/manifest.json", "theirs/train/img_0_of_8.npz"]);
    strangers(&test.path("results"), &["theirs/record.json", "theirs/0_output.json"]);
    symlink(&dataset, test.path("data/link")).unwrap();
    let before = [contents(&test.path("data")), contents(&test.path("results"))];
    let clean = |more: &[&str]| {
        let answer = test.feedrate(&[&["clean", "data", "results", "--json"][..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let mut told: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(told["removed"], more.contains(&"--yes"));
        told["items"].take()
    };
    let shown = clean(&[]);
    assert_eq!(shown.as_array().unwrap().len(), 2, "{shown}");
    assert_eq!((&shown[0]["kind"], &shown[1]["kind"]), (&"datasets".into(), &"results".into()));
    assert_eq!(shown[0]["files"], 7);
    assert_eq!([contents(&test.path("data")), contents(&test.path("results"))], before);
    assert_eq!(clean(&["--only", "results"]).as_array().unwrap().len(), 1);
    assert_eq!(clean(&["--yes"]), shown, "as it was shown");
    are_there(&dataset, &EVERYWHERE);
    are_there(&run_dir, &["notes.txt", "9_output.json"]);
    are_there(&test.path("data"), &["theirs/manifest.json", "theirs/train/img_0_of_8.npz"]);
    are_there(&test.path("results"), &["theirs/record.json", "theirs/0_output.json"]);
    assert_eq!((contents(&dataset).len(), contents(&run_dir).len()), (EVERYWHERE.len(), 2));
    let answer = test.feedrate(&["clean", "data", "results"]);
    assert!(answer.stdout.contains("nothing from feedrate"), "{}", answer.stdout);
    test.feedrate(&["clean", "nowhere"]).refuses(2, &["no folder `nowhere`"]);
    // Without others nothing is left.
    let test = Test::with(TINY);
    test.run_json(&["--run-dir", "rd"]);
    strangers(&test.path("rd"), &["DLIO_workload_report.txt", "DLIO_tiny_report.txt"]);
    // Of a study whose generation was killed before it began.
    strangers(&test.path("data/claimed"), &["made-by-study"]);
    let answer = test.feedrate(&["clean", "data", "rd"]);
    assert!(answer.stdout.contains("dataset") && answer.stderr.contains("--yes"), "{answer:?}");
    assert_eq!(test.feedrate(&["clean", "data", "rd", "--yes"]).code, 0);
    assert!(!test.path("rd").exists() && !test.path("data/claimed").exists());
    assert!(contents(&test.path("data")).is_empty());
}

/// A mount point cannot be removed, a bad dataset is told of at the end.
#[test]
fn clean_goes_on_past_what_it_cannot_remove() {
    let test = Test::with(TINY);
    test.run_json(&[]);
    let dataset = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    let manifest = fs::read_to_string(dataset.join("manifest.json")).unwrap();
    let bad = manifest.replace("\"format\": \"npz\"", "\"format\": \"zarr\"");
    assert_ne!(bad, manifest);
    fs::create_dir(test.path("data/a")).unwrap();
    fs::write(test.path("data/a/manifest.json"), &bad).unwrap();
    let disk = Mounted::tmpfs(&test.path("data/disk"), "size=9m");
    assert_eq!(test.feedrate(&["generate", "workload.yaml", "--data", "data/disk"]).code, 0);
    let own = fs::read_dir(&disk.0).unwrap().next().unwrap().unwrap().path();
    for entry in fs::read_dir(&own).unwrap().map(|entry| entry.unwrap()) {
        fs::rename(entry.path(), disk.0.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(own).unwrap();
    let answer = test.feedrate(&["clean", "data", "data/../data", "--yes"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("data/a`") && answer.stderr.contains("zarr"), "{answer:?}");
    assert_eq!(answer.stdout.matches("dataset").count(), 2, "{answer:?}");
    assert_eq!((dataset.exists(), fs::read_dir(&disk.0).unwrap().count()), (false, 0));
    assert_eq!(fs::read_to_string(test.path("data/a/manifest.json")).unwrap(), bad);
}

/// To say that a dataset is incomplete from now on takes room too.
#[test]
fn a_dataset_on_a_full_device_can_be_removed() {
    let test = Test::with(TINY);
    let disk = Mounted::tmpfs(&test.path("data"), "size=600k");
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    fs::write(disk.0.join("filler"), vec![1; 1 << 20]).unwrap_err();
    let answer = test.feedrate(&["clean", "data", "--yes"]);
    answer.warns(&["removed 8 files"]);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1);
}
