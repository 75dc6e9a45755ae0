//! Other words for keys: the last word alone, and those of PyTorch and other tools.

use super::keys::{KEYS, KeyInfo, Origin};
use super::suggest::last;

/// Words of other programs, and what is said of each where it is given as a key.
const OTHERS: &[(&[&str], &str)] = &[
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
/// Names of the number of reading threads elsewhere.
const WORKERS: &[&str] = &["num_workers", "workers"];

/// The hint for a key that another program has.
pub(super) fn of_others(path: &str) -> Option<&'static str> {
    let word = last(path);
    OTHERS.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// An override with the whole key, where its last word alone was typed, or PyTorch's for it; and that key.
pub fn with_whole_key(text: &str) -> Option<(String, &'static str)> {
    let rest = text.trim_start_matches(['+', '~']);
    if !text.contains('=') && !text.starts_with('~') {
        return None;
    }
    let (typed, value) = rest.split_at(rest.find('=').unwrap_or(rest.len()));
    let typed = typed.trim();
    let key = key_of_word(typed.strip_prefix("workload.").unwrap_or(typed))?;
    let action = &text[..text.len() - rest.len()];
    Some((format!("{action}{key}{value}"), key))
}

/// The key that is meant by its last word alone, or by PyTorch's for it; `None` where that is not the only one, and of keys as they are.
fn key_of_word(word: &str) -> Option<&'static str> {
    let (section, own) = word.rsplit_once('.').unwrap_or(("", word));
    if WORKERS.contains(&own) && ["", "loader", "reader", "data_reader"].contains(&section) {
        return Some("reader.read_threads");
    }
    let is_known = |key: &&KeyInfo| key.path == word || key.path.split('.').next() == Some(word);
    if !section.is_empty() || KEYS.iter().any(|key| is_known(&key)) {
        return None;
    }
    let mut keys =
        KEYS.iter().filter(|key| key.origin != Origin::Ignored && last(key.path) == word);
    let first = keys.next()?;
    keys.next().is_none().then_some(first.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_called_by_its_last_word() {
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
            assert_eq!(key_of_word(word), expected, "{word}");
        }
    }

    #[test]
    fn overrides_keep_all_but_the_key() {
        for (text, expected) in [
            ("++workload.num_workers=4", "++reader.read_threads=4"),
            ("read_threads=1,2", "reader.read_threads=1,2"),
            ("~epochs", "~train.epochs"),
        ] {
            assert_eq!(with_whole_key(text).unwrap().0, expected);
        }
        for other in ["reader.batch_size=num_workers", "data", "my.yaml", ""] {
            assert_eq!(with_whole_key(other), None);
        }
    }

    #[test]
    fn words_of_other_programs_have_keys_of_ours() {
        for (words, hint) in OTHERS {
            let named = hint.split('`').nth(1).unwrap();
            assert!(KEYS.iter().any(|key| key.path == named), "{hint}");
            for word in *words {
                assert!(KEYS.iter().all(|key| last(key.path) != *word), "{word}");
            }
        }
        assert!(of_others("reader.prefetch_factor").is_some() && of_others("colour").is_none());
    }
}
