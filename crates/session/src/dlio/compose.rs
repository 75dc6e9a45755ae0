//! Composes a workload from a command line as Hydra does: finds the workload, applies the overrides, and writes the texts of Hydra's files.

use crate::resolve::{parse_overrides, warnings};
use crate::result_folder::hydra_text;
use crate::store;
use anyhow::Context;
use feedrate_measure::dlio::HydraText;
use feedrate_measure::record::file::{read_folder, read_text};
use feedrate_spec::bundled::{self, Bundled, WORKLOADS};
use feedrate_spec::problem::{Location, Problems};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{
    self, Override, Strictness, Surroundings, Workload, interpolate_text,
};
use std::path::PathBuf;

/// Folder of the workloads in a folder of configurations, as in Hydra.
pub const WORKLOAD_FOLDER: &str = "workload";

/// A request in the terms of Hydra.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DlioRequest {
    /// `--config-path`: folder whose `workload/` replaces the bundled workloads.
    pub config_path: Option<PathBuf>,
    /// `--config-dir`: folder whose `workload/` has further workloads.
    pub config_dir: Option<PathBuf>,
    /// `workload=NAME`.
    pub workload: Option<String>,
    /// Overrides of the workload, as typed, in their order.
    pub overrides: Vec<String>,
    /// All overrides except Hydra's settings, including `workload=NAME`, as typed.
    pub task: Vec<String>,
    /// `hydra.KEY=VALUE`, as typed.
    pub hydra: Vec<String>,
    /// Arguments that are ignored, with the reason.
    pub warnings: Vec<String>,
}

impl DlioRequest {
    /// Returns the name of the workload.
    pub(super) fn workload(&self) -> &str {
        self.workload.as_deref().unwrap_or("default")
    }
}

/// A workload with its overrides, as Hydra composes it.
pub struct Composed {
    /// Name of the workload.
    pub name: String,
    /// The workload.
    pub workload: Workload,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Hydra's folder of the run.
    pub run_dir: PathBuf,
    /// Whether the folder's name contains the time in seconds, so that no other run uses it.
    pub is_stamped: bool,
    /// Hydra's folder in `run_dir`.
    pub subfolder: String,
}

impl Composed {
    /// Returns the texts of the files in Hydra's folder.
    pub fn hydra_text(&self, request: &DlioRequest) -> HydraText {
        let Composed { name, workload, run_dir, subfolder, .. } = self;
        hydra_text(&request.task, &request.hydra, name, workload, run_dir, subfolder)
    }
}

/// Finds the workload and applies the overrides.
///
/// # Errors
/// Fails if the workload does not exist or is invalid.
pub fn compose(request: &DlioRequest, surroundings: &dyn Surroundings) -> anyhow::Result<Composed> {
    let mut warnings = request.warnings.clone();
    let name = request.workload();
    let (file, yaml) = find(name, request, &mut warnings)?;
    let overrides = parse_overrides(&request.overrides, Override::parse_as_hydra)?;
    let (mut workload, problems) =
        workload::parse_in(&file, &yaml, &overrides, Strictness::Warning, surroundings)?;
    store::take_storage(&mut workload, None)?;
    warnings.extend(warning_lines(&problems));
    let (run_dir_text, subfolder) = hydra_settings(&request.hydra, &mut warnings)?;
    // With a coarser time, the user wants the folder to be used for several runs.
    let is_stamped = run_dir_text.contains("${now:") && run_dir_text.contains("%S");
    let run_dir = PathBuf::from(interpolate_text(&run_dir_text, &workload, surroundings).map_err(
        |problem| {
            Problems::from(problem.with_key(
                "hydra.run.dir",
                &Location::Override(format!("hydra.run.dir={run_dir_text}")),
            ))
        },
    )?);
    Ok(Composed { name: name.to_string(), workload, warnings, run_dir, is_stamped, subfolder })
}

/// Returns the warnings among problems, one line each.
pub(super) fn warning_lines(problems: &Problems) -> impl Iterator<Item = String> {
    warnings(problems).map(|problem| {
        let text = problem.to_string();
        text.trim_start_matches("warning: ").replace('\n', " ")
    })
}

/// Hydra's folder in DLIO's default configuration (`configs/config.yaml`).
const RUN_DIR: &str = "./hydra_log/${workload.model.name}/${now:%Y-%m-%d}-${now:%H-%M-%S}";

