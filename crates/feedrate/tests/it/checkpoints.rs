//! Checkpoints: their files and sizes, and the settings that are refused.

use crate::harness::{MountedDisk, TINY, Test};
use feedrate_engine::loader::LOADERS;
use std::collections::BTreeMap;
use std::path::Path;

const LLAMA: [&str; 9] = [
    "workflow.checkpoint=true",
    "model.type=transformer",
    "model.num_layers=5",
    "model.transformer.hidden_size=64",
    "model.transformer.ffn_hidden_size=128",
    "model.transformer.vocab_size=1000",
    "model.transformer.num_attention_heads=8",
    "model.transformer.num_kv_heads=2",
    "train.epochs=1",
];

/// Name and bytes of each file of the only checkpoint.
fn files(test: &Test) -> BTreeMap<String, u64> {
    let name = checkpoints(test).pop().unwrap();
    assert!(name.starts_with("global_epoch1_step"), "{name}");
    let folder = test.path("checkpoints").join(&name);
    let entries = std::fs::read_dir(test.path("checkpoints")).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    let manifest = format!(".{name}.manifest.json");
    assert_eq!(entries, [".feedrate.lock", &*manifest, &*name]);
    let files = std::fs::read_dir(folder).unwrap().map(|file| {
        let file = file.unwrap();
        (file.file_name().to_string_lossy().into_owned(), file.metadata().unwrap().len())
    });
    files.collect()
}

/// Names of the folders of all checkpoints.
fn checkpoints(test: &Test) -> Vec<String> {
    let entries = std::fs::read_dir(test.path("checkpoints")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn each_rank_writes_its_part_of_a_model() {
    let test = Test::with_workload(TINY);
    let settings = [
        "-n",
        "4",
        "reader.batch_size=2",
        "model.parallelism.tensor=2",
        "model.parallelism.zero_stage=3",
    ];
    let arguments = [&LLAMA[..], &settings].concat();
    test.run_json(&arguments);
    let files = files(&test);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 8);
    for (data, model) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for kind in ["model", "optim"] {
            let name = format!("zero_pp_rank_{data}_mp_rank_{model}_{kind}_states.");
            assert!(names.iter().any(|found| found.starts_with(&name)), "{name}: {names:?}");
        }
    }
    let mut arguments = vec!["plan", "workload.yaml", "--json"];
    arguments.extend(LLAMA);
    arguments.extend(settings);
    let plan: serde_json::Value = serde_json::from_str(&test.feedrate(&arguments).stdout).unwrap();
    let total = plan["checkpoint"]["total_bytes"].as_u64().unwrap();
    let written: u64 = files.values().sum();
    assert!(total <= written && written < total + 8 * 16_384, "{total} {written}");
}

#[test]
fn each_layer_has_a_file_if_pipeline_stages_share_layers() {
    let test = Test::with_workload(TINY);
    let settings = ["-n", "2", "model.parallelism.pipeline=2", "model.parallelism.zero_stage=1"];
    test.run_json(&[&LLAMA[..], &settings].concat());
    let files = files(&test);
    assert_eq!(files.len(), 8 + 2, "eight layers, two parts of the optimizer: {files:?}");
    assert!(files.keys().any(|name| name.starts_with("layer_0-model_0_model_states")));
    assert!(files.keys().any(|name| name.starts_with("layer_7-model_1_model_states")));
}

#[test]
fn only_rank_zero_writes_if_configured() {
    let test = Test::with_workload(TINY);
    let settings = ["-n", "2", "model.parallelism.zero_stage=3", "checkpoint.type=rank_zero"];
    test.run_json(&[&LLAMA[..], &settings].concat());
    assert_eq!(files(&test).len(), 2);
}

#[test]
fn models_that_do_not_fit_their_ranks_are_refused() {
    let test = Test::with_workload(TINY);
    for (settings, words) in [
        (&["model.parallelism.tensor=8"][..], "a copy of the model needs `8` ranks"),
        (
            &["model.parallelism.data=3"],
            "`3` copies of the model of 1 ranks each do not match 1 ranks",
        ),
        (&["model.parallelism.tensor=0"], "`0` ranks"),
        (&["model.parallelism.zero_stage=4"], "from 0 to 3, found `4`"),
        (&["model.transformer.num_attention_heads=0"], "`0` attention heads"),
        (&["model.num_layers=1000000000"], "layers"),
        (
            &["-n", "3", "reader.batch_size=1", "model.parallelism.tensor=2"],
            "3 ranks are no multiple of the `2` ranks of a copy of the model",
        ),
        (&["checkpoint.mode=subset"], "`subset` needs the number of copies of the whole model"),
        (
            &["-n", "2", "checkpoint.mode=subset", "model.parallelism.data=1"],
            "2 ranks are more than the `1` ranks of the whole model",
        ),
        (
            &["-n", "2", "model.parallelism.pipeline=2", "model.parallelism.zero_stage=3"],
            "stage `3` excludes pipeline parallelism",
        ),
        (
            &["-n", "2", "model.parallelism.pipeline=2", "model.num_layers=1"],
            "`1` layers for 2 stages of the pipeline",
        ),
    ] {
        let mut arguments = vec!["run", "workload.yaml"];
        arguments.extend(LLAMA);
        arguments.extend(settings);
        test.feedrate(&arguments).refuses(2, &[words, "hint:"]);
    }
    let mut arguments = vec!["plan", "workload.yaml", "checkpoint.mode=subset"];
    arguments.extend(LLAMA);
    arguments.extend(["model.parallelism.tensor=8", "model.parallelism.data=2"]);
    assert_eq!(test.feedrate(&arguments).code, 0);
}

