//! The contract of every output: names chosen by users are never markup, and unknown values are empty.

use super::*;
use crate::gather::results_report;
use crate::report::{
    FindingFigure, FindingText, Method, NotDrawn, OpeningLine, RecommendationText, ReportAdvice,
    ReportAnswer, ReportChange, ReportComparison, ReportFigure, ReportedRun, Seen, SeenDoubt,
    Source, Support,
};
use crate::table::ReportTable;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_analysis::finding::FindingKind;
use feedrate_measure::doubt::{Bias, Doubt, Severity};
use feedrate_measure::example::simple;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, Provenance, Value};
use feedrate_measure::record::file;
use feedrate_results::import::fake::Fake;
use feedrate_results::index::LeftOut;
use feedrate_results::replan::NO_CHANGES;
use feedrate_results::run::{Reason, Run};
use feedrate_results::trials::{Outcome, TrialRuns, TriedAdvice};

/// A name that is markup in every format.
const HOSTILE: &str = "</script><script>alert(1)</script>\"'&|\\[x](y)\n,$%_{}`~^#";

/// A run with a doubt, and a run that is not used.
fn runs(name: &str) -> Vec<ReportedRun> {
    let doubt = Doubt {
        name: name.into(),
        severity: Severity::Warning,
        bias: Bias::Either,
        evidence: name.into(),
        advice: name.into(),
        facts: Facts::new(),
    };
    let windowed = Value { number: 99.5, provenance: Provenance::Recomputed };
    let all_steps = Value { number: 61.25, provenance: Provenance::Recomputed };
    let first = Run {
        path: name.into(),
        workload: name.into(),
        parameter: "batch_size".into(),
        value: "4".into(),
        accelerators: Some(2),
        doubts: vec![doubt],
        values: [(AU_WINDOWED.id, windowed), (AU_ALL_STEPS.id, all_steps)].into(),
        ..Run::default()
    };
    let stale = Reason::Invalid { doubt: "stale_data".into(), evidence: String::new() };
    let second = Run {
        workload: "w".into(),
        parameter: "processes".into(),
        unusable: Some(stale),
        ..Run::default()
    };
    let mut runs = [first, second].map(|run| ReportedRun { run, ..ReportedRun::default() });
    runs[0].factors = [("batch_size".to_string(), "4".to_string())].into();
    runs.into()
}

fn report(name: &str) -> Report {
    let table =
        || ReportTable::from_text(name, ["Setting", name], [vec![name.into(), "2, 4".into()]]);
    Report {
        answers: Vec::new(),
        opening: vec![OpeningLine {
            name: "Main finding".into(),
            value: "`a` is <b>".into(),
            ..OpeningLine::default()
        }],
        title: name.into(),
        program: "feedrate".into(),
        sources: vec![Source { path: name.into(), runs: 2 }],
        answer: Some(ReportAnswer {
            says: vec![name.into()],
            answer: AnsweredSummary::new(&simple(&[(1, 1, 0, 1)])).answer,
        }),
        recommendations: vec![RecommendationText {
            workload: name.into(),
            says: vec![format!("most throughput: `{name}` {name}")],
            ..RecommendationText::default()
        }],
        findings: vec![FindingText {
            to_do: None,
            says: format!("`{name}` makes no difference"),
            kind: FindingKind::NoEffect,
            workload: name.into(),
            response: None,
            factors: vec![name.into()],
            numbers: Vec::new(),
            support: Support::Doubted,
            figures: vec![FindingFigure { name: name.into(), value: name.into() }],
            runs: vec![0],
            doubts: vec![name.into()],
        }],
        comparison: Some(ReportComparison { says: name.into(), table: table() }),
        advice: vec![ReportAdvice {
            workload: name.into(),
            says: vec![format!("tried, and helps: `{name}`")],
            trials: Some(name.into()),
            baseline: Some(TrialRuns { mean_percent: 31.25, interval: None, n: 1 }),
            changes: [Outcome::Helps, Outcome::NoEffect]
                .map(|outcome| change(name, outcome))
                .into(),
        }],
        doubts: vec![SeenDoubt {
            name: name.into(),
            severity: Severity::Warning,
            is_relevant: true,
            is_decisive: false,
            seen: vec![Seen { run: Some(0), evidence: name.into(), advice: name.into() }],
        }],
        figures: vec![ReportFigure {
            name: name.into(),
            title: name.into(),
            caption: name.into(),
            svg: "<svg viewBox=\"0 0 1 1\"></svg>".into(),
            series: vec![name.into()],
            values: table(),
            ..ReportFigure::default()
        }],
        not_drawn: vec![NotDrawn { name: name.into(), why: name.into(), hint: name.into() }],
        runs: runs(name),
        checkpoints: Vec::new(),
        left_out: vec![LeftOut { path: name.into(), why: name.into() }],
        methods: vec![Method {
            name: name.into(),
            says: name.into(),
            commands: vec![name.replace('\n', " ")],
        }],
        setups: vec![table()],
        configuration: table(),
    }
}

