//! Checkpoints in a bucket, cleaning of buckets, and keys from profiles.

use crate::dlio_benchmark::dlio_benchmark;
use crate::harness::{TINY, Test};
use crate::object_servers::StoreServer;
use crate::objects::contents;
use std::fs;

/// A tensor in several parts, whose checksum precedes it in the file.
const MODEL: [&str; 4] = [
    "workflow.checkpoint=true",
    "model.model_size=20000000",
    "model.optimization_groups=[1000,2000]",
    "checkpoint.epochs_between_checkpoints=1",
];

/// Arguments of a run that writes two small checkpoints.
const ALONE: [&str; 5] =
    ["run", "llama_7b_zero3", "--scale", "0.00001", "checkpoint.time_between_checkpoints=0"];

fn with_workload(server: &StoreServer) -> Test {
    let test = server.test();
    test.write("workload.yaml", TINY);
    test
}

/// The lines of objects.py on objects, or on unfinished uploads, below a prefix.
fn listed(server: &StoreServer, test: &Test, kind: &str, prefix: &str) -> Vec<String> {
    let lines = server.python(test, &["list"]);
    let names = lines.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    names.filter(|name| name.starts_with(prefix)).map(str::to_string).collect()
}

/// Checkpoints during training in a folder and in a bucket have the same bytes, and old ones are removed.
fn check_checkpoints(server: &StoreServer) {
    let test = with_workload(server);
    for format in ["pt", "tf", "safetensors", "raw"] {
        let format_setting = format!("checkpoint.format={format}");
        for (folder, keep) in [("kept", "2"), ("last", "1")] {
            let folder = format!("{folder}-{format}");
            let keep = format!("checkpoint.keep_last={keep}");
            for target in [folder.clone(), format!("s3://bucket/{folder}")] {
                let target = format!("checkpoint.checkpoint_folder={target}");
                test.run_json(&[&MODEL[..], &[&format_setting, &keep, &target]].concat());
            }
            let copy = format!("copy-{folder}");
            server.python(&test, &["get", &format!("{folder}/"), &copy]);
            let (stored, written) = (contents(&test.path(&copy)), contents(&test.path(&folder)));
            assert!(stored == written, "{}: {:?}", server.name, stored.keys());
        }
    }
    assert_eq!(listed(server, &test, "upload", ""), [""; 0]);
}

#[test]
fn checkpoints_in_seaweedfs_equal_those_in_files() {
    check_checkpoints(&StoreServer::seaweed());
}

#[test]
fn checkpoints_in_moto_equal_those_in_files() {
    check_checkpoints(&StoreServer::moto());
}

#[test]
fn checkpoints_are_read_back_and_checked() {
    let server = StoreServer::seaweed();
    let test = server.test();
    let folder = "checkpoint.checkpoint_folder=s3://bucket/alone";
    let run = |more: &[&str]| test.feedrate(&[&ALONE[..], &[folder], more].concat());
    let both = ["checkpoint.num_checkpoints_write=2", "checkpoint.num_checkpoints_read=2"];
    let answer = run(&[&both[..], &["--json"]].concat());
    answer.warns(&["checkpoint.fsync", "durable once it is stored"]);
    let json = answer.json();
    for kind in ["save", "load"] {
        let found = &json["answer"]["checkpoints"][kind];
        assert_eq!((&found["medium"], &found["count"]), (&"store".into(), &2.into()), "{found}");
    }
    assert_eq!(json["answer"]["checkpoints"]["save"]["is_durable"], true);
    assert!(!json["doubts"].to_string().contains("checkpoints_"), "{}", json["doubts"]);
    let read = ["checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"];
    let shown = run(&read);
    assert!(shown.stdout.contains("from a store of objects"), "{}{}", shown.stdout, shown.stderr);
    run(&[&read[..], &["--cold"]].concat())
        .refuses(2, &["empties the page cache", "leave `--cold` out"]);
    // A file of another length, with the name of one of the checkpoint's.
    let names = listed(&server, &test, "object", "alone/global_epoch1_step1/");
    let (folder, name) = names[0].rsplit_once('/').unwrap();
    fs::create_dir(test.path("damaged")).unwrap();
    fs::write(test.path("damaged").join(name), "short").unwrap();
    server.python(&test, &["put", "damaged", folder]);
    run(&read).refuses(1, &[&names[0], "it has 5 bytes of"]);
    run(&both).refuses(1, &[&names[0], "no manifest says"]);
}