/// Debian's `python3-torch`, which `cargo xtask setup` installs.
#[test]
fn torch_loads_the_written_checkpoints() {
    for datatype in ["int8", "uint8", "fp16", "bf16", "fp32", "fp64"] {
        let test = Test::with_workload(TINY);
        let datatype = format!("model.model_datatype={datatype}");
        let settings =
            ["-n", "2", "model.parallelism.zero_stage=3", "checkpoint.fsync=true", &datatype];
        test.run_json(&[&LLAMA[..], &settings].concat());
        let python = Path::new("/usr/bin/python3");
        let tensors = test.python(python, "load_checkpoint.py", ["checkpoints"]);
        let tensors: serde_json::Value = serde_json::from_slice(&tensors).unwrap();
        let name = &datatype[datatype.find('=').unwrap() + 1..];
        let torch_name = match name {
            "fp16" => "torch.float16",
            "bf16" => "torch.bfloat16",
            "fp32" => "torch.float32",
            "fp64" => "torch.float64",
            "int8" => "torch.int8",
            _ => "torch.uint8",
        };
        let layers = &tensors["zero_pp_rank_1_mp_rank_0_model_states.pt"];
        // Hidden size 64 and vocabulary 1000, shared by two.
        assert_eq!(layers["0/0"], serde_json::json!([torch_name, [32_000]]));
        assert_eq!(layers["3/4"], serde_json::json!([torch_name, [64 * 128]]));
        assert_eq!(layers["7/0"], serde_json::json!([torch_name, [32]]));
        let optimizer = &tensors["zero_pp_rank_0_mp_rank_0_optim_states.pt"];
        assert_eq!(optimizer["1"], serde_json::json!(["torch.float32", [320]]));
    }
}

