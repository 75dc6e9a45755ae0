//! A design said by flags, one part a flag. Adds to what a file says.

use super::tree::Tree;
use super::{BaselineText, DesignText};
use feedrate_results::setting::{Setting, number, pieces, unquoted};
use feedrate_spec::problem::Problem;

impl DesignText {
    /// The kind of design; its options stay.
    pub fn set_kind(&mut self, kind: &str) {
        self.set_in_design("kind", Tree::Scalar(kind.into()));
    }

    /// `p=2`, `generators=D=AB,E=AC`.
    ///
    /// # Errors
    /// It has no value.
    pub fn set_option(&mut self, text: &str) -> Result<(), Problem> {
        let (name, value) = pair(text, "--option", "p=2")?;
        self.set_in_design(name, Tree::List(scalars(value)));
        Ok(())
    }

    /// `reader.read_threads=1,4,8`, `reader.batch_size=1..16`, `train.computation_time=0.01..1:log`.
    ///
    /// # Errors
    /// It has no levels.
    pub fn add_factor(&mut self, text: &str) -> Result<(), Problem> {
        let (key, levels) = pair(text, "--factor", "reader.read_threads=1,4,8")?;
        let mut factor = vec![("key".to_string(), Tree::Scalar(key.into()))];
        match range(levels) {
            Some(words) => factor.extend(words),
            None => factor.push(("levels".into(), Tree::List(scalars(levels)))),
        }
        match &mut self.factors {
            Tree::Map(entries) => entries.push((key.into(), Tree::Map(factor))),
            Tree::List(items) => items.push(Tree::Map(factor)),
            Tree::Scalar(_) => {}
        }
        Ok(())
    }

    /// `governor=cpupower frequency-set -g $1`.
    ///
    /// # Errors
    /// It has no command.
    pub fn add_hook(&mut self, text: &str) -> Result<(), Problem> {
        let (name, command) = pair(text, "--hook", "governor=cpupower frequency-set -g $1")?;
        self.hooks.insert(name.into(), command.into());
        Ok(())
    }

    fn set_in_design(&mut self, word: &str, value: Tree) {
        if let Tree::Scalar(kind) = &self.design {
            self.design = Tree::Map(vec![("kind".into(), Tree::Scalar(kind.clone()))]);
        }
        let Tree::Map(entries) = &mut self.design else { return };
        entries.retain(|(known, _)| known != word);
        entries.push((word.into(), value));
    }
}

impl BaselineText {
    /// `reader.batch_size=4`, as the last word on that key.
    ///
    /// # Errors
    /// It is no override, or deletes a key.
    pub fn add_override(&mut self, text: &str) -> Result<(), Problem> {
        let Setting { key, value } = Setting::parse(text)?;
        let value = value.ok_or_else(|| deletes(text))?;
        match &mut self.overrides {
            Tree::List(items) => items.push(Tree::Scalar(text.into())),
            Tree::Map(entries) => entries.push((key, Tree::Scalar(unquoted(&value)))),
            Tree::Scalar(_) => {}
        }
        Ok(())
    }
}

/// Leave out of a baseline what it does not set.
pub(crate) fn deletes(text: &str) -> Problem {
    Problem::error("baseline.overrides", format!("`{text}` deletes a key"))
        .hint("leave out what the baseline is not to set")
}

fn pair<'a>(text: &'a str, flag: &str, example: &str) -> Result<(&'a str, &'a str), Problem> {
    let split = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    split.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        Problem::error(flag, format!("`{text}` has no name or no value"))
            .hint(format!("write `{flag} '{example}'`"))
    })
}

/// `LOW..HIGH` and `LOW..HIGH:log`; anything else is a level.
fn range(levels: &str) -> Option<Vec<(String, Tree)>> {
    let (bounds, log) = match levels.strip_suffix(":log") {
        Some(bounds) => (bounds, "true"),
        None => (levels, "false"),
    };
    let (low, high) = bounds.split_once("..")?;
    number(low).zip(number(high))?;
    let word = |name: &str, text: &str| (name.to_string(), Tree::Scalar(text.into()));
    Some(vec![word("low", low), word("high", high), word("log", log)])
}

fn scalars(text: &str) -> Vec<Tree> {
    pieces(text, |c| c == ',')
        .into_iter()
        .map(|piece| Tree::Scalar(unquoted(piece.trim())))
        .collect()
}
