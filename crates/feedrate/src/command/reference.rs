//! Generates the pages of docs/reference from the tables of the program, and tests that they are up to date.
//!
//! To add a page: a function that returns its text, a row in [`PAGES`], a line in docs/SUMMARY.md.

use super::list::{ListedFamily, listed};
use super::{Arguments, EXIT_CODES};
use clap::{Arg, Command};
use feedrate_measure::doubt::{self, DoubtKind, Severity};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{Better, METRICS};
use feedrate_report::output::Schema;
use feedrate_report::plot::PLOTS;
use feedrate_spec::workload::{Effect, KEYS, KeyInfo, Origin, SECTION_ALIASES};
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

const GENERATED_MARK: &str = "<!-- Generated: UPDATE_DOCS=1 cargo test -p feedrate reference -->";
/// Commands that are documented but hidden in the program's help, since packages and other programs call them.
const NOT_IN_HELP: [&str; 4] = ["help", "schema", "completions", "man"];
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

/// Each command with its help. Options that several commands share are described once.
fn commands() -> String {
    let mut program = Arguments::program().term_width(HELP_WIDTH);
    program.build();
    let shared = shared_options(&program);
    let mut page = format!(
        "# Commands\n\n{GENERATED_MARK}\n\n`feedrate help all` lists the commands by purpose; `feedrate COMMAND --help` has examples, `--help-all` rare options too.\n"
    );
    write_commands(&mut page, &program, "feedrate", &shared, &all_options(&program));
    page.push_str(SHARED_INTRODUCTION);
    let mut headings: Vec<&str> = Vec::new();
    for option in &shared {
        let heading = option.get_help_heading().unwrap_or("Options");
        if !headings.contains(&heading) {
            headings.push(heading);
            writeln!(page, "\n### {heading}\n").unwrap();
            let is_here = |option: &&Arg| option.get_help_heading().unwrap_or("Options") == heading;
            shared.iter().filter(is_here).for_each(|option| write_option(&mut page, option));
        }
    }
    page
}

const SHARED_INTRODUCTION: &str =
    "\n## Options of several commands\n\nEvery command has the options under General.\n";
/// Commands that pass on the options of other commands.
const FORWARDING_COMMANDS: [&str; 1] = ["slurm"];
/// Replaces the list of the options that such a command passes on.
const PASSED_ON: &str =
    "\nThe options of `run` are passed on; for a study, those of `study run`.\n";
/// Heading of the options that every command has.
const GENERAL: &str = "General";

fn write_option(page: &mut String, option: &Arg) {
    let value_names = option.get_value_names().filter(|_| option.get_action().takes_values());
    let values: Vec<String> =
        value_names.unwrap_or_default().iter().map(ToString::to_string).collect();
    let short = option.get_short().map_or_else(String::new, |short| format!("-{short}, "));
    let name = match option.get_long() {
        Some(long) if values.is_empty() => format!("{short}--{long}"),
        Some(long) => format!("{short}--{long} <{}>", values.join("> <")),
        None => format!("[{}]", values.join("] [")),
    };
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults = option.get_default_values();
    let is_shown = option.get_action().takes_values()
        && !defaults.is_empty()
        && !option.is_hide_default_value_set();
    let default =
        if is_shown { format!(" [default: {}]", defaults[0].display()) } else { String::new() };
    item(page, &code(&name), "", &format!("{help}{default}"));
}

/// Whether two commands describe an option in the same way.
fn is_same_option(first: &Arg, second: &Arg) -> bool {
    let text = |option: &Arg| option.get_help().map(ToString::to_string);
    let values = |option: &Arg| format!("{:?}", option.get_default_values());
    let is_same_name = match first.get_long() {
        Some(long) => second.get_long() == Some(long),
        None => second.get_long().is_none() && first.get_id() == second.get_id(),
    };
    is_same_name && text(first) == text(second) && values(first) == values(second)
}

/// Options that at least two commands describe in the same way.
fn shared_options(program: &Command) -> Vec<Arg> {
    let all = all_options(program);
    let mut shared: Vec<Arg> = Vec::new();
    for option in &all {
        let commands = all.iter().filter(|other| is_same_option(option, other)).count();
        if commands > 1 && !shared.iter().any(|known| known.get_id() == option.get_id()) {
            shared.push(option.clone());
        }
    }
    shared
}

