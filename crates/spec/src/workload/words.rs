//! Alternative names of keys: the last word alone, and the names that PyTorch and other tools use.

use super::keys::{KEYS, KeyInfo, Origin};
use super::suggest::last_word;

/// Key names of other programs, and the hint for each.
const FOREIGN_KEYS: &[(&[&str], &str)] = &[
    (WORKERS, "did you mean `reader.read_threads`?"),
    (
        &["prefetch_factor"],
        "`reader.prefetch_size` counts the batches of all workers: `prefetch_factor` times `num_workers`",
    ),
    (&["shuffle"], "did you mean `reader.file_shuffle` or `reader.sample_shuffle`?"),
    (&["steps", "max_steps"], "did you mean `train.total_training_steps`?"),
    (&["step_time", "compute_time"], "did you mean `train.computation_time`, in seconds?"),
    (
        &["gpus", "num_gpus", "num_accelerators", "processes", "world_size"],
        "did you mean `accelerators`, or `-n`?",
    ),
];
/// Names of the number of reading threads in other programs.
const WORKERS: &[&str] = &["num_workers", "workers"];

/// Returns the hint for a key of another program.
pub(super) fn hint_for_foreign_key(path: &str) -> Option<&'static str> {
    let word = last_word(path);
    FOREIGN_KEYS.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// Completes an override if its key is only the last word of a key, or a name from PyTorch. Returns the override and its key; `None` if
/// the key is complete or unknown.
pub fn with_full_key(text: &str) -> Option<(String, &'static str)> {
    let rest = text.trim_start_matches(['+', '~']);
    if !text.contains('=') && !text.starts_with('~') {
        return None;
    }
    let (before_value, value) = rest.split_at(rest.find('=').unwrap_or(rest.len()));
    let typed = before_value.trim();
    let key = key_for_word(typed.strip_prefix("workload.").unwrap_or(typed))?;
    let action = &text[..text.len() - rest.len()];
    Some((format!("{action}{key}{value}"), key))
}

/// Returns the only key with this last word, or with this name in PyTorch; `None` if the word is a complete key or ambiguous.
fn key_for_word(word: &str) -> Option<&'static str> {
    let (section, last) = word.rsplit_once('.').unwrap_or(("", word));
    if WORKERS.contains(&last) && ["", "loader", "reader", "data_reader"].contains(&section) {
        return Some("reader.read_threads");
    }
    let is_known = |key: &&KeyInfo| key.path == word || key.path.split('.').next() == Some(word);
    if !section.is_empty() || KEYS.iter().any(|key| is_known(&key)) {
        return None;
    }
    let mut keys =
        KEYS.iter().filter(|key| key.origin != Origin::Ignored && last_word(key.path) == word);
    let first = keys.next()?;
    keys.next().is_none().then_some(first.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_key_is_enough() {
        for (word, expected) in [
            ("read_threads", Some("reader.read_threads")),
            ("num_workers", Some("reader.read_threads")),
            ("loader.workers", Some("reader.read_threads")),
            ("reader.num_workers", Some("reader.read_threads")),
            ("train.num_workers", None),
            ("batch_size", Some("reader.batch_size")),
            ("reader.batch_size", None),
            ("accelerators", None),
            ("client", None),
            ("prefetch_factor", None),
            ("name", None),
            ("", None),
        ] {
            assert_eq!(key_for_word(word), expected, "{word}");
        }
    }

    #[test]
    fn completion_changes_only_the_key_of_an_override() {
        for (text, expected) in [
            ("++workload.num_workers=4", "++reader.read_threads=4"),
            ("read_threads=1,2", "reader.read_threads=1,2"),
            ("~epochs", "~train.epochs"),
        ] {
            assert_eq!(with_full_key(text).unwrap().0, expected);
        }
        for other in ["reader.batch_size=num_workers", "data", "my.yaml", ""] {
            assert_eq!(with_full_key(other), None);
        }
    }

    #[test]
    fn hints_for_foreign_keys_suggest_existing_keys() {
        for (words, hint) in FOREIGN_KEYS {
            let suggested_key = hint.split('`').nth(1).unwrap();
            assert!(KEYS.iter().any(|key| key.path == suggested_key), "{hint}");
            for word in *words {
                assert!(KEYS.iter().all(|key| last_word(key.path) != *word), "{word}");
            }
        }
        assert!(hint_for_foreign_key("reader.prefetch_factor").is_some());
        assert!(hint_for_foreign_key("colour").is_none());
    }
}
