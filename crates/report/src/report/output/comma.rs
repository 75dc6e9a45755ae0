//! Lines of a CSV, in quotes where they need them.

/// A heading and rows.
pub(super) fn lines<I, F>(heading: &[&str], rows: I) -> String
where
    I: IntoIterator<Item = F>,
    F: IntoIterator<Item = String>,
{
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only where rows differ in length, which they do not.
    let _ = writer.write_record(heading);
    for row in rows {
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// A number in full; nothing where there is none.
pub(super) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or(String::new(), |value| value.to_string())
}
