//! The texts of Hydra's flags `--cfg job` and `--info`, which print the configuration instead of running.

use super::compose::{DlioRequest, compose, find};
use crate::resolve::parse_overrides;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::{Override, Surroundings, composed_yaml, resolved_package_yaml};
use std::path::PathBuf;

/// Returns the text of `--cfg job`: the workload with its overrides, or the part of it at the dotted path `package`. Interpolations are as
/// written, unless `surroundings` are given.
///
/// # Errors
/// Fails if the workload does not exist or is invalid, or if it has no such part.
pub fn job_yaml(
    request: &DlioRequest,
    package: &str,
    surroundings: Option<&dyn Surroundings>,
) -> anyhow::Result<String> {
    let text = match surroundings {
        Some(surroundings) => {
            resolved_package_yaml(&compose(request, surroundings)?.workload, package)
        }
        None => {
            let (file, yaml) = find(request.workload(), request, &mut Vec::new())?;
            let overrides = parse_overrides(&request.overrides, Override::parse_as_hydra)?;
            composed_yaml(&file, &yaml, &overrides, package)?
        }
    };
    let missing = || {
        let message = format!("package '{package}' not found in config");
        Refusal::new(message, "packages are `workload` and its sections, as in `workload.reader`")
    };
    Ok(text.ok_or_else(missing)?)
}

/// Returns the text of `--info searchpath`: the folders in which workloads are looked up, in Hydra's order.
///
/// # Errors
/// Fails if the working folder does not exist.
pub fn search_path(request: &DlioRequest) -> anyhow::Result<String> {
    let url = |folder: &PathBuf| -> anyhow::Result<String> {
        Ok(format!("file://{}", std::path::absolute(folder)?.display()))
    };
    let packaged = Ok("pkg://dlio_benchmark.configs".to_string());
    let mut rows = vec![
        ["hydra".to_string(), "pkg://hydra.conf".to_string()],
        ["main".to_string(), request.config_path.as_ref().map_or(packaged, url)?],
    ];
    if let Some(folder) = &request.config_dir {
        rows.push(["command-line".to_string(), url(folder)?]);
    }
    rows.push(["schema".to_string(), "structured://".to_string()]);
    Ok(table("Config search path", ["Provider", "Search path"], &rows))
}

/// Returns the text of `--info defaults`: the files that make up the configuration. Hydra's own files are left out.
pub fn defaults_list(request: &DlioRequest) -> String {
    let workload = format!("workload/{}", request.workload());
    let rows = [
        ["config", "", "True", "<root>"].map(String::from),
        [&workload, "workload", "False", "config"].map(String::from),
    ];
    table("Defaults List", ["Config path", "Package", "_self_", "Parent"], &rows)
}

/// Formats a table as Hydra does.
fn table<const N: usize>(title: &str, header: [&str; N], rows: &[[String; N]]) -> String {
    let header = header.map(String::from);
    let all = || std::iter::once(&header).chain(rows);
    let width = |column: usize| all().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("| {cell:width$} "));
        cells.collect::<String>() + "|\n"
    };
    let rule = "-".repeat(widths.iter().map(|width| width + 3).sum::<usize>() + 1) + "\n";
    let body: String = rows.iter().map(line).collect();
    let stars = "*".repeat(title.len());
    format!("{title}\n{stars}\n{rule}{}{rule}{body}{rule}", line(&header))
}
