//! Parses the part of Hydra 1.3's command line that DLIO's users need.

use feedrate_session::dlio::DlioRequest;
use feedrate_session::launch::{LaunchOptions, rank_timeout};
use std::iter::Peekable;

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HydraArguments {
    /// Text to print instead of running.
    pub(super) show: Option<Show>,
    /// `--resolve`: whether `show` evaluates interpolations.
    pub(super) is_resolved: bool,
    /// `--package`: the part of the workload to show.
    pub(super) package: Option<String>,
    /// `--mpi-library`, `--rank-timeout`, `--accelerators-per-rank`.
    pub(super) launch: LaunchOptions,
    /// Everything else.
    pub(super) request: DlioRequest,
}

/// Text to print instead of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// `--help`.
    Help,
    /// `--hydra-help`.
    HydraHelp,
    /// `--version`.
    Version,
    /// `--cfg job`.
    Job,
    /// `--cfg hydra`.
    Hydra,
    /// `--cfg all`, `--info`.
    All,
    /// `--info searchpath`.
    SearchPath,
    /// `--info defaults`.
    Defaults,
}

impl HydraArguments {
    /// Parses a command line without the program's name.
    ///
    /// # Errors
    /// A message with a hint.
    pub(super) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = HydraArguments::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                arguments.parse_positional(word)?;
            } else if let Some((name, value)) = word.split_once('=') {
                arguments.parse_flag(name, &mut [value.to_string()].into_iter().peekable())?;
            } else {
                arguments.parse_flag(&word, &mut words)?;
            }
        }
        Ok(arguments)
    }

    /// Parses a flag. The value of a flag that takes one is the first of `words`.
    fn parse_flag(
        &mut self,
        name: &str,
        words: &mut Peekable<impl Iterator<Item = String>>,
    ) -> Result<(), String> {
        match name {
            "--help" | "-h" => self.show = Some(Show::Help),
            "--hydra-help" => self.show = Some(Show::HydraHelp),
            "--version" => self.show = Some(Show::Version),
            "--info" | "-i" => {
                let topic = words.next_if(|word| INFO_TOPICS.contains(&word.as_str()));
                self.show = Some(match topic.as_deref().unwrap_or("all") {
                    "all" => Show::All,
                    "config" => Show::Job,
                    "searchpath" => Show::SearchPath,
                    "defaults" => Show::Defaults,
                    topic => {
                        return Err(format!(
                            "`--info {topic}` is not supported\n  hint: there are `--info config`, `searchpath` and `defaults`"
                        ));
                    }
                });
            }
            "--run" | "-r" => {}
            "--resolve" => self.is_resolved = true,
            "--package" | "-p" => self.package = Some(value_of(name, words)?),
            "--multirun" | "-m" => {
                return Err("a sweep (`--multirun`) is not supported\n  hint: start each run separately; DLIO would write the results of all jobs into one folder".into());
            }
            "--shell-completion" | "-sc" => {
                return Err("`--shell-completion` is not supported".into());
            }
            "--cfg" | "-c" => {
                self.show = Some(match &*value_of(name, words)? {
                    "job" => Show::Job,
                    "hydra" => Show::Hydra,
                    "all" => Show::All,
                    other => return invalid(name, other, "choose from `job`, `hydra`, `all`"),
                });
            }
            "--config-path" | "-cp" => {
                self.request.config_path = Some(value_of(name, words)?.into())
            }
            "--config-dir" | "-cd" => self.request.config_dir = Some(value_of(name, words)?.into()),
            "--config-name" | "-cn" => match &*value_of(name, words)? {
                "config" | "config.yaml" => {}
                _ => return Err(unsupported(name)),
            },
            "--experimental-rerun" => return Err(unsupported(name)),
            "--mpi-library" => self.launch.mpi_library = Some(value_of(name, words)?.into()),
            "--rank-timeout" => {
                let value = value_of(name, words)?;
                let seconds = value.parse().ok().filter(|&seconds| rank_timeout(seconds).is_ok());
                let Some(seconds) = seconds else { return invalid(name, &value, "give seconds") };
                self.launch.rank_timeout_s = seconds;
            }
            "--accelerators-per-rank" => {
                let value = value_of(name, words)?;
                let count = value.parse().ok().filter(|&count| 0 < count);
                let Some(count) = count else { return invalid(name, &value, "give a number") };
                self.launch.accelerators_per_rank = Some(count);
            }
            _ => {
                return Err(format!(
                    "unrecognized arguments: {name}\n  hint: see `dlio_benchmark --help`"
                ));
            }
        }
        Ok(())
    }

    fn parse_positional(&mut self, word: String) -> Result<(), String> {
        let key = word.split('=').next().unwrap_or_default();
        let bare = key.trim_start_matches('+').trim_start_matches('~').trim();
        if bare.starts_with("hydra.") || bare.starts_with("hydra/") {
            self.request.hydra.push(word);
            return Ok(());
        }
        if bare == "workload" {
            match word.split_once('=') {
                Some(("workload", value)) if value.contains(',') => {
                    return Err(format!(
                        "`{word}` is a sweep over several workloads\n  hint: start each run separately"
                    ));
                }
                Some(("workload", value)) if !value.trim().is_empty() => {
                    self.request.workload = Some(value.trim().to_string());
                }
                _ => return Err(format!("`{word}`: choose the workload by `workload=NAME`")),
            }
        } else if bare.starts_with("workload.") {
            self.request.overrides.push(word.clone());
        } else if key.starts_with('+') {
            let warning = format!("`{word}` is ignored, since it is outside the workload");
            self.request.warnings.push(warning);
        } else {
            return Err(format!(
                "Could not override '{bare}': it is not in the config\n  hint: keys of the workload begin with `workload.`, as in `workload.reader.batch_size=4`"
            ));
        }
        self.request.task.push(word);
        Ok(())
    }
}

