//! Turns usage errors into refusals with a suggestion. It knows misspelt names, former names, and the words of Hydra, PyTorch, fio and MLPerf
//! Storage.
//!
//! Long because it lists the words of other programs.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use feedrate_session::dlio::WORKLOAD_FOLDER;
use feedrate_session::recognise::refuse_other;
use feedrate_session::request::HYDRA_WORKLOAD;
use feedrate_session::resolve;
use feedrate_spec::bundled::{self, WORKLOADS};
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::alternatives;
use feedrate_spec::workload::{similar_names, with_full_key};
use std::ffi::OsString;
use std::path::Path;

/// Hydra's options for the folder of workloads.
const HYDRA_FOLDER_OPTIONS: [&str; 2] = ["--config-dir", "--config-path"];

/// Options of other tools, without dashes, and the hint for each. They apply to commands that take a workload.
const OPTIONS: &[(&[&str], &str)] = &[
    (&["dry-run"], "`feedrate plan WORKLOAD` shows what would run"),
    (
        &["gpus", "num-gpus", "num-accelerators", "np", "num-processes", "nproc", "numjobs"],
        "`-n N` is the number of accelerators",
    ),
    (&["accelerator-type"], "it is part of the workload's name: `unet3d_a100`, `unet3d_h100`"),
    (&["param", "params"], "a key needs no option: `dataset.num_files_train=1000`"),
    (
        &["model", "workload", "config", "config-name"],
        "the workload is the first word, as in `feedrate run unet3d_h100`",
    ),
    (
        &["data-dir", "data-path", "data-folder", "dataset", "directory", "filename"],
        "`--data DIR` is the folder of the datasets",
    ),
    (
        &["output", "output-dir", "out", "result-dir", "results-dir"],
        "`--results DIR` is the folder of the results",
    ),
    (
        &["drop-caches", "drop-cache", "no-cache", "invalidate"],
        "`--cold` starts each epoch without page cache",
    ),
    (&["direct"], "`reader.odirect=True` bypasses the page cache"),
    (&["bs", "blocksize", "block-size"], "`reader.transfer_size=64KiB` is the size of a read"),
    (&["iodepth", "threads", "j"], "`reader.read_threads=N` is the number of reading threads"),
    (&["runtime", "steps", "max-steps"], "`train.total_training_steps=N` is the length of a run"),
    (
        &["host", "hosts", "hostfile"],
        "use `mpirun` for several machines: `mpirun -host A,B feedrate run WORKLOAD`",
    ),
    (
        &["memory", "client-host-memory-in-gb"],
        "`feedrate plan` has it: `feedrate plan WORKLOAD --memory 256GiB --hosts H`",
    ),
    (&["format", "output-format"], "`--json` prints one JSON object"),
];

/// Options of earlier versions, without dashes, and the hint for each.
const OLD_OPTIONS: &[(&[&str], &str)] =
    &[(&["quiet-wait"], "leave it out: a run on a busy machine gets the doubt `device_not_quiet`")];

/// Commands of other tools, and the hint for each.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["datasize", "config", "configview"],
        "`feedrate plan WORKLOAD` shows the dataset and what would run",
    ),
    (&["datagen", "prepare", "create"], "`feedrate generate WORKLOAD` generates the dataset"),
    (
        &["train", "training", "start", "exec", "bench", "benchmark", "test", "checkpointing"],
        "`feedrate run WORKLOAD` runs a workload",
    ),
    (
        &["reportgen", "history", "results"],
        "`feedrate analyze DIR` and `feedrate report DIR` read results",
    ),
    (
        &["watch"],
        "in Python: `for batch in feedrate.watch(loader, data=DIR):`, of the module in `python/src`",
    ),
    (&["visualize", "visualise", "graph", "chart"], "`feedrate plot NAME DIR` draws results"),
];

/// Former commands, and the first words of the command line that replaces each.
const FORMER_COMMANDS: &[(&str, &str)] = &[
    ("verify", "feedrate generate --verify"),
    ("describe", "feedrate list"),
    ("whatif", "feedrate advise"),
    ("study slurm", "feedrate slurm"),
    ("study show", "feedrate study status"),
    ("tune", "feedrate advise --try --goal au"),
    ("postprocess", "dlio_postprocessor --output-folder"),
];

/// Hint for an argument of the former `tune` that `advise --try` does not have.
fn hint_for_tune(word: &str) -> Option<&'static str> {
    match word.split('=').next()? {
        "accelerators" | "--max" => {
            Some("`feedrate scale WORKLOAD` finds the number of accelerators")
        }
        "--goal" if word.ends_with("=accelerators") => hint_for_tune("accelerators"),
        "--keys" => Some(
            "`--keys` was removed: `feedrate advise WORKLOAD --try --also KEY=VALUE` tries a setting",
        ),
        _ => None,
    }
}

