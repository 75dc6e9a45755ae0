//! Datasets in a bucket of real servers, compared with the same datasets in folders.

use crate::harness::{Answer, Test};
use crate::object_servers::StoreServer;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Two epochs of shuffled samples in files of several reads.
const WORKLOAD: &str = "\
model: {name: objects}
framework: pytorch
dataset: {format: npz, num_files_train: 6, num_samples_per_file: 4, record_length_bytes: 30000}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1, transfer_size: 8192, sample_shuffle: seed, file_shuffle: seed}
train: {epochs: 2}
";

/// Formats that are generated in files, with their abilities.
fn formats(test: &Test) -> Vec<(String, String)> {
    let listed = test.feedrate(&["list", "formats", "--json"]).json();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_string();
    let members = listed["members"].as_array().unwrap().iter();
    let mut formats: Vec<(String, String)> =
        members.map(|item| (text(item, "name"), text(item, "notes"))).collect();
    formats.retain(|(_, notes)| {
        !["no_files", "read_only", "mapped"].iter().any(|ability| notes.contains(ability))
    });
    assert!(formats.len() >= 10, "{formats:?}");
    formats
}

/// Runs a command, which must succeed.
#[track_caller]
fn feedrate(test: &Test, arguments: &[&str]) -> Answer {
    let answer = test.feedrate(arguments);
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    answer
}

/// The reads of a trace in the order of their times: the name of the file below the dataset and the returned bytes.
fn reads(trace: &Path) -> Vec<(String, i64)> {
    let mut text = String::new();
    MultiGzDecoder::new(File::open(trace).unwrap()).read_to_string(&mut text).unwrap();
    let lines = text.strip_prefix("[\n").unwrap().strip_suffix("]\n").unwrap();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: BTreeMap<&str, &str> = events
        .iter()
        .filter(|event| event["name"] == "FH")
        .map(|event| {
            let path = event["args"]["name"].as_str().unwrap();
            (event["args"]["value"].as_str().unwrap(), path.rsplit('/').next().unwrap())
        })
        .collect();
    let mut reads: Vec<&Value> = events.iter().filter(|event| event["name"] == "pread").collect();
    reads.sort_by_key(|event| event["ts"].as_u64());
    let name = |event: &Value| names[event["args"]["fhash"].as_str().unwrap()].to_string();
    reads.iter().map(|event| (name(event), event["args"]["ret"].as_i64().unwrap())).collect()
}

/// The files below a folder without the lock, which buckets do not have, and the manifest, whose times differ.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if ![".feedrate.lock", "manifest.json"].iter().any(|end| name.ends_with(end)) {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    assert!(!found.is_empty(), "{}", folder.display());
    found
}

/// Checks that two runs opened and read the same files in the same pieces.
#[track_caller]
fn check_accesses(a: &Value, b: &Value) {
    for key in ["reads", "opens", "files", "request_bytes", "sequential_share", "unique_bytes"] {
        assert_eq!(a["access"][key], b["access"][key], "{key}");
    }
}

/// Formats of different requests: of pieces of a file, of its end first, and of all of it in order.
const FEW_FORMATS: [&str; 3] = ["npz", "parquet", "tfrecord"];