/// The options of all commands, except of commands that pass them on.
fn all_options(program: &Command) -> Vec<Arg> {
    let is_source = |command: &&Command| !FORWARDING_COMMANDS.contains(&command.get_name());
    let commands = documented_commands(program).into_iter().filter(is_source);
    let is_shown = |option: &&Arg| !option.is_hide_set();
    commands.flat_map(|command| command.get_arguments().filter(is_shown).cloned()).collect()
}

/// The commands below `command` that the reference documents, at any depth.
fn documented_commands(command: &Command) -> Vec<&Command> {
    let is_documented =
        |inner: &&Command| !inner.is_hide_set() || NOT_IN_HELP.contains(&inner.get_name());
    let inner = command.get_subcommands().filter(is_documented);
    inner.flat_map(|inner| std::iter::once(inner).chain(documented_commands(inner))).collect()
}

/// Writes the help of a command and of its subcommands. A command that passes on options leaves out the options in `forwarded`.
fn write_command(
    page: &mut String,
    command: &Command,
    name: &str,
    shared: &[Arg],
    forwarded: &[Arg],
) {
    let mut shown = command.clone().bin_name(name);
    let is_passed_on = FORWARDING_COMMANDS.contains(&command.get_name());
    let mut shared_names: Vec<String> = Vec::new();
    shown = shown.clone().override_usage(usage(&mut shown));
    let left_out = if is_passed_on { forwarded } else { shared };
    for option in command.get_arguments() {
        if left_out.iter().any(|known| is_same_option(known, option)) {
            shown = shown.mut_arg(option.get_id(), |option| option.hide(true));
            let is_general = option.get_help_heading() == Some(GENERAL);
            let long = option.get_long().filter(|_| !is_general);
            shared_names.extend(long.map(|long| code(&format!("--{long}"))));
        }
    }
    let exit_codes = exit_codes_of(command);
    let help = trim_lines(&shown.after_help(exit_codes).render_help().to_string());
    writeln!(page, "\n## {name}\n\n```text\n{help}\n```").unwrap();
    if is_passed_on {
        page.push_str(PASSED_ON);
    } else if !shared_names.is_empty() {
        writeln!(page, "\n[Shared](#options-of-several-commands): {}", shared_names.join(", "))
            .unwrap();
    }
    write_commands(page, command, name, shared, forwarded);
}

/// Writes the help of the documented subcommands of a command.
fn write_commands(
    page: &mut String,
    command: &Command,
    name: &str,
    shared: &[Arg],
    forwarded: &[Arg],
) {
    for inner in command.get_subcommands() {
        if documented_commands(command).iter().any(|known| known.get_name() == inner.get_name()) {
            write_command(page, inner, &format!("{name} {}", inner.get_name()), shared, forwarded);
        }
    }
}

/// The exit codes in the help of a command. Its examples and explanations are in the guides.
fn exit_codes_of(command: &Command) -> String {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let codes = text.split("\n\n").find(|paragraph| paragraph.starts_with("Exit codes:"));
    codes.unwrap_or_default().to_string()
}

/// The usage line without its heading.
fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    usage.trim_start_matches("Usage: ").to_string()
}

/// The text without spaces at line ends, and without blank lines at its start and end.
fn trim_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_string()
}

fn workloads() -> String {
    let introduction = "Each is a YAML file in the program; `feedrate list NAME` prints it. In parentheses is the status of MLPerf Storage's workloads ([meaning](../task/mlperf.md)).";
    let mut page = format!("# Bundled workloads\n\n{GENERATED_MARK}\n\n{introduction}\n\n");
    for workload in listed(ListedFamily::Workloads) {
        let summary = workload.summary.trim_start_matches("MLPerf Storage's ");
        item(&mut page, &code(&workload.name), &workload.notes, summary);
    }
    page
}