/// The command line that replaces a former command, such as `study show`, with the same arguments.
fn replacement_line(name: &str, words: &[String]) -> Option<String> {
    let (_, new) = FORMER_COMMANDS.iter().find(|(former, _)| *former == name)?;
    let (program, command) = new.split_once(' ')?;
    let name: Vec<&str> = name.split(' ').collect();
    let end = 1 + words.iter().position(|word| Some(&word.as_str()) == name.last())?;
    let mut arguments = words[end..].to_vec();
    let is_tune = name == ["tune"];
    let has_goal = arguments.iter().any(|word| word.split('=').next() == Some("--goal"));
    let command = if is_tune && has_goal { "advise --try" } else { command };
    let mut line = vec![program.to_string()];
    if program == "feedrate" {
        line.extend(words[1..end - 1].iter().filter(|word| **word != name[0]).cloned());
    } else {
        arguments.truncate(1);
    }
    line.extend(command.split(' ').map(str::to_string));
    // The first argument of `whatif` is a run, whose path may contain a `=`.
    let is_positional = |index: &usize| !arguments[*index].starts_with('-');
    let mut positional = (0..arguments.len()).filter(is_positional).skip(1);
    if name == ["whatif"]
        && let Some(index) = positional.find(|&index| arguments[index].contains('='))
    {
        arguments.insert(index, "--set".into());
    }
    line.extend(arguments);
    Some(bash_command(&line))
}

/// Turns an error of clap into a refusal, with a suggestion if there is one; `None` if clap shows help instead.
pub(super) fn usage_refusal(
    usage: &clap::Error,
    words: &[OsString],
    program: &Command,
) -> Option<Refusal> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = |kind| match usage.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let wrong_command = text(ContextKind::InvalidSubcommand);
    let wrong_option = text(ContextKind::InvalidArg).and_then(|option| option.split('=').next());
    let is_known = |word: &&String| {
        Some(word.as_str()) != wrong_command && word.split('=').next() != wrong_option
    };
    let known = words.iter().take_while(is_known);
    let called = CalledCommand::new(program, known);
    let path = &called.path;
    let unknown = |kind: &str, word: &str, suggestion: Option<String>| {
        let hint = suggestion.unwrap_or_else(|| format!("`{path} --help` lists its {kind}s"));
        Some(Refusal::new(format!("`{path}` has no {kind} `{word}`"), hint))
    };
    match (usage.kind(), text(ContextKind::InvalidArg), wrong_command) {
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ..) => None,
        (ErrorKind::UnknownArgument, Some(option), _) if option.starts_with('-') => {
            unknown("option", option, called.hint_for_option(option, &words))
        }
        (ErrorKind::UnknownArgument, Some(word), _) => {
            let hint = match called.command.get_name() {
                "show" => "`feedrate analyze` and `feedrate compare` read several runs".into(),
                _ => format!("`{path} --help` shows what it takes"),
            };
            Some(Refusal::new(format!("`{word}` is one argument too many for `{path}`"), hint))
        }
        (ErrorKind::MissingRequiredArgument, ..)
            if split_message(&usage.render().to_string()).0.contains("<WORKLOAD>") =>
        {
            let folder = if ["run", "plan", "diagnose"].contains(&called.command.get_name()) {
                ", or the folder of your own files with `--data DIR`"
            } else {
                ""
            };
            let hint = format!("give one of `feedrate list workloads` or a YAML file{folder}");
            Some(Refusal::new(format!("`{path}` needs a workload"), hint))
        }
        (ErrorKind::InvalidSubcommand, _, Some(word)) => {
            unknown("command", word, called.hint_for_command(word, &words))
        }
        _ => {
            let rendered = usage.render().to_string();
            let (message, rest) = split_message(&rendered);
            let lines = message.trim_start_matches("error: ").lines().map(str::trim);
            let suggested = text(ContextKind::SuggestedValue);
            let usage_line = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
            let hint = match (suggested, usage_line) {
                (Some(value), _) => format!("did you mean `{value}`?"),
                _ if usage.kind() == ErrorKind::ArgumentConflict => {
                    "leave out one of the two".into()
                }
                (None, Some(line)) => format!("write `{line}`"),
                (None, None) => format!("`{path} --help` explains it"),
            };
            Some(Refusal::new(Vec::from_iter(lines).join(" "), hint))
        }
    }
}

