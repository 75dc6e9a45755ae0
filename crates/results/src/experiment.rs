//! The name of an experiment: what rows that replicate each other have in common, as a folder's name that can be read back.
//!
//! Without settings it is the number of processes (`4`), with one it is the study's own form (`4_batch_size_1`), with several
//! `4_batch_size=1,read_threads=8`. What a name cannot hold as it is, is written as `%` and two hexadecimal digits.

use crate::row::Row;
use crate::setting::{Setting, key_of_leaf};
use feedrate_spec::workload::KEYS;
use std::fmt::Write;

/// The settings that a row's columns stand for.
const EPOCHS: &str = "train.epochs";
const SCALE: &str = "study.scale";

/// Longest name; file systems allow 255 bytes.
const ID_BYTES_MAX: usize = 240;

/// Settings of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Emulated accelerators.
    pub processes: u32,
    /// In the order of their keys. Epochs are among them only where rows differ in nothing else, as in the study.
    pub settings: Vec<Setting>,
}

impl Experiment {
    /// The experiment of `row` in a study of `rows`.
    pub fn new(row: &Row, rows: &[Row]) -> Self {
        // Of most studies all rows have the same epochs.
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

    /// Its name. Settings that are too long for the name of a folder are replaced by a hash, which cannot be read back.
    pub fn id(&self) -> String {
        if self.settings.is_empty() {
            return self.processes.to_string();
        }
        let single = self.id_of_one().filter(|id| Self::parse(id).as_ref() == Some(self));
        let id = single.unwrap_or_else(|| {
            let parts: Vec<String> = self.settings.iter().map(part).collect();
            format!("{}_{}", self.processes, parts.join(","))
        });
        if id.len() <= ID_BYTES_MAX {
            id
        } else {
            format!("{}_{:016x}", self.processes, fnv1a(&id))
        }
    }

    /// As the study wrote it where one thing is set.
    fn id_of_one(&self) -> Option<String> {
        let [setting] = self.settings.as_slice() else { return None };
        let value = setting.value.as_ref()?;
        Some(format!("{}_{}_{}", self.processes, setting.short_key(), escaped(value)))
    }

    /// Read a name back.
    pub fn parse(id: &str) -> Option<Self> {
        let (processes, rest) = id.split_once('_').unwrap_or((id, ""));
        let processes = processes.parse().ok()?;
        let settings = if rest.contains('=') || rest.starts_with('~') {
            rest.split(',').map(setting_of_part).collect::<Option<_>>()?
        } else if rest.is_empty() {
            Vec::new()
        } else {
            vec![setting_of_one(rest)?]
        };
        Some(Experiment { processes, settings })
    }
}

fn setting_of_part(part: &str) -> Option<Setting> {
    match part.strip_prefix('~') {
        Some(key) => Some(Setting { key: key_of(&unescaped(key)?), value: None }),
        None => {
            let (key, value) = part.split_once('=')?;
            Some(Setting::new(key_of(&unescaped(key)?), unescaped(value)?))
        }
    }
}

fn part(setting: &Setting) -> String {
    let key = escaped(setting.short_key());
    match &setting.value {
        Some(value) => format!("{key}={}", escaped(value)),
        None => format!("~{key}"),
    }
}

/// `batch_size_1`: the longest key that it can begin with, and the rest.
fn setting_of_one(text: &str) -> Option<Setting> {
    let cuts = text.match_indices('_').map(|(at, _)| text.split_at(at));
    let mut known = cuts.filter_map(|(key, value)| Some((full_key(key)?, &value[1..])));
    let (key, value) = known.next_back()?;
    Some(Setting::new(key, unescaped(value)?))
}

/// A short key, or one of several words, as the key of a workload.
fn full_key(key: &str) -> Option<&'static str> {
    key_of_leaf(key).or_else(|| KEYS.iter().map(|known| known.path).find(|path| *path == key))
}

fn key_of(key: &str) -> String {
    key_of_leaf(key).unwrap_or(key).to_string()
}

/// 64-bit FNV-1a (Fowler, Noll, Vo).
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn escaped(text: &str) -> String {
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

fn unescaped(text: &str) -> Option<String> {
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
    fn names_are_those_of_the_study_and_can_be_read_back() {
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
    fn epochs_are_named_where_rows_differ_in_nothing_else() {
        let row = |epochs| Row { epochs: Some(epochs), ..Row::new("w", 2) };
        let rows = [row(3), row(5), Row { epochs: Some(5), ..Row::new("w", 4) }];
        let ids: Vec<String> = rows.iter().map(|row| Experiment::new(row, &rows).id()).collect();
        assert_eq!(ids, ["2_epochs_3", "2_epochs_5", "4"]);
    }

    #[test]
    fn a_scale_is_named() {
        let row = Row { scale: Some(0.25), ..Row::new("w", 2) };
        let experiment = Experiment::new(&row, &[]);
        assert_eq!(experiment.id(), "2_study.scale=0.25");
        assert_eq!(Experiment::parse("2_study.scale=0.25"), Some(experiment));
    }

    #[test]
    fn what_is_no_name_is_not_read() {
        for text in ["", "four", "4_nothing_known", "4_%zz=1"] {
            assert_eq!(Experiment::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_read_back(
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
