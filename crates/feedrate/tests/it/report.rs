//! `feedrate report`: the HTML page in a real browser, which `cargo xtask setup` installs, and the other formats. Pages and screenshots stay
//! in the target folder, under `tmp/report`.

use crate::harness::{Test, venv_python};
use feedrate_analysis::finding::FindingKind;
use feedrate_measure::doubt::{Bias, Doubt, Severity};
use feedrate_measure::example::{block, epoch, plan, record};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, Provenance, SAMPLES_WHOLE, Value,
};
use feedrate_measure::record::file;
use feedrate_report::output::find;
use feedrate_report::report::{
    FindingFigure, FindingText, NotDrawn, Report, ReportFigure, ReportedRun, Seen, SeenDoubt,
    Source, Support,
};
use feedrate_report::table::ReportTable;
use feedrate_results::run::Run;
use std::path::Path;

/// Text that would run a script or break the page if it were not escaped.
const HOSTILE: &str = "a</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'&`";

/// Checks a page in a browser by `report.py`.
pub(crate) fn browse(test: &Test, page: &Path, figures: usize, name: &str) {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    std::fs::create_dir_all(&pictures).unwrap();
    std::fs::copy(page, pictures.join("page.html")).unwrap();
    let (page, figures) = (page.to_path_buf(), figures.to_string());
    test.python(
        &venv_python(),
        "report.py",
        [page.as_os_str(), figures.as_ref(), pictures.as_os_str()],
    );
}

#[test]
fn results_are_reported_in_all_formats() {
    let test = Test::with_workload(crate::harness::TINY);
    test.run_json(&["--results", "some results"]);
    test.run_json(&["--results", "some results", "reader.batch_size=2"]);
    let check = |file: &str, more: &[&str], words: &[&str]| {
        let answer = test.feedrate(&[&["report", "some results", "-o", file], more].concat());
        answer.warns(&[]);
        let text = std::fs::read_to_string(test.path(file)).unwrap();
        // The note on stderr has the size and the answer.
        let size = feedrate_spec::units::bytes(text.len() as u64);
        let prefix = format!("{file}: {size}; ");
        let line = answer.stderr.lines().next().unwrap();
        assert!(line.starts_with(&prefix) && line.contains(" 2 runs"), "{prefix}: {line}");
        for word in words {
            assert!(text.contains(word), "{file}: no `{word}` in {text}");
        }
    };
    let records =
        ["href=\"some%20results/", "/record.json\"", "could not change any answer", "Methods"];
    check("report.html", &[], &records);
    check("r.md", &["--title", "Two runs"], &["# Two runs\n", "## Findings", "| batch_size |"]);
    check(
        "r.csv",
        &[],
        &[
            "Model,Parameter,Value,Procs,AU reported (%),AU (%),AU all steps (%),I/O reported (MB/s),I/O (MB/s),I/O all steps (MiB/s),batch_size,doubts,not used\nworkload,batch_size,4,1,",
        ],
    );
    check("std.csv", &["--format", "csv-std"], &["AU Std", "I/O Std"]);
    check(
        "tidy.csv",
        &["--format", "tidy"],
        &["au_all_steps,percent,", "delivered_bytes_per_second,bytes/s,"],
    );
    check("r.tex", &[], &["\\toprule", "\\bottomrule"]);
    let page = std::fs::read_to_string(test.path("report.html")).unwrap();
    let figures = page.matches("<figure").count();
    assert!(figures > 3, "{figures} figures");
    assert!(page.contains("href=\"#run-1\""), "a doubt names its run");
    browse(&test, &test.path("report.html"), figures, "results");
    let object: serde_json::Value =
        serde_json::from_str(&test.feedrate(&["report", "some results", "--json"]).stdout).unwrap();
    assert_eq!(object["runs"].as_array().unwrap().len(), 2);
    assert!(
        object["answer"].is_null() && !page.contains("class=\"verdict"),
        "there is no answer for two runs"
    );
    assert!(test.feedrate(&["report", "some results"]).stdout.starts_with("# Report on"));
}

#[test]
fn impossible_reports_are_refused() {
    let test = Test::with_workload(crate::harness::TINY);
    test.run_json(&["--results", "results"]);
    std::fs::create_dir(test.path("empty")).unwrap();
    for (arguments, words) in [
        (&["report", "empty"][..], &["`empty` holds no result"][..]),
        (&["report", "gone"], &["`gone`"]),
        (&["report", "results", "-o", "r.pdf"], &["`r.pdf`", "html, markdown, csv"]),
        (&["report", "results", "--format", "word"], &["`word`", "html, markdown, csv"]),
        (&["report", "results", "-o", "no/r.html"], &["there is no folder"]),
    ] {
        test.feedrate(arguments).refuses(2, words);
    }
}

