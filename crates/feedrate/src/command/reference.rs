//! Generates the pages of docs/reference from the tables of the program, and tests that they are up to date.
//!
//! To add a page: a function that returns its text, a row in [`PAGES`], a line in docs/SUMMARY.md.

use super::list::{ListedFamily, listed};
use super::schema::schema_of;
use super::{Arguments, EXIT_CODES};
use clap::{Arg, Command};
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

/// A page: its file name, and the function that returns its text.
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
/// Commands that are documented but hidden in the program's help, since packages and other programs call them.
const NOT_IN_HELP: [&str; 3] = ["schema", "completions", "man"];
/// Width of the help texts in columns.
const HELP_WIDTH: usize = 100;

#[test]
fn reference_pages_are_up_to_date() {
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

const COMMANDS_INTRODUCTION: &str = "Options that a command shares with `feedrate run` are described only there. All commands have the options below `General`.";

/// Each command with its help.
fn commands() -> String {
    let mut page = format!("# Commands\n\n{MADE}\n\n{COMMANDS_INTRODUCTION}\n");
    let mut program = Arguments::program().term_width(HELP_WIDTH);
    program.build();
    let run = program.find_subcommand("run").unwrap().clone();
    write_command(&mut page, &program, "feedrate", &run);
    page
}

/// Writes the help of a command and its subcommands, without the options that are described at `run`.
fn write_command(page: &mut String, command: &Command, name: &str, run: &Command) {
    let is_shared = |argument: &Arg| {
        let is_option = argument.get_long().is_some() && !argument.is_hide_set();
        let mut known = run.get_arguments().filter(|known| known.get_id() == argument.get_id());
        let text = |argument: &Arg| argument.get_help().map(ToString::to_string);
        is_option && known.any(|known| text(known) == text(argument))
    };
    let mut shown = command.clone().bin_name(name);
    let mut note = String::new();
    if !["feedrate", "feedrate run"].contains(&name) {
        let shared = command.get_arguments().filter(|argument| is_shared(argument));
        let named = shared.filter(|argument| argument.get_help_heading() != Some("General"));
        let names: Vec<String> =
            named.filter_map(Arg::get_long).map(|long| format!("`--{long}`")).collect();
        if !names.is_empty() {
            note = format!("\nAs for `feedrate run`: {}.\n", names.join(", "));
        }
        // Without an override, `[OPTIONS]` disappears if all options are hidden.
        let usage = shown.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").to_string();
        shown = shown
            .override_usage(usage)
            .mut_args(|argument| if is_shared(&argument) { argument.hide(true) } else { argument });
    }
    // Exit codes are in the long help of the program; no other command has a long help.
    let help = if name == "feedrate" { shown.render_long_help() } else { shown.render_help() };
    let help = help.to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(page, "\n## {name}\n\n```text\n{}\n```\n{note}", help.join("\n").trim_end()).unwrap();
    while page.ends_with("\n\n") {
        page.pop();
    }
    for inner in command.get_subcommands() {
        let is_documented = !inner.is_hide_set() || NOT_IN_HELP.contains(&inner.get_name());
        if is_documented && inner.get_name() != "help" {
            write_command(page, inner, &format!("{name} {}", inner.get_name()), run);
        }
    }
}

fn workloads() -> String {
    let introduction = "YAML files that are part of the program; `feedrate list NAME` prints one.";
    table("Bundled workloads", introduction, ["workload", "stands for", "note"], {
        listed(ListedFamily::Workloads)
            .into_iter()
            .map(|workload| [code(&workload.name), workload.summary, workload.notes])
    })
}

/// The families with few members, such as formats, storages and loaders.
fn members() -> String {
    let mut page = format!(
        "# Built-in formats, storages, loaders and more\n\n{MADE}\n\n`feedrate list FAMILY` prints the same. The last column lists abilities or options.\n"
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
        for member in listed(family) {
            row(&mut page, &[code(&member.name), member.summary, member.notes]);
        }
    }
    page
}

fn metrics() -> String {
    let introduction = "Metrics of a run, as in `run`, `show`, `--json` (at the given path), `summary.json`, `--response` and on axes. [Numbers](../guide/numbers.md) explains the important ones.";
    let columns = ["metric", "definition", "unit", "good", "in JSON", "DLIO's name"];
    table("Metrics", introduction, columns, {
        METRICS.iter().map(|metric| {
            let good = match metric.better {
                Better::Higher => "high",
                Better::Lower => "low",
            };
            let reported = metric.reported_as.map_or_else(String::new, |(name, _)| code(name));
            [
                code(metric.label()),
                metric.meaning(),
                metric.unit.name().into(),
                good.into(),
                code(metric.path),
                reported,
            ]
        })
    })
}

fn doubts() -> String {
    let introduction = "Named reasons not to trust a number. `invalid`: the run must not be used; `warning`: the answer could change; `note`: context.";
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
    let introduction =
        "Draw one by `feedrate plot NAME PATH… -o FILE` (see [Plots](../guide/plots.md)).";
    table("Plots", introduction, ["plot", "shows", "other response"], {
        let responses = PLOTS.iter().map(|plot| {
            let names = plot.responses.iter().map(|metric| code(metric.id.name()));
            names.collect::<Vec<_>>().join(" or ")
        });
        listed(ListedFamily::Plots)
            .into_iter()
            .zip(responses)
            .map(|(plot, response)| [code(&plot.name), plot.summary, response])
    })
}

/// The exit codes in the program's help, as a table.
fn exit_codes() -> String {
    let (_, codes) = EXIT_CODES.split_once(": ").unwrap();
    table(
        "Exit codes",
        "`dlio_benchmark` also uses 255: more steps are configured than the data has.",
        ["code", "means"],
        {
            codes.trim_end_matches('.').split("; ").map(|entry| {
                let (code, means) = entry.split_once(' ').unwrap();
                [code.to_string(), means.to_string()]
            })
        },
    )
}

/// An example command for each object that `--json` prints, except in hidden commands.
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
program, and `schema`, its name and version. The version is raised when a key is removed or changes its meaning; keys may be added. Unknown values
are `null` or left out. `feedrate schema NAME` prints a JSON Schema, including inner objects; [schemas.json](schemas.json) has all of them.";

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
        let root = schema_of(schema);
        for (key, property) in root["properties"].as_object().unwrap() {
            if ["feedrate", "schema"].contains(&key.as_str()) {
                continue;
            }
            let meaning = property["description"].as_str().unwrap_or_default();
            let meaning = meaning.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            row(&mut page, &[code(key), kinds(property, &root).join(" or "), meaning]);
        }
    }
    page
}

