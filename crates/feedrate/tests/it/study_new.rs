//! `feedrate study new`: designs become the CSV of a study.

use crate::harness::{Test, venv_python};
use serde_json::Value;
use std::path::Path;

const DESIGN: &str = "\
design = \"full_factorial\"
replicates = 2
seed = 7
[baseline]
model = \"quickstart\"
[factors]
processes = [1, 2]
dataset.format = [\"npz\", \"hdf5\"]
";

fn text(test: &Test, name: &str) -> String {
    std::fs::read_to_string(test.path(name)).unwrap()
}

fn runs(csv: &str) -> usize {
    csv.lines().filter(|line| !line.starts_with('#')).count() - 1
}

#[test]
fn a_design_file_becomes_a_csv() {
    let test = Test::new();
    test.write("four.toml", DESIGN);
    let answer = test.feedrate(&["study", "new", "four.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("runs: 8: 4 points, 2 replicates"), "{}", answer.stdout);
    assert!(answer.stdout.contains("estimates: all effects"), "{}", answer.stdout);
    assert!(answer.stderr.contains("feedrate study run four.csv"), "{}", answer.stderr);
    let csv = text(&test, "four.csv");
    assert_eq!(runs(&csv), 8);
    assert!(csv.contains("\n# factor format (dataset.format): npz (baseline), hdf5\n"), "{csv}");
    let again = test.feedrate(&["study", "new", "four.toml", "-o", "-"]);
    assert_eq!(again.stdout, csv, "the same seed gives the same study");
    let other = test.feedrate(&["study", "new", "four.toml", "-o", "-", "--seed", "8"]);
    assert_ne!(other.stdout, csv);
    assert_eq!(runs(&other.stdout), 8);
}

#[test]
fn a_workload_beside_the_design_is_found() {
    let test = Test::new();
    std::fs::create_dir(test.path("designs")).unwrap();
    test.write("designs/own.yaml", "framework: pytorch\ntrain:\n  epochs: 1\n");
    test.write("designs/four.toml", DESIGN.replace("\"quickstart\"", "\"own.yaml\""));
    let answer = test.feedrate(&["study", "new", "designs/four.toml", "-o", "designs/four.csv"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(text(&test, "designs/four.csv").contains("\nown.yaml,"));
    let answer = test.feedrate(&["study", "new", "designs/four.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(text(&test, "four.csv").contains("\ndesigns/own.yaml,"));
}

#[test]
fn a_workload_may_refer_to_the_time_and_to_variables() {
    let test = Test::new();
    test.write("own.yaml", "dataset:\n  data_folder: ${oc.env:PATH}/${now:%H%M%S}\n");
    test.write("four.toml", DESIGN.replace("\"quickstart\"", "\"own.yaml\""));
    let answer = test.feedrate(&["study", "new", "four.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(runs(&text(&test, "four.csv")), 8);
}

#[test]
fn an_existing_study_is_not_overwritten() {
    let test = Test::new();
    test.write("four.toml", DESIGN);
    test.write("four.csv", "model,processes,run\nquickstart,1,Y\n");
    let refused = test.feedrate(&["study", "new", "four.toml"]);
    refused.refuses(2, &["`four.csv` is there already", "--force"]);
    assert!(text(&test, "four.csv").ends_with("1,Y\n"));
    assert_eq!(test.feedrate(&["study", "new", "four.toml", "--force"]).code, 0);
    assert_eq!(runs(&text(&test, "four.csv")), 8);
}

#[test]
fn a_design_can_be_given_by_options() {
    let test = Test::new();
    std::fs::create_dir(test.path("new")).unwrap();
    let answer = test.feedrate(&[
        "study",
        "new",
        "--design",
        "full-factorial",
        "--model",
        "unet3d_h100_custom",
        "--factor",
        "reader.read_threads=1,4,8",
        "--factor",
        "processes=1,2,4",
        "--replicates",
        "5",
        "--seed",
        "7",
        "--blocks",
        "--sentinel",
        "5",
        "--centre-points",
        "3",
        "-o",
        "new/study.csv",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let csv = text(&test, "new/study.csv");
    assert_eq!(runs(&csv), 5 * (9 + 3 + 4));
    assert_eq!(csv.matches(",sentinel,N").count(), 20);
    assert_eq!(csv.matches(",centre point,N").count(), 15);
    let answer = test.feedrate(&[
        "study",
        "new",
        "--json",
        "--design",
        "fractional",
        "--option",
        "generators=C=-AB",
        "--model",
        "quickstart",
        "--set",
        "train.epochs=1",
        "--factor",
        "reader.batch_size=1..8",
        "--factor",
        "study.hook.ra=128,256",
        "--factor",
        "study.cache=cold,warm",
        "--hook",
        "ra=blockdev --setra $1 /dev/sda",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&json["csv"], &json["runs"]), (&"study.csv".into(), &4.into()));
    assert_eq!(json["aliases"]["generators"][0], "C = -AB");
    let csv = text(&test, "study.csv");
    assert!(csv.contains("\n# hook ra: blockdev --setra $1 /dev/sda\n"), "{csv}");
    assert!(csv.contains("study.hook.ra=128") && csv.contains("study.cache=warm"), "{csv}");
}

#[test]
fn options_override_the_design_file() {
    let test = Test::new();
    let design = "design = \"two_level\"\nbaseline = { model = \"nothing\", overrides = { train.epochs = 2 } }\nfactors.processes = [1, 2]\n";
    test.write("four.toml", design);
    let answer = test.feedrate(&[
        "study",
        "new",
        "four.toml",
        "-o",
        "-",
        "--model",
        "quickstart",
        "--set",
        "train.epochs=3",
        "--factor",
        "reader.read_threads=1,2",
        "--order",
        "standard",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let rows: Vec<&str> =
        answer.stdout.lines().filter(|line| line.starts_with("quickstart")).collect();
    assert_eq!(rows.len(), 4);
    assert!(
        rows[3].starts_with(
            "quickstart,,2,++workload.train.epochs=3 ++workload.reader.read_threads=2,"
        ),
        "{}",
        rows[3]
    );
}

#[test]
fn wrong_designs_are_refused() {
    let test = Test::new();
    test.write("a.toml", "design = \"full_factorial\"\nreplicats = 2\n");
    test.write(
        "b.toml",
        "design = \"full_factorial\"\nbaseline.model = \"quikstart\"\nfactors.processes = [1, 2]\n",
    );
    for (arguments, words) in [
        (vec!["a.toml"], vec!["a.toml:2:1", "did you mean `replicates`?"]),
        (
            vec!["b.toml"],
            vec!["there is no bundled workload `quikstart`", "did you mean `quickstart`?"],
        ),
        (vec!["none.toml"], vec!["cannot read design `none.toml`"]),
        (vec![], vec!["no workload is given", "no kind of design is given"]),
        (vec!["--design", "two_level", "--model", "quickstart"], vec!["a design without factors"]),
        (
            vec![
                "--design",
                "two_level",
                "--model",
                "quickstart",
                "--factor",
                "procesess=1,2",
                "--factor",
                "reader.batch_sise=1,2",
            ],
            vec!["did you mean `processes`?", "did you mean `reader.batch_size`?"],
        ),
        (
            vec!["--factor", "processes", "--option", "p", "--set", "x"],
            vec!["--factor: `processes` has no name", "--option: `p`", "an override needs a value"],
        ),
        (
            vec![
                "--design",
                "full_factorial",
                "--model",
                "quickstart",
                "--factor",
                "model=quickstart,quikstart",
            ],
            vec!["did you mean `quickstart`?"],
        ),
        (
            vec!["--design", "two_level", "--model", "quickstart", "--factor", "processes=1,"],
            vec!["`` is not a whole number"],
        ),
    ] {
        let mut all = vec!["study", "new"];
        all.extend(arguments);
        test.feedrate(&all).refuses(2, &words);
    }
    assert_eq!(std::fs::read_dir(test.path("")).unwrap().count(), 2, "nothing is written");
}

#[test]
fn runs_that_are_impossible_here_are_written_with_a_warning() {
    let test = Test::new();
    let answer = test.feedrate(&[
        "study",
        "new",
        "--design",
        "full_factorial",
        "--model",
        "quickstart",
        "--factor",
        "storage.engine=psync,warp",
        "--factor",
        "processes=1,2",
        "--order",
        "standard",
    ]);
    answer.warns(&["warning: run 2 cannot be made here: ", "there is no engine `warp`"]);
    assert_eq!(answer.stderr.matches("cannot be made here").count(), 1, "{}", answer.stderr);
    assert_eq!(runs(&text(&test, "study.csv")), 4);
}

#[test]
fn every_design_in_the_repository_becomes_a_study_without_warnings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let test = Test::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end != "csv") {
            let answer = test.feedrate(&["study", "new", path.to_str().unwrap()]);
            assert_eq!(answer.code, 0, "{}: {}", path.display(), answer.stderr);
            assert!(!answer.stderr.contains("warning"), "{}: {}", path.display(), answer.stderr);
            let varies = answer.stdout.contains("(reader.batch_size)");
            let is_noted = answer.stderr.contains("compute time per sample");
            assert_eq!(is_noted, varies, "{}: {}", path.display(), answer.stderr);
        }
    }
    let csv = text(&test, "perf_2025_blocks.csv");
    assert_eq!(runs(&csv), 5 * (23 + 4));
}

/// The notebook of perf_2025 reads a study like this.
#[test]
fn pandas_reads_a_new_study() {
    let test = Test::new();
    test.write("four.toml", DESIGN);
    assert_eq!(test.feedrate(&["study", "new", "four.toml"]).code, 0);
    let script = "import pandas; t = pandas.read_csv('four.csv', comment='#'); \
                  print(len(t), sorted(set(t.overrides)), set(t.run), sorted(set(t.processes)), sorted(t.order))";
    let output = test.program(venv_python(), &["-c", script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
    let formats = "['++workload.dataset.format=hdf5', '++workload.dataset.format=npz']";
    let expected = format!("8 {formats} {{'N'}} [1, 2] [1, 2, 3, 4, 5, 6, 7, 8]");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
}