#[test]
fn a_page_works_on_wide_and_narrow_screens() {
    let test = Test::new();
    test.write("page.html", (find("html").unwrap().write)(&example()));
    browse(&test, &test.path("page.html"), 2, "example");
}

/// Writes records of a full factorial design with three replicates. 18 runs have two factors, 54 runs have three.
fn write_study(test: &Test, name: &str, load_ms: u64, runs: u64) {
    for index in 0..runs {
        let [replicate, batch, workers, accelerators] =
            [index % 3, 1 << (index / 3 % 3), 1 << (index / 9 % 3), 1 + index / 27];
        let load_ms = load_ms * batch * accelerators / workers + replicate;
        let steps = vec![(load_ms, 50, 0, batch * 1_000_000); 20];
        let blocks = vec![vec![block(0, &steps)]; accelerators as usize];
        let mut record = record(plan(accelerators as u32, 20), vec![epoch(1, blocks)]);
        record.started = format!("2026-11-21T10:{index:02}:00.000000");
        record.plan.loader.batch_size = batch;
        record.plan.loader.workers = workers as u32;
        let folder = test.path(&format!("{name}/{index}"));
        std::fs::create_dir_all(&folder).unwrap();
        file::write(&folder, &record).unwrap();
    }
}

#[test]
fn two_studies_are_compared_on_the_first_screen() {
    let test = Test::new();
    write_study(&test, "before", 40, 18);
    write_study(&test, "after", 20, 18);
    test.feedrate(&["report", "before", "after", "-o", "page.html"]).warns(&[]);
    let page = std::fs::read_to_string(test.path("page.html")).unwrap();
    let first = page.split_once("id=\"answer\"").unwrap().1;
    let first = first.split_once("id=\"findings\"").unwrap().0;
    assert!(first.contains("</code>): better in 12 of 12"), "{first}");
    browse(&test, &test.path("page.html"), page.matches("<figure").count(), "two-studies");
}

#[test]
fn the_page_of_a_study_answers_on_its_first_screen() {
    let test = Test::new();
    write_study(&test, "results", 40, 54);
    test.feedrate(&["report", "results", "-o", "page.html"]).warns(&[]);
    let page = std::fs::read_to_string(test.path("page.html")).unwrap();
    let first = page.split_once("id=\"answer\"").unwrap().1;
    let first = first.split_once("id=\"findings\"").unwrap().0;
    for words in ["NO for all 54 runs", "storage-bound", "target 90 %", "needs ", "most throughput"]
    {
        assert!(first.contains(words), "{words}: {first}");
    }
    assert_eq!(first.matches("<figure").count(), 3);
    // A column for each factor. All runs have the same workload, so it has no column.
    let runs = page.split_once("id=\"runs\"").unwrap().1.split_once("</thead>").unwrap().0;
    for (name, count) in [("batch_size", 1), ("read_threads", 1), ("Workload", 0), ("Value", 0)] {
        assert_eq!(runs.matches(&format!("<span>{name}</span>")).count(), count, "{name}: {runs}");
    }
    browse(&test, &test.path("page.html"), page.matches("<figure").count(), "study");
}

/// A report on two formats at four numbers of accelerators with three replicates. One run has a hostile name.
fn example() -> Report {
    let mut runs = Vec::new();
    for replicate in 0..3_u32 {
        for (format, slope) in [("npz", 9.0), ("hdf5", 4.0)] {
            runs.extend(
                [1, 2, 4, 8].map(|accelerators| run(format, slope, accelerators, replicate)),
            );
        }
    }
    runs[3].run.workload = HOSTILE.into();
    runs[3].run.path = HOSTILE.repeat(4).into();
    let doubt = |name: &str, severity, runs: &[usize]| SeenDoubt {
        name: name.into(),
        severity,
        is_relevant: true,
        is_decisive: false,
        seen: runs
            .iter()
            .map(|&run| Seen {
                run: Some(run),
                evidence: format!("{run} steps of 300, and `{HOSTILE}`"),
                advice: "use `--cold`".into(),
            })
            .collect(),
    };
    Report {
        title: format!("npz and hdf5 {HOSTILE}"),
        program: "feedrate".into(),
        sources: vec![Source { path: "results/formats".into(), runs: runs.len() }],
        findings: vec![
            finding(
                "`format` explains 71 % of the variation of throughput: npz is 2.2 × hdf5 [2.1, 2.4], n = 12",
                Support::Shown,
                24,
            ),
            finding(
                "8 accelerators are fed less than 4: AU falls by 12 points [10, 14], n = 6",
                Support::Doubted,
                12,
            ),
            finding(
                "whether the order of files matters cannot be told: it was not varied",
                Support::CannotBeTold,
                0,
            ),
        ],
        doubts: vec![
            doubt("stale_data", Severity::Invalid, &[3]),
            doubt("page_cache", Severity::Warning, &[0, 1, 2]),
            doubt("page_cache", Severity::Note, &[4]),
        ],
        figures: vec![
            figure("throughput_processes", "Throughput against accelerators", true),
            figure("au_processes", "AU against accelerators", false),
        ],
        not_drawn: vec![NotDrawn {
            name: "factor_levels".into(),
            why: format!("no two factors were crossed: {HOSTILE}"),
            hint: "`feedrate study new`".into(),
        }],
        runs,
        ..Report::default()
    }
}