/// The families with few members, such as formats, storages and loaders.
fn members() -> String {
    let mut page = format!(
        "# Built-in formats, storages, loaders and more\n\n{GENERATED_MARK}\n\n`feedrate list FAMILY` prints the same; `feedrate list advice` prints the rules of advice with their sources. The guide lists [measured clients](../guide/client.md#measured-clients).\n"
    );
    for (title, introduction, family) in [
        ("Formats", "Values of `dataset.format`", ListedFamily::Formats),
        ("Storages", "Values of `storage.storage_type`", ListedFamily::Storages),
        ("Engines", "Values of `storage.engine`", ListedFamily::Engines),
        ("Loaders", "Values of `reader.data_loader`", ListedFamily::Loaders),
        ("Computes", "Values of `compute`", ListedFamily::Computes),
        ("Checkpoint formats", "Values of `checkpoint.format`", ListedFamily::Checkpoints),
        ("Launches", "Values of `study run --launch`", ListedFamily::Launches),
        (
            "Designs",
            "Values of `study new --design`, with their options in parentheses",
            ListedFamily::Designs,
        ),
        ("Verdicts", "What limits a run; `--fail-on` takes these names", ListedFamily::Verdicts),
    ] {
        let members = listed(family);
        writeln!(page, "\n## {title}\n\n{introduction}.").unwrap();
        page.push('\n');
        for member in members {
            let notes = if family == ListedFamily::Designs { member.notes } else { String::new() };
            item(&mut page, &code(&member.name), &notes, &member.summary);
        }
    }
    page
}

fn metrics() -> String {
    let mut page = format!("# Metrics\n\n{GENERATED_MARK}\n\n{METRICS_INTRODUCTION}");
    for (title, better) in
        [("Higher is better", Better::Higher), ("Lower is better", Better::Lower)]
    {
        writeln!(page, "\n## {title}\n").unwrap();
        for metric in METRICS.iter().filter(|metric| metric.better == better) {
            let reported = metric
                .reported_as
                .map_or_else(String::new, |(name, _)| format!(", DLIO's {}", code(name)));
            let details = format!("{}, {}{reported}", metric.unit.name(), code(metric.path));
            item(
                &mut page,
                &code(metric.label()),
                &details,
                &format!("{}.", metric.definition.replace(", over accelerators and epochs", "")),
            );
        }
    }
    page
}

const METRICS_INTRODUCTION: &str = "Numbers of a run, in `run`, `show`, `--json`, `summary.json`, `--response` and on axes. Counts are over all accelerators and epochs. In parentheses are the unit, the path in JSON and DLIO's
name; `feedrate list NAME` also prints the source. [The numbers](../guide/numbers.md) explains the important ones.
";

fn doubts() -> String {
    let introduction = "Named reasons not to trust a number, with remedies. `invalid`: the run must not be used; `warning`: the answer could change; `note`: context. `feedrate list NAME` explains one in full.";
    let mut page = format!("# Doubts\n\n{GENERATED_MARK}\n\n{introduction}\n");
    let records: Vec<&DoubtKind> = doubt::DOUBTS.iter().map(|doubt| &doubt.kind).collect();
    // Doubts of the same kind are listed once.
    let is_new = |kind: &&DoubtKind| records.iter().all(|known| known.meaning != kind.meaning);
    let results = feedrate_results::doubt::DOUBTS.iter().map(|doubt| &doubt.kind);
    let results = results.filter(is_new).collect();
    for (title, kinds) in [("Runs of feedrate", records), ("Results read back", results)] {
        writeln!(page, "\n## {title}").unwrap();
        for severity in [Severity::Invalid, Severity::Warning, Severity::Note] {
            writeln!(page, "\n**{}**\n", severity.name()).unwrap();
            for kind in kinds.iter().filter(|kind| kind.severity == severity) {
                let advice = with_capital(&Facts::default().render(kind.advice));
                // A note needs no remedy.
                let advice = match severity {
                    Severity::Note => "",
                    _ => first_clause(&advice, &[". ", "; "]),
                };
                let advice = if advice.is_empty() { String::new() } else { format!(" {advice}.") };
                let meaning = first_clause(kind.meaning, &[". ", ": "]);
                item(&mut page, &code(kind.name), "", &format!("{meaning}.{advice}"));
            }
        }
    }
    page
}

