//! Pages of docs/reference, made from the tables that the program itself reads. Nothing on them is typed.
//!
//! To add one: a function that makes its text, its row in [`PAGES`], its line in docs/SUMMARY.md.

use super::list::{ListedFamily, listed};
use super::schema::schema_of;
use super::{Arguments, EXIT_CODES};
use clap::Command;
use feedrate_measure::doubt::{self, DoubtKind};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{Better, METRICS};
use feedrate_report::output::Schema;
use feedrate_report::plot::PLOTS;
use feedrate_spec::workload::{Effect, KEYS, KeyInfo, Origin, SECTION_ALIASES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// A page: its file, and the function that makes its text.
type Page = (&'static str, fn() -> String);

const PAGES: &[Page] = &[
    ("cli.md", commands),
    ("keys.md", keys),
    ("workloads.md", workloads),
    ("members.md", members),
    ("metrics.md", metrics),
    ("doubts.md", doubts),
    ("plots.md", plots),
    ("exit-codes.md", exit_codes),
    ("json.md", json),
];

const MADE: &str = "<!-- Made by the program: UPDATE_DOCS=1 cargo test -p feedrate reference -->";
/// Documented commands that the program's help leaves out: packages and other programs call them.
const NOT_IN_HELP: [&str; 3] = ["schema", "completions", "man"];
/// Columns of help.
const HELP_WIDTH: usize = 100;

#[test]
fn reference_pages_are_those_of_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let mut stale = Vec::new();
    for (name, make) in PAGES {
        let page = make();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(folder.join(name), page).unwrap();
        } else if std::fs::read_to_string(folder.join(name)).ok() != Some(page) {
            stale.push(*name);
        }
    }
    assert!(stale.is_empty(), "{stale:?}: run UPDATE_DOCS=1 cargo test -p feedrate reference");
}

/// Each command with its help.
fn commands() -> String {
    let mut page = format!("# Commands\n\n{MADE}\n");
    let mut program = Arguments::program().term_width(HELP_WIDTH);
    program.build();
    write_command(&mut page, &program, "feedrate");
    page
}

fn write_command(page: &mut String, command: &Command, name: &str) {
    // Exit codes are in the long help of the program; no other command has one.
    let mut command = command.clone().bin_name(name);
    let help = if name == "feedrate" { command.render_long_help() } else { command.render_help() };
    let help = help.to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(page, "\n## {name}\n\n```text\n{}\n```", help.join("\n").trim_end()).unwrap();
    for inner in command.get_subcommands() {
        let is_documented = !inner.is_hide_set() || NOT_IN_HELP.contains(&inner.get_name());
        if is_documented && inner.get_name() != "help" {
            write_command(page, inner, &format!("{name} {}", inner.get_name()));
        }
    }
}

fn workloads() -> String {
    let introduction = "Each is a YAML file in the program; `feedrate list NAME` prints it.";
    table("Bundled workloads", introduction, ["workload", "stands for", "note"], {
        listed(ListedFamily::Workloads)
            .into_iter()
            .map(|one| [code(&one.name), one.summary, one.notes])
    })
}

/// Formats, storages, engines, loaders: families with few members, and those of studies.
fn members() -> String {
    let mut page = format!(
        "# What is built in\n\n{MADE}\n\n`feedrate list FAMILY` prints the same. The last column has a member's abilities or options.\n"
    );
    for (title, key, family) in [
        ("Formats", "`dataset.format`", ListedFamily::Formats),
        ("Storages", "`storage.storage_type`", ListedFamily::Storages),
        ("Engines", "`storage.engine`", ListedFamily::Engines),
        ("Loaders", "`reader.data_loader`", ListedFamily::Loaders),
        ("Clients", "`client`", ListedFamily::Clients),
        ("Computes", "`compute`", ListedFamily::Computes),
        ("Checkpoint formats", "`checkpoint.format`", ListedFamily::Checkpoints),
        ("Communication", "chosen by the launcher", ListedFamily::Comms),
        ("Launches", "`study run --launch`", ListedFamily::Launches),
        ("Designs", "`study new --design`", ListedFamily::Designs),
        ("Choosers", "rows of a study", ListedFamily::Choosers),
        ("Verdicts", "`--fail-on`", ListedFamily::Verdicts),
        ("Rules of advice", "`advise`", ListedFamily::Advice),
    ] {
        writeln!(page, "\n## {title}\n\n| {key} | | |\n|---|---|---|").unwrap();
        for one in listed(family) {
            row(&mut page, &[code(&one.name), one.summary, one.notes]);
        }
    }
    page
}

