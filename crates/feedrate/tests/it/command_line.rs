//! The command line: help, general options, workloads from stdin, suggestions, and several runs in one command.

use crate::harness::{Answer, TINY, Test};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a command with `text` on stdin.
fn with_stdin(test: &Test, words: &[&str], text: &str) -> Answer {
    let mut command = test.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Fails if the command is refused before it reads stdin.
    let _ = stdin.write_all(text.as_bytes());
    drop(stdin);
    Answer::from_output(&child.wait_with_output().unwrap())
}

#[test]
fn the_help_of_the_program_fits_on_a_screen() {
    let test = Test::new();
    let bare = test.feedrate(&[]);
    assert_eq!(bare.code, 2);
    let help = test.feedrate(&["--help"]).stdout;
    assert_eq!(help, bare.stderr);
    for same in [&["-h"][..], &["help"]] {
        assert_eq!(test.feedrate(same).stdout, help, "{same:?}");
    }
    insta::assert_snapshot!(help, @r#"
    Can this storage feed these accelerators? If not, why, and what would help?

    Usage: feedrate <COMMAND>

    Commands:
      run          Run a workload and report whether the storage kept up
      scale        Find how many accelerators the storage feeds, and what limits it
      plan         Show what a run would need: rate, files, bytes, MLPerf's rules
      advise       Recommend changes, best first, or predict the effect of a change
      study        Create and run a study: many runs of one experimental design
      report       Write a report on results: HTML, Markdown, LaTeX, CSV or JSON

    Examples:
      feedrate run quickstart                         a first answer in a minute
      feedrate run unet3d_h100 -n 4 --data /mnt/fs    enough for 4 accelerators?
      feedrate advise results/unet3d/RUN              what would help this run?

    More:
      feedrate COMMAND --help    examples and options of a command
      feedrate help all          the other commands, by purpose
    "#);
    let all = test.feedrate(&["help", "all"]).stdout;
    assert_eq!(test.feedrate(&["--help-all"]).stdout, all);
    assert!(help.lines().count() < 24, "{help}");
    insta::assert_snapshot!(all, @r#"
    Can this storage feed these accelerators? If not, why, and what would help?

    Usage: feedrate [OPTIONS] <COMMAND>

    Main commands:
      run          Run a workload and report whether the storage kept up
      scale        Find how many accelerators the storage feeds, and what limits it
      plan         Show what a run would need: rate, files, bytes, MLPerf's rules
      advise       Recommend changes, best first, or predict the effect of a change
      study        Create and run a study: many runs of one experimental design
      report       Write a report on results: HTML, Markdown, LaTeX, CSV or JSON

    Find what is slow:
      diagnose     Measure storage, loader and decoding separately
      calibrate    Measure the processor time of a PyTorch data loader
      system       Describe this machine: processors, memory, storage, GPUs

    Start from a real job or folder:
      import       Create a workload from the I/O log of a real job
      scan         Report the number, size and format of the files in a folder

    Manage data and jobs:
      generate     Generate the dataset of a workload, or verify every byte of it
      clean        List, and on request remove, datasets and results of feedrate
      slurm        Write a Slurm batch script that runs a workload or a study

    Read results:
      show         Summarise a finished run
      analyze      Recompute and check the numbers in result folders
      compare      Test whether two results or two studies are equivalent
      plot         Plot runs or a study as PDF, SVG or PNG

    Look up and install:
      list         List workloads, formats, keys, metrics, doubts …, or explain one
      schema       Print the JSON Schema of the `--json` output
      completions  Print the completion script for a shell
      man          Write a manual page for each command

    Options of every command: -v, --verbose; -q, --quiet; --color WHEN; -h, --help; -V, --version.

    Exit codes: 0 fine; 1 the run failed; 2 bad usage or workload, or a folder is missing or too small;
    3 done, but a condition was not met; 4 not decided; 130 interrupted.
    "#);
}

#[test]
fn the_help_of_a_command_is_the_same_in_all_forms() {
    let test = Test::new();
    for command in [&["run"][..], &["study", "new"]] {
        let [short, long, all] = ["-h", "--help", "--help-all"]
            .map(|option| test.feedrate(&[command, &[option]].concat()).stdout);
        assert_eq!(short, long);
        assert_eq!(test.feedrate(&[&["help"], command].concat()).stdout, long);
        assert!(!long.contains("--color") && all.contains("--color"), "{all}");
        assert!(long.lines().count() < all.lines().count(), "{all}");
    }
    test.feedrate(&["run"]).refuses(2, &["`feedrate run` needs a workload", "`--data DIR`"]);
    test.feedrate(&["scale"]).refuses(2, &["`feedrate scale` needs a workload", "hint: give"]);
    test.feedrate(&["help", "nothing"])
        .refuses(2, &["`feedrate` has no command `nothing`", "hint:"]);
    test.feedrate(&["help", "verify"]).refuses(2, &["write `feedrate generate --verify --help`"]);
}

#[test]
fn quiet_and_verbose_work_before_and_after_the_command() {
    let test = Test::with_workload(TINY);
    let stderr = |words: &[&str]| {
        let answer = test.feedrate(words);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stderr
    };
    let usual = stderr(&["run", "workload.yaml"]);
    assert!(usual.contains("epoch 1/2") && !usual.contains("batches of"), "{usual}");
    assert_eq!(stderr(&["-q", "run", "workload.yaml"]), "");
    assert_eq!(stderr(&["run", "workload.yaml", "--quiet"]), "");
    for words in [["-v", "run", "workload.yaml"], ["generate", "workload.yaml", "--verbose"]] {
        assert!(stderr(&words).contains("batches of 4, 1 worker per accelerator"), "{words:?}");
    }
    let trials =
        ["scale", "workload.yaml", "--au", "2", "--max", "1", "train.computation_time=0.01"];
    let started = "starting: ";
    assert!(test.feedrate(&[&trials[..], &["-v"]].concat()).stderr.contains(started));
    let usual = test.feedrate(&trials).stderr;
    assert!(
        usual.contains("note: dataset: 32 files instead of 8") && !usual.contains(started),
        "{usual}"
    );
    let study = ["study", "new", "--design", "full_factorial", "--model", "workload.yaml"];
    let study = [&study[..], &["--factor", "reader.read_threads=1,2", "--force"]].concat();
    assert!(stderr(&study).contains("written to study.csv"));
    assert_eq!(stderr(&[&study[..], &["-q"]].concat()), "");
    test.feedrate(&["run", "workload.yaml", "-q", "-v"]).refuses(2, &["cannot be used with"]);
    // `--quiet` does not hide errors.
    test.feedrate(&["-q", "run", "nowhere.yaml"]).refuses(2, &["nowhere.yaml", "hint:"]);
}

#[test]
fn colours_follow_the_option_and_the_environment() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["run", "workload.yaml", "--run-dir", "a"]).code, 0);
    for words in [&["show", "a"][..], &["--help"], &["run", "--help"]] {
        let colours = |choice: &[&str], variable: &str| {
            let mut command = test.command(&[words, choice].concat());
            command.env_remove("NO_COLOR").env(variable, "1");
            String::from_utf8(command.output().unwrap().stdout).unwrap().contains('\u{1b}')
        };
        assert!(colours(&["--color", "always"], "NO_COLOR"), "{words:?}");
        assert!(!colours(&["--color=never"], "CLICOLOR_FORCE"), "{words:?}");
        assert!(colours(&["--color=auto"], "CLICOLOR_FORCE"), "{words:?}");
        assert!(!colours(&[], "NO_COLOR"), "{words:?}");
    }
    test.feedrate(&["list", "--color", "red"]).refuses(2, &["red", "always, never"]);
}

