//! Plans the requests of workers as the library of the format makes them (`reader.requests`).

use super::Builder;
use super::loader::PAGE_BYTES;
use crate::catalog::{Ability, Catalog};
use crate::plan::explain::whole_read_bytes;
use crate::plan::layout::Layout;
use crate::plan::{DatasetPlan, FileAccess, PIECE_BYTES, Plan, REQUEST_BYTES_MAX};

impl Builder<'_> {
    /// Lets workers make the requests of the format's library, as configured or as the loader does, if they are known and nothing else
    /// determines the requests.
    pub(super) fn set_library_requests(&mut self, plan: &mut Plan, layout: &Layout) {
        let Plan { dataset, storage, stage, loader, .. } = &*plan;
        let calls_library = || {
            let entry = self.catalog.loader(&loader.kind);
            entry.is_some_and(|entry| entry.member.has(Ability::CallsLibrary))
        };
        let is_wanted = match self.w.reader_requests.as_deref() {
            Some(requests) => requests == "library",
            None => calls_library(),
        };
        if !is_wanted {
            return;
        }
        let format = self.catalog.format(&dataset.format);
        let engine = storage.engine.as_deref().and_then(|name| self.catalog.engine(name));
        let decides = [Ability::ServesSamples, Ability::Mapped, Ability::BypassesPageCache];
        let is_decided_by_engine =
            engine.is_some_and(|engine| decides.into_iter().any(|ability| engine.has(ability)));
        let storage_member = self.catalog.storage(&storage.kind);
        let reads_objects =
            stage.is_none() && storage_member.is_some_and(|member| member.has(Ability::Remote));
        let obstacle = match format.and_then(|format| format.library) {
            _ if self.w.reader_transfer_size.is_some() => "`reader.transfer_size` is given",
            _ if loader.requests.is_some() => "whole files or row groups are read",
            _ if loader.file_access == FileAccess::Mpio => "MPI-IO reads whole samples",
            // Jobs fetch objects in large requests and decode them from memory.
            _ if reads_objects => "objects in a store are read in large requests",
            _ if is_decided_by_engine => "the engine determines the requests",
            None => "the requests of this format's library are not known",
            // The format's reader makes these requests by default.
            Some(library) if library.requests().sizes.period_bytes == Some(loader.piece_bytes) => {
                return;
            }
            Some(library) => {
                let period_bytes = library.requests().sizes.period_bytes;
                let piece_bytes = period_bytes
                    .unwrap_or_else(|| largest_request_bytes(dataset, self.catalog, layout));
                let evaluation = plan.evaluation.as_mut().map(|evaluation| &mut evaluation.loader);
                for loader in [&mut plan.loader].into_iter().chain(evaluation) {
                    (loader.library, loader.piece_bytes) = (Some(library), piece_bytes);
                }
                return;
            }
        };
        self.warn_unused("reader.requests", obstacle);
    }
}

/// Returns the bytes of the longest request without an upper limit of the library: a sample or a whole file, in whole pages.
fn largest_request_bytes(dataset: &DatasetPlan, catalog: &Catalog, layout: &Layout) -> u64 {
    let read_bytes = whole_read_bytes(dataset, catalog, layout);
    read_bytes.clamp(PIECE_BYTES, REQUEST_BYTES_MAX).next_multiple_of(PAGE_BYTES)
}
