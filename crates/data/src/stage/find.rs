//! Finds an existing copy by its manifest, without the plan that created it.

use super::{Stage, StageError, StageManifest};
use crate::manifest::reason_to_refuse;
use crate::removal::{FolderContents, inspect_files};
use crate::storage::{self, Storage};
use feedrate_spec::plan::layout::Layout;
use std::path::Path;
use std::sync::Arc;

impl Stage {
    /// Opens the copy in `folder`; `None` if there is no valid manifest.
    ///
    /// # Errors
    /// The storage failed.
    pub fn find_in(folder: &Path) -> Result<Option<Self>, StageError> {
        let storage: Arc<dyn Storage> = Arc::from(storage::open("file", folder)?);
        let Some(manifest) = StageManifest::read(&*storage)? else { return Ok(None) };
        let valid_plan = manifest.settings.filter(|plan| reason_to_refuse(plan).is_none());
        let Some(plan) = valid_plan else { return Ok(None) };
        let dataset = Arc::from(storage::open("file", &manifest.source)?);
        Ok(Some(Stage {
            layout: Layout::new(&plan),
            plan,
            source: manifest.source,
            dataset,
            folder: folder.to_path_buf(),
            storage,
            limit_bytes: None,
        }))
    }

    /// Counts the copy's files and the foreign files in its folder.
    ///
    /// # Errors
    /// The storage failed.
    pub fn inspect(&self) -> Result<FolderContents, StageError> {
        let files = self.manifest()?.and_then(|manifest| manifest.files);
        Ok(inspect_files(&self.copies(files)?, &*self.storage)?)
    }
}
