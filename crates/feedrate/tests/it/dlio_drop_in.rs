//! What DLIO's users expect of `dlio_benchmark` beyond its files: interpolations, and runs that go on where DLIO's do.

use crate::dlio_benchmark::{dlio_benchmark, results, with_workloads};
use crate::harness::{Answer, TINY};
use std::fs;

#[test]
fn interpolations_are_evaluated_in_workloads_and_overrides() {
    let test = with_workloads();
    let yaml = TINY
        .replace("data_folder: data", "data_folder: ${oc.env:SITE_DATA}/${workload.model.name}");
    assert!(yaml.contains("SITE_DATA"), "{yaml}");
    test.write("conf/workload/tiny.yaml", &yaml);
    let run = |site: Option<&str>, more: &[&str]| {
        let program = env!("CARGO_BIN_EXE_dlio_benchmark");
        let mut command = test.program(program, &["--config-dir", "conf", "workload=tiny"]);
        command.args(more).env_remove("SITE_DATA");
        if let Some(site) = site {
            command.env("SITE_DATA", site);
        }
        Answer::from_output(&command.output().unwrap())
    };
    run(None, &[]).refuses(
        1,
        &[
            "conf/workload/tiny.yaml:",
            "dataset.data_folder: the environment variable `SITE_DATA` is not set",
            "hint: ",
        ],
    );
    let more = [
        "++workload.workflow.generate_data=True",
        "++workload.reader.batch_size=${oc.decode:${oc.env:NO_SIZE,4}}",
    ];
    let answer = run(Some("site"), &more);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(test.path("site/tiny/train/img_0_of_8.npz").exists());
    let run_dir = results(&test);
    let config = fs::read_to_string(run_dir.join(".hydra/config.yaml")).unwrap();
    assert!(
        config.contains("data_folder: site/tiny\n") && config.contains("batch_size: 4\n"),
        "{config}"
    );
    let job = run(None, &["--cfg", "job", "--package", "workload.dataset.data_folder"]);
    assert_eq!(job.stdout, "${oc.env:SITE_DATA}/${workload.model.name}\n");
    let resolved =
        run(Some("s"), &["--cfg", "job", "--resolve", "-p", "workload.dataset.data_folder"]);
    assert_eq!(resolved.stdout, "s/tiny\n");
    let path = run(None, &["--info", "searchpath"]).stdout;
    assert!(path.contains("| main         | pkg://dlio_benchmark.configs |"), "{path}");
    assert!(path.contains("/conf "), "{path}");
    assert!(run(None, &["--info", "defaults"]).stdout.contains("| workload/tiny | workload |"));
    run(Some("s"), &["hydra.mode=MULTIRUN"]).refuses(1, &["sweeps are not supported"]);

    let folder = fs::canonicalize(test.path("site")).unwrap();
    let mut command = test.command(&["plan", "conf/workload/tiny.yaml", "--json"]);
    let answer = Answer::from_output(&command.env("SITE_DATA", &folder).output().unwrap());
    assert!(answer.stdout.contains(&format!("{}/tiny", folder.display())), "{}", answer.stdout);
    let plan = test.feedrate(&["plan", "conf/workload/tiny.yaml"]);
    plan.refuses(2, &["tiny.yaml:", "the environment variable `SITE_DATA` is not set"]);
}