/// The value of the flag `name`.
fn value_of(name: &str, words: &mut impl Iterator<Item = String>) -> Result<String, String> {
    words.next().ok_or_else(|| format!("argument {name}: expected one argument"))
}

fn unsupported(name: &str) -> String {
    format!(
        "`{name}` is not supported\n  hint: write the workload to `FOLDER/workload/NAME.yaml`, and give `--config-dir FOLDER workload=NAME`"
    )
}

fn invalid(name: &str, value: &str, expected: &str) -> Result<(), String> {
    Err(format!("argument {name}: {expected}, not `{value}`"))
}

/// Topics of `--info` of Hydra.
const INFO_TOPICS: &[&str] =
    &["all", "config", "defaults", "defaults-tree", "plugins", "searchpath"];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<HydraArguments, String> {
        HydraArguments::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn flags_come_before_and_after_overrides() {
        let expected = DlioRequest {
            config_dir: Some("C".into()),
            workload: Some("u".into()),
            overrides: vec!["++workload.train.epochs=2".into()],
            task: vec!["workload=u".into(), "++workload.train.epochs=2".into()],
            hydra: vec!["++hydra.run.dir=/r".into()],
            ..DlioRequest::default()
        };
        for line in [
            "--config-dir C workload=u ++hydra.run.dir=/r ++workload.train.epochs=2",
            "workload=u ++hydra.run.dir=/r ++workload.train.epochs=2 --config-dir=C",
            "workload=u -cd C ++workload.train.epochs=2 ++hydra.run.dir=/r",
        ] {
            assert_eq!(parse(line).unwrap().request, expected, "{line}");
        }
    }

    #[test]
    fn some_flags_print_text_instead_of_running() {
        for (line, show) in [
            ("-h", Show::Help),
            ("--cfg job workload=u", Show::Job),
            ("-c hydra", Show::Hydra),
            ("--cfg=all", Show::All),
            ("--info", Show::All),
            ("--info defaults", Show::Defaults),
            ("-i searchpath workload=u", Show::SearchPath),
            ("--cfg job --resolve -p workload.reader", Show::Job),
            ("--version", Show::Version),
        ] {
            assert_eq!(parse(line).unwrap().show, Some(show), "{line}");
        }
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for (line, words) in [
            ("--nonsense", "unrecognized arguments: --nonsense"),
            ("-m workload=a,b", "sweep"),
            ("workload=a,b", "sweep"),
            ("train.epochs=5", "Could not override 'train.epochs'"),
            ("--cfg nonsense", "choose from"),
            ("--info plugins", "not supported"),
            ("--config-dir", "expected one argument"),
            ("~workload", "choose the workload"),
            ("--rank-timeout 0", "seconds"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(words), "{line}: {message}");
        }
        let ignored = parse("++train.epochs=5").unwrap();
        assert_eq!((ignored.request.warnings.len(), ignored.request.overrides.len()), (1, 0));
    }
}
