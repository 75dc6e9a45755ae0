//! Commands and options that are none of ours, and what was meant: misspelt names, words of Hydra, PyTorch, fio and MLPerf Storage.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use feedrate_session::bundled::{self, WORKLOADS};
use feedrate_session::recognise::refuse_other;
use feedrate_session::request::HYDRA_WORKLOAD;
use feedrate_session::resolve;
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::{Refusal, alternatives};
use feedrate_spec::workload::{similar_names, with_full_key};
use std::ffi::OsString;
use std::path::Path;

/// Folders in which Hydra looks for workloads.
const HYDRA_FOLDERS: [&str; 2] = ["--config-dir", "--config-path"];

/// Options of other tools, without dashes, and what stands for them where a workload is given.
const OPTIONS: &[(&[&str], &str)] = &[
    (&["dry-run"], "`feedrate plan WORKLOAD` shows what would run"),
    (
        &["gpus", "num-gpus", "num-accelerators", "np", "num-processes", "nproc", "numjobs"],
        "`-n N` is the number of accelerators",
    ),
    (&["accelerator-type"], "the workload's name tells it: `unet3d_a100`, `unet3d_h100`"),
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
        "`--cold` begins each epoch without page cache",
    ),
    (&["direct"], "`reader.odirect=True` reads past the page cache"),
    (&["bs", "blocksize", "block-size"], "`reader.transfer_size=64KiB` is the size of a read"),
    (&["iodepth", "threads", "j"], "`reader.read_threads=N` is the number of reading threads"),
    (&["runtime", "steps", "max-steps"], "`train.total_training_steps=N` is the length of a run"),
    (
        &["host", "hosts", "hostfile"],
        "`mpirun` starts it on several machines, as in `mpirun -host A,B feedrate run WORKLOAD`",
    ),
    (&["format", "output-format"], "`--json` prints one JSON object"),
];

/// Options of earlier versions, without dashes, and why they are gone.
const OLD_OPTIONS: &[(&[&str], &str)] = &[(
    &["quiet-wait"],
    "leave it out: a run does not wait, and has the doubt `device_not_quiet` where it begins on a busy machine",
)];

/// Commands of other tools, and ours.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["datasize", "config", "configview"],
        "`feedrate plan WORKLOAD` shows the dataset and all that would run",
    ),
    (&["datagen", "prepare", "create"], "`feedrate generate WORKLOAD` makes the dataset"),
    (
        &["train", "training", "start", "exec", "bench", "benchmark", "test", "checkpointing"],
        "`feedrate run WORKLOAD` runs a workload",
    ),
    (
        &["reportgen", "history", "results"],
        "`feedrate analyze DIR` and `feedrate report DIR` read results",
    ),
    (&["visualize", "visualise", "graph", "chart"], "`feedrate plot NAME DIR` draws results"),
];

/// Former names of commands, and the beginning of the line that replaces each.
const FORMER: &[(&str, &str)] = &[
    ("verify", "feedrate generate --verify"),
    ("describe", "feedrate list"),
    ("whatif", "feedrate advise"),
    ("study slurm", "feedrate slurm"),
    ("study show", "feedrate study status"),
    ("tune", "feedrate advise --try --goal au"),
    ("postprocess", "dlio_postprocessor --output-folder"),
];

/// A remedy for what `tune` had and `advise --try` has not.
fn lost_of_tune(word: &str) -> Option<&'static str> {
    match word.split('=').next()? {
        "accelerators" | "--max" => {
            Some("`feedrate scale WORKLOAD` finds the number of accelerators that are fed")
        }
        "--goal" if word.ends_with("=accelerators") => lost_of_tune("accelerators"),
        "--keys" => Some(
            "`--keys` is gone: `feedrate advise WORKLOAD --try --also KEY=VALUE` tries a setting",
        ),
        _ => None,
    }
}

/// The line that replaces one with a former name of a command, such as `study show`, with the same arguments.
fn replacement(name: &str, words: &[String]) -> Option<String> {
    let (_, new) = FORMER.iter().find(|(former, _)| *former == name)?;
    let (program, command) = new.split_once(' ')?;
    let name: Vec<&str> = name.split(' ').collect();
    let end = 1 + words.iter().position(|word| Some(&word.as_str()) == name.last())?;
    if program == "feedrate" && words[1..end].iter().any(|word| word == "help") {
        let path = command.split(' ').take_while(|word| !word.starts_with('-'));
        return Some(format!("feedrate help {}", Vec::from_iter(path).join(" ")));
    }
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
    // The first word of `whatif` is a run, whose path may have a `=` too.
    let mut positional = (0..arguments.len()).filter(|&at| !arguments[at].starts_with('-')).skip(1);
    if name == ["whatif"]
        && let Some(at) = positional.find(|&at| arguments[at].contains('='))
    {
        arguments.insert(at, "--set".into());
    }
    line.extend(arguments);
    Some(bash_command(&line))
}

