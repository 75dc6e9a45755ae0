//! The user's files are never removed, overwritten or mixed with feedrate's files.

use crate::dlio_benchmark::{dlio_benchmark, with_workloads};
use crate::harness::{MountedDisk, TINY, Test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Three rows, each with another dataset.
const STUDY: &str = "\
model,processes,overrides,run
workload.yaml,1,dataset.record_length_bytes=30000,N
workload.yaml,1,,N
workload.yaml,1,dataset.record_length_bytes=29000,N
";

/// Writes user files to these paths. Each contains its path.
fn write_user_files(folder: &Path, paths: &[&str]) {
    for name in paths {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, *name).unwrap();
    }
}

/// Checks that the user files exist unchanged.
#[track_caller]
fn check_user_files(folder: &Path, paths: &[&str]) {
    for name in paths {
        assert_eq!(fs::read_to_string(folder.join(name)).ok().as_deref(), Some(*name));
    }
}

/// All files below a folder with their content.
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

/// Names of user files in all parts of a dataset.
const USER_FILES: [&str; 7] = [
    "thesis.txt",
    "train/notes.txt",
    "train/mine/a.bin",
    "train/.mydownload.part",
    "valid/a.bin",
    "checkpoints/global_epoch1_step5/model_states-0.pt",
    // Has the name of a generated file.
    "train/img_3_of_8.npz",
];