fn metrics() -> String {
    let introduction = "Numbers of a run, in `run`, `show`, `--json` (at the path given), `summary.json`, `--response` and on axes. [Numbers](../guide/numbers.md) explains the important ones.";
    let columns = ["metric", "definition", "unit", "good", "in JSON", "DLIO's name"];
    table("Metrics", introduction, columns, {
        METRICS.iter().map(|metric| {
            let good = match metric.better {
                Better::Higher => "high",
                Better::Lower => "low",
            };
            let reported = metric.reported_as.map_or_else(String::new, |(name, _)| code(name));
            let [name, path] = [metric.label(), metric.path].map(code);
            [name, metric.meaning(), metric.unit.name().into(), good.into(), path, reported]
        })
    })
}

fn doubts() -> String {
    let introduction = "Named reasons not to believe a number. `invalid`: the run must not be used; `warning`: look before you use it; `note`: good to know.";
    let mut page = format!("# Doubts\n\n{MADE}\n\n{introduction}\n");
    let records: Vec<&DoubtKind> = doubt::DOUBTS.iter().map(|doubt| &doubt.kind).collect();
    let results = feedrate_results::doubt::DOUBTS.iter().map(|doubt| &doubt.kind).collect();
    for (title, kinds) in [("Runs of feedrate", records), ("Results read back", results)] {
        writeln!(
            page,
            "\n## {title}\n\n| doubt | severity | meaning | what to do |\n|---|---|---|---|"
        )
        .unwrap();
        for kind in kinds {
            let advice = Facts::default().render(kind.advice);
            row(
                &mut page,
                &[code(kind.name), kind.severity.name().into(), kind.meaning.into(), advice],
            );
        }
    }
    page
}

fn plots() -> String {
    let introduction = "`feedrate plot NAME PATH… -o FILE`; [Plots](../guide/plots.md) shows how.";
    table("Plots", introduction, ["plot", "shows", "other response"], {
        let responses = PLOTS.iter().map(|plot| {
            let names = plot.responses.iter().map(|metric| code(metric.id.name()));
            names.collect::<Vec<_>>().join(" or ")
        });
        listed(ListedFamily::Plots)
            .into_iter()
            .zip(responses)
            .map(|(one, response)| [code(&one.name), one.summary, response])
    })
}

/// The line below the program's help, as a table.
fn exit_codes() -> String {
    let (_, codes) = EXIT_CODES.split_once(": ").unwrap();
    table(
        "Exit codes",
        "`dlio_benchmark` has 255 too: more steps are wanted than the data has.",
        ["code", "means"],
        {
            codes.trim_end_matches('.').split("; ").map(|one| {
                let (code, means) = one.split_once(' ').unwrap();
                [code.to_string(), means.to_string()]
            })
        },
    )
}

/// A command for each object that `--json` prints, but for that of a hidden command.
const PRINTED_BY: [(&str, &str); 27] = [
    ("run", "feedrate run quickstart --json"),
    ("plan", "feedrate plan quickstart --json"),
    ("generate", "feedrate generate quickstart --json"),
    ("verify", "feedrate generate quickstart --verify --json"),
    ("scan", "feedrate scan photos --json"),
    ("scale", "feedrate scale quickstart --json"),
    ("scale_dry_run", "feedrate scale quickstart --dry-run --json"),
    ("diagnose", "feedrate diagnose quickstart --json"),
    ("advise", "feedrate advise results/quickstart/RUN --json"),
    ("trials", "feedrate advise quickstart --try --json"),
    ("whatif", "feedrate advise results/quickstart/RUN --set reader.read_threads=4 --json"),
    ("analyze", "feedrate analyze results --json"),
    ("compare", "feedrate compare results/nfs results/lustre --json"),
    ("compare_logs", "feedrate compare results/quickstart/RUN job.strace --json"),
    ("report", "feedrate report results --json"),
    ("plot", "feedrate plot stall results --json"),
    ("import", "feedrate import job.strace --json"),
    ("calibrate", "feedrate calibrate train.py:make_dataset --json"),
    ("study_new", "feedrate study new design.toml --json"),
    ("study_dry_run", "feedrate study run study.csv --dry-run --json"),
    ("study_run", "feedrate study run study.csv --json"),
    ("study_status", "feedrate study status study.csv --json"),
    ("study_show", "feedrate study status study.csv '#1' --json"),
    ("list", "feedrate list formats --json"),
    ("describe", "feedrate list read_threads --json"),
    ("system", "feedrate system --json"),
    ("clean", "feedrate clean results --json"),
];

const JSON_INTRODUCTION: &str = "`--json` prints one object on stdout, on one line; notes and errors go to stderr. Each object begins with `feedrate`, the version of the
program, and `schema`, its name and version, which is raised when a key goes or changes its meaning; keys may be added. What is not known is `null`
or has no key. `feedrate schema NAME` prints the whole JSON Schema, the keys of inner objects too; [schemas.json](schemas.json) has all.";