/// Whether a bundled workload takes precedence over a file of the same name in `--config-dir`, because Hydra searches DLIO's package first.
pub fn takes_precedence(name: &str) -> bool {
    bundled::find(name).is_some_and(|bundled| bundled.is_in_dlio)
}

/// Finds a workload. Returns the name of its file for messages, and its text.
pub(super) fn find(
    name: &str,
    request: &DlioRequest,
    warnings: &mut Vec<String>,
) -> anyhow::Result<(String, String)> {
    let stem = name.trim_end_matches(".yaml");
    let DlioRequest { config_path, config_dir, .. } = request;
    let mut folders = Vec::new();
    for (flag, dir) in [("--config-path", config_path), ("--config-dir", config_dir)] {
        let Some(dir) = dir else { continue };
        if !dir.is_dir() {
            let message = format!("`{flag} {}` is not a folder", dir.display());
            return refuse(message, "give a folder with workloads in `workload/NAME.yaml`");
        }
        folders.push(dir.join(WORKLOAD_FOLDER));
    }
    let packaged = if config_path.is_some() { &[] } else { WORKLOADS };
    let bundled = packaged.iter().find(|bundled| bundled.name == stem);
    let mut candidates = folders.iter().map(|folder| folder.join(format!("{stem}.yaml")));
    let user_file = candidates.find(|path| path.is_file());
    match (bundled, user_file) {
        (Some(bundled), Some(user_file)) if bundled.is_in_dlio => {
            warnings.push(format!(
                "the bundled workload `{stem}` takes precedence over `{}`, as in DLIO; rename the file to use it",
                user_file.display()
            ));
            Ok((bundled.file(), bundled.yaml.into()))
        }
        (_, Some(user_file)) => {
            let file = user_file.display().to_string();
            let yaml =
                read_text(&user_file).with_context(|| format!("cannot read workload `{file}`"))?;
            Ok((file, yaml))
        }
        (Some(bundled), None) => Ok((bundled.file(), bundled.yaml.into())),
        (None, None) => Err(unknown_workload(stem, packaged, &folders).into()),
    }
}

