//! Checks the text of a design and turns it into rows and their description. All problems are reported at once.

#[cfg(test)]
mod tests;

use crate::design::{self, Aliases, DesignKind, DesignOptions, DesignRequest};
use crate::design_file::{BaselineText, DesignText, flags, levels, text, words};
use crate::factor::{self, Spacing, StudyFactor};
use crate::keys;
use crate::randomization::{Arrangement, Blocking, CENTRE_POINT, RunOrder, SENTINEL, create_rows};
use feedrate_results::hook;
use feedrate_results::row::Row;
use feedrate_results::setting::{Setting, unquote};
use feedrate_spec::problem::{Problem, ProblemSeverity, Problems};
use feedrate_spec::units::counted;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A checked design, from which a study can be created.
pub struct ResolvedDesign {
    /// Row with the settings that no factor changes.
    pub baseline: Row,
    /// The kind of design.
    pub design: &'static DesignKind,
    /// Options of the design.
    pub options: DesignOptions,
    /// Factors to vary.
    pub factors: Vec<StudyFactor>,
    /// How points become runs.
    pub arrangement: Arrangement,
    /// Commands for factors `study.hook.NAME`.
    pub hooks: BTreeMap<String, String>,
    /// Warnings for the author.
    pub warnings: Problems,
}

/// The rows and comments of a new study.
#[derive(Clone, Debug)]
pub struct NewStudy {
    /// Rows, in the order in which they run.
    pub rows: Vec<Row>,
    /// Description of the design for the head of the CSV: lines without `#`.
    pub comments: Vec<String>,
    /// Confounded effects of a fraction; `None` for other designs.
    pub aliases: Option<Aliases>,
}

/// Default seed of the order.
const SEED: u64 = 1;

impl ResolvedDesign {
    /// Checks a design. `workload_value` returns the value of a key in the workload of the baseline, if known.
    ///
    /// # Errors
    /// All problems of the design.
    pub fn new(
        text: &DesignText,
        workload_value: impl Fn(&str) -> Option<String>,
    ) -> Result<ResolvedDesign, Problems> {
        let mut problems = Problems::default();
        for (name, command) in &text.hooks {
            problems.0.extend(hook::problem(name, command));
        }
        let baseline = baseline_row(&text.baseline, &text.hooks, &mut problems);
        let mut factors = levels::parse_factors(&text.factors, &mut problems);
        check_factors(&factors, &text.hooks, &mut problems);
        for factor in &mut factors {
            let level = factor::row_level(&baseline, &factor.key);
            factor.baseline = level.or_else(|| workload_value(&factor.key));
        }
        let arrangement = parse_arrangement(text, &mut problems);
        let kind = parse_kind(&text.design, &mut problems);
        let Some((design, options)) = kind else { return Err(problems) };
        if problems.has_errors() {
            return Err(problems);
        }
        Ok(ResolvedDesign {
            baseline,
            design,
            options,
            factors,
            arrangement,
            hooks: text.hooks.clone(),
            warnings: problems,
        })
    }

    /// Creates the rows of the study. The same design always gives the same rows.
    ///
    /// # Errors
    /// The kind of design does not accept the factors or options, or there are too many runs.
    pub fn create_study(&self) -> Result<NewStudy, Problems> {
        let design_points = self
            .design
            .points(&DesignRequest { factors: &self.factors, options: &self.options })?;
        let rows =
            create_rows(&self.baseline, &self.factors, &design_points.points, &self.arrangement)?;
        let duplicates = rows.iter().map(Row::repeated_keys).find(|problems| !problems.is_empty());
        if let Some(problems) = duplicates {
            return Err(Problems(problems));
        }
        let mut comments = self.describe(&rows, design_points.points.len());
        comments.extend(design_points.aliases.iter().flat_map(Aliases::lines));
        comments.extend(self.hooks.iter().map(|(name, command)| hook::comment(name, command)));
        Ok(NewStudy { rows, comments, aliases: design_points.aliases })
    }

    /// Describes the design in lines of text.
    fn describe(&self, rows: &[Row], points: usize) -> Vec<String> {
        let DesignKind { name, summary, estimates, .. } = self.design;
        let mut lines =
            vec![format!("design: {name}. {summary}"), format!("estimates: {estimates}")];
        lines.push(format!("baseline: {}", describe_row(&self.baseline)));
        lines.extend(self.factors.iter().map(factor_line));
        let Arrangement { replicates, blocks, order, seed, .. } = self.arrangement;
        let mut parts =
            vec![counted(points as u64, "point"), counted(replicates.into(), "replicate")];
        for note in [CENTRE_POINT, SENTINEL] {
            let count = rows.iter().filter(|row| row.note == note).count() as u64;
            parts.extend((0 < count).then(|| counted(count, note)));
        }
        lines.push(format!("runs: {}: {}", rows.len(), parts.join(", ")));
        if rows.iter().all(|row| row.replicate == Some(1)) {
            lines.push("one replicate: the variation of repeated runs stays unknown".into());
        }
        let block_text = match blocks {
            Blocking::Replicates => "a block is a replicate",
            Blocking::None => "one block",
        };
        let order_text = match order {
            RunOrder::Random => "random order in each block",
            RunOrder::Standard => "standard order",
        };
        lines.push(format!("{block_text}, {order_text}, seed {seed}"));
        lines
    }
}

fn describe_row(row: &Row) -> String {
    let mut words = vec![row.model.clone()];
    words.extend(row.epochs.map(|epochs| counted(epochs.into(), "epoch")));
    words.push(counted(row.accelerators.into(), "process"));
    words.extend(row.seed.map(|seed| format!("seed {seed}")));
    words.extend(row.scale.map(|scale| format!("scale {scale}")));
    words.extend(row.settings.iter().map(Setting::text));
    words.join(", ")
}

