//! Options that are none of ours, and what was meant: words of Hydra, of PyTorch and of other tools.

use crate::bundled;
use crate::cli::HYDRA_WORKLOAD;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use feedrate_spec::workload::with_whole_key;
use feedrate_study::bash;
use std::path::Path;

/// Folders in which Hydra looks for workloads.
const HYDRA_FOLDERS: [&str; 2] = ["--config-dir", "--config-path"];

/// The complaint, with what was meant in the place of clap's own tip where it is known.
pub(crate) fn with_tip(mut usage: clap::Error, words: impl Iterator<Item = String>) -> clap::Error {
    let option = match (usage.kind(), usage.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) => option.clone(),
        _ => return usage,
    };
    if let Some(tip) = tip(&option, &Vec::from_iter(words)) {
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    usage
}

fn tip(option: &str, words: &[String]) -> Option<String> {
    let name = option.split('=').next().unwrap_or_default();
    if HYDRA_FOLDERS.contains(&name) {
        return Some(format!("the workload is a file: `{}`", without_hydra(words)));
    }
    match name {
        "--dry-run" => return Some("`feedrate plan WORKLOAD` shows what would run".into()),
        "--gpus" | "--num-gpus" | "--num-accelerators" | "--np" => {
            return Some("`-n N` is the number of accelerators".into());
        }
        _ => {}
    }
    let word = name.trim_start_matches('-').replace('-', "_");
    let (_, key) = with_whole_key(&format!("{word}=1"))?;
    Some(format!("that is a key of the workload: `{key}=VALUE`, without dashes"))
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
    bash::command(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_answered_with_ours() {
        let check = |line: &str, option: &str, expected: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(str::to_string).collect();
            assert_eq!(tip(option, &words).as_deref(), expected, "{line}");
        };
        let of_file = "the workload is a file: `feedrate run conf/workload/mine.yaml ++workload.train.epochs=1`";
        check(
            "feedrate run --config-dir conf workload=mine ++workload.train.epochs=1",
            "--config-dir",
            Some(of_file),
        );
        check(
            "feedrate run --config-dir=conf workload=mine ++workload.train.epochs=1",
            "--config-dir",
            Some(of_file),
        );
        check(
            "feedrate run --config-path conf workload=quickstart",
            "--config-path",
            Some("the workload is a file: `feedrate run quickstart`"),
        );
        check(
            "feedrate run w --num-workers 4",
            "--num-workers",
            Some("that is a key of the workload: `reader.read_threads=VALUE`, without dashes"),
        );
        check("feedrate run w --colour", "--colour", None);
        check(
            "feedrate run w --dry-run",
            "--dry-run",
            Some("`feedrate plan WORKLOAD` shows what would run"),
        );
    }
}