fn run(format: &str, slope: f64, accelerators: u32, replicate: u32) -> ReportedRun {
    let scale = f64::from(accelerators) * (1.0 + 0.01 * f64::from(replicate));
    let values = [
        (&AU_WINDOWED, Some(99.0 - scale)),
        (&AU_ALL_STEPS, Some((104.0 - slope * scale).max(3.0))),
        (&AU_SUSTAINED, (accelerators < 8).then_some(98.0 - scale)),
        (&SAMPLES_WHOLE, Some(slope * scale)),
        (&DELIVERED_WHOLE, Some(146.6e6 * slope * scale)),
    ];
    let values = values.into_iter().filter_map(|(metric, number)| {
        Some((metric.id, Value { number: number?, provenance: Provenance::Measured }))
    });
    let doubt = |name: &str, severity| Doubt {
        name: name.into(),
        severity,
        bias: Bias::Either,
        evidence: String::new(),
        advice: String::new(),
        facts: Facts::new(),
    };
    let is_doubted = accelerators == 8 && replicate == 0;
    let doubts = [doubt("stale_data", Severity::Invalid), doubt("page_cache", Severity::Warning)];
    let folder = format!("2026-11-21-10-0{replicate}-00");
    let run = Run {
        path: format!("results/formats/{accelerators}_format_{format}/{folder}").into(),
        workload: "unet3d_h100_custom".into(),
        parameter: "format".into(),
        value: format.into(),
        accelerators: Some(accelerators),
        started: Some(format!("2026-11-21T10:0{replicate}:00")),
        epochs: 5,
        values: values.collect(),
        doubts: if is_doubted { doubts.into() } else { Vec::new() },
        ..Run::default()
    };
    ReportedRun { run, link: Some("run/record.json".into()), ..ReportedRun::default() }
}

fn finding(says: &str, support: Support, runs: usize) -> FindingText {
    let is_doubted = support == Support::Doubted;
    FindingText {
        says: says.into(),
        kind: FindingKind::Effect,
        workload: "unet3d_h100_custom".into(),
        response: None,
        factors: Vec::new(),
        numbers: Vec::new(),
        support,
        figures: vec![FindingFigure {
            name: "p".into(),
            value: "0.0004, of 12 tests (Holm)".into(),
        }],
        runs: (0..runs).collect(),
        to_do: None,
        doubts: if is_doubted { vec!["`page_cache` in 3 of its runs".into()] } else { Vec::new() },
    }
}

/// A figure like those of `feedrate plot`: marks with values, in named series.
fn figure(name: &str, title: &str, is_lead: bool) -> ReportFigure {
    let series = ["npz", "hdf5"];
    let svg = |background: &str, foreground: &str| {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"3.5in\" height=\"2.4in\" viewBox=\"0 0 252 172\" role=\"img\"><title>{title}</title>\
             <rect width=\"252\" height=\"172\" fill=\"{background}\"/><path d=\"M30 10V140H240\" fill=\"none\" stroke=\"{foreground}\"/>\
             <text x=\"135\" y=\"165\" font-size=\"9\" text-anchor=\"middle\" fill=\"{foreground}\">accelerators</text>"
        );
        for (series, (colour, slope)) in series.iter().zip([("#0072b2", 14.0), ("#d55e00", 6.0)]) {
            svg += &format!(
                "<path data-series=\"{series}\" d=\"M50 {}L230 {}\" stroke=\"{colour}\" fill=\"none\"/>",
                140.0 - slope,
                140.0 - 8.0 * slope
            );
            for x in [1.0, 2.0, 4.0, 8.0] {
                svg += &format!(
                    "<circle data-series=\"{series}\" cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{colour}\"><title>{series}, {x} accelerators\n{:.1} MB/s</title></circle>",
                    24.3 + 25.7 * x,
                    140.0 - slope * x,
                    slope * x * 100.0
                );
            }
        }
        svg + "</svg>"
    };
    ReportFigure {
        name: name.into(),
        title: title.into(),
        caption: "Geometric means of 3 runs with 95 % intervals.".into(),
        is_lead,
        svg: svg("#ffffff", "#1a1a1a"),
        svg_dark: svg("#18181b", "#e6e6e6"),
        figure: None,
        series: series.map(String::from).to_vec(),
        command: String::new(),
        values: ReportTable::from_text(
            title,
            ["Accelerators", "npz (MB/s)", "hdf5 (MB/s)"],
            [["1", "1400", "600"].map(String::from).to_vec()],
        ),
    }
}