/// perf_2025's `bench.slurm` runs two files with four tasks under `set -e`.
#[test]
fn too_few_samples_for_the_ranks_train_nothing_as_in_dlio() {
    let test = with_workloads();
    let more = [
        "++workload.reader.batch_size=100",
        "++workload.workflow.generate_data=True",
        "++workload.output.log_file=mine.log",
    ];
    let answer = dlio_benchmark(&test, &[&["workload=tiny"][..], &more].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.warns(&["need 100 samples for one step", "as in DLIO, nothing is trained", "no_steps"]);
    assert!(!answer.stderr.contains("window_shorter_than_stock"), "{}", answer.stderr);
    let run_dir = results(&test);
    let log = fs::read_to_string(run_dir.join("mine.log")).unwrap();
    assert!(log.contains("Max steps per epoch: 0 ") && !run_dir.join("dlio.log").exists(), "{log}");
    let summary = fs::read_to_string(run_dir.join("summary.json")).unwrap();
    assert!(summary.contains("num_accelerators") && !summary.contains("NaN"), "{summary}");
    fs::create_dir_all(test.path("results/tiny")).unwrap();
    let experiment = test.path("results/tiny/1_batch_size_100");
    fs::rename(run_dir.parent().unwrap(), experiment).unwrap();
    let row = "tiny,1,++workload.reader.batch_size=100,Y";
    test.write("study.csv", format!("model,processes,overrides,run\n{row}\n"));
    let status = test.feedrate(&["study", "status", "study.csv"]).stdout;
    assert!(status.contains("no_steps\n"), "{status}");
    let refused = test.feedrate(&["run", "conf/workload/tiny.yaml", "reader.batch_size=100"]);
    refused.refuses(2, &["need 100 samples for one step"]);
    for name in ["a/b.log", "record.json", "names.index", "superseded", ".log", ""] {
        let log_file = format!("output.log_file='{name}'");
        test.feedrate(&["plan", "conf/workload/tiny.yaml", &log_file])
            .refuses(2, &["output.log_file"]);
    }
}

#[test]
fn a_log_replaces_no_file_of_the_user() {
    let test = with_workloads();
    fs::create_dir(test.path("out")).unwrap();
    test.write("out/run.log", "notes");
    let log_file = "++workload.output.log_file=run.log";
    let more = ["workload=tiny", "++workload.workflow.generate_data=True", "hydra.run.dir=out"];
    for _ in 0..2 {
        let answer = dlio_benchmark(&test, &[&more[..], &[log_file]].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stderr.contains("were moved to `out/superseded/"), "{}", answer.stderr);
    }
    let asides = fs::read_dir(test.path("out/superseded")).unwrap().flatten();
    let logs = asides.map(|aside| fs::read_to_string(aside.path().join("run.log")).unwrap());
    let logs: Vec<String> = logs.collect();
    assert_eq!(logs.len(), 2, "{logs:?}");
    assert_eq!(logs.iter().filter(|log| *log == "notes").count(), 1, "{logs:?}");

    fs::create_dir(test.path("own")).unwrap();
    test.write("own/run.log", "notes");
    let run = |log_file| {
        let words = ["run", "conf/workload/tiny.yaml", "--run-dir", "own", "--foreign", log_file];
        test.feedrate(&words)
    };
    for _ in 0..2 {
        run(log_file).refuses(2, &["`output.log_file`: `own/run.log` exists already"]);
    }
    assert_eq!(fs::read_to_string(test.path("own/run.log")).unwrap(), "notes");
    assert_eq!(fs::read_dir(test.path("own")).unwrap().count(), 1);
}

#[test]
fn the_client_and_too_many_workers_are_reported() {
    let test = with_workloads();
    let more = [
        "workload=tiny",
        "++workload.workflow.generate_data=True",
        "++workload.reader.read_threads=1000",
    ];
    let answer = dlio_benchmark(&test, &more);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.warns(&[
        "[WARNING] Running DLIO with 1000 threads for I/O but core available ",
        "are insufficient and can lead to lower performance.",
        "Client: ideal (tests the storage): your own code takes no time",
    ]);
}

#[test]
fn a_refused_run_shows_its_warnings() {
    let test = with_workloads();
    let answer = dlio_benchmark(&test, &["workload=tiny", "++workload.dataset.data_foldr=there"]);
    answer.refuses(1, &["hint: `feedrate generate`, or `++workload.workflow.generate_data=True`"]);
    assert!(answer.stderr.contains("[WARNING] "), "{}", answer.stderr);
    assert!(answer.stderr.contains("did you mean `dataset.data_folder`"), "{}", answer.stderr);
}

#[test]
fn a_workload_that_includes_other_files_is_refused() {
    let test = with_workloads();
    test.write("conf/workload/derived.yaml", "defaults: [tiny, _self_]\nreader: {batch_size: 4}\n");
    let answer = dlio_benchmark(&test, &["workload=derived"]);
    answer.refuses(1, &["Hydra's lists of other files are not supported"]);
}

#[test]
fn a_run_with_another_hydra_folder_can_be_planned_again() {
    let test = with_workloads();
    let more = [
        "workload=tiny",
        "++workload.workflow.generate_data=True",
        "++hydra.output_subdir=dlio_config",
        "hydra.run.dir=out",
    ];
    let answer = dlio_benchmark(&test, &more);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let plan = test.feedrate(&["plan", "out"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
}

#[test]
fn checkpoints_after_no_epoch_are_refused() {
    let test = with_workloads();
    for key in ["checkpoint_after_epoch", "epochs_between_checkpoints"] {
        let setting = format!("checkpoint.{key}=0");
        let plan = ["plan", "conf/workload/tiny.yaml", "workflow.checkpoint=true", &setting];
        test.feedrate(&plan).refuses(2, &[&format!("checkpoint.{key}: `0` epochs")]);
    }
}