#[test]
fn checkpoints_by_step_divide_an_epoch_into_blocks() {
    for (between, folders, blocks) in [
        (
            "3",
            &["epoch1_step3", "epoch1_step6", "epoch2_step3", "epoch2_step6"][..],
            &[3, 3, 2][..],
        ),
        ("4", &["epoch1_step4", "epoch1_step8", "epoch2_step4", "epoch2_step8"], &[4, 4]),
        ("8", &["epoch1_step8", "epoch2_step8"], &[8]),
    ] {
        for loader in LOADERS.iter().map(|loader| loader.entry().member.name) {
            let test = Test::with_workload(TINY);
            let (between, loader) = (
                format!("checkpoint.steps_between_checkpoints={between}"),
                format!("reader.data_loader={loader}"),
            );
            let json = test.run_json(&[
                "workflow.checkpoint=true",
                &between,
                &loader,
                "reader.batch_size=1",
                "--verify",
            ]);
            let expected: Vec<_> = folders.iter().map(|name| format!("global_{name}")).collect();
            assert_eq!(checkpoints(&test), expected);
            let record = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
            let record: serde_json::Value =
                serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
            for epoch in record["epochs"].as_array().unwrap() {
                let steps: Vec<usize> = epoch["accelerators"][0]["blocks"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|block| block["load_ns"].as_array().unwrap().len())
                    .collect();
                assert_eq!(steps, blocks, "{between} {loader}");
                assert_eq!(epoch["checkpoints"].as_array().unwrap().len(), folders.len() / 2);
            }
        }
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_ends_the_run() {
    let test = Test::with_workload(TINY);
    test.write("checkpoints", "not a folder");
    let settings = [
        "run",
        "workload.yaml",
        "workflow.checkpoint=true",
        "reader.batch_size=1",
        "checkpoint.steps_between_checkpoints=3",
    ];
    let words = ["cannot write checkpoint `./checkpoints", "nothing was measured"];
    test.feedrate(&settings).refuses(1, &words);
    std::fs::remove_file(test.path("checkpoints")).unwrap();
    let _full = MountedDisk::tmpfs(&test.path("checkpoints/global_epoch1_step6"), "size=4k");
    let words = ["global_epoch1_step6`: it has ", "only 4", "what was measured is in"];
    test.feedrate(&settings).refuses(1, &words);
    test.feedrate(&[
        "run",
        "workload.yaml",
        "workflow.checkpoint=true",
        "checkpoint.steps_between_checkpoints=0",
    ])
    .refuses(2, &["every `0` steps", "hint:"]);
}

/// A scaled-down bundled model: the number and names of the files do not change.
#[test]
fn checkpoints_without_training_are_written_and_read() {
    let test = Test::new();
    let more = ["run", "llama3_8b", "--scale", "0.00001", "--json", "checkpoint.fsync=false"];
    let counts = [
        "checkpoint.num_checkpoints_write=3",
        "checkpoint.num_checkpoints_read=2",
        "checkpoint.time_between_checkpoints=0",
        "checkpoint.recovery_rank_shift=true",
    ];
    let answer = test.feedrate(&[&more[..], &counts].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let summary: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(summary["verdict"]["name"], "checkpoints-only");
    let doubts: Vec<&str> = summary["doubts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|doubt| doubt["name"].as_str().unwrap())
        .collect();
    assert!(doubts.contains(&"scaled"), "{doubts:?}");
    for step in 1..=3 {
        let folder = test.path(&format!("checkpoints/llama_8b/global_epoch1_step{step}"));
        let files = std::fs::read_dir(folder).unwrap();
        let states = files.filter(|file| {
            file.as_ref().unwrap().file_name().to_string_lossy().ends_with("_states.pt")
        });
        assert_eq!(states.count(), 16);
    }
    assert!(!test.path("data").exists(), "nothing is generated");
    let run_dir = test.path(summary["run_dir"].as_str().unwrap());
    let stats = std::fs::read(run_dir.join("0_per_epoch_stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    for key in ["save_ckpt1", "save_ckpt3", "load_ckpt1", "load_ckpt2"] {
        assert!(stats["1"][key]["duration"].is_number(), "{key}: {stats}");
    }
    let phases = summary["phases"].as_array().unwrap();
    let written = phases.iter().filter(|phase| phase["phase"] == "checkpoint");
    assert_eq!(written.count(), 5, "three written, two read: {phases:?}");
}

#[test]
fn checkpoints_of_an_earlier_run_are_read() {
    let test = Test::new();
    let run = |more: &[&str]| {
        let base = [
            "run",
            "llama_7b_zero3",
            "--scale",
            "0.00001",
            "checkpoint.time_between_checkpoints=0",
        ];
        test.feedrate(&[&base[..], more].concat())
    };
    let reads = ["checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1"];
    run(&reads).refuses(1, &["global_epoch1_step1", "incomplete", "write this one again"]);
    let writes = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
    assert_eq!(run(&writes).code, 0);
    let answer = run(&[&reads[..], &["--cold"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer = run(&[&reads[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let doubts = json["doubts"].as_array().unwrap();
    let named = |name: &str| doubts.iter().find(|doubt| doubt["name"] == name);
    let doubt = named("checkpoints_from_page_cache").unwrap();
    let (read, device) = (&doubt["facts"]["read_bytes"], &doubt["facts"]["device_bytes"]);
    assert_eq!((read, device.as_u64()), (&json["checkpoint"]["load"]["bytes"], Some(0)));
    let more = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=2"];
    run(&more).refuses(
        2,
        &["checkpoint.num_checkpoints_read", "`2` checkpoints to read, but only 1 to write"],
    );
}

/// The plan takes less than a second and little memory. DLIO computes the same 5292 GiB over all ranks.
#[test]
fn the_plan_of_a_huge_model_has_its_size() {
    let test = Test::new();
    let answer = test.feedrate(&["plan", "llama3_405b", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let checkpoint = &plan["checkpoint"];
    assert_eq!(checkpoint["total_bytes"].as_u64().unwrap() >> 30, 5292);
    assert_eq!(checkpoint["total_files"], 1544);
    assert!(plan["plan"]["doubts"].to_string().contains("checkpoints_exceed_disk"));
}

/// feedrate keeps no tensors in memory, so there are no pages to merge. Random tensors cannot be merged in DLIO either.
#[test]
fn merging_of_memory_pages_has_no_effect_and_a_warning() {
    let test = Test::with_workload(TINY);
    let ksm = ["checkpoint.ksm.high_ram_trigger=0", "checkpoint.ksm.await_time=1000000"];
    let arguments = [&["run", "workload.yaml"], &LLAMA[..], &ksm].concat();
    test.feedrate(&arguments).refuses(2, &["checkpoint.ksm", "random", "randomize_tensor=false"]);
    let ones = [&arguments[..], &["checkpoint.randomize_tensor=false"]].concat();
    let answer = test.feedrate(&ones);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("checkpoint.ksm.await_time"), "{}", answer.stderr);
}

/// Configured sizes are bytes, as in DLIO, unless a data type is configured.
#[test]
fn configured_sizes_are_multiplied_by_the_configured_data_type() {
    let model = [
        "model.model_size=1000",
        "model.num_layers=2",
        "model.layer_parameters=[40]",
        "model.optimization_groups=[10]",
        "checkpoint.format=raw",
        "workflow.checkpoint=true",
        "train.epochs=1",
    ];
    for (more, layers, optimizer) in [
        (&[][..], 80, 30),
        (&["model.model_datatype=fp16"], 160, 30),
        (&["model.optimizer_datatype=fp64"], 80, 240),
    ] {
        let test = Test::with_workload(TINY);
        test.run_json(&[&model[..], more].concat());
        let sizes: Vec<u64> = files(&test).into_values().collect();
        assert_eq!(sizes, [1000, layers, optimizer], "{more:?}");
    }
}

/// Arguments of a run that writes two small checkpoints and reads one.
const ALONE: [&str; 7] = [
    "run",
    "llama_7b_zero3",
    "--scale",
    "0.00001",
    "checkpoint.time_between_checkpoints=0",
    "checkpoint.num_checkpoints_write=2",
    "checkpoint.num_checkpoints_read=1",
];

#[test]
fn a_run_of_checkpoints_answers_with_their_rates_and_has_a_figure() {
    let test = Test::new();
    let buffered = test
        .feedrate(&[&ALONE[..], &["checkpoint.fsync=false", "--run-dir", "buffered"]].concat())
        .stdout;
    assert!(buffered.starts_with("UNKNOWN: rates of memory, written at "), "{buffered}");
    assert!(buffered.contains("no `fsync`") && !buffered.contains("iB"), "{buffered}");
    assert!(buffered.contains("checkpoint.fsync=true"), "{buffered}");
    let more = ["checkpoint.fsync=true", "--cold", "--run-dir", "durable", "--json"];
    let durable = test.feedrate(&[&ALONE[..], &more].concat()).json();
    assert_eq!(durable["answer"]["kind"], "checkpoints", "{durable}");
    let save = &durable["answer"]["checkpoints"]["save"];
    assert_eq!((&save["is_durable"], &save["medium"]), (&true.into(), &"storage".into()));
    let shown = test.feedrate(&["show", "durable"]).stdout;
    assert!(shown.starts_with("CHECKPOINTS: written at ") && !shown.contains("iB"), "{shown}");
    let page = test.feedrate(&["report", "durable", "-o", "page.html"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    let page = std::fs::read_to_string(test.path("page.html")).unwrap();
    assert!(page.contains("Rates of checkpoints") && !page.contains("no run trained"));
}

/// Files in memory cannot be removed from it, so no advice names `--cold`.
#[test]
fn checkpoints_in_memory_are_not_advised_to_be_cold() {
    let test = Test::new();
    std::fs::create_dir(test.path("memory")).unwrap();
    let _memory = MountedDisk::tmpfs(&test.path("memory"), "size=64m");
    let more = ["checkpoint.fsync=true", "checkpoint.checkpoint_folder=memory/checkpoints"];
    let shown = test.feedrate(&[&ALONE[..], &more, &["--details"]].concat()).stdout;
    assert!(shown.starts_with("UNKNOWN: rates of memory, written at "), "{shown}");
    assert!(shown.contains("since tmpfs is memory") && !shown.contains("--cold"), "{shown}");
}

#[test]
fn checkpoints_are_below_the_folder_of_the_dataset() {
    let test = Test::with_workload(TINY);
    let folder = |more: &[&str]| {
        let base = ["plan", "workload.yaml", "workflow.checkpoint=true", "--json"];
        let plan = test.feedrate(&[&base[..], more].concat()).json();
        plan["checkpoint"]["folder"].as_str().unwrap().to_string()
    };
    let absolute = |name: &str| test.path(name).display().to_string();
    let folders = [
        folder(&[]),
        folder(&["--data", "fast"]),
        folder(&["--data", "fast", "checkpoint.checkpoint_folder=here"]),
    ];
    let expected = ["./checkpoints/", &absolute("fast/checkpoints"), "here"];
    assert_eq!(folders, expected);
}

#[test]
fn a_plan_has_the_schedule_of_checkpoints() {
    let test = Test::with_workload(TINY);
    for (settings, expected) in [
        (&["checkpoint.steps_between_checkpoints=2"][..], ", every 2 steps"),
        (
            &["checkpoint.checkpoint_after_epoch=1", "checkpoint.epochs_between_checkpoints=2"],
            ", after epoch 1, then every 2 epochs",
        ),
    ] {
        let base = ["plan", "workload.yaml", "workflow.checkpoint=true"];
        let shown = test.feedrate(&[&base[..], settings].concat()).stdout;
        assert!(shown.contains(expected), "{shown}");
    }
}