#[test]
fn a_study_deletes_its_datasets_but_no_user_files_in_or_beside_them() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", STUDY);
    let _disk = MountedDisk::tmpfs(&test.path("data"), "size=800k");
    let run = |policy: &str, more: &[&str]| {
        let study = ["study", "run", "study.csv", "--datasets", policy];
        test.feedrate(&[&study, more].concat())
    };
    let first = run("keep", &["--limit", "1"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let dataset = fs::read_dir(test.path("data")).unwrap().next().unwrap().unwrap().path();
    let name = dataset.file_name().unwrap().to_string_lossy().into_owned();
    let sibling = |ending: &str| test.path("data").join(format!("{name}.{ending}"));
    write_user_files(&sibling("deleted"), &USER_FILES);
    // A copy by the user, which also contains the study's marks.
    copy(&dataset, &sibling("bak"));
    let copied = contents(&sibling("bak"));
    write_user_files(&dataset, &USER_FILES);
    let answer = run("make-room", &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let message = format!("{name} is kept, as it contains other files: `");
    assert!(answer.stderr.contains(&message), "{}", answer.stderr);
    check_user_files(&dataset, &USER_FILES);
    check_user_files(&sibling("deleted"), &USER_FILES);
    assert_eq!(contents(&sibling("bak")), copied);
    assert_eq!(contents(&dataset).len(), USER_FILES.len());
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_folder_with_other_results_is_refused_for_a_run() {
    let test = Test::with_workload(TINY);
    for name in
        ["3_output.json", "31_per_epoch_stats.json", "summary.json", "dlio.log", "record.json"]
    {
        let folder = test.path(name);
        write_user_files(&folder, &[name, "notes.txt"]);
        let answer = test.feedrate(&["run", "workload.yaml", "--run-dir", name]);
        answer.refuses(2, &["contains results of another run", name, "hint:"]);
        check_user_files(&folder, &[name, "notes.txt"]);
        assert_eq!(contents(&folder).len(), 2);
    }
    // Files that are no results do not matter.
    write_user_files(&test.path("rd"), &["notes.txt", "configs/config.yaml"]);
    let json = test.run_json(&["--run-dir", "rd"]);
    assert_eq!(json["complete"], true);
    check_user_files(&test.path("rd"), &["notes.txt", "configs/config.yaml"]);
}

/// All runs have the same folder; the first has more accelerators.
#[test]
fn dlio_benchmark_moves_earlier_results_aside() {
    let test = with_workloads();
    let run = |more: &[&str]| {
        let all = ["workload=tiny", "++workload.workflow.generate_data=True", "hydra.run.dir=hr"];
        let answer = dlio_benchmark(&test, &[&all[..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer
    };
    write_user_files(&test.path("hr"), &["notes.txt"]);
    assert!(
        !run(&["++workload.accelerators=4", "++workload.reader.batch_size=1"])
            .stderr
            .contains("were moved to")
    );
    let first = contents(&test.path("hr"));
    assert!(first.contains_key(&test.path("hr/3_output.json")));
    let answer = run(&[]);
    assert!(
        answer.stderr.contains("earlier files in `hr` were moved to `hr/superseded/"),
        "{}",
        answer.stderr
    );
    assert!(test.path("hr/0_output.json").exists() && !test.path("hr/1_output.json").exists());
    check_user_files(&test.path("hr"), &["notes.txt"]);
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
    // Results of other programs are kept too.
    fs::write(test.path("hr/7_output.json"), "of DLIO itself").unwrap();
    run(&[]);
    assert_eq!(fs::read(aside(1).join("7_output.json")).unwrap(), b"of DLIO itself");
    assert!(!test.path("hr/7_output.json").exists());
    let analyzed = test.feedrate(&["analyze", "hr", "--json"]);
    let analyzed: Value = serde_json::from_str(&analyzed.stdout).unwrap();
    assert_eq!(analyzed["runs"].as_array().map(Vec::len), Some(1), "{analyzed}");
}

#[test]
fn foreign_checkpoints_are_neither_overwritten_nor_removed() {
    let checkpoint = [
        "workflow.checkpoint=true",
        "checkpoint.steps_between_checkpoints=1",
        "checkpoint.keep_last=1",
    ];
    let (first, second) = ("checkpoints/global_epoch1_step1", "checkpoints/global_epoch2_step2");
    let test = Test::with_workload(TINY);
    let theirs = ["thesis.txt", "manifest.json"];
    write_user_files(&test.path(first), &theirs);
    for _ in 0..2 {
        test.run_json(&checkpoint);
        check_user_files(&test.path(first), &theirs);
        assert_eq!(
            contents(&test.path(first)).len(),
            2,
            "feedrate's checkpoint was replaced by the next"
        );
    }
    // All conflicts are reported before the first epoch. A folder to which no checkpoint is written is no conflict.
    let test = Test::with_workload(TINY);
    let theirs =
        [".global_epoch1_step1.manifest.json", "global_epoch2_step2", "global_epoch3_step1"];
    write_user_files(&test.path("checkpoints"), &theirs);
    write_user_files(&test.path(first), &["model_states-0.pt"]);
    let answer = test.feedrate(&[&["run", "workload.yaml"][..], &checkpoint].concat());
    let conflicts =
        [&format!("{first}/model_states-0.pt"), &format!("checkpoints/{}", theirs[0]), second]
            .map(|path| format!("`./{path}`"))
            .join(", ");
    answer.refuses(
        1,
        &[&conflicts, "exist where", "no manifest says that feedrate wrote them", "hint:"],
    );
    assert!(answer.stderr.contains("nothing was measured"), "{}", answer.stderr);
    check_user_files(&test.path("checkpoints"), &theirs);
    check_user_files(&test.path(first), &["model_states-0.pt"]);
    assert_eq!(contents(&test.path("checkpoints")).len(), 5, "the user's files and the lock");
}

#[test]
fn clean_removes_only_feedrates_checkpoints() {
    let test = Test::with_workload(TINY);
    let checkpoint = ["workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=1"];
    test.run_json(&checkpoint);
    let theirs = ["global_epoch1_step2/thesis.txt", "global_epoch9_step9/model_states-0.pt"];
    write_user_files(&test.path("checkpoints"), &theirs);
    let before = contents(&test.path("checkpoints"));
    let clean = |more: &[&str]| {
        let answer = test.feedrate(&[&["clean", ".", "--json"][..], more].concat());
        let mut output: Value = serde_json::from_str(&answer.stdout).unwrap();
        output["items"].take()
    };
    let only = ["--only", "checkpoints"];
    let shown = clean(&only);
    // Four checkpoints, each with one file and a manifest.
    assert_eq!((&shown[0]["kind"], &shown[0]["files"]), (&"checkpoints".into(), &8.into()));
    assert_eq!(
        shown[0]["stays"],
        serde_json::json!([
            "global_epoch9_step9/model_states-0.pt",
            "global_epoch1_step2/thesis.txt"
        ])
    );
    assert_eq!(contents(&test.path("checkpoints")), before);
    assert_eq!(clean(&["--only", "checkpoints", "--yes"]), shown, "as announced");
    check_user_files(&test.path("checkpoints"), &theirs);
    assert_eq!(contents(&test.path("checkpoints")).len(), 2);
    assert!(clean(&only).as_array().unwrap().is_empty());
    assert_eq!(clean(&[]).as_array().unwrap().len(), 2, "the dataset and the results");
}

#[test]
fn the_root_of_the_file_system_is_refused_as_a_folder() {
    let test = Test::with_workload(TINY);
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
        dlio_benchmark(&test, &all).refuses(1, &["root of the file system"]);
    }
    assert_eq!(fs::read_dir("/").unwrap().count(), before);
}

#[test]
fn a_changed_file_is_not_overwritten_by_generation() {
    let test = Test::with_workload(TINY);
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
    // A link to a disk that is not mounted.
    std::os::unix::fs::symlink("/nowhere/mine.npz", &files[3]).unwrap();
    generate().refuses(1, &["img_3_of_8.npz", "not a file but a link", "it is not overwritten"]);
    assert_eq!(fs::read_link(&files[3]).unwrap(), Path::new("/nowhere/mine.npz"));
    fs::remove_file(&files[3]).unwrap();
    assert_eq!(generate().code, 0);
    // An interrupted generation may leave an incomplete file.
    let manifest = &test.data_files("manifest.json")[0];
    let text = fs::read_to_string(manifest).unwrap();
    fs::write(manifest, text.replace("\"complete\"", "\"generating\"")).unwrap();
    fs::write(&files[3], "torn").unwrap();
    generate().warns(&["1 file of an interrupted generation", "generated again"]);
    assert_eq!(test.feedrate(&["generate", "--verify", "workload.yaml"]).code, 0);
}

#[test]
fn existing_files_are_overwritten_only_with_force() {
    let test = Test::with_workload(TINY);
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
    // A device is written to without `--force`.
    let answer = test.feedrate(&["report", "rd", "-o", "/dev/null", "--format", "markdown"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn clean_lists_files_and_removes_only_these() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&[]);
    let run_dir = test.path(json["run_dir"].as_str().unwrap());
    let dataset = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    write_user_files(&dataset, &USER_FILES);
    write_user_files(&run_dir, &["notes.txt", "9_output.json"]);
    // User folders that look like feedrate's.
    write_user_files(&test.path("data"), &["theirs/manifest.json", "theirs/train/img_0_of_8.npz"]);
    write_user_files(&test.path("results"), &["theirs/record.json", "theirs/0_output.json"]);
    symlink(&dataset, test.path("data/link")).unwrap();
    let before = [contents(&test.path("data")), contents(&test.path("results"))];
    let clean = |more: &[&str]| {
        let answer = test.feedrate(&[&["clean", "data", "results", "--json"][..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let mut output: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(output["removed"], more.contains(&"--yes"));
        output["items"].take()
    };
    assert!(test.feedrate(&["clean", "data", "results"]).stdout.contains("Kept"));
    let shown = clean(&[]);
    assert_eq!(shown.as_array().unwrap().len(), 2, "{shown}");
    assert_eq!((&shown[0]["kind"], &shown[1]["kind"]), (&"datasets".into(), &"results".into()));
    assert_eq!(shown[0]["files"], 7);
    assert_eq!([contents(&test.path("data")), contents(&test.path("results"))], before);
    assert_eq!(clean(&["--only", "results"]).as_array().unwrap().len(), 1);
    assert_eq!(clean(&["--yes"]), shown, "as announced");
    check_user_files(&dataset, &USER_FILES);
    check_user_files(&run_dir, &["notes.txt", "9_output.json"]);
    check_user_files(&test.path("data"), &["theirs/manifest.json", "theirs/train/img_0_of_8.npz"]);
    check_user_files(&test.path("results"), &["theirs/record.json", "theirs/0_output.json"]);
    assert_eq!((contents(&dataset).len(), contents(&run_dir).len()), (USER_FILES.len(), 2));
    let answer = test.feedrate(&["clean", "data", "results"]);
    assert!(answer.stdout.contains("nothing from feedrate"), "{}", answer.stdout);
    test.feedrate(&["clean", "nowhere"]).refuses(2, &["no folder `nowhere`"]);
    // Without user files, nothing is left.
    let test = Test::with_workload(TINY);
    test.run_json(&["--run-dir", "rd"]);
    write_user_files(&test.path("rd"), &["DLIO_workload_report.txt", "DLIO_tiny_report.txt"]);
    // A folder of a study whose generation was killed at the start.
    write_user_files(&test.path("data/claimed"), &["made-by-study"]);
    let answer = test.feedrate(&["clean", "data", "rd"]);
    assert!(answer.stdout.contains("dataset") && answer.stderr.contains("--yes"), "{answer:?}");
    assert!(!answer.stdout.contains("Kept"), "everything would be removed: {answer:?}");
    assert_eq!(test.feedrate(&["clean", "data", "rd", "--yes"]).code, 0);
    assert!(!test.path("rd").exists() && !test.path("data/claimed").exists());
    assert!(contents(&test.path("data")).is_empty());
}

/// A mount point cannot be removed. A damaged dataset is reported at the end.
#[test]
fn clean_continues_after_errors() {
    let test = Test::with_workload(TINY);
    test.run_json(&[]);
    let dataset = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    let manifest = fs::read_to_string(dataset.join("manifest.json")).unwrap();
    let bad = manifest.replace("\"format\": \"npz\"", "\"format\": \"zarr\"");
    assert_ne!(bad, manifest);
    fs::create_dir(test.path("data/a")).unwrap();
    fs::write(test.path("data/a/manifest.json"), &bad).unwrap();
    let disk = MountedDisk::tmpfs(&test.path("data/disk"), "size=9m");
    assert_eq!(test.feedrate(&["generate", "workload.yaml", "--data", "data/disk"]).code, 0);
    let dataset_on_disk = fs::read_dir(&disk.0).unwrap().next().unwrap().unwrap().path();
    for entry in fs::read_dir(&dataset_on_disk).unwrap().map(|entry| entry.unwrap()) {
        fs::rename(entry.path(), disk.0.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(dataset_on_disk).unwrap();
    let answer = test.feedrate(&["clean", "data", "data/../data", "--yes"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("data/a`") && answer.stderr.contains("zarr"), "{answer:?}");
    assert_eq!(answer.stdout.matches("dataset").count(), 2, "{answer:?}");
    assert_eq!((dataset.exists(), fs::read_dir(&disk.0).unwrap().count()), (false, 0));
    assert_eq!(fs::read_to_string(test.path("data/a/manifest.json")).unwrap(), bad);
}

/// Marking the dataset as incomplete needs disk space too.
#[test]
fn a_dataset_on_a_full_device_can_be_removed() {
    let test = Test::with_workload(TINY);
    let disk = MountedDisk::tmpfs(&test.path("data"), "size=600k");
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    fs::write(disk.0.join("filler"), vec![1; 1 << 20]).unwrap_err();
    let answer = test.feedrate(&["clean", "data", "--yes"]);
    answer.warns(&["removed 8 files"]);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1);
}