fn change(name: &str, outcome: Outcome) -> ReportChange {
    let advice = TriedAdvice {
        name: name.into(),
        overrides: vec![name.into()],
        change: name.into(),
        predicted_percent: Some(97.0),
        interval: Some([95.25, 98.0]),
        tried: Some(TrialRuns { mean_percent: 62.5, interval: Some([62.0, 63.0]), n: 3 }),
        is_mispredicted: Some(true),
        outcome,
        reason: None,
        break_even_epochs: None,
        command: Some(format!("run {} {}", name.replace('\n', " "), outcome.name())),
    };
    ReportChange { change: name.into(), why: None, is_withdrawn: advice.is_withdrawn(), advice }
}

fn write_output(name: &str, report: &Report) -> String {
    (find(name).unwrap().write)(report)
}

#[test]
fn outputs_have_unique_names_and_accept_an_empty_report() {
    for (index, output) in OUTPUTS.iter().enumerate() {
        assert!(OUTPUTS[..index].iter().all(|other| other.name != output.name), "{}", output.name);
        assert!(!(output.write)(&Report::default()).is_empty(), "{}", output.name);
        let text = (output.write)(&report("plain"));
        let text = text.split("<script>").next().unwrap();
        for wrong in ["NaN", "None", "null,0"] {
            assert!(!text.contains(wrong), "{}: {wrong}", output.name);
        }
    }
    for (file, expected) in
        [("a/r.html", Some("html")), ("r.CSV", Some("csv")), ("r.pdf", None), ("r", None)]
    {
        assert_eq!(for_file(Path::new(file)).map(|output| output.name), expected);
    }
}

#[test]
fn a_page_runs_only_its_own_script_and_makes_no_requests() {
    let page = write_output("html", &report(HOSTILE));
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("</script").count(), 1);
    for wrong in ["http://", "https://", "url(", "@import", " src="] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_are_no_markup_in_markdown() {
    // Without backticks in names, text between two backticks is a name, which has no markup.
    let text = write_output("markdown", &report(&HOSTILE.replace('`', "")));
    let outside: String = text.split('`').step_by(2).collect();
    for wrong in ["<", "](", "&", "^#"] {
        let plain = outside.replace(&format!("\\{wrong}"), "").replace("^\\#", "");
        assert!(!plain.contains(wrong), "{wrong}: {plain}");
    }
    assert!(write_output("markdown", &report("a`b")).contains("a\\`b"));
    let table = |line: &&str| line.starts_with("| ") && !line.starts_with("| ---");
    for line in write_output("markdown", &report("|")).lines().filter(table) {
        assert!(line.replace("\\|", "").matches('|').count() >= 3, "{line}");
    }
}

#[test]
fn names_are_no_commands_in_latex() {
    let text = write_output("latex", &report("a_b & 50 % #1 $x$ \\input{y} {~^}"));
    assert!(text.contains(r"a\_b \& 50 \% \#1 \$x\$ \textbackslash{}input\{y\} \{\textasciitilde{}\textasciicircum{}\}"), "{text}");
    assert!(!text.contains("\\input{"), "{text}");
}

#[test]
fn the_studys_csv_has_its_columns() {
    let report = report("a,b");
    assert_eq!(
        write_output("csv", &report),
        "Model,Parameter,Value,Procs,AU reported (%),AU (%),AU all steps (%),I/O reported (MB/s),I/O (MB/s),I/O all steps (MiB/s),batch_size,doubts,not used\n\
         \"a,b\",batch_size,4,2,99.5,99.5,61.25,,,,4,\"a,b\",\nw,processes,,,,,,,,,,,stale_data\n"
    );
    let earlier = write_output("csv-std", &report);
    assert!(
        earlier.starts_with(
            "Model,Parameter,Value,Procs,AU reported (%),AU (%),AU all steps (%),AU Std,I/O reported (MB/s),I/O (MB/s),I/O all steps (MiB/s),I/O Std,"
        ),
        "{earlier}"
    );
}

/// Spreadsheets evaluate cells with these beginnings.
#[test]
fn names_are_no_formulas_in_a_csv() {
    for name in ["=HYPERLINK(1)", "+1+1", "@SUM(1)", "-x", "\t=1"] {
        for format in ["csv", "csv-std", "tidy"] {
            let text = write_output(format, &report(name));
            assert!(text.contains(&format!("'{name}")), "{format}: {text}");
            assert!(!text.contains(&format!(",{name}")) && !text.contains(&format!("\n{name}")));
        }
    }
}

#[test]
fn the_tidy_form_has_a_line_for_each_number() {
    let text = write_output("tidy", &report("w"));
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "w,w,,w,batch_size,4,,2,,,0,,w,au_windowed,percent,99.5,recomputed",
        "w,w,,w,batch_size,4,,2,,,0,,w,au_sustained,percent,,",
        "w,,,w,processes,,,,,,0,stale_data,,au_reported,percent,,",
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
}

