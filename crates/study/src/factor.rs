//! Defines the factors of a design and their levels, and writes levels to rows. The designs decide which levels are combined.

use feedrate_results::row::Row;
use feedrate_results::setting::{self, STUDY_PREFIX, Setting, parse_number};
use feedrate_results::table::PROCESSES_MAX;
use feedrate_spec::problem::Problem;

/// A factor: a setting that a design varies.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFactor {
    /// Name in tables.
    pub name: String,
    /// A column of the study, a key of the workload, or a setting of the study.
    pub key: String,
    /// Levels; of two levels, the low one first.
    pub levels: Vec<String>,
    /// Spacing of numbers between the levels.
    pub scale: Spacing,
    /// Level of the baseline; `None` if unknown.
    pub baseline: Option<String>,
}

/// Spacing of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences.
    Linear,
    /// Equal ratios.
    Log,
}

impl StudyFactor {
    /// The smallest and the largest level. `None` if a level is not a number, all levels are equal, or a logarithmic scale would start at or below 0.
    pub fn range(&self) -> Option<(f64, f64)> {
        let numbers: Option<Vec<f64>> =
            self.levels.iter().map(|level| parse_number(level)).collect();
        let numbers = numbers?;
        let low = numbers.iter().copied().reduce(f64::min)?;
        let high = numbers.iter().copied().reduce(f64::max)?;
        let is_range = low < high && (self.scale == Spacing::Linear || low > 0.0);
        is_range.then_some((low, high))
    }

    /// The number in the middle of the range; `None` without a range.
    pub fn centre(&self) -> Option<String> {
        let (low, high) = self.range()?;
        Some(text(interpolate(low, high, self.scale, 0.5), self.has_integer_levels()))
    }

    fn has_integer_levels(&self) -> bool {
        self.levels.iter().all(|level| level.parse::<i64>().is_ok())
    }

    /// Whether this is the level of the baseline. False if the baseline's level is unknown.
    pub fn is_baseline(&self, level: &str) -> bool {
        self.baseline.as_deref().is_some_and(|baseline| StudyFactor::is_same(baseline, level))
    }

    /// Whether two levels are equal for a workload: as text without case, or as numbers.
    pub fn is_same(first: &str, second: &str) -> bool {
        first.eq_ignore_ascii_case(second)
            || parse_number(first).is_some_and(|value| parse_number(second) == Some(value))
    }
}

/// Returns `count` evenly spaced numbers from `low` to `high`, both included, rounded to integers if `is_integer`.
pub(crate) fn steps(
    low: f64,
    high: f64,
    scale: Spacing,
    count: u32,
    is_integer: bool,
) -> Vec<String> {
    let shares = (0..count).map(|i| f64::from(i) / f64::from(count - 1));
    shares.map(|share| text(interpolate(low, high, scale, share), is_integer)).collect()
}

/// The number at `share` of the way from `low` to `high`.
fn interpolate(low: f64, high: f64, scale: Spacing, share: f64) -> f64 {
    match scale {
        Spacing::Linear => low + (high - low) * share,
        Spacing::Log => low * (high / low).powf(share),
    }
}

/// Writes a level with six significant digits, which hide the differences between mathematics libraries.
fn text(value: f64, is_integer: bool) -> String {
    if is_integer {
        return format!("{:.0}", value.round());
    }
    let short = format!("{value:.5e}");
    short.parse::<f64>().map_or(short, |value| value.to_string())
}

/// Columns of a study that a factor can vary.
pub(crate) const COLUMNS: [&str; 6] =
    ["processes", "accelerators", "epochs", "model", "seed", "scale"];

/// Returns the usual name of a column, or a key without its prefix `workload.`.
pub(crate) fn canonical(key: &str) -> &str {
    let key = key.strip_prefix("workload.").unwrap_or(key);
    if key == "accelerators" { "processes" } else { key }
}

/// Sets `key` of a row to `level`, in its column or as an override. An earlier override of the key is replaced.
///
/// # Errors
/// The column does not accept the level.
pub fn set_level(row: &mut Row, key: &str, level: &str) -> Result<(), Problem> {
    if COLUMNS.contains(&key) {
        return set_column(row, key, level)
            .map_err(|expected| Problem::error(key, format!("`{level}` is not {expected}")));
    }
    let setting = Setting::new(key, level);
    match row.settings.iter_mut().find(|known| known.key == key) {
        Some(known) => *known = setting,
        None => row.settings.push(setting),
    }
    Ok(())
}