/// The message of a rendered error, and the rest.
fn split_message(rendered: &str) -> (&str, &str) {
    rendered.split_once("\n\n").unwrap_or((rendered, ""))
}

/// The innermost command on a command line.
struct CalledCommand<'p> {
    program: &'p Command,
    command: &'p Command,
    /// Program and command names, such as `feedrate study new`.
    path: String,
}

impl<'p> CalledCommand<'p> {
    fn new<'w>(program: &'p Command, words: impl Iterator<Item = &'w String>) -> Self {
        let mut called = CalledCommand { program, command: program, path: "feedrate".into() };
        for word in words.skip(1) {
            match called.command.find_subcommand(word) {
                Some(inner) => {
                    called.path = format!("{} {word}", called.path);
                    called.command = inner;
                }
                None if called.command.has_subcommands() => {}
                None => break,
            }
        }
        called
    }

    fn has_argument(&self, id: &str) -> bool {
        self.command.get_arguments().any(|argument| argument.get_id() == id)
    }

    /// Hint for an unknown option.
    fn hint_for_option(&self, option: &str, words: &[String]) -> Option<String> {
        let name = option.split('=').next().unwrap_or_default();
        let word = name.trim_start_matches('-').replace('_', "-");
        let command = words.iter().find(|word| self.command.find_subcommand(word).is_some());
        if let Some(command) = command {
            return Some(format!("write it after the command: `{} {command} {name}`", self.path));
        }
        if let Some(hint) = find_hint(OLD_OPTIONS, &word) {
            return Some(hint.into());
        }
        if ["max-size", "max-bytes"].contains(&word.as_str()) && self.has_argument("max_data") {
            return Some("did you mean `--max-data`?".into());
        }
        if self.has_argument("overrides") {
            if HYDRA_FOLDER_OPTIONS.contains(&name) {
                return Some(format!("the workload is a file: `{}`", without_hydra(words)));
            }
            let own = self.command.get_arguments().filter_map(Arg::get_long);
            let is_abbreviated = own.into_iter().any(|option| option.starts_with(&word));
            if let Some(hint) = find_hint(OPTIONS, &word).filter(|_| !is_abbreviated) {
                return Some(hint.into());
            }
            if let Some((_, key)) = with_full_key(&format!("{}=1", word.replace('-', "_"))) {
                return Some(format!(
                    "that is a key of the workload: `{key}=VALUE`, without dashes"
                ));
            }
        }
        let options = self.command.get_arguments().chain(self.program.get_arguments());
        let options = options.filter(|option| !option.is_hide_set()).filter_map(Arg::get_long);
        let options: Vec<&str> = options.collect();
        let mut names = similar_names(&word, options.iter().copied());
        if names.is_empty() {
            names = options.iter().copied().filter(|name| word.starts_with(name)).collect();
        }
        let names: Vec<String> = names.into_iter().map(|name| format!("--{name}")).collect();
        did_you_mean(&names)
    }

    /// Hint for an unknown command. It may be the name of a workload or the folder of a result.
    fn hint_for_command(&self, word: &str, words: &[String]) -> Option<String> {
        let path = &self.path;
        let name = format!("{path} {word}");
        if word == "tune"
            && let Some(hint) = words.iter().find_map(|word| hint_for_tune(word))
        {
            return Some(hint.into());
        }
        if name == "feedrate version" {
            return Some("`feedrate --version` prints the version".into());
        }
        if let Some(line) = replacement_line(name.trim_start_matches("feedrate "), words) {
            return Some(format!("write `{line}`"));
        }
        let commands = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut commands = similar_names(word, commands.map(Command::get_name)).into_iter();
        if self.command.get_name() != self.program.get_name() {
            return did_you_mean(&Vec::from_iter(commands.map(|name| format!("{path} {name}"))));
        }
        if resolve::is_run(word) {
            return Some(format!("`feedrate show {word}` shows this run"));
        }
        let workloads = similar_names(word, WORKLOADS.iter().map(|workload| workload.name));
        if word.contains('=') || Path::new(word).is_file() || workloads.contains(&word) {
            let run = ["feedrate".to_string(), "run".into()];
            let run = bash_command(&Vec::from_iter(run.iter().chain(words.iter().skip(1))));
            return Some(format!("`{run}` runs it"));
        }
        if let (true, Err(other)) = (Path::new(word).is_dir(), refuse_other(Path::new(word))) {
            return other.hint;
        }
        if let Some(hint) = find_hint(COMMANDS, word) {
            return Some(hint.into());
        }
        let mut lines: Vec<String> =
            commands.by_ref().map(|name| format!("feedrate {name}")).collect();
        lines.extend(workloads.iter().map(|workload| format!("feedrate run {workload}")));
        did_you_mean(&lines)
    }
}

