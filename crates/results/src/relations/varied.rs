//! Decides which settings a set of runs varies on purpose: settings that overrides set, and settings whose values are in the names of folders.

use crate::experiment::Experiment;
use crate::import::normalized_text;
use crate::run::Run;

/// Whether a run overrides `key`, the folder of an experiment is named after it, or the folder of each run contains its value, as in
/// `threads8/batch4`.
pub(super) fn is_varied(key: &str, runs: &[&Run]) -> bool {
    let value = |run: &Run| run.dataset_use.configured.get(key).cloned();
    let is_set = |run: &&Run| {
        run.dataset_use.overridden.iter().any(|overridden| overridden == key)
            || experiments(run)
                .any(|experiment| experiment.settings.iter().any(|setting| setting.key == key))
    };
    let is_in_name =
        |run: &&Run| value(run).is_none_or(|value| is_in_folder_name(&value, &below_source(run)));
    runs.iter().any(is_set) || runs.iter().all(is_in_name)
}

/// The folders of a run below its source.
fn below_source(run: &Run) -> Vec<String> {
    let path = run.path.strip_prefix(&run.source).unwrap_or(&run.path);
    path.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn experiments(run: &Run) -> impl Iterator<Item = Experiment> {
    below_source(run).into_iter().filter_map(|name| Experiment::parse(&name))
}

/// Whether names of folders contain a value. Numbers of processes and times are not values.
fn is_in_folder_name(value: &str, names: &[String]) -> bool {
    names.iter().any(|name| {
        Experiment::parse(name).is_none()
            && !is_time(name)
            && words(name).any(|word| normalized_text(word) == value)
    })
}

/// Whether a folder is named after its time: `2025-11-30-18-58-17`, `20251130_185817`.
fn is_time(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    8 <= digits && name.bytes().all(|byte| !byte.is_ascii_alphabetic() || byte == b'T')
}

/// The words and numbers of a name: `threads`, `8` and `png` for `threads8_png`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|c: char| !c.is_alphanumeric() && c != '.');
    parts.flat_map(|part| {
        part.as_bytes()
            .chunk_by(|a, b| a.is_ascii_alphabetic() == b.is_ascii_alphabetic())
            .filter_map(|word| std::str::from_utf8(word).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_of_folder_names() {
        let check = |path: &str, value: &str, expected: bool| {
            let names: Vec<String> = path.split('/').map(str::to_string).collect();
            assert_eq!(is_in_folder_name(value, &names), expected, "{path}: {value}");
        };
        check("threads8/batch4/run1", "8", true);
        check("threads8-batch16", "16", true);
        check("w_png_x", "png", true);
        // A number of processes, a part of a number, and a part of a time.
        check("w/8/run", "8", false);
        check("threads80/run", "8", false);
        check("w/2025-11-30-18-58-17", "11", false);
    }
}