fn factor_line(factor: &StudyFactor) -> String {
    let mut levels = factor.levels.clone();
    for level in levels.iter_mut().filter(|level| factor.is_baseline(level)) {
        level.push_str(" (baseline)");
    }
    let level_list = levels.join(", ");
    let scale = if factor.scale == Spacing::Log { ", logarithmic" } else { "" };
    let key = if factor.name == factor.key { String::new() } else { format!(" ({})", factor.key) };
    format!("factor {}{key}: {level_list}{scale}", factor.name)
}

/// The row of the baseline, with all valid settings.
fn baseline_row(
    text: &BaselineText,
    hooks: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Row {
    let model = text.model.clone().unwrap_or_default();
    if model.is_empty() {
        problems.push(
            Problem::error("baseline.model", "no workload is given")
                .hint("give a name from `feedrate list workloads`, or a YAML file"),
        );
    }
    let mut row = Row::new(model, text.processes.unwrap_or(1));
    let columns = [
        ("processes", text.processes.map(|processes| processes.to_string())),
        ("epochs", text.epochs.map(|epochs| epochs.to_string())),
        ("seed", text.seed.map(|seed| seed.to_string())),
        ("scale", text.scale.map(|share| share.to_string())),
    ];
    let given = columns.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
    let overrides = parse_overrides(&text.overrides, problems);
    for (key, value) in given.chain(overrides) {
        let found = keys::check(&key, &value, hooks);
        let is_valid = found.iter().all(|problem| problem.severity == ProblemSeverity::Warning);
        problems.0.extend(found);
        if is_valid {
            let level = factor::format_level(&key, &value);
            problems.ok_or_push(factor::set_level(&mut row, &key, &level));
        }
    }
    row
}

/// Returns the keys and values of a map, nested or dotted, or of a list of overrides.
fn parse_overrides(given: &Value, problems: &mut Problems) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match given {
        Value::Null => {}
        Value::Object(entries) => flatten("", entries, &mut found),
        Value::Array(items) => {
            for item in items.iter().map(text) {
                let Some((key, value)) = problems.ok_or_push(flags::parse_override(&item)) else {
                    continue;
                };
                found.push((factor::canonical(&key).to_string(), unquote(&value)));
            }
        }
        other => {
            let message = format!("`{}` is neither a list nor a map", text(other));
            problems.push(
                Problem::error("baseline.overrides", message)
                    .hint("write `overrides = [\"reader.batch_size=4\"]`"),
            );
        }
    }
    found
}

fn flatten(prefix: &str, entries: &Map<String, Value>, found: &mut Vec<(String, String)>) {
    for (name, value) in entries {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(inner) if !inner.is_empty() => flatten(&key, inner, found),
            value => found.push((factor::canonical(&key).to_string(), text(value))),
        }
    }
}

/// Checks each level of each factor, and that no key or name occurs twice.
fn check_factors(
    factors: &[StudyFactor],
    hooks: &BTreeMap<String, String>,
    problems: &mut Problems,
) {
    for (i, factor) in factors.iter().enumerate() {
        let place = format!("factors.{}", factor.name);
        let others = &factors[..i];
        if others.iter().any(|other| other.key == factor.key) {
            let message = format!("`{}` is also varied by another factor", factor.key);
            problems
                .push(Problem::error(place, message).hint("put all its levels into one factor"));
        } else if others.iter().any(|other| other.name == factor.name) {
            problems.push(
                Problem::error(place, "is the name of two factors")
                    .hint("give one of them another `name`"),
            );
        }
        let mut reported: Vec<String> = Vec::new();
        for problem in factor.levels.iter().flat_map(|level| keys::check(&factor.key, level, hooks))
        {
            // A problem of the key occurs at each level.
            if !reported.contains(&problem.message) {
                reported.push(problem.message.clone());
                problems.push(problem);
            }
        }
    }
}

fn parse_arrangement(text: &DesignText, problems: &mut Problems) -> Arrangement {
    for (key, value, hint) in [
        ("replicates", text.replicates, "give the number of runs of each point, at least 1"),
        ("sentinel", text.sentinel, "give the number of runs between sentinels, or leave it out"),
    ] {
        if value == Some(0) {
            problems.push(Problem::error(key, "`0` is too few").hint(hint));
        }
    }
    Arrangement {
        replicates: text.replicates.unwrap_or(1),
        blocks: text.blocks.unwrap_or(Blocking::Replicates),
        order: text.order.unwrap_or(RunOrder::Random),
        seed: text.seed.unwrap_or(SEED),
        sentinel: text.sentinel,
        centre_points: text.centre_points.unwrap_or(0),
    }
}

/// Parses the kind of design and its options.
fn parse_kind(
    given: &Value,
    problems: &mut Problems,
) -> Option<(&'static DesignKind, DesignOptions)> {
    let (name, mut options) = match given {
        Value::Object(entries) => (entries.get("kind").map(text), entries.clone()),
        Value::Null | Value::Array(_) => (None, Map::new()),
        name => (Some(text(name)), Map::new()),
    };
    options.remove("kind");
    let options = options.iter().map(|(name, value)| (name.clone(), words(value))).collect();
    let kind = match name {
        Some(name) => design::find(&name),
        None => Err(Problem::error("design.kind", "no kind of design is given")
            .hint("`full_factorial` has all combinations of all levels; for others, see `feedrate list designs`")),
    };
    Some((problems.ok_or_push(kind)?, DesignOptions(options)))
}
