//! The check of a store before a run: wrong names, keys and permissions are reported within seconds, before data are made.

use super::failure::Failure;
use super::settings::{self, Store};
use super::{StorageError, block_on};
use feedrate_spec::object_url::ObjectUrl;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt, PutPayload};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;

/// Whether the objects below a URL are only read, or also written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are only read.
    Read,
    /// They are read, written and removed.
    Write,
}

/// Content of the object that is written to check the store, and the range that is read back.
const CONTENT: &[u8; 64] = b"feedrate writes, reads and removes this object to check a store.";
const RANGE: std::ops::Range<u64> = 9..24;

/// Sends one request of each kind that a run needs.
///
/// # Errors
/// Fails if the store cannot be reached or refuses a request, with a hint.
pub fn check(url: &ObjectUrl, access: Access) -> Result<(), StorageError> {
    let failed = |action| move |failure| StorageError::new(action, url.to_string(), failure);
    let store = settings::store_to_check(url).map_err(failed("open"))?;
    let unique = RandomState::new().hash_one(std::process::id());
    let path = Path::parse(url.key(&format!(".feedrate-check-{unique:016x}")))
        .map_err(|error| Failure::new(ErrorKind::InvalidInput, error.to_string()));
    let path = path.map_err(failed("open"))?;
    if access == Access::Read {
        return match get(&store, &path) {
            Ok(_) => Ok(()),
            Err(error) => match Failure::from_store(&error) {
                // The object is missing, as expected; a missing bucket has a hint.
                failure if failure.kind == ErrorKind::NotFound && failure.hint.is_none() => Ok(()),
                failure => Err(failed("read")(failure)),
            },
        };
    }
    let payload = PutPayload::from_static(CONTENT);
    let put = block_on(store.objects.put(&path, payload));
    put.map_err(|error| failed("write")(Failure::from_store(&error)))?;
    let got = get(&store, &path);
    let deleted = block_on(store.objects.delete(&path));
    let found = got.map_err(|error| failed("read")(Failure::from_store(&error)))?;
    if found != CONTENT[RANGE.start as usize..RANGE.end as usize] {
        let message = "the store returned other bytes than those that were just written";
        return Err(failed("read")(Failure::new(ErrorKind::InvalidData, message)));
    }
    deleted.map_err(|error| failed("remove")(Failure::from_store(&error)))
}

fn get(store: &Store, path: &Path) -> object_store::Result<Vec<u8>> {
    let range = Some(GetRange::Bounded(RANGE));
    let options = GetOptions { range, ..GetOptions::default() };
    let got = block_on(store.objects.get_opts(path, options))?;
    Ok(block_on(got.bytes())?.to_vec())
}
