//! The known word nearest to a misspelt one. A far one is not offered.

/// Longer words are not compared.
const LENGTH_MAX: usize = 100;

/// The candidate that `word` most likely meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let wanted = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::osa_distance(&wanted, &candidate.to_ascii_lowercase()), candidate)
        })
        .filter(|(distance, candidate)| {
            *distance <= (wanted.len().max(candidate.len()) / 4).clamp(1, 6)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The dotted key that `path` most likely meant: spelt nearly the same, or the right word in the wrong section.
pub(super) fn nearest_key<'a>(path: &str, keys: &[&'a str]) -> Option<&'a str> {
    if path.len() > LENGTH_MAX {
        return None;
    }
    let word = last(path);
    let mut same_word = keys.iter().copied().filter(|key| last(key) == word);
    if let (Some(only), None) = (same_word.next(), same_word.next()) {
        return Some(only);
    }
    nearest(path, keys.iter().copied()).or_else(|| {
        let found = nearest(word, keys.iter().map(|key| last(key)))?;
        let mut of_word = keys.iter().copied().filter(|key| last(key) == found);
        let first = of_word.next();
        if of_word.next().is_none() { first } else { None }
    })
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_keys_are_offered_and_far_ones_are_not() {
        let keys = [
            "reader.batch_size",
            "reader.batch_size_eval",
            "train.epochs",
            "model.name",
            "a.x",
            "b.x",
        ];
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(nearest_key(path, &keys), expected, "{path}")
        };
        check("reader.batchsize", Some("reader.batch_size"));
        check("Reader.Batch_Size", Some("reader.batch_size"));
        check("batch_size", Some("reader.batch_size"));
        check("train.batch_size", Some("reader.batch_size"));
        check("epoch", Some("train.epochs"));
        check("x", None);
        check("colour", None);
        check("", None);
        check(&"y".repeat(5000), None);
    }
}
