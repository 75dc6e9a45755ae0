//! Objects in a bucket of S3, Google Cloud Storage or Azure, on the crate `object_store`.
//!
//! Reads that follow one another are one ranged GET, whose body goes into the buffers of the callers. Each response is checked: its range,
//! the length and the version (ETag) of its object, and the number of its bytes. Opening a file sends nothing: the first response has the
//! length.

mod http;
mod service;
mod profile;
mod settings;
mod failure;
mod odd_names;
mod read;
mod sending;
mod write;
mod uploads;
mod check;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use test_server::TestServer;
#[cfg(test)]
pub(super) use tests::check_large_object;

pub use check::{Access, check};
pub use settings::{StoreSettings, adopt_settings, all_settings, configure, describe};

use self::failure::Failure;
use self::odd_names::OddNames;
use self::read::{ObjectRead, OpenObject, ReadMode};
use self::settings::Store;
use super::engine::Engine;
use super::{
    Depth, EntryKind, EntryVisit, Handle, ReadStorage, Storage, StorageError, StorageKind,
    UploadAction, WriteFile,
};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::transfers::TransferCounts;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

pub(super) const S3: StorageKind = StorageKind { member: &S3_MEMBER, open };
pub(super) const GCS: StorageKind = StorageKind { member: &GCS_MEMBER, open };
pub(super) const AZURE: StorageKind = StorageKind { member: &AZURE_MEMBER, open };

const ABILITIES: &[Ability] = &[Ability::KeepsBytes, Ability::Writable, Ability::Remote];
static S3_MEMBER: Member = Member {
    name: "s3",
    summary: "Objects in a bucket of Amazon S3 or of another store with its protocol.",
    abilities: ABILITIES,
};
static GCS_MEMBER: Member = Member {
    name: "gcs",
    summary: "Objects in a bucket of Google Cloud Storage.",
    abilities: ABILITIES,
};
static AZURE_MEMBER: Member = Member {
    name: "azure",
    summary: "Objects in a container of Azure Blob Storage.",
    abilities: ABILITIES,
};

fn open(root: &Path, _engine: &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError> {
    let Some(url) = root.to_str().and_then(ObjectUrl::parse) else {
        let message = "the folder is not a URL such as `s3://bucket/prefix`";
        return Err(StorageError::new(
            "open",
            root,
            Failure::new(ErrorKind::InvalidInput, message),
        ));
    };
    let store =
        settings::store(&url).map_err(|failure| StorageError::new("open", root, failure))?;
    Ok(Box::new(ObjectStorage { store, url }))
}

struct ObjectStorage {
    store: Arc<Store>,
    url: ObjectUrl,
}

impl ObjectStorage {
    fn path(&self, path: &str) -> Result<object_store::path::Path, Failure> {
        object_store::path::Path::parse(self.url.key(path))
            .map_err(|error| Failure::new(ErrorKind::InvalidInput, error.to_string()))
    }

    fn error(&self, action: &'static str, path: &str, failure: Failure) -> StorageError {
        let url = format!("{}/{}", self.url, path.trim_start_matches('/'));
        StorageError::new(action, url, failure)
    }

    fn object_error(&self, object: &OpenObject, failure: Failure) -> StorageError {
        let url = format!("{}/{}", self.url.bucket_url(), object.path);
        StorageError::new("read", url, failure)
    }

    fn object<'h>(&self, file: &'h Handle) -> Result<&'h OpenObject, StorageError> {
        let object = file.object::<OpenObject>();
        object.ok_or_else(|| StorageError::new("read", "a foreign handle", ErrorKind::InvalidInput))
    }

    fn length_if_exists(&self, path: &str) -> Result<Option<u64>, Failure> {
        Ok(self.store.head(&self.path(path)?)?.map(|found| found.size))
    }

    fn delete(&self, path: &str) -> Result<(), Failure> {
        match block_on(self.store.objects.delete(&self.path(path)?)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Failure::from_store(&error)),
        }
    }
}

/// The path of an object or a folder below the folder whose objects have names with this `start`; `None` for an object that marks this folder,
/// as some stores and their consoles keep them.
fn path_below<'l>(location: &'l object_store::path::Path, start: &str) -> Option<&'l str> {
    location.as_ref().strip_prefix(start).filter(|path| !path.is_empty())
}

