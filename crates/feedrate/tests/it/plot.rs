//! `feedrate plot`: plots of real runs, their data as JSON, and refusals.

use crate::harness::{TINY, Test, venv_python};
use serde_json::Value;
use std::fs;

/// Two numbers of accelerators, two runs each.
fn results() -> Test {
    let test = Test::with_workload(TINY);
    for _ in 0..2 {
        run_on_one_and_two(&test);
    }
    test
}

/// Runs on one accelerator, then on two.
fn run_on_one_and_two(test: &Test) {
    for accelerators in ["1", "2"] {
        let keys = ["reader.batch_size=1", "train.computation_time=0.002"];
        let more = ["storage.delay.read_seconds=0.001", "--results", "results", "-n", accelerators];
        test.run_json(&[&keys[..], &more].concat());
    }
}

#[test]
fn every_plot_of_runs_is_drawn_from_real_records() {
    let test = results();
    let run = test.files_below("results", "record.json")[0].parent().unwrap().display().to_string();
    let list = test.feedrate(&["list", "plots", "--json"]);
    let plots: Value = serde_json::from_str(&list.stdout).unwrap();
    for plot in plots["members"].as_array().unwrap() {
        let name = plot["name"].as_str().unwrap();
        let (path, expected) = match name {
            "timeline" => (run.as_str(), 0),
            // This plot needs a diagnosis; the tests of `diagnose` cover it.
            "ceilings" => ("results", 2),
            // The runs write no checkpoints; the tests of `checkpoints` cover it.
            "checkpoint_rates" => ("results", 2),
            _ => ("results", 0),
        };
        let file = format!("{name}.svg");
        let answer = test.feedrate(&["plot", name, path, "-o", &file]);
        assert_eq!(answer.code, expected, "{name}: {}", answer.stderr);
        if expected != 0 {
            continue;
        }
        assert!(answer.stdout.starts_with(&file), "{}", answer.stdout);
        let svg = fs::read_to_string(test.path(&file)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn a_pdf_has_one_page_of_the_requested_size() {
    let test = results();
    let widths = [
        (&["--width", "column"][..], 252.0),
        (&["--width", "page"], 504.0),
        (&["--width", "2.5"], 180.0),
        (&[], 252.0),
    ];
    for (number, (width, _)) in widths.iter().enumerate() {
        let file = format!("{number}.pdf");
        let arguments = ["plot", "au_processes", "results", "-o", &file];
        let answer = test.feedrate(&[&arguments[..], *width].concat());
        assert_eq!((answer.code, &*answer.stderr), (0, ""));
    }
    for page in pages(&test, "0.pdf 1.pdf 2.pdf 3.pdf".split(' ')).iter().zip(widths) {
        let (page, (_, width_pt)) = page;
        assert_eq!((&page["pages"], &page["width"]), (&Value::from(1), &Value::from(width_pt)));
        let height_pt = page["height"].as_f64().unwrap();
        assert!((0.4 * width_pt..width_pt).contains(&height_pt), "{page}");
        assert!(page["title"].as_str().unwrap().contains("against processes"), "{page}");
        // Text is drawn as outlines, so no font can be missing.
        assert_eq!(page["fonts"], 0);
        assert!(page["filled"].as_u64().unwrap() > 10, "{page}");
        assert!(page["stroked"].as_u64().unwrap() > 5, "{page}");
    }
}

/// The number of pages, size, title, fonts and paths of PDFs, read by pypdf.
fn pages<'f>(test: &Test, files: impl IntoIterator<Item = &'f str>) -> Vec<Value> {
    let found = test.python(&venv_python(), "pdf.py", files);
    serde_json::from_slice(&found).unwrap()
}

#[test]
fn a_report_writes_its_figures_in_all_formats() {
    let test = results();
    let arguments = ["report", "results", "-o", "r.csv", "--figures", "paper/figures"];
    let answer = test.feedrate(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let files = test.files_below("paper/figures", "");
    let names: Vec<&str> =
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.contains(&"au_processes.pdf"), "{names:?}");
    assert_eq!(names.len() % 3, 0, "{names:?}");
    for pdf in names.iter().filter_map(|name| name.strip_suffix(".pdf")) {
        for ending in ["png", "svg"] {
            assert!(names.contains(&&*format!("{pdf}.{ending}")), "{pdf}.{ending}");
        }
        let page = &pages(&test, [&*format!("paper/figures/{pdf}.pdf")])[0];
        assert!(page["width"] == 252.0 || page["width"] == 504.0, "{pdf}: {page}");
    }
    let changed = test.path("paper/figures/au_processes.svg");
    fs::write(&changed, "mine").unwrap();
    let arguments = ["report", "results", "--figures", "paper/figures"];
    test.feedrate(&arguments).refuses(2, &["au_processes.svg` is there already", "--force"]);
    assert_eq!(fs::read_to_string(&changed).unwrap(), "mine");
    let answer = test.feedrate(&[&arguments[..], &["--force"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(fs::read_to_string(&changed).unwrap().starts_with("<svg "));
}

#[test]
fn an_unfinished_study_can_be_plotted() {
    let test = Test::with_workload(TINY);
    test.write("study.csv", "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n");
    let answer = test.feedrate(&["study", "run", "study.csv", "--limit", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let answer =
        test.feedrate(&["plot", "status", "study.csv", "-o", "status.png", "--dpi", "100"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("1 of 2 rows done"), "{}", answer.stdout);
    assert_eq!(&fs::read(test.path("status.png")).unwrap()[..4], b"\x89PNG");
    let answer = test.feedrate(&["plot", "stall", "study.csv"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(test.path("stall.svg").exists());
    // A plot against processes needs two numbers of processes.
    let answer = test.feedrate(&["plot", "au_processes", "study.csv"]);
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    assert!(answer.stderr.contains("no two numbers of processes"), "{}", answer.stderr);
}

#[test]
fn the_drawn_data_is_printed_as_json() {
    let test = results();
    run_on_one_and_two(&test);
    let answer = test.feedrate(&[
        "plot",
        "throughput_processes",
        "results",
        "--json",
        "--response",
        "samples_per_second",
    ]);
    let object: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(
        (&object["file"], &object["plot"]),
        (&Value::Null, &Value::from("throughput_processes"))
    );
    let panel = &object["figure"]["panels"][0];
    assert_eq!(panel["y"]["label"], "Throughput (samples/s)");
    let points = panel["layers"][0]["points"].as_array().unwrap();
    let runs: Vec<(f64, u64)> = points
        .iter()
        .map(|point| (point["x"].as_f64().unwrap(), point["runs"].as_u64().unwrap()))
        .collect();
    assert_eq!(runs, [(1.0, 3), (2.0, 3)]);
    assert!(points[0]["low"].as_f64() < points[0]["high"].as_f64());
    assert!(!test.path("throughput_processes.svg").exists(), "no file was requested");
}

#[test]
fn impossible_plots_are_refused_with_a_hint() {
    let test = results();
    test.write("there.svg", "mine");
    for (arguments, words) in [
        (vec!["au_proceses", "results"], ["no plot `au_proceses`", "did you mean `au_processes`?"]),
        (
            vec!["timeline", "results"],
            ["a timeline shows one run, and there are 4", "give the folder of one"],
        ),
        (vec!["factor_levels", "results", "--response", "speed"], ["`speed`", "hint:"]),
        (
            vec!["au_processes", "results", "-o", "there.svg"],
            ["`there.svg` is there already", "--force"],
        ),
        (
            vec!["au_processes", "results", "-o", "there.eps"],
            ["does not end in `.pdf`, `.svg` or `.png`", "hint:"],
        ),
        (
            vec!["stall", "results", "--response", "duration_s"],
            ["takes no `--response`", "list plots"],
        ),
        (
            vec!["au_processes", "results", "--width", "0.1"],
            ["'0.1' for '--width <WIDTH>'", "1.5 to 40 inches, also as `8cm` or `80mm`"],
        ),
        (vec!["au_processes", "data"], ["holds no result of a run", "hint:"]),
    ] {
        test.feedrate(&[vec!["plot"], arguments].concat()).refuses(2, &words);
    }
    assert_eq!(fs::read_to_string(test.path("there.svg")).unwrap(), "mine");
    let answer = test.feedrate(&["plot", "au_processes", "results", "-o", "there.svg", "--force"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn dlios_results_are_drawn_like_records() {
    let test = results();
    for record in test.files_below("results", "record.json") {
        fs::remove_file(record).unwrap();
    }
    let answer = test.feedrate(&["plot", "au_processes", "results", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let object: Value = serde_json::from_str(&answer.stdout).unwrap();
    let layers = object["figure"]["panels"][0]["layers"].as_array().unwrap();
    let points = &layers.iter().find(|layer| layer["layer"] == "series").unwrap()["points"];
    assert_eq!(
        (&points[0]["x"], &points[1]["x"]),
        (&Value::from(1.0), &Value::from(2.0)),
        "{object}"
    );
    let run =
        test.files_below("results", "summary.json")[0].parent().unwrap().display().to_string();
    for (plot, path, words) in [
        ("stall", "results", "DLIO's results show the total wait for data"),
        ("phases", "results", "do not include the barrier"),
        ("timeline", &run, "Throughput of each block of steps"),
        ("latency", "results", "these are not latencies of calls"),
        ("status", "results", "4 of 4 folders done"),
    ] {
        let answer = test.feedrate(&["plot", plot, path]);
        assert_eq!(answer.code, 0, "{plot}: {}", answer.stderr);
        assert!(answer.stdout.contains(words), "{plot}: {}", answer.stdout);
    }
}

#[test]
fn damaged_folders_are_counted_as_not_done() {
    let test = results();
    let records = test.files_below("results", "record.json");
    for (i, record) in records.iter().enumerate() {
        let folder = record.parent().unwrap();
        fs::remove_file(record).unwrap();
        if i == 0 {
            fs::remove_file(folder.join("summary.json")).unwrap();
        }
        if i == 1 {
            fs::write(folder.join("0_output.json"), "{").unwrap();
        }
    }
    let answer = test.feedrate(&["plot", "status", "results"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!answer.stderr.contains("left out"), "{}", answer.stderr);
    let caption = answer.stdout.lines().nth(1).unwrap();
    assert!(caption.starts_with("2 of 4 folders done"), "{caption}");
}
