//! Folders of existing files that feedrate did not generate, with any names.
//!
//! Long because each kind of folder has a test.

use crate::harness::{TINY, Test};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Generates files of `format` and moves them into class folders of `theirs`, under other names with `ending`.
fn write_foreign_files(test: &Test, format: &str, ending: &str, more: &[&str]) {
    let format = format!("dataset.format={format}");
    let generate = [&["generate", "workload.yaml", &format], more].concat();
    assert_eq!(test.feedrate(&generate).code, 0);
    let manifest = test.data_files("manifest.json")[0].clone();
    for (i, file) in test.files_below("data", "").iter().enumerate() {
        if file.to_string_lossy().contains("_of_") && !file.to_string_lossy().ends_with(".idx") {
            let class = test.path(&format!("theirs/class {}", i % 3));
            fs::create_dir_all(&class).unwrap();
            fs::rename(file, class.join(format!("ä {i}.{ending}"))).unwrap();
        }
    }
    fs::remove_dir_all(manifest.parent().unwrap()).unwrap();
    test.write("theirs/README.md", "words");
    test.write("theirs/labels.csv", "1,2\n");
    test.write("theirs/.hidden", "x");
}

fn folder_run(test: &Test, more: &[&str]) -> Value {
    let answer = test.feedrate(
        &[&["run", "--data", "theirs", "train.epochs=1", "--json", "--quiet"], more].concat(),
    );
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.json()
}

/// Pictures of noise are larger than the estimate, which the scan replaces.
#[test]
fn a_plan_of_existing_pictures_has_their_exact_bytes() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "jpeg", "jpg", &[]);
    let scan = test.feedrate(&["scan", "theirs", "--json"]).json();
    let bytes = scan["bytes"].as_u64().unwrap();
    let files = scan["files"].as_u64().unwrap();
    let plan = ["plan", "--data", "theirs", "train.computation_time=0.5", "reader.batch_size=2"];
    let estimate = test.feedrate(&[&plan[..], &["--json"]].concat()).json()["estimate"].take();
    assert_eq!(estimate["file_bytes"], bytes / files * files);
    assert_eq!(estimate["needed_bytes_per_second"], (bytes / files * 2) as f64 / 0.5);
    let page = test.feedrate(&plan).stdout;
    let sizes =
        page.lines().filter(|line| line.starts_with("dataset") || line.starts_with("sample"));
    assert!(
        sizes.clone().count() == 2 && sizes.clone().all(|line| !line.contains("about")),
        "{page}"
    );
    assert!(page.contains("4.1 kB decoded, "), "{page}");
}

/// A misspelt folder is suggested.
#[test]
fn a_missing_data_folder_gets_the_most_similar_one() {
    let test = Test::with_workload(TINY);
    fs::create_dir_all(test.path("photos")).unwrap();
    let run = ["run", "workload.yaml", "--data", "photo"];
    test.feedrate(&run).refuses(2, &["`--data photo` does not exist", "did you mean `photos`?"]);
}

/// All paths below a folder, with lengths and modification times.
fn file_states(folder: &Path) -> Vec<String> {
    let mut all = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let (path, found) = (entry.as_ref().unwrap().path(), entry.unwrap().metadata().unwrap());
        if found.is_dir() {
            all.extend(file_states(&path));
        }
        all.push(format!("{} {} {:?}", path.display(), found.len(), found.modified().unwrap()));
    }
    all.sort();
    all
}

#[test]
fn a_folder_of_any_format_can_be_run_without_a_workload() {
    let samples = ["dataset.num_samples_per_file=3"];
    for (format, ending, more, dims) in [
        ("jpeg", "jpg", &[][..], json!([64, 64])),
        ("png", "PNG", &[], json!([64, 64])),
        ("npz", "npz", &[], json!([64, 64])),
        ("npy", "npy", &[], json!([64, 64])),
        ("raw", "raw", &[], json!([4096])),
        ("webdataset", "tar", &samples, json!([64, 64])),
        ("parquet", "parquet", &samples, json!([64, 64])),
        ("tfrecord", "tfrecords", &samples, Value::Null),
        ("hdf5", "h5", &samples, json!([64, 64])),
    ] {
        let test = Test::with_workload(TINY);
        write_foreign_files(&test, format, ending, more);
        let before = file_states(&test.path("theirs"));
        let scanned = test.feedrate(&["scan", "theirs", "--json"]);
        assert_eq!(scanned.code, 0, "{format}: {}", scanned.stderr);
        let scanned = scanned.json();
        let each = if more.is_empty() { 1 } else { 3 };
        let keys = ["format", "files", "folders", "samples", "samples_per_file"];
        let values = keys.map(|key| scanned[key].clone());
        assert_eq!(json!(values), json!([format, 8, 3, 8 * each, each]));
        assert_eq!(scanned["dims"], dims, "{format}");
        let json = folder_run(&test, &["--batch", "4"]);
        assert_eq!(json["latency"]["sample"]["count"], 8 * each, "{format}");
        assert_eq!(json["found"]["bytes"], scanned["bytes"]);
        assert_eq!(file_states(&test.path("theirs")), before, "{format}: nothing is written there");
    }
}