fn did_you_mean(names: &[String]) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    alternatives(&names).map(|names| format!("did you mean {names}?"))
}

fn find_hint(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// Replaces Hydra's folder option and `workload=NAME` by the path of the workload's file.
fn without_hydra(words: &[String]) -> String {
    let mut folder = None;
    let mut kept = vec!["feedrate".to_string()];
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if !HYDRA_FOLDER_OPTIONS.contains(&name) {
            kept.push(word.clone());
        } else if value.is_empty() {
            folder = words.next().cloned();
        } else {
            folder = Some(value.to_string());
        }
    }
    for word in &mut kept {
        let Some(name) = word.strip_prefix(HYDRA_WORKLOAD) else { continue };
        let file = Path::new(folder.as_deref().unwrap_or("DIR")).join(WORKLOAD_FOLDER);
        let file = file.join(format!("{}.yaml", name.trim_end_matches(".yaml")));
        *word = match bundled::find(name) {
            Some(bundled) if !file.is_file() => bundled.name.to_string(),
            _ => file.display().to_string(),
        };
    }
    bash_command(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Arguments;
    use clap::CommandFactory;

    /// Checks the refusal of a command line, and its hint.
    #[track_caller]
    fn check(line: &str, says: &str, hint: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let parsed = Arguments::program().try_get_matches_from(&words);
        let error = usage_refusal(&parsed.unwrap_err(), &words, &Arguments::command()).unwrap();
        assert!(error.message.contains(says), "{line}: {error}");
        let actual = error.hint.unwrap();
        assert!(actual.contains(hint), "{line}: {actual}");
        assert!(!actual.contains("-- --"), "{actual}");
    }

    #[test]
    fn a_number_of_things_is_a_whole_number_of_at_least_one() {
        for (words, says) in [
            ("run w -n 0", "the smallest number is 1"),
            ("plan w -n 0", "the smallest number is 1"),
            ("scale w --max 0", "the smallest number is 1"),
            ("run w --workers 0", "the smallest number is 1"),
            ("run w -n eight", "it is not a whole number"),
            ("run w -n 1.5", "it is not a whole number"),
            ("run w --batch 64k", "it is not a number without a unit: write `64000`"),
            ("run w -n 8GiB", "it is not a whole number"),
            ("run w -n 5000000000", "the number is too large"),
            ("run w --batch 99999999999999999999", "the number is too large"),
            ("plan w --hosts 0", "the smallest number is 1"),
        ] {
            check(&format!("feedrate {words}"), says, "--help` explains it");
        }
    }

    #[test]
    fn a_second_run_for_show_gets_a_hint() {
        check("feedrate show a b", "`b` is one argument too many", "`feedrate compare`");
        check("feedrate version", "no command `version`", "`feedrate --version`");
        check("feedrate watch", "no command `watch`", "in Python: `for batch in feedrate.watch(");
    }

    #[test]
    fn options_of_other_tools_get_a_hint() {
        for (words, hint) in [
            (
                "--config-dir conf workload=mine ++workload.train.epochs=1",
                "`feedrate run conf/workload/mine.yaml ++workload.train.epochs=1`",
            ),
            (
                "--config-dir=conf workload=mine ++workload.train.epochs=1",
                "`feedrate run conf/workload/mine.yaml ++workload.train.epochs=1`",
            ),
            ("--config-path conf workload=quickstart", "a file: `feedrate run quickstart`"),
            ("w --num-workers 4", "a key of the workload: `reader.read_threads=VALUE`, without"),
            ("w --seed 3", "`train.seed=VALUE`"),
            ("w --num-accelerators 4", "`-n N`"),
            ("w --numjobs=4", "`-n N`"),
            ("w --bs=4k", "`reader.transfer_size=64KiB`"),
            ("w --direct 1", "`reader.odirect=True`"),
            ("w --iodepth 4", "`reader.read_threads=N`"),
            ("w --param dataset.num_files_train=10", "`dataset.num_files_train=1000`"),
            ("w --hosts a,b", "`mpirun -host A,B"),
            ("--model unet3d", "`feedrate run unet3d_h100`"),
            ("w --data_dir /tmp", "`--data DIR`"),
            ("w --drop-caches", "`--cold`"),
            ("w --acc 4", "`--accelerators`"),
            ("w --result x", "`--results`"),
            ("w --result-dir x", "`--results"),
            ("w --cold-cache", "`--cold`"),
            ("w --jso", "`--json`"),
            ("w --colour", "`--color`"),
            ("w --nothing-alike", "`feedrate run --help` lists its options"),
            ("w -x", "`feedrate run --help` lists its options"),
            ("w -n -4", "`feedrate run --help` lists its options"),
        ] {
            let option = words.split(' ').find(|word| word.starts_with('-') && *word != "-n");
            let option = option.unwrap().split('=').next().unwrap();
            check(&format!("feedrate run {words}"), &format!("no option `{option}`"), hint);
        }
        check(
            "feedrate scale w --max-size 3GB",
            "no option `--max-size`",
            "did you mean `--max-data`?",
        );
        check("feedrate plan w --host 2", "no option `--host`", "did you mean `--hosts`");
        let conflict = "feedrate run w --rehearse --repeat 3";
        check(conflict, "cannot be used with", "leave out one of the two");
        check("feedrate generate w --dry-run", "no option", "`feedrate plan WORKLOAD`");
        check("feedrate -n 4 run w", "no option `-n`", "after the command: `feedrate run -n`");
        check("feedrate report x --out y", "`feedrate report` has no option", "`--output`");
        check("feedrate study run --dryrun x", "`feedrate study run` has no", "`--dry-run`");
    }

    #[test]
    fn commands_of_other_tools_get_a_hint() {
        for (line, hint) in [
            ("datasize w", "`feedrate plan WORKLOAD`"),
            ("datagen w", "`feedrate generate WORKLOAD`"),
            ("training run w", "`feedrate run WORKLOAD`"),
            ("reportgen x", "`feedrate report DIR`"),
            ("visualize x", "`feedrate plot NAME DIR`"),
            ("analyse x", "did you mean `feedrate analyze`?"),
            ("unet3d", "`feedrate run unet3d_h100`"),
            ("quickstart -n 2", "`feedrate run quickstart -n 2` runs it"),
            ("workload=unet3d_h100 -n 2", "`feedrate run workload=unet3d_h100 -n 2`"),
            ("zzzzzz", "`feedrate --help` lists its commands"),
            ("-q verify w --data d", "`feedrate -q generate --verify w --data d`"),
            ("describe doubts 'a b'", "`feedrate list doubts"),
            ("whatif r=1 a=1 b=2 -n 4", "`feedrate advise r=1 --set a=1 b=2 -n 4`"),
            ("whatif r --table", "`feedrate advise r --table`"),
            ("tune w", "`feedrate advise --try --goal au w`"),
            ("tune w --goal throughput", "`feedrate advise --try w --goal throughput`"),
            ("tune w --goal accelerators", "`feedrate scale WORKLOAD` finds the number"),
            ("tune w --keys reader.read_threads", "`--keys` was removed"),
            ("postprocess r -o -", "`dlio_postprocessor --output-folder r`"),
        ] {
            check(&format!("feedrate {line}"), "`feedrate` has no command", hint);
        }
        check(
            "feedrate study slurm s.csv --time 9",
            "`feedrate study` has no",
            "`feedrate slurm s.csv",
        );
        check(
            "feedrate study show s.csv #1",
            "no command `show`",
            "`feedrate study status s.csv '#1'`",
        );
        check("feedrate study statuss x", "`feedrate study` has no", "`feedrate study status`");
    }

    #[test]
    fn other_usage_errors_have_a_hint() {
        check("feedrate compare a", "<B>", "`feedrate compare <A> <B>`");
        check("feedrate completions bsh", "bsh", "did you mean `bash`?");
        check("feedrate run w -n four", "invalid value 'four'", "`feedrate run --help`");
    }

    #[test]
    fn keys_and_commands_in_hints_exist() {
        let keys = OPTIONS.iter().flat_map(|(_, hint)| hint.split('`').skip(1).step_by(2));
        for key in keys.filter(|key| key.contains('.')) {
            let key = key.split('=').next().unwrap();
            assert!(feedrate_spec::workload::KEYS.iter().any(|known| known.path == key), "{key}");
        }
        let program = Arguments::command();
        for (former, new) in FORMER_COMMANDS {
            assert!(program.find_subcommand(former).is_none(), "{former}");
            let command = new.strip_prefix("feedrate ").and_then(|rest| rest.split(' ').next());
            assert!(command.is_none_or(|name| program.find_subcommand(name).is_some()), "{new}");
        }
        for (words, hint) in COMMANDS {
            let name = hint.split("`feedrate ").nth(1).and_then(|rest| rest.split(' ').next());
            // A hint may name Python's module instead of a command.
            assert!(name.is_none_or(|name| program.find_subcommand(name).is_some()), "{hint}");
            assert!(words.iter().all(|word| program.find_subcommand(word).is_none()), "{words:?}");
        }
    }
}