/// Each object that `--json` prints, with a command that prints it and its keys.
fn json() -> String {
    let mut page = format!("# JSON\n\n{MADE}\n\n{JSON_INTRODUCTION}\n");
    let known: BTreeSet<&str> = PRINTED_BY.iter().map(|(name, _)| *name).collect();
    let shown = Schema::ALL.map(Schema::name).into_iter().filter(|name| *name != "bench");
    assert_eq!(known, shown.collect());
    for (name, command) in PRINTED_BY {
        let schema = Schema::named(name).unwrap();
        writeln!(page, "\n## {name}\n\n`{command}` prints `{}`:\n", schema.versioned()).unwrap();
        page += "| key | value | meaning |\n|---|---|---|\n";
        let whole = schema_of(schema);
        for (key, of) in whole["properties"].as_object().unwrap() {
            if ["feedrate", "schema"].contains(&key.as_str()) {
                continue;
            }
            let meaning = of["description"].as_str().unwrap_or_default();
            let meaning = meaning.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            row(&mut page, &[code(key), kind_of(of, &whole).join(" or "), meaning]);
        }
    }
    page
}

/// Kinds of values that a schema allows, in words.
fn kind_of(of: &Value, whole: &Value) -> Vec<String> {
    if let Some(inner) = of["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        return kind_of(whole.pointer(inner).unwrap(), whole);
    }
    if let Some(one) = ["anyOf", "oneOf"].iter().find_map(|key| of[key].as_array()) {
        let mut kinds: Vec<String> = one.iter().flat_map(|of| kind_of(of, whole)).collect();
        kinds.dedup();
        return kinds;
    }
    let types = match &of["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        Value::String(one) => vec![one.as_str()],
        _ if of["const"].is_string() => vec!["string"],
        _ => vec!["any"],
    };
    types.into_iter().map(|one| if one == "string" { "text" } else { one }.to_string()).collect()
}

fn keys() -> String {
    let mut page = format!("# Keys of a workload\n\n{MADE}\n\n{KEYS_INTRODUCTION}\n");
    for (alias, section) in SECTION_ALIASES {
        writeln!(page, "The section `{section}` may also be called `{alias}`; where both give a key, `{alias}` wins.").unwrap();
    }
    let (ignored, keys): (Vec<&KeyInfo>, Vec<_>) =
        KEYS.iter().partition(|key| key.origin == Origin::Ignored);
    let mut section = None;
    for key in keys {
        let own = key.path.split_once('.').map_or("top level", |(section, _)| section);
        if section != Some(own) {
            writeln!(
                page,
                "\n## {own}\n\n| key | value | default | meaning | effect |\n|---|---|---|---|---|"
            )
            .unwrap();
            section = Some(own);
        }
        write_key(&mut page, key);
    }
    page.push_str(KEYS_IGNORED);
    for key in ignored {
        row(&mut page, &[code(key.path), key.meaning.into()]);
    }
    page
}

const KEYS_INTRODUCTION: &str = "A workload is a YAML file of these keys. Each can be overridden on the command line, as `reader.batch_size=4` or in
Hydra's ways: `++workload.reader.batch_size=4`, `+key=value`, `~key`, lists `[64,64]`, dictionaries `{mean:1.0,stdev:0.1}`.

Keys marked * are feedrate's own; the others are DLIO's. Keys whose effect is \"not built yet\" are accepted, and refused only where the
plan would reach them. Bytes may be written with a unit, `8MiB` or `1.5GB`. A time is a number of seconds or a distribution:
`{mean: 0.3, stdev: 0.01}`, or with `type`: `normal` (`mean`, `stdev`), `uniform` (`min`, `max`), `gamma` (`shape`, `scale`),
`exponential` (`scale`), `poisson` (`lam`).
";

const KEYS_IGNORED: &str = "\n## without effect

Files in use carry these keys; DLIO ignores them, and so does feedrate, with a warning.

| key | why it exists |
|---|---|
";

fn write_key(page: &mut String, key: &KeyInfo) {
    let own = if key.origin == Origin::Feedrate { " *" } else { "" };
    let alias: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    let is_in_kind = key.unit.is_empty() || key.kind.contains(key.unit);
    let unit = if is_in_kind { String::new() } else { format!(", {}", key.unit) };
    let effect = match key.effect {
        Effect::Now => "yes".to_string(),
        Effect::NotYet { feature } => format!("not built yet: {feature}"),
        Effect::Nothing { reason } => format!("none: {reason}"),
    };
    let name = format!("`{}`{own}{alias}", key.path);
    row(
        page,
        &[name, format!("{}{unit}", key.kind), code(key.default), key.meaning.into(), effect],
    );
}

fn table<const N: usize>(
    title: &str,
    introduction: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut page = format!("# {title}\n\n{MADE}\n\n{introduction}\n\n");
    row(&mut page, &columns.map(String::from));
    row(&mut page, &columns.map(|_| "---".to_string()));
    rows.for_each(|cells| row(&mut page, &cells));
    page
}

fn row(page: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(page, "| {} |", cells.join(" | ")).unwrap();
}

fn code(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("`{name}`") }
}