/// The text with a capital first letter.
fn with_capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn plots() -> String {
    let introduction = "`feedrate plot NAME PATH… -o FILE`; [Plots](../guide/plots.md) shows how. In parentheses are other responses.";
    let mut page = format!("# Plots\n\n{GENERATED_MARK}\n\n{introduction}\n\n");
    for (plot, shown) in PLOTS.iter().zip(listed(ListedFamily::Plots)) {
        let names: Vec<String> =
            plot.responses.iter().map(|metric| code(metric.id.name())).collect();
        item(&mut page, &code(&shown.name), &names.join(", "), &shown.summary);
    }
    page
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

/// An example command, without `--json`, for each object that `--json` prints, except in hidden commands.
const PRINTED_BY: [(&str, &str); 29] = [
    ("run", "feedrate run quickstart"),
    ("plan", "feedrate plan quickstart"),
    ("generate", "feedrate generate quickstart"),
    ("verify", "feedrate generate quickstart --verify"),
    ("scan", "feedrate scan photos"),
    ("scale", "feedrate scale quickstart"),
    ("scale_dry_run", "feedrate scale quickstart --dry-run"),
    ("diagnose", "feedrate diagnose quickstart"),
    ("advise", "feedrate advise results/quickstart/RUN"),
    ("trials", "feedrate advise quickstart --try"),
    ("repeat", "feedrate run quickstart --repeat 3"),
    ("rehearsal", "feedrate run retinanet_b200 --rehearse"),
    ("whatif", "feedrate advise results/quickstart/RUN --set reader.read_threads=4"),
    ("analyze", "feedrate analyze results"),
    ("compare", "feedrate compare results/nfs results/lustre"),
    ("compare_logs", "feedrate compare results/quickstart/RUN job.strace"),
    ("report", "feedrate report results"),
    ("plot", "feedrate plot stall results"),
    ("import", "feedrate import job.strace"),
    ("calibrate", "feedrate calibrate train.py:make_dataset"),
    ("study_new", "feedrate study new design.toml"),
    ("study_dry_run", "feedrate study run study.csv --dry-run"),
    ("study_run", "feedrate study run study.csv"),
    ("study_status", "feedrate study status study.csv"),
    ("study_show", "feedrate study status study.csv '#1'"),
    ("list", "feedrate list formats"),
    ("describe", "feedrate list read_threads"),
    ("system", "feedrate system"),
    ("clean", "feedrate clean results"),
];

const JSON_INTRODUCTION: &str = "`--json` prints one object on stdout, on one line; notes and errors go to stderr. Each object begins with `feedrate`, the version of the
program, and `schema`, its name and version. The version is raised when a key is removed or changes its meaning; keys may be added. Unknown values
are `null` or left out. `feedrate schema NAME` prints the JSON Schema, with the type and meaning of each key; [schemas.json](schemas.json)
has all schemas. The objects, each with a command that prints it with `--json`:";

/// Each object that `--json` prints, with a command that prints it.
fn json() -> String {
    let mut page = format!("# JSON\n\n{GENERATED_MARK}\n\n{JSON_INTRODUCTION}\n\n");
    let known: BTreeSet<&str> = PRINTED_BY.iter().map(|(name, _)| *name).collect();
    let shown = Schema::ALL.map(Schema::name).into_iter().filter(|name| *name != "bench");
    assert_eq!(known, shown.collect());
    for (name, command) in PRINTED_BY {
        let schema = Schema::from_name(name).unwrap();
        item(&mut page, &code(&schema.versioned()), "", &code(command));
    }
    page
}

fn keys() -> String {
    let mut page = format!("# Keys of a workload\n\n{GENERATED_MARK}\n\n{KEYS_INTRODUCTION}\n");
    for (alias, section) in SECTION_ALIASES {
        writeln!(page, "The section `{section}` may also be called `{alias}`; if both set a key, `{alias}` wins.").unwrap();
    }
    let (ignored, keys): (Vec<&KeyInfo>, Vec<_>) =
        KEYS.iter().partition(|key| key.origin == Origin::Ignored);
    let (unused, used): (Vec<&KeyInfo>, Vec<_>) =
        keys.into_iter().partition(|key| matches!(key.effect, Effect::Nothing { .. }));
    let section_of = |key: &KeyInfo| key.path.split_once('.').map_or("top level", |(name, _)| name);
    let mut sections: Vec<&str> = Vec::new();
    for key in &used {
        if !sections.contains(&section_of(key)) {
            sections.push(section_of(key));
        }
    }
    for section in sections {
        writeln!(page, "\n## {section}\n").unwrap();
        used.iter()
            .filter(|key| section_of(key) == section)
            .for_each(|key| write_key(&mut page, key));
    }
    page.push_str(KEYS_UNUSED);
    let names = unused.into_iter().chain(ignored).map(key_name);
    writeln!(page, "{}.", Vec::from_iter(names).join(", ")).unwrap();
    page
}

const KEYS_INTRODUCTION: &str = "A workload is a YAML file of these keys; `feedrate list KEY` explains one in full. Each can be overridden on the command line, as `reader.batch_size=4` or in
Hydra's forms: `++workload.reader.batch_size=4`, `+key=value`, `~key`, lists `[64,64]`, dictionaries `{mean:1.0,stdev:0.1}`.

In parentheses are type, unit and default. Keys marked \\* belong to feedrate, the others to DLIO. Keys that are \"not built yet\" are accepted, and refused only where the
plan would use them. Bytes may have a unit, `8MiB` or `1.5GB`. A time is a number of seconds or a distribution:
`{mean: 0.3, stdev: 0.01}`, or with `type`: `normal` (`mean`, `stdev`), `uniform` (`min`, `max`), `gamma` (`shape`, `scale`),
`exponential` (`scale`), `poisson` (`lam`).
";

const KEYS_UNUSED: &str = "\n## without effect

Workloads for DLIO contain these keys. feedrate accepts them, with a warning if they are set; `feedrate list KEY` gives the reason.

";

fn write_key(page: &mut String, key: &KeyInfo) {
    let is_in_kind = key.unit.is_empty() || key.kind.contains(key.unit);
    let unit = if is_in_kind { String::new() } else { format!(", {}", key.unit) };
    let effect = match key.effect {
        Effect::NotYet { feature } => format!(" Not built yet: {feature}."),
        Effect::Now | Effect::Nothing { .. } => String::new(),
    };
    let kind = key.kind.replace("whole number", "integer");
    let kind = if key.default == "null" { without_null(&kind) } else { &kind };
    let value = format!("{kind}{unit}, {}", code(key.default));
    item(page, &key_name(key), &value, &format!("{}.{effect}", first_clause(key.meaning, &[". "])));
}

/// The start of an explanation up to one of `ends`, without a full stop. `feedrate list NAME` prints it in full.
fn first_clause<'t>(text: &'t str, ends: &[&str]) -> &'t str {
    let shortest = ends.iter().filter_map(|end| Some(text.split_once(end)?.0));
    shortest.min_by_key(|start| start.len()).unwrap_or(text).trim_end_matches('.')
}

