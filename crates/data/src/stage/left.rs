//! A copy that lies in a folder, known by its manifest alone.

use super::{Stage, StageError, StageManifest};
use crate::manifest::refusal;
use crate::removal::{OwnFound, look_at};
use crate::storage::{self, Storage};
use feedrate_spec::plan::layout::Layout;
use std::path::Path;
use std::sync::Arc;

impl Stage {
    /// The copy in `folder`; `None` where no manifest says what it is.
    ///
    /// # Errors
    /// The storage refused.
    pub fn left_in(folder: &Path) -> Result<Option<Self>, StageError> {
        let storage: Arc<dyn Storage> = Arc::from(storage::open("file", folder)?);
        let Some(manifest) = StageManifest::read(&*storage)? else { return Ok(None) };
        let plan = manifest.settings.filter(|settings| refusal(settings).is_none());
        let Some(plan) = plan else { return Ok(None) };
        let (layout, folder) = (Layout::new(&plan), folder.to_path_buf());
        let source = manifest.source;
        let dataset = Arc::from(storage::open("file", &source)?);
        Ok(Some(Stage { plan, layout, source, dataset, folder, storage, limit_bytes: None }))
    }

    /// Look at its files.
    ///
    /// # Errors
    /// The storage refused.
    pub fn look(&self) -> Result<OwnFound, StageError> {
        let files = self.manifest()?.and_then(|manifest| manifest.files);
        Ok(look_at(&self.copies(files)?, &*self.storage)?)
    }
}
