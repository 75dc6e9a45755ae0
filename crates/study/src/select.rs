//! Selects rows of a study: the order in which they run, and the rows that match a pattern.

use feedrate_results::experiment::Experiment;
use feedrate_results::place::{label, model_name};
use feedrate_results::row::Row;

/// Indices of rows in the order in which they run: first by their column `order`, then rows without an order as in the file.
pub fn run_order(rows: &[Row]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..rows.len()).collect();
    indices.sort_by_key(|&i| (rows[i].order.is_none(), rows[i].order, i));
    indices
}

/// Whether a pattern in `only` matches a row, or `only` is empty. A pattern is the row's number in the file (`#6`), or a model, an experiment, both, or a
/// label; `*` matches any text.
pub fn is_selected(only: &[String], index: usize, row: &Row, rows: &[Row]) -> bool {
    if only.is_empty() {
        return true;
    }
    let model = model_name(&row.model);
    let id = Experiment::new(row, rows).id();
    let both = format!("{model}/{id}");
    let label = label(row, rows);
    only.iter().any(|pattern| match pattern.strip_prefix('#') {
        Some(number) => number.parse() == Ok(index + 1),
        None => [&model, &id, &both, &label].iter().any(|name| matches_pattern(pattern, name)),
    })
}

/// Whether `text` matches `pattern`, in which `*` matches any text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(tail) = text.strip_prefix(head) else { return false };
    (0..=tail.len())
        .filter(|&start| tail.is_char_boundary(start))
        .any(|start| matches_pattern(rest, &tail[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_results::setting::Setting;

    #[test]
    fn rows_are_sorted_by_order_then_as_in_the_file() {
        let row = |order| Row { order, ..Row::new("w", 1) };
        assert_eq!(run_order(&[row(None), row(Some(2)), row(Some(1)), row(None)]), [2, 1, 0, 3]);
    }

    #[test]
    fn rows_are_selected_by_number_model_and_experiment() {
        let row =
            Row { settings: vec![Setting::new("reader.batch_size", "1")], ..Row::new("unet3d", 4) };
        let rows = [row.clone()];
        for (pattern, expected) in [
            ("#3", true),
            ("#1", false),
            ("unet3d", true),
            ("unet", false),
            ("4_batch_size_1", true),
            ("unet3d/4_batch_size_1", true),
            ("*batch*", true),
            ("u*/4*1", true),
            ("*4", false),
        ] {
            assert_eq!(is_selected(&[pattern.into()], 2, &row, &rows), expected, "{pattern}");
        }
        assert!(is_selected(&[], 2, &row, &rows));
    }
}
