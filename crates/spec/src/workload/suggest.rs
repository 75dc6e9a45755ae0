//! The known word nearest to a misspelt one. A far one is not offered.

/// Longer words are not compared.
const LENGTH_MAX: usize = 100;
/// Letters of a beginning that is taken for the word.
const PREFIX_LEAST: usize = 3;

/// The candidate that `word` most likely meant: spelt nearly the same, or the only one that begins with it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let wanted = word.to_ascii_lowercase();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates.iter().filter_map(|candidate| {
        let distance = strsim::osa_distance(&wanted, &candidate.to_ascii_lowercase());
        let far = (wanted.len().max(candidate.len()) / 4).clamp(1, 6);
        (distance <= far).then_some((distance, *candidate))
    });
    if let Some((_, candidate)) = near.min_by_key(|(distance, _)| *distance) {
        return Some(candidate);
    }
    let mut begun = candidates.iter().filter(|one| one.starts_with(&wanted));
    let first = begun.next().copied();
    if PREFIX_LEAST <= wanted.len() && begun.next().is_none() { first } else { None }
}

/// The candidates that `word` may have meant: those that begin with it, else the one spelt nearly the same, else those that hold it.
pub fn alike<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let wanted = word.to_ascii_lowercase();
    // Of shorter words too many candidates begin with them, or hold them.
    let mut holding = candidates.clone();
    holding
        .retain(|one| PREFIX_LEAST <= wanted.len() && one.to_ascii_lowercase().contains(&wanted));
    let mut begun = holding.clone();
    begun.retain(|one| one.to_ascii_lowercase().starts_with(&wanted));
    if !begun.is_empty() {
        return begun;
    }
    nearest(word, candidates).map_or(holding, |near| vec![near])
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

/// The last word of a dotted key.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_offered_where_one_candidate_has_it() {
        let names = ["full_factorial", "fractional", "unet3d_a100", "unet3d_h100"];
        assert_eq!(nearest("full", names), Some("full_factorial"));
        assert_eq!(nearest("unet3d", names), None);
        assert_eq!(nearest("fu", names), None);
    }

    #[test]
    fn names_alike_are_all_offered() {
        let names = ["unet3d_a100", "unet3d_h100", "bert_v100", "cosmoflow_a100"];
        assert_eq!(alike("unet3d", names), ["unet3d_a100", "unet3d_h100"]);
        assert_eq!(alike("unet3d_h10O", names), ["unet3d_h100"]);
        assert_eq!(alike("A100", names), ["unet3d_a100", "cosmoflow_a100"]);
        assert!(alike("un", names).is_empty() && alike("", names).is_empty());
    }

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