/// Generates, verifies and trains formats in a folder and in the bucket, with the path as the only difference. Clients of
/// object_store.py read the same bytes.
fn check_formats(server: &StoreServer, clients: &[&str], is_checked: impl Fn(&str) -> bool) {
    let test = server.test();
    test.write("workload.yaml", WORKLOAD);
    let formats = formats(&test);
    let checked: Vec<_> = formats.into_iter().filter(|(format, _)| is_checked(format)).collect();
    assert!(checked.len() >= FEW_FORMATS.len());
    for (format, notes) in checked {
        // An image holds one sample.
        let samples = if ["png", "jpeg"].contains(&format.as_str()) { 1 } else { 4 };
        let settings =
            [format!("dataset.format={format}"), format!("dataset.num_samples_per_file={samples}")];
        let url = format!("{}/{format}", server.url);
        let train = |data: &str| {
            let trace = format!("{}.pfw.gz", data.replace(['/', ':'], "-"));
            let generate =
                ["generate", "workload.yaml", "--data", data, &settings[0], &settings[1]];
            feedrate(&test, &generate);
            feedrate(&test, &[&generate[..], &["--verify"]].concat());
            let run = ["run", "workload.yaml", "--data", data, "--json", "--trace", &trace];
            let mut arguments = [&run[..], &[&settings[0], &settings[1]]].concat();
            if !notes.contains("lossy") {
                arguments.push("--verify");
            }
            let json = feedrate(&test, &arguments).json();
            (json, reads(&test.path(&trace)))
        };
        fs::create_dir(test.path(&format)).unwrap();
        let (in_files, reads_of_files) = train(&format);
        let (in_objects, reads_of_objects) = train(&url);
        let place = format!("{format} on {}", server.name);
        assert_eq!(in_objects["complete"], true, "{place}");
        assert_eq!(in_objects["bytes"]["logical"], in_files["bytes"]["logical"], "{place}");
        check_accesses(&in_objects, &in_files);
        assert!(!reads_of_files.is_empty(), "{place}");
        assert_eq!(reads_of_objects, reads_of_files, "{place}");
        // A request is repeated only if a busy server closes its connection, and each has a first byte.
        let transfers = &in_objects["transfers"];
        let [requests, attempts, resets] = ["/requests", "/attempts", "/retried/reset"]
            .map(|path| transfers.pointer(path).and_then(Value::as_u64));
        assert_eq!(attempts, requests.zip(resets).map(|(a, b)| a + b), "{place}: {transfers}");
        assert_eq!(transfers["requests"], transfers["first_byte"]["count"], "{place}");
        assert!(in_files.get("transfers").is_none());
        for client in clients {
            let copy = format!("{client}-{format}");
            server.python(&test, &["get", &format, &copy, client]);
            let (copied, generated) = (contents(&test.path(&copy)), contents(&test.path(&format)));
            assert!(copied == generated, "{place} by {client}: {:?}", copied.keys());
        }
    }
}

#[test]
fn all_formats_in_seaweedfs_equal_those_in_files() {
    check_formats(&StoreServer::seaweed(), &["boto3", "s3dlio"], |_| true);
}

#[test]
fn all_formats_in_moto_equal_those_in_files() {
    check_formats(&StoreServer::moto(), &["boto3"], |_| true);
}

#[test]
fn formats_in_azurite_equal_those_in_files() {
    check_formats(&StoreServer::start("azurite"), &["azure"], |name| FEW_FORMATS.contains(&name));
}

#[test]
fn formats_in_seaweedfs_by_the_requests_of_google_equal_those_in_files() {
    let server = StoreServer::start("seaweed-gcs");
    check_formats(&server, &["boto3"], |name| FEW_FORMATS.contains(&name));
}

#[test]
fn objects_that_other_clients_wrote_are_read_as_a_foreign_dataset() {
    for (name, clients) in [
        ("seaweed", &["boto3", "s3dlio"][..]),
        ("moto", &["boto3"]),
        ("fake-gcs", &["google"]),
        ("azurite", &["azure"]),
    ] {
        let server = StoreServer::start(name);
        let test = server.test();
        test.write("workload.yaml", WORKLOAD);
        fs::create_dir(test.path("data")).unwrap();
        feedrate(&test, &["generate", "workload.yaml", "--data", "data"]);
        let folder = test.files_below("data", "manifest.json")[0].parent().unwrap().to_path_buf();
        fs::remove_file(folder.join("manifest.json")).unwrap();
        let folder = folder.to_string_lossy().into_owned();
        let run = |data: &str| {
            let arguments = ["run", "workload.yaml", "--json", "--foreign", "--data", data];
            feedrate(&test, &arguments).json()
        };
        let files = run(&folder);
        for client in clients {
            server.python(&test, &["put", &folder, client, client]);
            let objects = run(&format!("{}/{client}", server.url));
            check_accesses(&objects, &files);
            assert_eq!(objects["bytes"]["logical"], files["bytes"]["logical"], "{name}");
        }
    }
}

