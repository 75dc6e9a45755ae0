//! Factors: what a design varies, the levels it takes, and where a level is set in a row. Knows no design.

use feedrate_results::row::Row;
use feedrate_results::setting::{self, STUDY_PREFIX, Setting, number};
use feedrate_results::table::PROCESSES_MAX;
use feedrate_spec::problem::Problem;

/// Something that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFactor {
    /// Name in tables.
    pub name: String,
    /// A column of the study, a key of the workload, or a setting of the study.
    pub key: String,
    /// Levels, the low one first where it has two.
    pub levels: Vec<String>,
    /// How numbers between levels are spaced.
    pub scale: Spacing,
    /// Level of the baseline, where it is known.
    pub baseline: Option<String>,
}

/// How numbers are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// By equal differences.
    Linear,
    /// By equal quotients.
    Log,
}

impl StudyFactor {
    /// The least and the greatest level, where all levels are different numbers and, on a logarithmic scale, above 0.
    pub fn range(&self) -> Option<(f64, f64)> {
        let numbers: Option<Vec<f64>> = self.levels.iter().map(|level| number(level)).collect();
        let numbers = numbers?;
        let low = numbers.iter().copied().reduce(f64::min)?;
        let high = numbers.iter().copied().reduce(f64::max)?;
        let spaced = low < high && (self.scale == Spacing::Linear || low > 0.0);
        spaced.then_some((low, high))
    }

    /// The number in the middle; `None` where a level is no number.
    pub fn centre(&self) -> Option<String> {
        let (low, high) = self.range()?;
        Some(text(spaced(low, high, self.scale, 0.5), self.is_whole()))
    }

    fn is_whole(&self) -> bool {
        self.levels.iter().all(|level| level.parse::<i64>().is_ok())
    }

    /// Whether the baseline is known to have this level.
    pub fn is_baseline(&self, level: &str) -> bool {
        self.baseline.as_deref().is_some_and(|own| StudyFactor::is_same(own, level))
    }

    /// Whether two levels are the same to a workload.
    pub fn is_same(a: &str, b: &str) -> bool {
        a.eq_ignore_ascii_case(b) || number(a).is_some_and(|a| number(b) == Some(a))
    }
}

/// So many numbers from `low` to `high`, both among them.
pub(crate) fn steps(low: f64, high: f64, scale: Spacing, count: u32, whole: bool) -> Vec<String> {
    let shares = (0..count).map(|i| f64::from(i) / f64::from(count - 1));
    shares.map(|share| text(spaced(low, high, scale, share), whole)).collect()
}

fn spaced(low: f64, high: f64, scale: Spacing, share: f64) -> f64 {
    match scale {
        Spacing::Linear => low + (high - low) * share,
        Spacing::Log => low * (high / low).powf(share),
    }
}

/// Six digits are enough to set a workload, and the same on each machine whatever its mathematics library.
fn text(value: f64, whole: bool) -> String {
    if whole {
        return format!("{:.0}", value.round());
    }
    let short = format!("{value:.5e}");
    short.parse::<f64>().map_or(short, |value| value.to_string())
}

/// Columns of the study that can be varied.
pub(crate) const COLUMNS: [&str; 6] =
    ["processes", "accelerators", "epochs", "model", "seed", "scale"];

/// The column of that name, or the key without `workload.`.
pub(crate) fn canonical(key: &str) -> &str {
    let key = key.strip_prefix("workload.").unwrap_or(key);
    if key == "accelerators" { "processes" } else { key }
}

/// Set `key` of a row to `level`: its column, or an override in place of one of the same key.
///
/// # Errors
/// The column does not take it.
pub fn set(row: &mut Row, key: &str, level: &str) -> Result<(), Problem> {
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

/// An error says what the column takes.
fn set_column(row: &mut Row, column: &str, level: &str) -> Result<(), &'static str> {
    match column {
        "epochs" => row.epochs = Some(above_zero(level)?),
        "model" if level.is_empty() => return Err("a name"),
        "model" => row.model = level.into(),
        "seed" => row.seed = Some(level.parse().map_err(|_| "a whole number from 0 up")?),
        "scale" => {
            let share = number(level).filter(|share| *share > 0.0 && *share <= 1.0);
            row.scale = Some(share.ok_or("a share above 0 and at most 1")?);
        }
        _ => {
            let fits = Some(above_zero(level)?).filter(|&n| n <= PROCESSES_MAX);
            row.accelerators = fits.ok_or("a number of processes")?;
        }
    }
    Ok(())
}

fn above_zero(level: &str) -> Result<u32, &'static str> {
    level.parse().ok().filter(|&n| n > 0).ok_or("a whole number from 1 up")
}

/// The level that a row sets `key` to.
pub(crate) fn level_in(row: &Row, key: &str) -> Option<String> {
    match key {
        "processes" => Some(row.accelerators.to_string()),
        "epochs" => row.epochs.map(|epochs| epochs.to_string()),
        "model" => Some(row.model.clone()),
        "seed" => row.seed.map(|seed| seed.to_string()),
        "scale" => row.scale.map(|scale| scale.to_string()),
        _ => row.settings.iter().find(|setting| setting.key == key)?.value.clone(),
    }
}

/// A level as a row holds it: that of a workload's key as an override says it, lists as lists.
pub(crate) fn written(key: &str, level: &str) -> String {
    let is_bare =
        COLUMNS.contains(&key) || key.starts_with(STUDY_PREFIX) || level.starts_with(['[', '{']);
    if is_bare { level.to_string() } else { setting::quoted(level) }
}

/// The reason why a level cannot be written in a row.
pub(crate) fn unwritable(level: &str) -> Option<&'static str> {
    if level.chars().any(char::is_control) {
        return Some("it holds a tab, an end of line or the like");
    }
    (level.contains('\'') && level.contains('"')).then_some("it holds both kinds of quotes")
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
    fn the_middle_is_arithmetic_or_geometric_and_whole_where_levels_are() {
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
    fn steps_are_spaced_by_differences_or_quotients() {
        assert_eq!(steps(1.0, 1000.0, Spacing::Log, 4, true), ["1", "10", "100", "1000"]);
        assert_eq!(steps(0.0, 1.0, Spacing::Linear, 3, false), ["0", "0.5", "1"]);
    }

    #[test]
    fn a_level_is_set_in_its_column_or_as_an_override() {
        let mut row = Row::new("unet3d", 1);
        for (key, level) in
            [("processes", "4"), ("epochs", "2"), ("seed", "7"), ("scale", "0.5"), ("model", "m")]
        {
            set(&mut row, key, level).unwrap();
            assert_eq!(level_in(&row, key).as_deref(), Some(level));
        }
        set(&mut row, "reader.batch_size", "4").unwrap();
        set(&mut row, "reader.batch_size", "7").unwrap();
        assert_eq!(row.settings, [Setting::new("reader.batch_size", "7")]);
        for (key, level) in
            [("processes", "0"), ("epochs", "x"), ("seed", "-1"), ("scale", "2"), ("model", "")]
        {
            assert!(set(&mut row, key, level).is_err(), "{key}={level}");
        }
    }
}