/// A scan opens some of the files. A broken one among the others is noticed when it is read.
#[test]
fn broken_files_that_a_scan_does_not_open_are_counted_by_a_run() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "npz", "npz", &["dataset.num_files_train=40"]);
    let mut files = test.files_below("theirs", ".npz");
    files.sort();
    let truncate = |file: &Path| fs::write(file, &fs::read(file).unwrap()[..900]).unwrap();
    let run = ["run", "--data", "theirs", "train.epochs=1", "--batch", "4", "--json", "--quiet"];
    // Of 40 files, a scan opens 16: 0, 2, 5, 7, 10, 13 and so on.
    for broken in [1, 3] {
        truncate(&files[broken]);
    }
    let answer = test.feedrate(&run);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let doubts = answer.json()["doubts"].to_string();
    assert!(
        doubts.contains("read but not decoded: 2 samples of 40 samples (2 broken file (`"),
        "{doubts}"
    );
    for unopened in [1, 3, 4, 6, 8, 9, 11, 12, 14, 16, 17, 19, 21, 22, 24, 25, 27, 29, 30, 32] {
        truncate(&files[unopened]);
    }
    let in_order = ["reader.file_shuffle=off", "--workers", "1"];
    let answer = test.feedrate(&[&run[..], &in_order].concat());
    assert_eq!(answer.code, 1, "most files are broken: {}", answer.stderr);
    assert!(answer.stderr.contains("theirs"), "{}", answer.stderr);
}