/// Complaint of clap in our words, with what was meant where that is known; `None` where it shows help instead.
pub(super) fn complaint(
    usage: &clap::Error,
    words: &[OsString],
    program: &Command,
) -> Option<Refusal> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = |kind| match usage.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let wrong = text(ContextKind::InvalidSubcommand);
    let wrong_option = text(ContextKind::InvalidArg).and_then(|option| option.split('=').next());
    let is_known =
        |word: &&String| Some(word.as_str()) != wrong && word.split('=').next() != wrong_option;
    let known = words.iter().take_while(is_known);
    let called = CalledCommand::new(program, known);
    let path = &called.path;
    let unknown = |what: &str, word: &str, meant: Option<String>| {
        let hint = meant.unwrap_or_else(|| format!("`{path} --help` lists its {what}s"));
        Some(Refusal::new(format!("`{path}` has no {what} `{word}`"), hint))
    };
    match (usage.kind(), text(ContextKind::InvalidArg), wrong) {
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ..) => None,
        (ErrorKind::UnknownArgument, Some(option), _) if option.starts_with('-') => {
            unknown("option", option, called.option_for(option, &words))
        }
        (ErrorKind::InvalidSubcommand, _, Some(word)) => {
            unknown("command", word, called.command_for(word, &words))
        }
        _ => {
            let told = usage.render().to_string();
            let (says, rest) = told.split_once("\n\n").unwrap_or((&told, ""));
            let says = says.trim_start_matches("error: ").lines().map(str::trim);
            let says: Vec<&str> = says.collect();
            let meant = text(ContextKind::SuggestedValue);
            let shown = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
            let hint = match (meant, shown) {
                (Some(value), _) => format!("did you mean `{value}`?"),
                (None, Some(shown)) => format!("write `{shown}`"),
                (None, None) => format!("`{path} --help` explains it"),
            };
            Some(Refusal::new(says.join(" "), hint))
        }
    }
}

/// The innermost command that a line names.
struct CalledCommand<'p> {
    program: &'p Command,
    command: &'p Command,
    /// `feedrate study new`.
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

    fn takes(&self, id: &str) -> bool {
        self.command.get_arguments().any(|argument| argument.get_id() == id)
    }

    /// The option that was meant by one that is none.
    fn option_for(&self, option: &str, words: &[String]) -> Option<String> {
        let name = option.split('=').next().unwrap_or_default();
        let word = name.trim_start_matches('-').replace('_', "-");
        let behind = words.iter().find(|word| self.command.find_subcommand(word).is_some());
        if let Some(behind) = behind {
            let says = "options stand behind the command";
            return Some(format!("{says}, as in `{} {behind} {name}`", self.path));
        }
        if let Some(gone) = of_others(OLD_OPTIONS, &word) {
            return Some(gone.into());
        }
        if self.takes("overrides") {
            if HYDRA_FOLDERS.contains(&name) {
                return Some(format!("the workload is a file: `{}`", without_hydra(words)));
            }
            if let Some(known) = of_others(OPTIONS, &word) {
                return Some(known.into());
            }
            if let Some((_, key)) = with_full_key(&format!("{}=1", word.replace('-', "_"))) {
                let says = "that is a key of the workload";
                return Some(format!("{says}: `{key}=VALUE`, without dashes"));
            }
        }
        let options = self.command.get_arguments().chain(self.program.get_arguments());
        let options = options.filter(|option| !option.is_hide_set()).filter_map(Arg::get_long);
        let options: Vec<&str> = options.collect();
        let begun = options.iter().filter(|own| word.starts_with(**own)).copied();
        let mut meant = similar_names(&word, options.iter().copied());
        meant = if meant.is_empty() { begun.collect() } else { meant };
        let meant: Vec<String> = meant.into_iter().map(|own| format!("--{own}")).collect();
        did_you_mean(&meant)
    }

    /// The command that was meant by one that is none: a workload is run, a result shown.
    fn command_for(&self, word: &str, words: &[String]) -> Option<String> {
        let path = &self.path;
        let name = format!("{path} {word}");
        if word == "tune"
            && let Some(hint) = words.iter().find_map(|word| lost_of_tune(word))
        {
            return Some(hint.into());
        }
        if let Some(line) = replacement(name.trim_start_matches("feedrate "), words) {
            return Some(format!("write `{line}`"));
        }
        let commands = self.command.get_subcommands().filter(|own| !own.is_hide_set());
        let mut commands = similar_names(word, commands.map(Command::get_name)).into_iter();
        if self.command.get_name() != self.program.get_name() {
            return did_you_mean(&Vec::from_iter(commands.map(|own| format!("{path} {own}"))));
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
        if let Some(known) = of_others(COMMANDS, word) {
            return Some(known.into());
        }
        let mut meant: Vec<String> =
            commands.by_ref().map(|own| format!("feedrate {own}")).collect();
        meant.extend(workloads.iter().map(|workload| format!("feedrate run {workload}")));
        did_you_mean(&meant)
    }
}