/// As in DLIO, a relative folder is in the store of the data.
#[test]
fn a_relative_folder_is_beside_the_data() {
    let server = StoreServer::moto();
    let test = with_workload(&server);
    let data = ["--data", "s3://bucket/train"];
    let plan = test.feedrate(&[&["plan", "workload.yaml"], &data[..], &MODEL].concat());
    assert!(plan.stdout.contains("checkpoint store"), "{}", plan.stdout);
    test.run_json(&[&data[..], &MODEL].concat());
    assert!(!listed(&server, &test, "object", "train/checkpoints/.global_epoch1_").is_empty());
    assert!(!test.path("checkpoints").exists());
    fs::create_dir_all(test.path("conf/workload")).unwrap();
    test.write("conf/workload/tiny.yaml", TINY);
    let settings = [
        "workload=tiny",
        "++workload.workflow.generate_data=True",
        "++workload.storage.storage_type=s3",
        "++workload.storage.storage_root=bucket",
        "++workload.checkpoint.checkpoint_folder=dlio/tiny",
    ];
    let model = MODEL.map(|text| format!("++workload.{text}"));
    let arguments: Vec<&str> =
        settings.into_iter().chain(model.iter().map(String::as_str)).collect();
    let answer = dlio_benchmark(&test, &arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!listed(&server, &test, "object", "dlio/tiny/global_epoch1_").is_empty());
}

#[test]
fn a_bucket_is_cleaned_of_own_objects_and_uploads() {
    for server in [StoreServer::seaweed(), StoreServer::moto()] {
        let test = with_workload(&server);
        let data = ["--data", "s3://bucket/deep/data"];
        test.run_json(&[&data[..], &MODEL, &["--run-dir", "run"]].concat());
        fs::create_dir(test.path("mine")).unwrap();
        test.write("mine/thesis.txt", "mine");
        let dataset = listed(&server, &test, "object", "deep/data/npz-");
        let (dataset, _) = dataset[0]
            .split_once("/train/")
            .unwrap_or_else(|| dataset[0].rsplit_once('/').unwrap());
        server.python(&test, &["put", "mine", &format!("{dataset}/train")]);
        let own_upload = format!("{dataset}/train/img_3_of_8.npz");
        for key in [&*own_upload, "deep/data/of-another"] {
            server.python(&test, &["upload", key]);
        }
        let before = listed(&server, &test, "object", "");
        let clean = |more: &[&str]| test.feedrate(&[&["clean", "s3://bucket/deep"], more].concat());
        let listing = clean(&["--json"]);
        assert_eq!(listing.code, 0, "{}", listing.stderr);
        let listing = listing.json();
        let items = listing["items"].as_array().unwrap().iter();
        let found = items.map(|item| (item["kind"].as_str(), item["uploads"].as_u64()));
        let expected = [(Some("checkpoints"), Some(0)), (Some("datasets"), Some(1))];
        assert_eq!(found.collect::<Vec<_>>(), expected, "{}", server.name);
        assert_eq!(listed(&server, &test, "object", ""), before);
        let cleaned = clean(&["--yes"]);
        assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
        assert!(cleaned.stdout.contains("train/thesis.txt"), "{}", cleaned.stdout);
        assert!(cleaned.stderr.contains(", 1 unfinished upload\n"), "{}", cleaned.stderr);
        let thesis = format!("{dataset}/train/thesis.txt");
        assert_eq!(listed(&server, &test, "object", ""), [thesis], "{}", server.name);
        assert_eq!(
            listed(&server, &test, "upload", ""),
            ["deep/data/of-another"],
            "{}",
            server.name
        );
        let results = test.feedrate(&["clean", "run"]);
        assert!(
            results.stdout.contains("`s3://bucket/deep/data/checkpoints`"),
            "{}",
            results.stdout
        );
        test.feedrate(&["clean", "s3://"]).refuses(2, &["names no bucket"]);
    }
}

