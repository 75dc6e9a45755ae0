//! Named parts of foreign files: datasets, arrays or columns, and which of them are read.

use super::Record;
use super::causes::is_zero;
use feedrate_spec::escape::{self, name_list, name_list_of};
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the files' bytes below which what is left unread could change the answer.
pub const READ_SHARE_MIN: f64 = 0.8;
/// Maximum number of names in a sentence.
const NAMES_MAX: usize = 4;

/// Named members of foreign files, over the files that were opened to examine them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMembers {
    /// The members.
    pub members: Vec<NamedMember>,
    /// Number of further members, which are not read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// Members of a file whose names differ only in numbers, if there are many: each could be a sample. `null` if the user chose what is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<AlikeMembers>,
    /// Total length of the opened files.
    pub file_bytes: u64,
    /// Number of the opened files if there are others, so that shares are estimates; `null` if all were opened, and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_files: Option<u64>,
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

/// Members of a file whose names differ only in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlikeMembers {
    /// Name of the first of them.
    pub name: String,
    /// Number of them.
    pub members: u64,
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

    /// The share in the opened files. If all members are read, the rest of the files describes them.
    fn estimated_share(&self) -> Option<f64> {
        let is_whole = self.members.iter().all(|member| member.is_read);
        self.read_share().map(|share| if is_whole { 1.0 } else { share })
    }

    /// Names of the members that are read, or of those that are not.
    pub fn names(&self, are_read: bool) -> Vec<&str> {
        let members = self.members.iter().filter(|member| member.is_read == are_read);
        members.map(|member| member.name.as_str()).collect()
    }

    /// Lists the members that are read.
    pub fn list_of_read(&self) -> String {
        name_list(&self.names(true), NAMES_MAX)
    }

    /// Lists the members that are not read.
    pub fn list_of_unread(&self) -> String {
        let names = self.names(false);
        name_list_of(&names, names.len().saturating_add(self.unlisted as usize), NAMES_MAX)
    }

    /// Names of the members with values that are stored elsewhere and not read.
    pub fn names_of_elsewhere(&self) -> Vec<&str> {
        let members = self.members.iter().filter(|member| member.is_elsewhere);
        members.map(|member| member.name.as_str()).collect()
    }

    /// What is read of the opened files: ``reads `images` and `masks` (99 % of the bytes), not `labels` ``. `None` for a single member of
    /// which all is read.
    pub fn line(&self) -> Option<String> {
        let estimated = self.sampled_files.map(|files| format!(", estimated from {files} files"));
        let elsewhere = self.names_of_elsewhere();
        self.line_with(self.estimated_share(), &estimated.unwrap_or_default(), &elsewhere)
    }

    /// What is read, with the share of the bytes and a remark on it. `elsewhere` are members with values that are stored elsewhere.
    fn line_with(&self, share: Option<f64>, remark: &str, elsewhere: &[&str]) -> Option<String> {
        let unread = self.names(false);
        let shown_share = share.filter(|share| !unread.is_empty() || *share < READ_SHARE_MIN);
        let is_alone = self.members.len() < 2 && shown_share.is_none();
        if (is_alone || share.is_none()) && elsewhere.is_empty() && self.alike.is_none() {
            return None;
        }
        let mut line = format!("reads {}", self.list_of_read());
        if let Some(share) = shown_share {
            // Rounded down, because 100 % would contradict what is left.
            let percent = (100.0 * share).floor();
            line += &format!(" ({percent:.0} % of the bytes{remark})");
        }
        if !unread.is_empty() {
            line += &format!(", not {}", self.list_of_unread());
        }
        if !elsewhere.is_empty() {
            line += &format!(
                "; values of {} are stored elsewhere and not read",
                name_list(elsewhere, NAMES_MAX)
            );
        }
        if let Some(AlikeMembers { name, members }) = &self.alike {
            line += &format!(
                "; each of {} parts like `{}` could be a sample",
                units::count(*members),
                escape::one_line(name)
            );
        }
        Some(line)
    }
}

