//! Finds known words that are similar to a misspelt word.

/// Maximum number of names in a hint.
const HINT_NAMES_MAX: usize = 10;
/// Maximum length of words that are compared.
const LENGTH_MAX: usize = 100;
/// Minimum length of a part of a word that is accepted for the whole word.
const PREFIX_MIN: usize = 3;

/// Returns the candidate that `word` most likely means: the candidate with the most similar spelling, else the only candidate that begins
/// with `word`.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower_case = word.to_ascii_lowercase();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(candidate) = nearest_spelling(word, candidates.iter().copied()) {
        return Some(candidate);
    }
    let mut with_prefix = candidates.iter().filter(|candidate| candidate.starts_with(&lower_case));
    let first = with_prefix.next().copied();
    let has_length = (PREFIX_MIN..=LENGTH_MAX).contains(&lower_case.len());
    if has_length && with_prefix.next().is_none() { first } else { None }
}

/// Returns the candidate with the most similar spelling, if it is similar enough.
fn nearest_spelling<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let lower_case = word.to_ascii_lowercase();
    let similar = candidates.into_iter().filter_map(|candidate| {
        let distance = strsim::osa_distance(&lower_case, &candidate.to_ascii_lowercase());
        let distance_max = (lower_case.len().max(candidate.len()) / 4).clamp(1, 6);
        (distance <= distance_max).then_some((distance, candidate))
    });
    similar.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Returns the candidates that `word` may mean: all that begin with `word`, else the candidate with the most similar spelling, else all
/// that contain `word`.
pub fn similar_names<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let lower_case = word.to_ascii_lowercase();
    // Shorter words occur in too many candidates.
    let mut containing = candidates.clone();
    containing.retain(|candidate| {
        PREFIX_MIN <= lower_case.len() && candidate.to_ascii_lowercase().contains(&lower_case)
    });
    let mut with_prefix = containing.clone();
    with_prefix.retain(|candidate| candidate.to_ascii_lowercase().starts_with(&lower_case));
    if !with_prefix.is_empty() {
        return with_prefix;
    }
    nearest(word, candidates).map_or(containing, |candidate| vec![candidate])
}

/// Returns the dotted key that `path` most likely means: the only key that begins with it, else the only key with the same last word, else
/// a key with a similar spelling.
pub(super) fn nearest_key<'a>(path: &str, keys: &[&'a str]) -> Option<&'a str> {
    if path.len() > LENGTH_MAX {
        return None;
    }
    let word = last_word(path);
    let section = path.strip_suffix(word).filter(|section| !section.is_empty());
    // The beginning of a key of the given section is meant rather than the same word of another section.
    let mut longer = keys
        .iter()
        .copied()
        .filter(|key| section.is_some() && PREFIX_MIN <= word.len() && key.starts_with(path));
    if let (Some(only), None) = (longer.next(), longer.next()) {
        return Some(only);
    }
    let mut same_word = keys.iter().copied().filter(|key| last_word(key) == word);
    if let (Some(only), None) = (same_word.next(), same_word.next()) {
        return Some(only);
    }
    nearest(path, keys.iter().copied()).or_else(|| {
        let is_known =
            section.is_some_and(|section| keys.iter().any(|key| key.starts_with(section)));
        let words = keys.iter().map(|key| last_word(key));
        // The beginning of a word in another section than the given one is hardly meant.
        let similar_word =
            if is_known { nearest_spelling(word, words) } else { nearest(word, words) }?;
        let mut similar = keys.iter().copied().filter(|key| last_word(key) == similar_word);
        let first = similar.next();
        if similar.next().is_none() { first } else { None }
    })
}

/// Returns the last word of a dotted key.
pub(super) fn last_word(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Joins names as "`a`, `b` or `c`"; `None` if there are no names.
pub fn alternatives(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> =
        names.iter().take(HINT_NAMES_MAX).map(|name| format!("`{name}`")).collect();
    let (last, first) = quoted.split_last()?;
    Some(if first.is_empty() { last.clone() } else { format!("{} or {last}", first.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_prefix_finds_its_candidate() {
        let names = ["full_factorial", "fractional", "unet3d_a100", "unet3d_h100"];
        assert_eq!(nearest("full", names), Some("full_factorial"));
        assert_eq!(nearest("unet3d", names), None);
        assert_eq!(nearest("fu", names), None);
    }

    #[test]
    fn all_similar_names_are_found() {
        let names = ["unet3d_a100", "unet3d_h100", "bert_v100", "cosmoflow_a100"];
        assert_eq!(similar_names("unet3d", names), ["unet3d_a100", "unet3d_h100"]);
        assert_eq!(similar_names("unet3d_h10O", names), ["unet3d_h100"]);
        assert_eq!(similar_names("A100", names), ["unet3d_a100", "cosmoflow_a100"]);
        assert!(similar_names("un", names).is_empty() && similar_names("", names).is_empty());
    }

    #[test]
    fn only_similar_keys_are_found() {
        let keys = [
            "reader.batch_size",
            "reader.batch_size_eval",
            "train.epochs",
            "model.name",
            "a.x",
            "b.x",
            "expect.bytes_per_second",
            "reader.head.bytes",
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
        check("model.bat", None);
        check("models.nam", Some("model.name"));
        check("expect.bytes", Some("expect.bytes_per_second"));
        check("storage.bytes", Some("reader.head.bytes"));
        check("colour", None);
        check("", None);
        check(&"y".repeat(5000), None);
    }
}