#[test]
fn a_workload_is_read_from_stdin() {
    let test = Test::new();
    let run = with_stdin(&test, &["run", "-", "--run-dir", "a", "train.epochs=1"], TINY);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let record = feedrate_results::load_run(&test.path("a")).unwrap();
    assert_eq!((record.plan.workload.as_str(), record.epochs.len()), ("stdin", 1));
    for words in [&["plan", "-"][..], &["generate", "-"], &["generate", "-", "--verify"]] {
        let answer = with_stdin(&test, words, TINY);
        assert_eq!(answer.code, 0, "{words:?}: {}", answer.stderr);
    }
    let wrong = TINY.replace("batch_size", "batch_sise");
    for command in ["run", "plan"] {
        with_stdin(&test, &[command, "-"], &wrong)
            .refuses(2, &["error: <stdin>:11:3: ", "did you mean `reader.batch_size`?"]);
    }
    // These commands start several runs, which would all have to read stdin.
    for words in [&["scale", "-"][..], &["advise", "-"], &["slurm", "-"]] {
        with_stdin(&test, words, TINY).refuses(2, &["stdin", "hint: save the workload to a file"]);
    }
    let study = ["study", "new", "--design", "two_level", "--model", "-", "--factor", "epochs=1,2"];
    with_stdin(&test, &study, TINY).refuses(2, &["`-`", "hint:"]);
}

#[test]
fn unknown_names_are_refused_with_similar_names() {
    let test = Test::new();
    let all = "did you mean `unet3d_b200`, `unet3d_mi355`, `unet3d_h100`, `unet3d_a100`, `unet3d_v100` or `unet3d_h100_custom`?";
    test.feedrate(&["run", "unet3d"]).refuses(2, &["no bundled workload `unet3d`", all]);
    test.feedrate(&["run", "retina"])
        .refuses(2, &["did you mean `retinanet_b200` or `retinanet_mi355`?"]);
    test.feedrate(&["run", "dlrm_parquet"]).refuses(2, &["it is called `dlrm_b200` now"]);
    let both = "it is called `retinanet_b200` now; there is also `retinanet_mi355`";
    test.feedrate(&["plan", "retinanet"]).refuses(2, &[both]);
    test.feedrate(&["repot"])
        .refuses(2, &["no command `repot`", "hint: did you mean `feedrate report`?"]);
    test.feedrate(&["unet3d_h100"]).refuses(2, &["hint: `feedrate run", "`unet3d_h100`"]);
    test.feedrate(&["list", "page_cach"]).refuses(2, &["did you mean `page_cache`?"]);
}

