//! Experiments. An experiment is the settings that replicates share; its folder name can be parsed back into these settings.
//!
//! A name is the number of processes (`4`), followed by one setting (`4_batch_size_1`) or several (`4_batch_size=1,read_threads=8`). Characters
//! that are not allowed are written as `%` and two hexadecimal digits.

use crate::row::Row;
use crate::setting::{Setting, key_of_leaf};
use feedrate_spec::workload::KEYS;
use std::fmt::Write;

/// Keys of settings that have a separate column in the CSV.
const EPOCHS: &str = "train.epochs";
const SCALE: &str = "study.scale";

/// Maximum length of a name. File systems allow 255 bytes.
const ID_BYTES_MAX: usize = 240;

/// The number of processes and the settings that the replicates of an experiment share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Number of emulated accelerators.
    pub processes: u32,
    /// Settings sorted by key. They include epochs only if another row differs in nothing else.
    pub settings: Vec<Setting>,
}

impl Experiment {
    /// Returns the experiment of `row` in a study of `rows`.
    pub fn new(row: &Row, rows: &[Row]) -> Self {
        // In most studies all rows have the same number of epochs, so nothing is compared below.
        let mut others = rows.iter().filter(|other| other.epochs != row.epochs);
        let is_varied = others.any(|other| {
            Row { epochs: row.epochs, ..other.clone() }.experiment_key() == row.experiment_key()
        });
        let epochs = if is_varied { row.epochs } else { None };
        let mut settings = row.settings.clone();
        settings.extend(epochs.map(|epochs| Setting::new(EPOCHS, epochs.to_string())));
        settings.extend(row.scale.map(|scale| Setting::new(SCALE, scale.to_string())));
        settings.sort();
        Experiment { processes: row.accelerators, settings }
    }

    /// Returns the folder name. Settings that are too long for it are replaced by a hash, which cannot be parsed.
    pub fn id(&self) -> String {
        if self.settings.is_empty() {
            return self.processes.to_string();
        }
        let single = self.single_setting_id().filter(|id| Self::parse(id).as_ref() == Some(self));
        let id = single.unwrap_or_else(|| {
            let parts: Vec<String> = self.settings.iter().map(format_part).collect();
            format!("{}_{}", self.processes, parts.join(","))
        });
        if id.len() <= ID_BYTES_MAX {
            id
        } else {
            format!("{}_{:016x}", self.processes, fnv1a(&id))
        }
    }

    /// Formats the name of an experiment with a single setting.
    fn single_setting_id(&self) -> Option<String> {
        let [setting] = self.settings.as_slice() else { return None };
        let value = setting.value.as_ref()?;
        Some(format!("{}_{}_{}", self.processes, setting.short_key(), escape(value)))
    }

    /// Parses a folder name.
    pub fn parse(id: &str) -> Option<Self> {
        let (processes, rest) = id.split_once('_').unwrap_or((id, ""));
        let processes = processes.parse().ok()?;
        let settings = if rest.contains('=') || rest.starts_with('~') {
            rest.split(',').map(parse_part).collect::<Option<_>>()?
        } else if rest.is_empty() {
            Vec::new()
        } else {
            vec![parse_single_setting(rest)?]
        };
        Some(Experiment { processes, settings })
    }
}

fn parse_part(part: &str) -> Option<Setting> {
    match part.strip_prefix('~') {
        Some(key) => Some(Setting { key: expand_key(&unescape(key)?), value: None }),
        None => {
            let (key, value) = part.split_once('=')?;
            Some(Setting::new(expand_key(&unescape(key)?), unescape(value)?))
        }
    }
}

fn format_part(setting: &Setting) -> String {
    let key = escape(setting.short_key());
    match &setting.value {
        Some(value) => format!("{key}={}", escape(value)),
        None => format!("~{key}"),
    }
}