/// The type of a key without `null`, which its default shows.
fn without_null(kind: &str) -> &str {
    let kind = kind.strip_suffix("or null").unwrap_or(kind);
    kind.trim_end_matches([' ', ','])
}

/// The key with a mark if it is feedrate's, and its aliases.
fn key_name(key: &KeyInfo) -> String {
    let mark = if key.origin == Origin::Feedrate { "\\*" } else { "" };
    let alias: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    format!("`{}`{mark}{alias}", key.path)
}

fn table<const N: usize>(
    title: &str,
    introduction: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut page = format!("# {title}\n\n{GENERATED_MARK}\n\n{introduction}\n\n");
    row(&mut page, &columns.map(String::from));
    row(&mut page, &columns.map(|_| "---".to_string()));
    rows.for_each(|cells| row(&mut page, &cells));
    page
}

fn row(page: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(page, "| {} |", cells.join(" | ")).unwrap();
}

/// A line of a list: a name, details in parentheses, and its meaning.
fn item(page: &mut String, name: &str, details: &str, meaning: &str) {
    let details = if details.is_empty() { String::new() } else { format!(" ({details})") };
    let meaning = if meaning.is_empty() { String::new() } else { format!(": {meaning}") };
    writeln!(page, "- {name}{details}{meaning}").unwrap();
}

fn code(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("`{name}`") }
}
