//! Uploads in parts that were neither completed nor aborted, which killed processes leave in S3. `object_store` does not list them, but signs
//! the request.

use super::block_on;
use super::failure::Failure;
use super::settings::Store;
use object_store::client::{HttpRequestBody, HttpService};
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions};
use serde::Deserialize;
use std::io::ErrorKind;
use std::time::Duration;

/// Time for which a signature is valid: longer than a request is repeated.
const SIGNATURE_VALID: Duration = Duration::from_secs(600);

/// An upload that is not complete.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct UnfinishedUpload {
    /// Name of the object.
    pub(super) key: String,
    upload_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UploadPage {
    #[serde(default, rename = "Upload")]
    uploads: Vec<UnfinishedUpload>,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default)]
    is_truncated: bool,
}

/// Lists the unfinished uploads of objects whose names start with `prefix`. Empty for stores that do not list them, or not to this user.
pub(super) fn list(store: &Store, prefix: &str) -> Result<Vec<UnfinishedUpload>, Failure> {
    let mut uploads = Vec::new();
    let mut markers = Vec::new();
    loop {
        let Some(page) = list_page(store, prefix, &markers)? else { return Ok(uploads) };
        uploads.extend(page.uploads);
        let (Some(key), Some(id)) = (page.next_key_marker, page.next_upload_id_marker) else {
            return Ok(uploads);
        };
        let next = vec![("key-marker", key), ("upload-id-marker", id)];
        // A store that repeats its page would never end.
        if !page.is_truncated || next == markers {
            return Ok(uploads);
        }
        markers = next;
    }
}

fn list_page(
    store: &Store,
    prefix: &str,
    markers: &[(&str, String)],
) -> Result<Option<UploadPage>, Failure> {
    let Some(signer) = &store.signer else { return Ok(None) };
    let query = [("uploads", ""), ("prefix", prefix)].into_iter();
    let markers = markers.iter().map(|(name, value)| (*name, value.as_str()));
    let options = SignedUrlOptions::default().with_query(query.chain(markers));
    let bucket = Path::default();
    let signed = block_on(signer.signed_url_opts(Method::GET, &bucket, SIGNATURE_VALID, &options));
    let url = signed.map_err(|error| Failure::from_store(&error))?;
    let broken = |message: String| Failure::new(ErrorKind::InvalidData, message);
    let request = http::Request::get(url.as_str()).body(HttpRequestBody::empty());
    let request = request.map_err(|error| broken(error.to_string()))?;
    let response = block_on(store.transport.call(request)).map_err(|error| {
        let store = "the store";
        Failure::from_store(&object_store::Error::Generic { store, source: Box::new(error) })
    })?;
    if !response.status().is_success() {
        return Ok(None);
    }
    let body = block_on(response.into_body().bytes());
    let body = body.map_err(|error| broken(error.to_string()))?;
    // A store that answers something else lists no uploads.
    Ok(quick_xml::de::from_reader(&*body).ok())
}

/// Aborts an upload. One that is gone is not an error.
pub(super) fn abort(store: &Store, upload: &UnfinishedUpload) -> Result<(), Failure> {
    let path = Path::parse(&upload.key)
        .map_err(|error| Failure::new(ErrorKind::InvalidInput, error.to_string()))?;
    match block_on(store.parts.abort_multipart(&path, &upload.upload_id)) {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(Failure::from_store(&error)),
    }
}