fn unknown_workload(name: &str, packaged: &[Bundled], folders: &[PathBuf]) -> Refusal {
    let mut names: Vec<String> = packaged.iter().map(|bundled| bundled.name.into()).collect();
    let mut searched =
        Vec::from_iter((!packaged.is_empty()).then(|| "the bundled workloads".to_string()));
    for folder in folders {
        searched.push(format!("`{}`", folder.display()));
        for entry in read_folder(folder).into_iter().flatten().flatten() {
            names.extend(entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    let default_hint = match packaged {
        [] => {
            "put `workload/NAME.yaml` into that folder; without `--config-path` the bundled workloads are used"
        }
        _ => {
            "see `feedrate list workloads`, or put `workload/NAME.yaml` into a folder and give it with `--config-dir`"
        }
    };
    let message = format!("Could not find 'workload/{name}' in {}", searched.join(" and "));
    Refusal::unknown_name(message, name, names.iter().map(String::as_str), default_hint)
}

/// Returns the supported settings of Hydra: the folder of the run, and its subfolder. Adds warnings for other settings.
fn hydra_settings(
    overrides: &[String],
    warnings: &mut Vec<String>,
) -> Result<(String, String), Refusal> {
    let mut run_dir = RUN_DIR.to_string();
    let mut subfolder = ".hydra".to_string();
    for text in overrides {
        let (key, value) = text.trim_start_matches('+').split_once('=').unwrap_or((text, ""));
        let value = unquote(value.trim());
        match key.trim() {
            "hydra.run.dir" if !value.is_empty() => run_dir = value,
            "hydra.output_subdir" if value == "null" => subfolder.clear(),
            "hydra.output_subdir" if !value.is_empty() => subfolder = value,
            "hydra.job.chdir" if value.eq_ignore_ascii_case("true") => {
                return refuse(
                    format!("`{text}` is not supported"),
                    "relative paths always start at the current folder",
                );
            }
            "hydra.mode" if value.eq_ignore_ascii_case("multirun") => {
                return refuse(
                    format!("`{text}`: sweeps are not supported"),
                    "start each run separately, or use `feedrate study`",
                );
            }
            _ => warnings.push(format!("`{text}` is ignored")),
        }
    }
    Ok((run_dir, subfolder))
}

fn unquote(text: &str) -> String {
    let inner = ['\'', '"'].iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::ProcessSurroundings;

    fn request(name: &str, overrides: &[&str]) -> DlioRequest {
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        let (hydra, overrides): (Vec<_>, Vec<_>) =
            overrides.into_iter().partition(|text| text.contains("hydra."));
        let mut task = vec![format!("workload={name}")];
        task.extend(overrides.iter().cloned());
        DlioRequest { workload: Some(name.into()), overrides, task, hydra, ..Default::default() }
    }

    fn compose_with(name: &str, overrides: &[&str]) -> anyhow::Result<Composed> {
        compose(&request(name, overrides), &ProcessSurroundings::now())
    }

    #[test]
    fn folders_have_dlios_names() {
        let found = compose_with("unet3d_h100", &[]).unwrap();
        let path = found.run_dir.display().to_string();
        let shape: String =
            path.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "./hydra_log/unet0d/0000-00-00-00-00-00");
        let found = compose_with(
            "default",
            &["++hydra.run.dir=/r/${workload.model.name}/x", "++hydra.output_subdir=dlio_config"],
        );
        let found = found.unwrap();
        assert_eq!(found.run_dir, PathBuf::from("/r/default/x"));
        assert!(!found.is_stamped);
        assert_eq!(found.subfolder, "dlio_config");
        assert!(compose_with("default", &["++hydra.run.dir=${nonsense}"]).is_err());
    }

    #[test]
    fn overrides_are_kept_as_typed() {
        let request = request("unet3d_h100", &["++workload.train.epochs=2", "++hydra.run.dir=r"]);
        let found = compose(&request, &ProcessSurroundings::now()).unwrap().hydra_text(&request);
        assert_eq!(found.overrides, "- workload=unet3d_h100\n- ++workload.train.epochs=2\n");
        assert!(found.config.contains("\n    epochs: 2\n"), "{}", found.config);
    }

    #[test]
    fn workloads_are_searched_as_in_hydra() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("workload");
        std::fs::create_dir(&dir).unwrap();
        for name in ["unet3d_h100", "unet3d_h100_custom", "mine"] {
            let yaml = format!("model:\n  name: theirs_{name}\n");
            std::fs::write(dir.join(format!("{name}.yaml")), yaml).unwrap();
        }
        let search = |name: &str| {
            let config_dir = Some(folder.path().to_path_buf());
            let found = compose(
                &DlioRequest { config_dir, ..request(name, &[]) },
                &ProcessSurroundings::now(),
            );
            found.map(|found| (found.workload.model_name.clone(), found.warnings.len()))
        };
        assert_eq!(search("mine").unwrap().0, "theirs_mine");
        assert_eq!(search("unet3d_h100_custom").unwrap(), ("theirs_unet3d_h100_custom".into(), 0));
        assert_eq!(search("unet3d_h100").unwrap().0, "unet3d");
        assert!(search("unet3d_h100").unwrap().1 > 0, "a warning is expected");
        assert!(search("min").unwrap_err().to_string().contains("Could not find 'workload/min'"));
    }

    #[test]
    fn config_path_replaces_the_bundled_workloads() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("workload");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("unet3d_h100.yaml"), "model: {name: theirs}\n").unwrap();
        let search = |name: &str| {
            let config_path = Some(folder.path().to_path_buf());
            compose(&DlioRequest { config_path, ..request(name, &[]) }, &ProcessSurroundings::now())
        };
        let found = search("unet3d_h100").unwrap();
        assert_eq!((found.workload.model_name.as_str(), found.warnings.len()), ("theirs", 0));
        let error = search("unet3d_a100").err().unwrap().to_string();
        assert!(error.contains("Could not find 'workload/unet3d_a100' in `/"), "{error}");
        let refused = search("nothing_like_it").err().unwrap();
        let hint = refused.downcast_ref::<Refusal>().unwrap().hint.clone().unwrap();
        assert!(hint.contains("without `--config-path`"), "{hint}");
    }

    #[test]
    fn a_plain_override_needs_its_key() {
        assert!(compose_with("unet3d_h100", &["workload.train.epochs=2"]).is_ok());
        let error = compose_with("unet3d_h100", &["workload.train.nonsense=2"]).err().unwrap();
        assert!(error.to_string().contains("++workload.train.nonsense=2"), "{error}");
        assert!(compose_with("unet3d_h100", &["+workload.train.epochs=2"]).is_err());
    }
}