/// Moves the files of a generated dataset to subfolders and gives them other names.
fn rename_files(test: &Test, data: &str, folder: &Path) {
    let manifest = test.files_below(data, "manifest.json")[0].clone();
    for (number, (name, bytes)) in contents(manifest.parent().unwrap()).into_iter().enumerate() {
        let name = Path::new(&name).file_name().unwrap().to_string_lossy().replace("img", "näme ");
        let parent = folder.join(format!("part {}", number % 2));
        fs::create_dir_all(&parent).unwrap();
        fs::write(parent.join(name), bytes).unwrap();
    }
}

#[test]
fn objects_of_any_names_are_scanned_and_read_as_files_are() {
    for server in [StoreServer::seaweed(), StoreServer::moto()] {
        let test = server.test();
        test.write("workload.yaml", WORKLOAD);
        for format in ["npz", "tfrecord", "png"] {
            let place = format!("{format} on {}", server.name);
            let (generated, theirs) = (format!("{format}-data"), format!("{format}-theirs"));
            fs::create_dir(test.path(&generated)).unwrap();
            let samples = if format == "png" { 1 } else { 4 };
            let settings = [
                format!("dataset.format={format}"),
                format!("dataset.num_samples_per_file={samples}"),
            ];
            let generate = ["generate", "workload.yaml", "--data", &generated];
            feedrate(&test, &[&generate[..], &[&settings[0], &settings[1]]].concat());
            rename_files(&test, &generated, &test.path(&theirs));
            test.write(&format!("{theirs}/README.md"), "Data of others.");
            server.python(&test, &["put", &theirs, &format!("their/{format}")]);
            let url = format!("s3://bucket/their/{format}");

            let scan = |data: &str| {
                let mut scanned = feedrate(&test, &["scan", data, "--json"]).json();
                scanned.as_object_mut().unwrap().remove("folder").unwrap();
                scanned
            };
            assert_eq!(scan(&url), scan(&theirs), "{place}");
            let run = |data: &str| {
                let arguments = [
                    "run",
                    "--data",
                    data,
                    "train.epochs=1",
                    "reader.transfer_size=8192",
                    "--json",
                ];
                feedrate(&test, &arguments).json()
            };
            let (objects, files) = (run(&url), run(&theirs));
            check_accesses(&objects, &files);
            assert_eq!(objects["bytes"]["logical"], files["bytes"]["logical"], "{place}");
            let index = test.path(objects["run_dir"].as_str().unwrap()).join("names.index");
            assert!(index.is_file(), "{place}: {}", index.display());
            // Nothing is written to the bucket.
            let copy = format!("{theirs}-copy");
            server.python(&test, &["get", &format!("their/{format}"), &copy]);
            assert!(contents(&test.path(&copy)) == contents(&test.path(&theirs)), "{place}");
        }
        let refused = test.feedrate(&["scan", "s3://bucket/nothing"]);
        refused.refuses(2, &["`s3://bucket/nothing` contains no readable files", "hint:"]);
    }
}

#[test]
fn a_large_sample_is_read_by_one_request_apart_from_the_ends_of_its_file() {
    let server = StoreServer::seaweed();
    let test = server.test();
    test.write("workload.yaml", WORKLOAD);
    let settings = ["dataset.num_samples_per_file=1", "dataset.record_length_bytes=20000000"];
    let data = ["workload.yaml", "--data", "s3://bucket/large", settings[0], settings[1]];
    feedrate(&test, &[&["generate"], &data[..]].concat());
    let json = feedrate(
        &test,
        &[&["run", "--verify", "--json"], &data[..], &["reader.transfer_size=1048576"]].concat(),
    )
    .json();
    let samples = json["latency"]["sample"]["count"].as_u64().unwrap();
    assert_eq!(json["transfers"]["requests"], 3 * samples, "{}", json["transfers"]);
    assert!(json["access"]["reads"].as_u64().unwrap() > 20 * samples, "{}", json["access"]);
}
