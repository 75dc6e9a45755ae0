//! The files that make up one file of a dataset.

/// One of the files that make up a dataset file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Folder of the part, next to `train/` and `valid/`. In the folder `index`, the part of
    /// `train/3/img_3_of_8.tfrecord` is `index/train/img_3_of_8.tfrecord.idx`, without the subfolder. If empty, the part
    /// is next to the data file.
    pub folder: &'static str,
    /// Appended to the data file's name.
    pub suffix: &'static str,
    /// Whether the suffix replaces the extension of the data file instead.
    pub replaces_extension: bool,
    /// Whether the part is only for other programs. No cursor reads it, and a foreign dataset may lack it. Such parts come last.
    pub optional: bool,
}

impl Part {
    /// The data file itself.
    pub const DATA: Part = Part::beside("");

    /// A file next to the data file.
    pub const fn beside(suffix: &'static str) -> Self {
        Part { folder: "", suffix, replaces_extension: false, optional: false }
    }

    /// A file next to the data file, with another extension.
    pub const fn instead(suffix: &'static str) -> Self {
        Part { replaces_extension: true, ..Part::beside(suffix) }
    }

    /// Length of the data file's path without the extension that the suffix replaces.
    pub(crate) fn stem_bytes(data: &str) -> usize {
        let name = data.rfind('/').map_or(0, |slash| slash + 1);
        data[name..].rfind('.').map_or(data.len(), |dot| name + dot)
    }

    /// Writes the path of this part, given the path of the data file.
    pub fn write_path(&self, data: &str, path: &mut String) {
        path.clear();
        if self.folder.is_empty() {
            path.push_str(data);
        } else {
            let (split, rest) = data.split_once('/').unwrap_or(("", data));
            let name = rest.rsplit('/').next().unwrap_or(rest);
            for word in [self.folder, "/", split, "/", name] {
                path.push_str(word);
            }
        }
        if self.replaces_extension {
            path.truncate(Part::stem_bytes(path));
        }
        path.push_str(self.suffix);
    }
}