/// Parses `batch_size_1`: the longest prefix that is a known key is the key.
fn parse_single_setting(text: &str) -> Option<Setting> {
    let splits = text.match_indices('_').map(|(index, _)| text.split_at(index));
    let mut known = splits.filter_map(|(key, value)| Some((known_key(key)?, &value[1..])));
    let (key, value) = known.next_back()?;
    Some(Setting::new(key, unescape(value)?))
}

/// Returns the workload key for a short or full key; `None` if there is none.
fn known_key(key: &str) -> Option<&'static str> {
    key_of_leaf(key).or_else(|| KEYS.iter().map(|known| known.path).find(|path| *path == key))
}

/// Returns the full key for a short key, and other keys unchanged.
fn expand_key(key: &str) -> String {
    key_of_leaf(key).unwrap_or(key).to_string()
}

/// 64-bit FNV-1a (Fowler, Noll, Vo).
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-+".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(settings: &[&str], expected: &str) {
        let settings = settings.iter().map(|text| Setting::parse(text).unwrap()).collect();
        let row = Row { settings, ..Row::new("unet3d_h100_custom", 4) };
        let experiment = Experiment::new(&row, std::slice::from_ref(&row));
        assert_eq!(experiment.id(), expected);
        assert_eq!(Experiment::parse(expected), Some(experiment));
    }

    #[test]
    fn settings_too_long_for_a_folder_are_hashed() {
        let setting = |value: &str| Setting::new("reader.stage", value.repeat(50));
        let id = |value| Experiment { processes: 4, settings: vec![setting(value)] }.id();
        assert!(id("/long").len() == 18 && id("/long") != id("/other"));
        assert_eq!(Experiment::parse(&id("/long")), None);
    }

    #[test]
    fn names_have_the_documented_form_and_parse_back() {
        check(&[], "4");
        check(&["++workload.reader.batch_size=1"], "4_batch_size_1");
        check(&["++workload.workflow.checkpoint=False"], "4_checkpoint_False");
        check(
            &["++workload.dataset.record_length_bytes=10485760"],
            "4_record_length_bytes_10485760",
        );
        check(&["reader.read_threads=8", "reader.batch_size=1"], "4_batch_size=1,read_threads=8");
        check(&["~workload.reader.prefetch_size"], "4_~prefetch_size");
        check(&["study.cache=cold"], "4_study.cache=cold");
        check(&["dataset.data_folder=/mnt/a b"], "4_data_folder_%2Fmnt%2Fa%20b");
    }

    #[test]
    fn epochs_are_named_if_rows_differ_in_nothing_else() {
        let row = |epochs| Row { epochs: Some(epochs), ..Row::new("w", 2) };
        let rows = [row(3), row(5), Row { epochs: Some(5), ..Row::new("w", 4) }];
        let ids: Vec<String> = rows.iter().map(|row| Experiment::new(row, &rows).id()).collect();
        assert_eq!(ids, ["2_epochs_3", "2_epochs_5", "4"]);
    }

    #[test]
    fn a_scale_is_part_of_the_name() {
        let row = Row { scale: Some(0.25), ..Row::new("w", 2) };
        let experiment = Experiment::new(&row, &[]);
        assert_eq!(experiment.id(), "2_study.scale=0.25");
        assert_eq!(Experiment::parse("2_study.scale=0.25"), Some(experiment));
    }

    #[test]
    fn invalid_names_are_not_parsed() {
        for text in ["", "four", "4_nothing_known", "4_%zz=1"] {
            assert_eq!(Experiment::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_parses_back(
            processes in 1_u32..9,
            chosen in proptest::collection::btree_map(0..KEYS.len(), "[ -~]{0,12}|é=,_%", 0..4),
        ) {
            let mut settings: Vec<Setting> =
                chosen.into_iter().map(|(key, value)| Setting::new(KEYS[key].path, value)).collect();
            settings.sort();
            let experiment = Experiment { processes, settings };
            let id = experiment.id();
            prop_assert!(!id.contains('/'));
            prop_assert_eq!(Experiment::parse(&id), Some(experiment));
        }
    }
}