/// Sets a column. The error describes the accepted values.
fn set_column(row: &mut Row, column: &str, level: &str) -> Result<(), &'static str> {
    match column {
        "epochs" => row.epochs = Some(parse_positive(level)?),
        "model" if level.is_empty() => return Err("a name"),
        "model" => row.model = level.into(),
        "seed" => row.seed = Some(level.parse().map_err(|_| "a whole number from 0 up")?),
        "scale" => {
            let share = parse_number(level).filter(|share| *share > 0.0 && *share <= 1.0);
            row.scale = Some(share.ok_or("a share above 0 and at most 1")?);
        }
        _ => {
            let fits = Some(parse_positive(level)?).filter(|&n| n <= PROCESSES_MAX);
            row.accelerators = fits.ok_or("a number of processes")?;
        }
    }
    Ok(())
}

fn parse_positive(level: &str) -> Result<u32, &'static str> {
    level.parse().ok().filter(|&n| n > 0).ok_or("a whole number from 1 up")
}

/// The level of `key` in a row; `None` if the row does not set it.
pub(crate) fn row_level(row: &Row, key: &str) -> Option<String> {
    match key {
        "processes" => Some(row.accelerators.to_string()),
        "epochs" => row.epochs.map(|epochs| epochs.to_string()),
        "model" => Some(row.model.clone()),
        "seed" => row.seed.map(|seed| seed.to_string()),
        "scale" => row.scale.map(|scale| scale.to_string()),
        _ => row.settings.iter().find(|setting| setting.key == key)?.value.clone(),
    }
}

/// Formats a level as it is written in a row. Levels of workload keys are quoted like values of overrides, except for lists and maps.
pub(crate) fn format_level(key: &str, level: &str) -> String {
    let is_bare =
        COLUMNS.contains(&key) || key.starts_with(STUDY_PREFIX) || level.starts_with(['[', '{']);
    if is_bare { level.to_string() } else { setting::quote(level) }
}

/// Explains why a level cannot be written in a row; `None` if it can.
pub(crate) fn unwritable_reason(level: &str) -> Option<&'static str> {
    if level.chars().any(char::is_control) {
        return Some("it contains a control character");
    }
    (level.contains('\'') && level.contains('"')).then_some("it contains both kinds of quotes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(levels: &[&str], scale: Spacing) -> StudyFactor {
        StudyFactor {
            name: "f".into(),
            key: "reader.batch_size".into(),
            levels: levels.iter().map(|level| level.to_string()).collect(),
            scale,
            baseline: None,
        }
    }

    #[test]
    fn the_centre_is_an_arithmetic_or_geometric_mean_and_an_integer_between_integers() {
        for (levels, scale, expected) in [
            (["1", "9"], Spacing::Linear, Some("5")),
            (["1", "8"], Spacing::Linear, Some("5")),
            (["1", "16"], Spacing::Log, Some("4")),
            (["0.1", "0.4"], Spacing::Linear, Some("0.25")),
            (["0.1", "0.4"], Spacing::Log, Some("0.2")),
            (["npz", "png"], Spacing::Linear, None),
            (["0", "4"], Spacing::Log, None),
        ] {
            let centre = factor(&levels, scale).centre();
            assert_eq!(centre.as_deref(), expected, "{levels:?} {scale:?}");
        }
    }

    #[test]
    fn steps_have_equal_differences_or_ratios() {
        assert_eq!(steps(1.0, 1000.0, Spacing::Log, 4, true), ["1", "10", "100", "1000"]);
        assert_eq!(steps(0.0, 1.0, Spacing::Linear, 3, false), ["0", "0.5", "1"]);
    }

    #[test]
    fn a_level_is_set_in_its_column_or_as_an_override() {
        let mut row = Row::new("unet3d", 1);
        for (key, level) in
            [("processes", "4"), ("epochs", "2"), ("seed", "7"), ("scale", "0.5"), ("model", "m")]
        {
            set_level(&mut row, key, level).unwrap();
            assert_eq!(row_level(&row, key).as_deref(), Some(level));
        }
        set_level(&mut row, "reader.batch_size", "4").unwrap();
        set_level(&mut row, "reader.batch_size", "7").unwrap();
        assert_eq!(row.settings, [Setting::new("reader.batch_size", "7")]);
        for (key, level) in
            [("processes", "0"), ("epochs", "x"), ("seed", "-1"), ("scale", "2"), ("model", "")]
        {
            assert!(set_level(&mut row, key, level).is_err(), "{key}={level}");
        }
    }
}
