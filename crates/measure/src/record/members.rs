//! Named parts of foreign files: datasets, arrays or columns, and which of them are read.

use feedrate_spec::escape::name_list;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of names in a sentence.
const NAMES_MAX: usize = 4;

/// Named members of foreign files, over the files that were opened to examine them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMembers {
    /// The members.
    pub members: Vec<NamedMember>,
    /// Total length of the opened files.
    pub file_bytes: u64,
}

/// A dataset, an array or a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedMember {
    /// Name in the files.
    pub name: String,
    /// Bytes in the opened files.
    pub bytes: u64,
    /// Whether samples include the member.
    pub is_read: bool,
    /// Whether values of the member are in other files, or in structures that are not followed: they are not read, and not in its bytes.
    #[serde(default)]
    pub is_elsewhere: bool,
}

impl FileMembers {
    /// Share of the files' bytes that an epoch reads, from 0 to 1; `None` without members, or if samples could include values that are
    /// stored elsewhere.
    pub fn read_share(&self) -> Option<f64> {
        let read = self.members.iter().filter(|member| member.is_read);
        let bytes = read.map(|member| member.bytes as f64).sum::<f64>();
        let is_known =
            !self.members.is_empty() && self.file_bytes > 0 && self.names_of_elsewhere().is_empty();
        is_known.then(|| (bytes / self.file_bytes as f64).min(1.0))
    }

    /// Names of the members that are read, or of those that are not.
    pub fn names(&self, are_read: bool) -> Vec<&str> {
        let members = self.members.iter().filter(|member| member.is_read == are_read);
        members.map(|member| member.name.as_str()).collect()
    }

    /// Names of the members with values that are stored elsewhere and not read.
    pub fn names_of_elsewhere(&self) -> Vec<&str> {
        let members = self.members.iter().filter(|member| member.is_elsewhere);
        members.map(|member| member.name.as_str()).collect()
    }

    /// What is read: ``reads `images` and `masks` (99 % of the bytes), not `labels` ``. `None` for a single member of
    /// which all is read.
    pub fn line(&self) -> Option<String> {
        let elsewhere = self.names_of_elsewhere();
        let share = self.read_share().filter(|_| self.members.len() > 1);
        if share.is_none() && elsewhere.is_empty() {
            return None;
        }
        let mut line = format!("reads {}", name_list(&self.names(true), NAMES_MAX));
        let unread = self.names(false);
        if !unread.is_empty() {
            // Rounded down, because 100 % would contradict what is left.
            let percent = share.map(|share| (100.0 * share).floor());
            let percent = percent.map(|percent| format!(" ({percent:.0} % of the bytes)"));
            line +=
                &format!("{}, not {}", percent.unwrap_or_default(), name_list(&unread, NAMES_MAX));
        }
        if !elsewhere.is_empty() {
            line += &format!(
                "; values of {} are stored elsewhere and not read",
                name_list(&elsewhere, NAMES_MAX)
            );
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(sizes: &[(&str, u64, bool)]) -> FileMembers {
        let member = |&(name, bytes, is_read): &(&str, u64, bool)| NamedMember {
            name: name.into(),
            bytes,
            is_read,
            is_elsewhere: name == "masks",
        };
        FileMembers { members: sizes.iter().map(member).collect(), file_bytes: 1000 }
    }

    #[test]
    fn the_line_names_what_is_read_and_what_is_not() {
        let line = |sizes: &[(&str, u64, bool)]| members(sizes).line();
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[("a", 1000, true)]), None);
        assert_eq!(line(&[("a", 500, true), ("b", 400, true)]).unwrap(), "reads `a` and `b`");
        assert_eq!(
            line(&[("labels", 10, false), ("a", 500, true), ("b", 400, true)]).unwrap(),
            "reads `a` and `b` (90 % of the bytes), not `labels`"
        );
        assert_eq!(
            line(&[("a", 500, true), ("masks", 0, false)]).unwrap(),
            "reads `a`, not `masks`; values of `masks` are stored elsewhere and not read"
        );
        assert_eq!(
            line(&[("masks", 20, true)]).unwrap(),
            "reads `masks`; values of `masks` are stored elsewhere and not read"
        );
        let many: Vec<String> = (0..9).map(|i| i.to_string()).collect();
        let many: Vec<(&str, u64, bool)> = many.iter().map(|name| (&**name, 1, true)).collect();
        assert_eq!(line(&many).unwrap(), "reads `0`, `1`, `2`, `3` and 5 more");
    }
}
