//! Detects from the text of a file whether it is a workload, a study or a design, so that a command can explain that it was given the wrong kind.
//! Reads no files.

use feedrate_spec::escape::bash_word;
use feedrate_spec::workload::KEYS;
use std::path::Path;

/// A kind of file that users write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The YAML of a workload.
    Workload,
    /// The CSV of a study.
    Study,
    /// The design of a study, in TOML.
    Design,
}

/// Top-level keys that occur in designs but not in workloads.
const DESIGN_KEYS: [&str; 2] = ["design", "factors"];

impl FileKind {
    /// Detects the kind of a text; `None` if it is unknown.
    pub fn from_text(text: &str) -> Option<Self> {
        let has_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let text = text.trim_start_matches('\u{feff}');
        let header = text.lines().find(has_content)?.split(',');
        let header: Vec<String> =
            header.map(|cell| cell.trim().trim_matches('"').to_ascii_lowercase()).collect();
        if ["model", "run"].iter().all(|column| header.iter().any(|cell| cell == column)) {
            return Some(FileKind::Study);
        }
        let top_level_keys = text.lines().filter(has_content).filter_map(|line| {
            let key = line.trim_start_matches('[').split([':', '=', ']', '.']).next()?;
            (key.len() < line.len()).then(|| key.trim_end())
        });
        let top_level_keys: Vec<&str> = top_level_keys.collect();
        let is_workload_key =
            |name: &&str| KEYS.iter().any(|key| key.path.split('.').next() == Some(*name));
        if top_level_keys.iter().any(|key| DESIGN_KEYS.contains(key)) {
            return Some(FileKind::Design);
        }
        top_level_keys.iter().any(is_workload_key).then_some(FileKind::Workload)
    }

    /// Returns a message that `file` is of this kind instead of the expected one, and a hint that names the command for this kind.
    pub fn mismatch(self, expected: FileKind, file: &Path) -> (String, String) {
        let message = format!("`{}` is {}, not {}", file.display(), self.name(), expected.name());
        let file = bash_word(&file.display().to_string());
        let hint = match self {
            FileKind::Workload => format!(
                "`feedrate run {file}` runs it once; `feedrate study new --design full-factorial --model {file} --factor KEY=A,B` makes a study of it"
            ),
            FileKind::Study => format!("`feedrate study run {file}` executes its runs"),
            FileKind::Design => format!("`feedrate study new {file}` writes the study as CSV"),
        };
        (message, hint)
    }

    fn name(self) -> &'static str {
        match self {
            FileKind::Workload => "a workload",
            FileKind::Study => "a study",
            FileKind::Design => "the design of a study",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_detected_from_the_text() {
        for (text, expected) in [
            ("# mine\n\nmodel,epochs,processes,overrides,run\nw,1,1,,N\n", Some(FileKind::Study)),
            ("\u{feff}\"Model\",Processes,Run\ntrain.yaml,4,N\n", Some(FileKind::Study)),
            ("# reader.batch_size: 7\nmodel: {name: w}\n", Some(FileKind::Workload)),
            ("reader:\n  batch_size: 4\n", Some(FileKind::Workload)),
            ("replicates = 3\n[design]\nkind = \"fractional\"\n", Some(FileKind::Design)),
            ("design: two_level\nbaseline:\n  model: w\n", Some(FileKind::Design)),
            ("[factors]\nprocesses = [1, 2]\n", Some(FileKind::Design)),
            ("model,processes\nw,1\n", None),
            ("{\"version\": 3}", None),
            ("x,y\n1,2\n", None),
            ("reader\n", None),
            ("", None),
        ] {
            assert_eq!(FileKind::from_text(text), expected, "{text}");
        }
    }
}