impl Record {
    /// Share of the bytes of foreign files that an epoch reads, from 0 to 1: in all samples that were read, or else in the files that were
    /// opened before the run. `None` in the cases of [`FileMembers::read_share`].
    pub fn read_share(&self) -> Option<f64> {
        let estimate = self.members.as_ref()?.estimated_share()?;
        if !self.names_of_elsewhere().is_empty() {
            return None;
        }
        Some(self.measured_read_share().unwrap_or(estimate))
    }

    fn measured_read_share(&self) -> Option<f64> {
        let accelerators = self.epochs.iter().flat_map(|epoch| &epoch.accelerators);
        let stored = accelerators.filter_map(|accelerator| accelerator.io.stored);
        let [sample_bytes, file_bytes] =
            stored.fold([0.0, 0.0], |[sample_bytes, file_bytes], stored| {
                [sample_bytes + stored.sample_bytes, file_bytes + stored.file_bytes]
            });
        (file_bytes > 0.0).then(|| (sample_bytes / file_bytes).min(1.0))
    }

    /// What is read of foreign files; see [`FileMembers::line`].
    pub fn members_line(&self) -> Option<String> {
        let members = self.members.as_ref()?;
        match self.measured_read_share() {
            Some(_) => members.line_with(self.read_share(), "", &self.names_of_elsewhere()),
            None => members.line(),
        }
    }

    /// Names of members with values that samples could include, but that are stored elsewhere: in the files that were opened before the run, or
    /// in those of samples.
    pub fn names_of_elsewhere(&self) -> Vec<&str> {
        let mut names =
            self.members.as_ref().map_or_else(Vec::new, FileMembers::names_of_elsewhere);
        let accelerators = self.epochs.iter().flat_map(|epoch| &epoch.accelerators);
        for name in accelerators.flat_map(|accelerator| &accelerator.io.elsewhere) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
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
        let members = sizes.iter().map(member).collect();
        FileMembers { members, file_bytes: 1000, ..FileMembers::default() }
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
        let sampled = FileMembers {
            sampled_files: Some(16),
            ..members(&[("a", 900, true), ("b", 100, false)])
        };
        assert_eq!(
            sampled.line().unwrap(),
            "reads `a` (90 % of the bytes, estimated from 16 files), not `b`"
        );
        let with_unlisted = FileMembers { unlisted: 8_000, ..sampled.clone() };
        assert!(with_unlisted.line().unwrap().ends_with("not `b` and 8,000 more"));
        let alike = Some(AlikeMembers { name: "ep_0".into(), members: 1000 });
        let with_alike = FileMembers { alike, ..members(&[("ep_0", 900, true)]) };
        assert_eq!(
            with_alike.line().unwrap(),
            "reads `ep_0`; each of 1,000 parts like `ep_0` could be a sample"
        );
        let mut record = crate::example::simple(&[(1, 1, 1, 1)]);
        record.members = Some(sampled);
        assert_eq!(record.read_share(), Some(0.9));
        for bytes in [100.0, 300.0] {
            record.epochs[0].accelerators[0].io.count_stored(bytes, 1000.0);
        }
        let measured = "reads `a` (20 % of the bytes), not `b`";
        assert_eq!(record.members_line().unwrap(), measured);
        // Files that were not opened hold other members.
        record.members = Some(members(&[("a", 1000, true)]));
        assert_eq!(record.members_line().unwrap(), "reads `a` (20 % of the bytes)");
        let many: Vec<String> = (0..9).map(|i| i.to_string()).collect();
        let many: Vec<(&str, u64, bool)> = many.iter().map(|name| (&**name, 1, true)).collect();
        assert_eq!(line(&many).unwrap(), "reads `0`, `1`, `2`, `3` and 5 more");
    }
}