/// The commands in a hint.
fn commands(answer: &Answer) -> Vec<String> {
    let lines = answer.stderr.lines().map(str::trim);
    lines.filter(|line| line.starts_with("feedrate ")).map(str::to_string).collect()
}

/// Runs a command line in bash, with this program as `feedrate`.
fn run_in_bash(test: &Test, line: &str) -> Answer {
    let program = env!("CARGO_BIN_EXE_feedrate");
    let mut command: Command =
        test.program("bash", &["-c", &format!("feedrate() {{ {program} \"$@\"; }}; {line}")]);
    Answer::from_output(&command.output().unwrap())
}

#[test]
fn several_values_are_refused_with_the_commands_of_a_study() {
    let test = Test::with_workload(&TINY.replace("epochs: 2", "epochs: 1"));
    for (words, runs, row) in [
        (&["reader.read_threads=1,2,4"][..], 3, "reader.read_threads=4"),
        (&["-m", "reader.read_threads=1,2"], 2, "reader.read_threads=2"),
        (&["-n", "1,2", "reader.read_threads=2"], 2, "reader.read_threads=2"),
        (&["--batch=2,4"], 2, "reader.batch_size=2"),
        (
            &["--multirun", "++workload.reader.read_threads=1,2", "train.epochs=2,3", "-n", "2"],
            4,
            "reader.read_threads=2",
        ),
        (
            &["accelerators=1,2", "dataset.file_prefix=a b", "--verify"],
            2,
            "dataset.file_prefix='a b'",
        ),
        (
            &["reader.file_shuffle=seed,off", "train.epochs=2", "--batch", "2"],
            2,
            "reader.batch_size=2",
        ),
    ] {
        let answer = test.feedrate(&[&["run", "workload.yaml"], words].concat());
        answer.refuses(2, &["means several runs", "hint: create a study for several runs"]);
        let [new, run] = <[String; 2]>::try_from(commands(&answer)).unwrap();
        let created = run_in_bash(&test, &new);
        assert_eq!(created.code, 0, "{new}: {}", created.stderr);
        let csv = std::fs::read_to_string(test.path("study.csv")).unwrap();
        assert_eq!(csv.lines().filter(|line| line.ends_with(",N")).count(), runs, "{new}: {csv}");
        assert!(csv.contains(row), "{new}: {csv}");
        assert_eq!(run, "feedrate study run study.csv");
        std::fs::remove_file(test.path("study.csv")).unwrap();
    }
    assert!(!test.path("results").exists(), "nothing is run");
    test.feedrate(&["run", "workload.yaml", "-m"]).refuses(2, &["no key has several", "hint:"]);
}

#[test]
fn the_suggested_study_uses_the_folders_and_cache_of_the_run() {
    let test = Test::with_workload(TINY);
    let words = ["run", "workload.yaml", "reader.read_threads=1,2", "train.epochs=1"];
    let options = ["--data", "their data", "--results", "out", "--warm"];
    std::fs::create_dir(test.path("their data")).unwrap();
    let answer = test.feedrate(&[&words[..], &options].concat());
    for line in commands(&answer) {
        let answer = run_in_bash(&test, &line);
        assert_eq!(answer.code, 0, "{line}: {}", answer.stderr);
    }
    let csv = std::fs::read_to_string(test.path("study.csv")).unwrap();
    assert_eq!(csv.lines().filter(|line| line.ends_with(",Y")).count(), 2, "{csv}");
    assert!(test.path("their data").exists() && test.path("out").exists());
    assert!(!test.path("data").exists() && !test.path("results").exists());
    let workloads = test.feedrate(&["run", "unet3d_h100,bert_v100", "--scale", "0.1"]);
    let [new, _] = <[String; 2]>::try_from(commands(&workloads)).unwrap();
    let created = run_in_bash(&test, &format!("{new} -o -"));
    assert!(
        created.stdout.contains("unet3d_h100") && created.stdout.contains("bert_v100"),
        "{created:?}"
    );
}

#[test]
fn a_key_without_effect_is_noted_if_the_user_set_it() {
    let note = "note: no effect: ";
    let test = Test::new();
    let stderr_of = |more: &[&str]| {
        let small = ["run", "quickstart", "--scale", "0.05", "train.epochs=1", "-n", "1"];
        let answer = test.feedrate(&[&small[..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stderr
    };
    assert!(!stderr_of(&[]).contains("no effect"));
    let stderr = stderr_of(&["reader.pin_memory=false"]);
    assert!(stderr.contains(&format!("{note}reader.pin_memory")), "{stderr}");
    let stderr_with = |more: &str| {
        let test = Test::with_workload(&format!("{TINY}{more}"));
        test.feedrate(&["run", "workload.yaml"]).stderr
    };
    let stderr = stderr_with("workflow:\n  generate_data: True\n  debug: False\n");
    assert!(!stderr.contains("no effect"), "{stderr}");
    let stderr = stderr_with("output:\n  log_file: mine.log\n");
    assert!(!stderr.contains("log_file"), "{stderr}");
}