/// An empty file, random bytes, half an image, and a broken one.
#[test]
fn odd_files_among_pictures_are_read_and_named() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "jpeg", "jpg", &["dataset.num_files_train=24"]);
    let whole = fs::read(&test.files_below("theirs", ".jpg")[0]).unwrap();
    test.write("theirs/class 0/random.jpg", [b'x'; 5000]);
    test.write("theirs/class 0/half.jpg", &whole[..whole.len() / 2]);
    test.write("theirs/class 0/head.jpg", &whole[..8]);
    test.write("theirs/class 1/broken.jpg", [&b"\xff\xd8\xff"[..], &[b'x'; 5000]].concat());
    test.write("theirs/class 1/empty.jpg", "");
    let scanned = test.feedrate(&["scan", "theirs", "--json"]);
    assert_eq!(scanned.code, 0, "{}", scanned.stderr);
    let scanned = scanned.json();
    assert_eq!((&scanned["format"], &scanned["dims"]), (&json!("jpeg"), &json!([64, 64])));
    let json = folder_run(&test, &["--batch", "4"]);
    let doubts = json["doubts"].as_array().unwrap();
    let doubt = doubts.iter().find(|doubt| doubt["name"] == "members_not_decoded").unwrap();
    let evidence = doubt["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("read but not decoded: 4 samples of 28 samples (4 jpeg (`"),
        "{evidence}"
    );
    assert!(
        ["random", "half", "head", "broken"].iter().any(|name| evidence.contains(name)),
        "{evidence}"
    );
    assert_eq!(json["found"]["files"], 28, "the empty file is left out");
}

/// MLPerf's generator of retinanet writes random bytes with the extension of pictures.
#[test]
fn pictures_that_are_not_decoded_are_plain_bytes() {
    let test = Test::with_workload(TINY);
    let settings = [
        "dataset.format=jpeg",
        "dataset.num_files_train=8",
        "dataset.num_files_eval=0",
        "dataset.record_length_bytes=5003",
        "dataset.record_dims=[]",
        "train.epochs=1",
    ];
    let undecoded = [&settings[..], &["reader.decode=false"]].concat();
    let run = |more: &[&str]| {
        let json = test.run_json(&[&undecoded[..], more].concat());
        assert_eq!(json["latency"]["sample"]["count"], 8, "{json}");
        assert_eq!(json["bytes"]["logical"], 8 * 5003, "{json}");
    };
    run(&[]);
    let files = test.data_files(".jpeg");
    assert_eq!(files.len(), 8);
    assert!(files.iter().all(|file| file.metadata().unwrap().len() == 5003));
    let checked = [&["generate", "workload.yaml", "--verify"], &undecoded[..]].concat();
    assert_eq!(test.feedrate(&checked).code, 0);
    // The files of another generator are read too, with and without decoding.
    fs::remove_file(&test.data_files("manifest.json")[0]).unwrap();
    let folder = files[0].parent().unwrap().parent().unwrap().to_string_lossy().into_owned();
    run(&["--foreign", "--data", &folder]);
    let json = test.run_json(&[&settings[..], &["--foreign", "--data", &folder]].concat());
    assert_eq!(json["bytes"]["logical"], 8 * 5003, "{json}");
    let doubts = json["doubts"].as_array().unwrap();
    let doubt = doubts.iter().find(|doubt| doubt["name"] == "members_not_decoded").unwrap();
    let evidence = doubt["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("read but not decoded: 8 samples of 8 samples"), "{doubt}");
}

/// Each of two threads reads batches of two samples, in pieces of 2,048 bytes, every 40 ms.
#[test]
fn a_log_with_a_data_folder_becomes_a_workload_on_its_files() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "tfrecord", "tfrecords", &["dataset.num_samples_per_file=4"]);
    let mut text = "5 1.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    for index in 0..64_u64 {
        for (thread, shift) in [(6, 0), (7, 20_000)] {
            let us = 100_000 + index / 4 * 40_000 + index % 4 * 50 + shift;
            let (file, offset) = (index / 8 * 2 + thread - 6, index % 8 * 2048);
            text += &format!(
                "{thread} 2.{us:06} pread64(3</d/{file}.tfrecords>, \"\", 2048, {offset}) = 2048 <0.00001>\n"
            );
        }
    }
    test.write("job.strace", text);
    let answer =
        test.feedrate(&["import", "job.strace", "--data", "theirs", "-o", "job.yaml", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let assumed = [
        "the job read 16 files, and the folder has 8",
        "4 batches are read ahead, as PyTorch does by default",
        "the order of files is unknown: by their names",
    ];
    assert_eq!(answer.json()["assumed"], json!(assumed));
    assert_eq!(answer.json()["job"]["readers"], 2);
    let run = test.feedrate(&["run", "job.yaml", "--json", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = run.json();
    assert_eq!((&run["steps"], &run["latency"]["sample"]["count"]), (&json!(16), &json!(32)));
}

#[test]
fn a_foreign_workload_reads_files_with_any_names() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "npz", "npz", &[]);
    let json = test.run_json(&["--foreign", "--data", "theirs", "train.epochs=1"]);
    assert_eq!(json["latency"]["sample"]["count"], 8);
    let opens = json["access"]["preparation_opens"].as_u64().unwrap();
    assert!(opens >= 8, "{opens} files were opened before the run");
    let many =
        ["run", "workload.yaml", "--foreign", "--data", "theirs", "dataset.num_files_train=9"];
    test.feedrate(&many).refuses(1, &["9 npz files to train on", "there are 8"]);
    assert_eq!(
        test.files_below("results", "names.index").len(),
        1,
        "the failed run left no list of names"
    );
    let run_dir = test.path(json["run_dir"].as_str().unwrap());
    let files = test.files_below("theirs", ".npz");
    fs::write(&files[3], "broken").unwrap();
    let name = files[3].file_name().unwrap().to_str().unwrap();
    let few = ["run", "workload.yaml", "--foreign", "--data", "theirs"];
    test.feedrate(&few).refuses(1, &[name]);
    // The intact file determines the expected format, whichever file is opened first.
    files[1..].iter().for_each(|file| fs::write(file, "broken").unwrap());
    let answer = test.feedrate(&few);
    assert!(answer.code == 1 && !answer.stderr.contains("there are 0"), "{answer:?}");
    test.feedrate(&["show", run_dir.to_str().unwrap()]);
}

#[test]
fn a_written_workload_reads_the_same_files_of_a_mixed_folder() {
    let test = Test::with_workload(TINY);
    for folder in ["theirs", "own"] {
        fs::create_dir(test.path(folder)).unwrap();
    }
    for (file, rows) in [10, 10, 4, 10].into_iter().enumerate() {
        test.write(&format!("theirs/{file}.csv"), "1,2,3\n".repeat(rows));
    }
    fs::write(test.path("theirs/logo.png"), b"\x89PNG\r\n\x1a\n and more").unwrap();
    let found = folder_run(&test, &["--write-yaml", "found.yaml"]);
    assert_eq!(
        (&found["found"]["format"], &found["found"]["samples"]),
        (&"csv".into(), &34.into())
    );
    let again = test.feedrate(&["run", "found.yaml", "--json"]);
    assert_eq!(again.json()["latency"]["sample"]["count"], 32, "{}", again.stderr);
    test.write("own/names.index", "mine");
    test.feedrate(&["run", "--data", "theirs", "--run-dir", "own"]).refuses(2, &["names.index"]);
    assert_eq!(fs::read(test.path("own/names.index")).unwrap(), b"mine");
}

/// A row is found only by reading its file from the start.
#[test]
fn files_of_numbers_are_read_once_per_epoch() {
    for (extension, row) in [("csv", "1,2,3\n"), ("json", "[1,2,3]\n")] {
        let test = Test::new();
        fs::create_dir(test.path("theirs")).unwrap();
        for file in 0..2 {
            test.write(&format!("theirs/{file}.{extension}"), row.repeat(3200));
        }
        let json = folder_run(&test, &["--workers", "2"]);
        assert_eq!(json["latency"]["sample"]["count"], 6400, "{extension}");
        assert_eq!(json["bytes"]["logical"], 6400 * row.len(), "{extension}");
    }
}

#[test]
fn broken_files_are_named_and_left_out() {
    let test = Test::new();
    fs::create_dir(test.path("theirs")).unwrap();
    for file in 0..40 {
        test.write(&format!("theirs/{file:02}.csv"), "1,2,3\n".repeat(10));
    }
    // The first file is read to detect the shape, the second is not.
    test.write("theirs/00.csv", b"\x28\xb5\x2f\xfd");
    test.write("theirs/01.csv", "hello\n");
    test.write("theirs/02.csv", "1,2,3\n");
    let found = folder_run(&test, &["--write-yaml", "found.yaml"]);
    assert_eq!(
        (&found["found"]["format"], &found["found"]["files"], &found["found"]["samples"]),
        (&json!("csv"), &json!(38), &json!(371))
    );
    let scanned = test.feedrate(&["scan", "theirs"]).stdout;
    let left_out = "left out: 2 unreadable (`00.csv`: ";
    assert!(
        scanned.contains(left_out) && scanned.contains("371 samples, 1 to 10 each"),
        "{scanned}"
    );
    let again = test.feedrate(&["run", "found.yaml", "--json"]);
    let whole_batches = 371 / 32 * 32;
    assert_eq!(again.json()["latency"]["sample"]["count"], whole_batches, "{}", again.stderr);
}

#[test]
fn files_that_are_left_out_are_reported() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "jpeg", "jpg", &[]);
    let jpeg = test.files_below("theirs", ".jpg")[0].clone();
    fs::write(test.path("theirs/empty.jpg"), "").unwrap();
    fs::write(test.path("theirs/one.png"), b"\x89PNG\r\n\x1a\n and more").unwrap();
    std::os::unix::fs::symlink(".", test.path("theirs/loop")).unwrap();
    std::os::unix::fs::symlink(&jpeg, test.path("theirs/link.JPEG")).unwrap();
    std::os::unix::fs::symlink("nowhere", test.path("theirs/broken.jpg")).unwrap();
    let scanned = test.feedrate(&["scan", "theirs"]);
    let mut lines = scanned.stdout.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("9 jpeg, ") && first.ends_with(", 4 folders, 64 × 64"), "{first}");
    let left_out = "left out: 1 broken link, 1 csv, 1 empty, 1 hidden, 1 md, 1 png";
    assert_eq!(lines.next(), Some(left_out));
    let answer = test.feedrate(&["run", "--data", "theirs", "--write-yaml", "mine.yaml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    // All nine files are one batch, so an epoch is one step.
    let epochs = "batches of 9 (`--batch`), 50 epochs, for 50 steps or more\n";
    assert!(answer.stderr.contains("assumed: ") && answer.stderr.contains(left_out), "{answer:?}");
    assert!(answer.stderr.contains(epochs), "{answer:?}");
    let epoch = answer.stderr.lines().find(|line| line.starts_with("epoch 50/50: "));
    assert!(epoch.is_some_and(|line| !line.contains("AU")), "without compute: {answer:?}");
    let output: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(output[0], format!("{first}; compute time unknown: the loader's ceiling"));
    assert!(output[1].contains(" samples/s, ") && output[1].contains(" on "), "{}", output[1]);
    assert!(output.last().unwrap().starts_with("Results: "), "{output:?}");
    let position =
        output.iter().position(|line| line.starts_with("To include the costs of plain PyTorch"));
    let next = output[position.unwrap() + 1].trim();
    assert_eq!(next, "feedrate run mine.yaml client=pytorch-jpeg");
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    let job = test.feedrate(&words);
    assert!(job.stdout.contains("Client: pytorch-jpeg (tests the job)"), "{job:?}");
    assert!(!job.stdout.contains("To include"), "{job:?}");
    let again = test.feedrate(&["run", "mine.yaml", "--foreign", "--json", "--compute", "1ms"]);
    assert_eq!(again.json()["latency"]["sample"]["count"], 50 * 9, "{}", again.stderr);
    test.feedrate(&["run", "--data", "theirs", "--results", "theirs/results"])
        .refuses(2, &["--results"]);
    for words in [
        &["mine.yaml", "--results", "theirs/results"][..],
        &["mine.yaml", "--results", "theirs/results", "--repeat", "2"],
        &["mine.yaml", "--run-dir", "theirs/results"],
        &["mine.yaml", "--junit", "theirs/results.xml"],
        &["mine.yaml", "--openmetrics", "theirs/results.txt"],
        &["--data", "theirs", "--junit", "theirs/results.xml"],
    ] {
        let refused = test.feedrate(&[&["run"], words].concat());
        refused.refuses(2, &["theirs/results", "would be in the data folder `"]);
    }
    for name in ["results", "results.xml", "results.txt"] {
        assert!(!test.path("theirs").join(name).exists(), "{name}");
    }
    for (folder, words) in [
        ("nowhere", ["nowhere` does not exist", "is the storage mounted?"]),
        ("results", ["there are no files of the format `jpeg` in", "`feedrate scan "]),
    ] {
        let data = format!("dataset.data_folder={folder}");
        test.feedrate(&["run", "mine.yaml", &data, "--results", "other"]).refuses(2, &words);
    }
    test.feedrate(&["run", "--data", "nowhere"]).refuses(2, &["`--data nowhere` does not exist"]);
    test.feedrate(&["run"]).refuses(2, &["needs a workload", "`--data DIR`"]);
    let taken = test.feedrate(&["run", "--data", "theirs", "--write-yaml", "mine.yaml"]);
    taken.refuses(2, &["`mine.yaml` is there already", "hint: give another name"]);
    assert!(!taken.stderr.contains("--force"), "`run` has none: {}", taken.stderr);
    fs::create_dir(test.path("bare")).unwrap();
    test.write("bare/a.webp", "");
    test.feedrate(&["run", "--data", "bare"]).refuses(2, &["1 empty"]);
    assert!(!test.path("results/bare").join("names.index").exists());
}

#[test]
fn files_of_unknown_formats_are_read_as_raw_bytes() {
    let test = Test::new();
    // Small files with known extensions are left out.
    let small = ("small.json", &b"{}"[..]);
    for (files, kind, bytes, left_out) in [
        (&[("a.nii", &b"0123456789"[..]), ("b/c.NII", b"0123"), small][..], "nii", 14, "1 json"),
        (&[("bare", b"0123"), small], "without extension", 4, "1 json"),
        (&[("document.json", b"{\n\"text\": \"words\"\n}\n"), ("a.md", b"a")], "json", 20, "1 md"),
        (&[("a.raw", b"12"), ("b.raw", b"123")], "raw", 5, ""),
        // One image among files of another extension.
        (
            &[("a.dcm", &[1; 5000]), ("b.dcm", &[2; 5000]), ("a.gif", b"GIF89a")],
            "dcm",
            10_000,
            "1 gif",
        ),
    ] {
        for (name, content) in files {
            let path = test.path("theirs").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let answer = test.feedrate(&["run", "--data", "theirs", "train.epochs=1", "--json"]);
        let output = answer.json();
        assert_eq!(
            (&output["found"]["format"], &output["found"]["kind"]),
            (&json!("raw"), &json!(kind))
        );
        assert_eq!(output["bytes"]["logical"], bytes, "{kind}");
        assert_eq!(output["found"]["samples"], output["found"]["files"]);
        let is_noted = answer.stderr.contains("read and not decoded");
        assert_eq!(is_noted, kind != "raw", "{}", answer.stderr);
        assert!(answer.stderr.contains(left_out), "{}", answer.stderr);
        fs::remove_dir_all(test.path("theirs")).unwrap();
    }
}

/// Files of text are samples by line, whatever their lines hold.
#[test]
fn lines_of_text_are_samples() {
    let test = Test::new();
    for (name, content, format, samples) in [
        ("words.jsonl", "{\"text\": \"words\"}\n[\"a\"]\n", "jsonl", 2),
        ("lines.json", "{\"text\": \"words\"}\n\n{\"text\": 3}", "jsonl", 2),
        ("heading.csv", "a,b\n1,2\n3,\"x\ny\"\n", "csv_text", 2),
        ("columns.tsv", "a\tb\n1\tx\n", "csv_text", 1),
        ("words.txt", "the cat\nsat\n\n12 7\n", "txt", 4),
    ] {
        fs::create_dir_all(test.path("theirs")).unwrap();
        for file in 0..3 {
            test.write(
                &format!("theirs/{file}{name}"),
                content.repeat(if file == 1 { 3 } else { 1 }),
            );
        }
        let output = folder_run(&test, &["--batch", "1", "--write-yaml", "found.yaml"]);
        let found = &output["found"];
        // The column names of the repeated content are a row.
        let more = if format == "csv_text" { 2 } else { 0 };
        // Without a newline at its end, the last line continues with the first one of the repeated content.
        let total = if name == "lines.json" { 2 + 4 + 2 } else { samples * 5 + more };
        assert_eq!(
            (&found["format"], &found["samples"]),
            (&json!(format), &json!(total)),
            "{name}"
        );
        assert_eq!(output["latency"]["sample"]["count"], total, "{name}");
        assert_eq!(output["bytes"]["logical"], found["bytes"], "{name}");
        let again = test.feedrate(&["run", "found.yaml", "--json", "--quiet"]);
        assert_eq!(again.json()["latency"]["sample"]["count"], total, "{name}: {}", again.stderr);
        fs::remove_file(test.path("found.yaml")).unwrap();
        fs::remove_dir_all(test.path("theirs")).unwrap();
    }
    test.write("own.yaml", "dataset:\n  format: jsonl\n");
    test.feedrate(&["generate", "own.yaml"]).refuses(2, &["are read, but not generated", "hint:"]);
}

#[test]
fn unreadable_files_are_refused_with_a_hint() {
    let test = Test::new();
    let text =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../data/src/format/parquet/fixtures/fixed.parquet");
    let mut parquet = fs::read(text).unwrap();
    // The metadata of a parquet file is at its end.
    parquet.truncate(parquet.len() / 2);
    fs::create_dir(test.path("theirs")).unwrap();
    test.write("theirs/cut.parquet", &parquet);
    let hint = "remove the file if it is broken, else convert the files; supported for parquet: One row per sample";
    test.feedrate(&["scan", "theirs"]).refuses(2, &["`cut.parquet`", hint]);
    fs::remove_file(test.path("theirs/cut.parquet")).unwrap();
    for command in [&["scan", "theirs"][..], &["run", "--data", "theirs"]] {
        test.feedrate(command).refuses(2, &["contains no readable files", "hint: give the folder"]);
    }
}

#[test]
fn generated_datasets_are_refused_with_the_right_command() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let folder = test.data_files("manifest.json")[0].parent().unwrap().to_path_buf();
    let name = folder.file_name().unwrap().to_str().unwrap();
    for command in [["run", "--data", "data"], ["scan", "data", "--json"]] {
        test.feedrate(&command).refuses(2, &["feedrate generated", "feedrate run", name]);
    }
}

/// The written workload, a repeated run and a study still know that the files are foreign, and generate nothing in the folder.
#[test]
fn a_foreign_folder_stays_foreign_in_workloads_runs_and_studies() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "npz", "npz", &[]);
    let before = file_states(&test.path("theirs"));
    let options = ["--compute", "1ms", "--batch", "2", "--write-yaml", "own.yaml"];
    let json = folder_run(&test, &[&options[..], &["reader.requests=large"]].concat());
    let run = json["run_dir"].as_str().unwrap();
    let amplification = json["access"]["read_amplification"].as_f64().unwrap();
    assert!(amplification < 1.2, "a file is a sample: {amplification}");
    for again in [&["run", "own.yaml"][..], &["run", run], &["run", run, "reader.stage=copy"]] {
        let answer = test.feedrate(&[again, &["--json", "--quiet"]].concat());
        assert_eq!(answer.code, 0, "{again:?}: {}", answer.stderr);
        assert_eq!(answer.json()["latency"]["sample"]["count"], 8, "{again:?}");
        assert!(!answer.stderr.contains("warning: `"), "the files are as found: {}", answer.stderr);
    }
    assert_eq!(test.files_below("copy", "").len(), 0, "the copy is removed");
    for command in [&["generate", "own.yaml"][..], &["generate", "own.yaml", "--verify"]] {
        test.feedrate(command).refuses(2, &["foreign files are neither"]);
    }
    let rows = "model,processes,run\nown.yaml,1,N\n";
    test.write("study.csv", rows);
    let study = test.feedrate(&["study", "run", "study.csv"]);
    assert_eq!(study.code, 0, "{study:?}");
    let advised = test.feedrate(&["advise", run, "--json"]).json();
    for advice in advised["advice"].as_array().unwrap() {
        let is_dataset = advice["cost"] == "dataset";
        assert!(!is_dataset || advice["command"].is_null(), "{advice}");
    }
    assert_eq!(file_states(&test.path("theirs")), before);
}