impl ReadStorage for ObjectStorage {
    /// Sends no request: a missing object is an error of the first read.
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let path = self.path(path).map_err(|failure| self.error("open", path, failure))?;
        Ok(Handle::from_object(OpenObject::new(path)))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let object = self.object(file)?;
        self.length(object).map_err(|failure| self.object_error(object, failure))
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        let object = self.object(file)?;
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let read = self.read(object, ObjectRead { range, buffer, mode: ReadMode::Piece { end } });
        read.map(|bytes| bytes as usize).map_err(|failure| self.object_error(object, failure))
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        let object = self.object(file)?;
        let range = offset..offset.saturating_add(len);
        let read = self.read(object, ObjectRead { range, buffer, mode: ReadMode::Over });
        read.map_err(|failure| self.object_error(object, failure))
    }

    fn close(&self, file: Handle) {
        if let Some(object) = file.into_object::<OpenObject>() {
            object.close();
        }
    }

    fn transfers(&self) -> Option<TransferCounts> {
        Some(self.store.transport.counts.snapshot())
    }
}

impl Storage for ObjectStorage {
    fn member(&self) -> &'static Member {
        match self.url.storage {
            "gcs" => &GCS_MEMBER,
            "azure" => &AZURE_MEMBER,
            _ => &S3_MEMBER,
        }
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.length_if_exists(path).map_err(|failure| self.error("stat", path, failure))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        let key = self.path(path).map_err(|failure| self.error("create", path, failure))?;
        let url = format!("{}/{key}", self.url.bucket_url());
        Ok(Box::new(write::NewObject::new(Arc::clone(&self.store), key, url)))
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        self.delete(path).map_err(|failure| self.error("remove", path, failure))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        let mut names = Vec::new();
        self.visit_entries(path, Depth::Folder, &mut |name, kind| {
            if kind != EntryKind::Other {
                names.push(name.to_string());
            }
            Ok(())
        })?;
        names.sort();
        // A page may repeat a folder of the page before.
        names.dedup();
        Ok(names)
    }

    fn unfinished_uploads(
        &self,
        action: UploadAction,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Result<u64, StorageError> {
        let failed = |action| move |failure| self.error(action, "", failure);
        let root = if self.url.prefix.is_empty() {
            String::new()
        } else {
            format!("{}/", self.url.prefix)
        };
        let mut found = uploads::list(&self.store, &root).map_err(failed("list the uploads of"))?;
        found.retain(|upload| upload.key.strip_prefix(&root).is_some_and(is_own));
        if action == UploadAction::Abort {
            let aborted = found.iter().try_for_each(|upload| uploads::abort(&self.store, upload));
            aborted.map_err(failed("abort the uploads of"))?;
        }
        Ok(found.len() as u64)
    }

    /// Keeps one page of the listing in memory. Objects whose names cannot be used as paths have the type [`EntryKind::Other`].
    fn visit_entries(
        &self,
        path: &str,
        depth: Depth,
        found: &mut EntryVisit<'_>,
    ) -> Result<bool, StorageError> {
        let error = |failure| self.error("list", path, failure);
        let folder = self.path(path).map_err(error)?;
        let start = if folder.is_root() { String::new() } else { format!("{folder}/") };
        let prefix = Some(start.as_str()).filter(|start| !start.is_empty());
        let mut page_token: Option<String> = None;
        loop {
            let delimiter = (depth == Depth::Folder).then_some(Cow::Borrowed("/"));
            let options = PaginatedListOptions {
                delimiter,
                page_token: page_token.clone(),
                ..PaginatedListOptions::default()
            };
            let listed = block_on(self.store.pages.list_paginated(prefix, options));
            let page = listed.map_err(|failed| error(Failure::from_store(&failed)))?;
            for object in &page.result.objects {
                if let Some(path) = path_below(&object.location, &start) {
                    found(path, EntryKind::File { bytes: object.size })?;
                }
            }
            for folder in &page.result.common_prefixes {
                if let Some(path) = path_below(folder, &start) {
                    found(path, EntryKind::Folder)?;
                }
            }
            let odd_names = page.result.extensions.get::<OddNames>();
            for name in odd_names.into_iter().flat_map(|names| &names.0) {
                found(name.strip_prefix(&start).unwrap_or(name), EntryKind::Other)?;
            }
            // Some stores end with an empty token.
            let Some(next_token) = page.page_token.filter(|token| !token.is_empty()) else {
                return Ok(true);
            };
            if page_token.as_ref() == Some(&next_token) {
                let message = "the store repeats a page of its listing";
                return Err(error(Failure::new(ErrorKind::InvalidData, message)));
            }
            page_token = Some(next_token);
        }
    }
}

/// Drives a future on this thread. The transport below blocks, so a future waits only for another thread that renews credentials.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