#[test]
fn json_has_everything_but_pictures() {
    let object: serde_json::Value =
        serde_json::from_str(&write_output("json", &report(HOSTILE))).unwrap();
    assert_eq!(object["title"], HOSTILE);
    assert_eq!(object["experiments"][1]["accelerators"], serde_json::Value::Null);
    assert!(object["figures"][0].get("svg").is_none());
}

/// Each outcome has its figures, and withdrawn commands are not offered.
#[test]
fn tables_of_advice_have_outcomes() {
    for name in ["html", "markdown", "latex"] {
        let text = write_output(name, &report("w"));
        let text = text.replace("{[}", "[").replace("{]}", "]").replace('\u{a0}', " ");
        for wanted in
            ["withdrawn: no effect", "97.0 [95.2, 98.0]", "62.5 [62.0, 63.0]", "unchanged"]
        {
            assert!(text.contains(wanted), "{name}: no `{wanted}` in {text}");
        }
        assert!(!text.contains("run w no effect"), "{name}");
        assert_eq!(text.contains("run w helps"), name != "latex", "{name}");
    }
    let object: serde_json::Value =
        serde_json::from_str(&write_output("json", &report("w"))).unwrap();
    let changes = &object["advice"][0]["changes"];
    assert_eq!(changes[0]["outcome"], "helps");
    assert_eq!(
        (&changes[1]["outcome"], &changes[1]["withdrawn"]),
        (&"no_effect".into(), &true.into())
    );
}

#[test]
fn an_output_has_only_the_figures_that_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    for (index, format) in ["npz", "npz", "png", "png"].iter().enumerate() {
        // Runs of the same times are copies of one.
        let load_ms = 1000 + index as u64;
        let mut record = simple(&[(load_ms, 1000, 0, 1_000_000); 20]);
        record.plan.dataset.format = (*format).into();
        let run_dir = folder.path().join(index.to_string());
        std::fs::create_dir(&run_dir).unwrap();
        file::write(&run_dir, &record).unwrap();
    }
    let report = |figure_use| {
        results_report(&[folder.path().into()], None, 1, NO_CHANGES, figure_use).unwrap()
    };
    let all = report(FigureUse::Pictures);
    assert!(!all.figures.is_empty() && !all.not_drawn.is_empty());
    for output in OUTPUTS {
        let made = report(output.figures);
        let has_pictures = made.figures.iter().any(|figure| !figure.svg.is_empty());
        let has_any = !made.figures.is_empty() || !made.not_drawn.is_empty();
        assert_eq!(has_pictures, output.figures == FigureUse::Pictures, "{}", output.name);
        assert_eq!(has_any, output.figures != FigureUse::Nothing, "{}", output.name);
        assert_eq!(output.text(&made), output.text(&all), "{}", output.name);
    }
}

/// Reports on up to 200 levels of a setting and on 60 accelerator counts, with a name that fits no column.
#[test]
fn reports_on_many_levels_are_written_in_every_output() {
    let workload = "a_workload_with_a_long_name_".repeat(6);
    let threads = |level: u32| Fake { ranks: 1, files: 42, threads: level, ..Fake::default() };
    let ranks = |level: u32| Fake { ranks: level, files: 42 * u64::from(level), ..Fake::default() };
    for (count, has_threads) in [(1, true), (200, true), (60, false)] {
        let folder = tempfile::tempdir().unwrap();
        for level in 1..=count {
            let start_s = 60.0 * f64::from(level);
            let slower = 1.0 + 0.01 * f64::from(level);
            let fake = if has_threads { threads(level) } else { ranks(level) };
            let fake = Fake { start_s, slower, ..fake };
            let run = fake.publish(folder.path(), &level.to_string());
            let overrides = format!("- workload={workload}\n");
            std::fs::write(run.join("dlio_config/overrides.yaml"), overrides).unwrap();
        }
        let paths = [folder.path().into()];
        let report = results_report(&paths, None, 1, NO_CHANGES, FigureUse::Pictures).unwrap();
        assert_eq!(report.runs.len(), count as usize);
        assert!(report.runs.iter().all(|run| run.run.workload == workload), "{count}");
        assert!(report.runs.iter().all(|run| run.run.has_result()), "{count}");
        assert!(!report.figures.is_empty(), "{count}");
        assert!(report.figures.iter().all(|figure| !figure.svg.is_empty()), "{count}");
        for output in OUTPUTS {
            assert!(!output.text(&report).is_empty(), "{}: {count}", output.name);
        }
    }
}

#[test]
fn names_in_backticks_are_split_from_text() {
    use TextPart::{Name, Plain};
    for (sentence, expected) in [
        ("`a` is `b c`.", vec![Name("a"), Plain(" is "), Name("b c"), Plain(".")]),
        ("no name", vec![Plain("no name")]),
        ("one ` alone", vec![Plain("one ` alone")]),
        ("", vec![]),
    ] {
        assert_eq!(split_names(sentence), expected);
    }
}