#[test]
fn keys_of_a_profile_are_used_and_named() {
    let server = StoreServer::moto();
    let secret = "hunter2";
    let credentials = format!("[tests]\naws_access_key_id=key\naws_secret_access_key={secret}\n");
    let config = format!(
        "[profile tests]\nregion=us-east-1\nendpoint_url={}\n[profile program]\ncredential_process=/bin/false\n",
        server.endpoint()
    );
    let with_profile = |profile: &str| {
        let home = tempfile::TempDir::new().unwrap();
        fs::create_dir(home.path().join(".aws")).unwrap();
        fs::write(home.path().join(".aws/credentials"), &credentials).unwrap();
        fs::write(home.path().join(".aws/config"), &config).unwrap();
        let variables = vec![
            ("HOME".to_string(), home.path().to_string_lossy().into_owned()),
            ("AWS_PROFILE".to_string(), profile.to_string()),
        ];
        let test = Test::with_environment(variables);
        test.write("workload.yaml", TINY);
        (test, home)
    };
    let data = ["--data", "s3://bucket/profile"];
    let (test, _home) = with_profile("tests");
    let plan = test.feedrate(&[&["plan", "workload.yaml"], &data[..]].concat());
    for words in
        ["profile tests in ~/.aws/config", "credentials from profile tests in ~/.aws/credentials"]
    {
        assert!(plan.stdout.contains(words), "{}", plan.stdout);
    }
    assert!(!plan.stdout.contains(secret));
    test.run_json(&data);
    for command in [&["scan"][..], &["run", "--data"]] {
        let nothing = test.feedrate(&[command, &["s3://bucket/nothing"]].concat());
        nothing.refuses(2, &["`s3://bucket/nothing` contains no readable files"]);
    }
    let (test, _home) = with_profile("program");
    test.feedrate(&[&["run", "workload.yaml"], &data[..]].concat()).refuses(
        1,
        &[
            "profile program in ~/.aws/config",
            "`credential_process`",
            "hint:",
            "export-credentials",
        ],
    );
}

#[test]
fn secrets_are_refused_in_files() {
    let test = Test::with_workload(TINY);
    let secret = "storage.storage_options.secret_access_key=hidden";
    let words = ["may be a secret", "environment"];
    let factor = format!("{secret},shown");
    let baseline = ["study", "new", "--design", "full_factorial", "--model", "workload.yaml"];
    let threads = "reader.read_threads=1,2";
    for more in [&["--set", secret, "--factor", threads][..], &["--factor", &factor]] {
        test.feedrate(&[&baseline[..], more].concat()).refuses(2, &words);
    }
    assert!(!test.path("study.csv").exists());
    test.run_json(&["--run-dir", "run"]);
    test.feedrate(&["advise", "run", "--try", "--also", secret]).refuses(2, &words);
}

#[test]
fn no_cold_run_is_suggested_on_a_bucket() {
    let test = Test::new();
    for (data, is_suggested) in [("/tmp/data", true), ("s3://bucket/data", false)] {
        let plan = test.feedrate(&["plan", "unet3d_h100", "--data", data]);
        assert!(plan.stdout.contains("To generate and run it"), "{}", plan.stdout);
        assert_eq!(plan.stdout.contains("--cold"), is_suggested, "{}", plan.stdout);
    }
}
