//! The kind of a file that a user names, told by its content, for whoever was given another kind than it takes. Reads no file.

use feedrate_spec::escape::bash_word;
use feedrate_spec::workload::KEYS;
use std::path::Path;

/// A kind of text that users write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The YAML of a workload.
    Workload,
    /// The CSV of a study.
    Study,
    /// The design of a study, in TOML.
    Design,
}

/// Words at the margin of a design that no workload has.
const OF_DESIGNS: [&str; 2] = ["design", "factors"];

impl FileKind {
    /// The kind of this text; `None` where it is of no kind, or of several.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let text = text.trim_start_matches('\u{feff}');
        let header = text.lines().find(is_said)?.split(',');
        let header: Vec<String> =
            header.map(|cell| cell.trim().trim_matches('"').to_ascii_lowercase()).collect();
        if ["model", "run"].iter().all(|column| header.iter().any(|cell| cell == column)) {
            return Some(FileKind::Study);
        }
        let words = text.lines().filter(is_said).filter_map(|line| {
            let word = line.trim_start_matches('[').split([':', '=', ']', '.']).next()?;
            (word.len() < line.len()).then(|| word.trim_end())
        });
        let words: Vec<&str> = words.collect();
        let is_of_workloads =
            |word: &&str| KEYS.iter().any(|key| key.path.split('.').next() == Some(*word));
        if words.iter().any(|word| OF_DESIGNS.contains(word)) {
            return Some(FileKind::Design);
        }
        words.iter().any(is_of_workloads).then_some(FileKind::Workload)
    }

    /// Says that `file` is of this kind where another was wanted, and what to do with it.
    pub fn instead_of(self, wanted: FileKind, file: &Path) -> (String, String) {
        let message = format!("`{}` is {}, not {}", file.display(), self.name(), wanted.name());
        let file = bash_word(&file.display().to_string());
        let hint = match self {
            FileKind::Workload => format!(
                "`feedrate run {file}` runs it once; `feedrate study new --design full-factorial --model {file} --factor KEY=A,B` makes a study of it"
            ),
            FileKind::Study => format!("`feedrate study run {file}` makes its runs"),
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
    fn a_file_is_told_by_what_is_in_it() {
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