fn did_you_mean(names: &[String]) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    alternatives(&names).map(|names| format!("did you mean {names}?"))
}

fn of_others(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, meant)| *meant)
}

/// The same command, with the path of the workload's file.
fn without_hydra(words: &[String]) -> String {
    let (mut folder, mut kept) = (None, vec!["feedrate".to_string()]);
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if !HYDRA_FOLDERS.contains(&name) {
            kept.push(word.clone());
        } else if value.is_empty() {
            folder = words.next().cloned();
        } else {
            folder = Some(value.to_string());
        }
    }
    for word in &mut kept {
        let Some(name) = word.strip_prefix(HYDRA_WORKLOAD) else { continue };
        let file = Path::new(folder.as_deref().unwrap_or("DIR")).join("workload");
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

    /// The complaint about a command line, and its hint.
    #[track_caller]
    fn check(line: &str, says: &str, hint: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let parsed = Arguments::program().try_get_matches_from(&words);
        let error = complaint(&parsed.unwrap_err(), &words, &Arguments::command()).unwrap();
        assert!(error.message.contains(says), "{line}: {error}");
        let told = error.hint.unwrap();
        assert!(told.contains(hint), "{line}: {told}");
        assert!(!told.contains("-- --"), "{told}");
    }

    #[test]
    fn words_of_others_are_answered_with_ours() {
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
        check("feedrate generate w --dry-run", "no option", "`feedrate plan WORKLOAD`");
        check(
            "feedrate -n 4 run w",
            "no option `-n`",
            "behind the command, as in `feedrate run -n`",
        );
        check("feedrate report x --out y", "`feedrate report` has no option", "`--output`");
        check("feedrate study run --dryrun x", "`feedrate study run` has no", "`--dry-run`");
    }

    #[test]
    fn commands_of_others_are_answered_with_ours() {
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
            ("help verify", "`feedrate help generate`"),
            ("help tune", "`feedrate help advise`"),
            ("describe doubts 'a b'", "`feedrate list doubts"),
            ("whatif r=1 a=1 b=2 -n 4", "`feedrate advise r=1 --set a=1 b=2 -n 4`"),
            ("whatif r --table", "`feedrate advise r --table`"),
            ("tune w", "`feedrate advise --try --goal au w`"),
            ("tune w --goal throughput", "`feedrate advise --try w --goal throughput`"),
            ("tune w --goal accelerators", "`feedrate scale WORKLOAD` finds the number"),
            ("tune w --keys reader.read_threads", "`--keys` is gone"),
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
    fn other_complaints_say_what_to_write() {
        check("feedrate compare a", "<B>", "`feedrate compare <A> <B>`");
        check("feedrate completions bsh", "bsh", "did you mean `bash`?");
        check("feedrate run w -n four", "invalid value 'four'", "`feedrate run --help`");
    }

    #[test]
    fn what_is_offered_for_words_of_others_is_understood() {
        let keys = OPTIONS.iter().flat_map(|(_, says)| says.split('`').skip(1).step_by(2));
        for key in keys.filter(|key| key.contains('.')) {
            let key = key.split('=').next().unwrap();
            assert!(feedrate_spec::workload::KEYS.iter().any(|own| own.path == key), "{key}");
        }
        let program = Arguments::command();
        for (former, new) in FORMER {
            assert!(program.find_subcommand(former).is_none(), "{former}");
            let command = new.strip_prefix("feedrate ").and_then(|rest| rest.split(' ').next());
            assert!(command.is_none_or(|name| program.find_subcommand(name).is_some()), "{new}");
        }
        for (words, says) in COMMANDS {
            let shown = says.split("`feedrate ").nth(1).and_then(|rest| rest.split(' ').next());
            assert!(program.find_subcommand(shown.unwrap()).is_some(), "{says}");
            assert!(words.iter().all(|word| program.find_subcommand(word).is_none()), "{words:?}");
        }
    }
}