#[test]
fn settings_that_cannot_read_foreign_files_are_refused() {
    let test = Test::with_workload(TINY);
    write_foreign_files(&test, "npz", "npz", &[]);
    for (key, word) in
        [("storage.storage_type=memory", "memory"), ("reader.file_access=mpio", "mpio")]
    {
        for arguments in
            [&["--data", "theirs"][..], &["workload.yaml", "--foreign", "--data", "theirs"]]
        {
            let settings =
                ["reader.read_threads=1", "reader.batch_size=1", "reader.sample_shuffle=off"];
            let answer = test.feedrate(&[&["run"], arguments, &settings, &[key]].concat());
            answer.refuses(2, &[word, "hint: "]);
        }
    }
    assert_eq!(test.files_below("results", "").len(), 0);
}

#[test]
fn what_has_no_samples_or_no_effect_is_refused() {
    let test = Test::new();
    for folder in ["empty", "lines", "tabs"] {
        fs::create_dir(test.path(folder)).unwrap();
    }
    for number in 0..4 {
        let header: &[&[u8]] = &[b"MMIDIDX\0\0", &[1, 0, 0, 0, 0, 0, 0, 0, 8], &[0; 16]];
        test.write(&format!("empty/{number}.idx"), header.concat());
        test.write(&format!("empty/{number}.bin"), "?");
        test.write(&format!("lines/{number}.json"), "{\"a\": 1}\n{\"a\": 2}\n");
        test.write(&format!("tabs/{number}.tsv"), "id\tname\n1\tone\n");
    }
    for command in ["scan", "run"] {
        let folder: &[&str] = if command == "scan" { &["empty"] } else { &["--data", "empty"] };
        test.feedrate(&[&[command], folder].concat()).refuses(2, &["files have no samples"]);
    }
    let chosen = ["run", "--data", "lines", "dataset.members=[a]"];
    test.feedrate(&chosen).refuses(2, &["`dataset.members` has no effect", "leave it out"]);
    for (folder, kind) in [("lines", "4 json,"), ("tabs", "4 csv,")] {
        let scanned = test.feedrate(&["scan", folder]);
        assert_eq!(scanned.code, 0, "{}", scanned.stderr);
        let text = format!("{}{}", scanned.stdout, scanned.stderr);
        assert!(text.contains(kind) && !text.contains("is unknown"), "{text}");
    }
}