/// Types of values that a schema allows, in words. References are resolved in `root`.
fn kinds(schema: &Value, root: &Value) -> Vec<String> {
    if let Some(inner) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        return kinds(root.pointer(inner).unwrap(), root);
    }
    if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array()) {
        let mut names: Vec<String> = choices.iter().flat_map(|inner| kinds(inner, root)).collect();
        names.dedup();
        return names;
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        Value::String(name) => vec![name.as_str()],
        _ if schema["const"].is_string() => vec!["string"],
        _ => vec!["any"],
    };
    types.into_iter().map(|name| if name == "string" { "text" } else { name }.into()).collect()
}

fn keys() -> String {
    let mut page = format!("# Keys of a workload\n\n{MADE}\n\n{KEYS_INTRODUCTION}\n");
    for (alias, section) in SECTION_ALIASES {
        writeln!(page, "The section `{section}` may also be called `{alias}`; if both set a key, `{alias}` wins.").unwrap();
    }
    let (ignored, keys): (Vec<&KeyInfo>, Vec<_>) =
        KEYS.iter().partition(|key| key.origin == Origin::Ignored);
    let mut section = None;
    for key in keys {
        let key_section = key.path.split_once('.').map_or("top level", |(section, _)| section);
        if section != Some(key_section) {
            writeln!(
                page,
                "\n## {key_section}\n\n| key | value | default | meaning | effect |\n|---|---|---|---|---|"
            )
            .unwrap();
            section = Some(key_section);
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
Hydra's forms: `++workload.reader.batch_size=4`, `+key=value`, `~key`, lists `[64,64]`, dictionaries `{mean:1.0,stdev:0.1}`.

Keys marked * are feedrate's own; the others are DLIO's. Keys whose effect is \"not built yet\" are accepted, and refused only if the
plan would use them. Bytes may be written with a unit, `8MiB` or `1.5GB`. A time is a number of seconds or a distribution:
`{mean: 0.3, stdev: 0.01}`, or with `type`: `normal` (`mean`, `stdev`), `uniform` (`min`, `max`), `gamma` (`shape`, `scale`),
`exponential` (`scale`), `poisson` (`lam`).
";

const KEYS_IGNORED: &str = "\n## without effect

Existing workload files contain these keys. DLIO ignores them; feedrate does too, with a warning.

| key | why it exists |
|---|---|
";

fn write_key(page: &mut String, key: &KeyInfo) {
    let mark = if key.origin == Origin::Feedrate { " *" } else { "" };
    let alias: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    let is_in_kind = key.unit.is_empty() || key.kind.contains(key.unit);
    let unit = if is_in_kind { String::new() } else { format!(", {}", key.unit) };
    let effect = match key.effect {
        Effect::Now => "yes".to_string(),
        Effect::NotYet { feature } => format!("not built yet: {feature}"),
        Effect::Nothing { reason } => format!("none: {reason}"),
    };
    let name = format!("`{}`{mark}{alias}", key.path);
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
