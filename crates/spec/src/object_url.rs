//! Addresses of objects: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`.

use std::fmt;
use std::path::Path;

/// Schemes with the storage that each one means; the first one of a storage is the usual one.
const SCHEMES: [(&str, &str); 4] = [("s3", "s3"), ("gs", "gcs"), ("az", "azure"), ("gcs", "gcs")];

/// A bucket, or a container of Azure, and a prefix of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUrl {
    /// Name of the storage: `s3`, `gcs`, `azure`.
    pub storage: &'static str,
    /// Name of the bucket.
    pub bucket: String,
    /// Start of all names, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

impl ObjectUrl {
    /// Parses a URL; `None` if it has no known scheme or names no bucket.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (_, storage) = SCHEMES.iter().find(|(name, _)| *name == scheme)?;
        Self::in_storage(storage, rest)
    }

    /// The address of `bucket/prefix` in a storage; `None` if the storage has no buckets, or no bucket is named.
    pub fn in_storage(storage: &str, path: &str) -> Option<Self> {
        let (_, storage) = SCHEMES.iter().find(|(_, name)| *name == storage)?;
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        let bucket = parts.next()?.to_string();
        Some(ObjectUrl { storage, bucket, prefix: parts.collect::<Vec<_>>().join("/") })
    }

    /// Whether a path is written as a URL of objects, even if no bucket is named.
    pub fn has_scheme(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|(name, _)| *name == scheme))
    }

    /// As [`ObjectUrl::has_scheme`], for a path.
    pub fn is_written_in(path: &Path) -> bool {
        path.to_str().is_some_and(Self::has_scheme)
    }

    /// Name of an object below the prefix.
    pub fn key(&self, path: &str) -> String {
        let path = path.trim_matches('/');
        match (self.prefix.is_empty(), path.is_empty()) {
            (true, _) => path.to_string(),
            (_, true) => self.prefix.clone(),
            _ => format!("{}/{path}", self.prefix),
        }
    }

    /// The bucket without a prefix, such as `s3://bucket`.
    pub fn bucket_url(&self) -> String {
        let usual = SCHEMES.iter().find(|(_, name)| *name == self.storage);
        format!("{}://{}", usual.map_or("", |(scheme, _)| scheme), self.bucket)
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bucket_url())?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_written() {
        for (text, storage, bucket, prefix, written) in [
            ("s3://data", "s3", "data", "", "s3://data"),
            ("s3://data/a/b/", "s3", "data", "a/b", "s3://data/a/b"),
            ("s3://data//./a", "s3", "data", "a", "s3://data/a"),
            ("gs://b/p", "gcs", "b", "p", "gs://b/p"),
            ("gcs://b/p", "gcs", "b", "p", "gs://b/p"),
            ("az://c/p", "azure", "c", "p", "az://c/p"),
        ] {
            let url = ObjectUrl::parse(text).unwrap();
            assert_eq!(
                (url.storage, url.bucket.as_str(), url.prefix.as_str()),
                (storage, bucket, prefix)
            );
            assert_eq!(url.to_string(), written);
        }
        for text in ["/mnt/data", "s3:data", "http://a/b", "s3://", "s3:///"] {
            assert_eq!(ObjectUrl::parse(text), None, "{text}");
        }
        assert!(ObjectUrl::has_scheme("s3://") && !ObjectUrl::has_scheme("file:///a"));
        assert_eq!(ObjectUrl::in_storage("file", "a"), None);
    }

    #[test]
    fn names_are_below_the_prefix() {
        let key = |url: &str, path| ObjectUrl::parse(url).unwrap().key(path);
        assert_eq!(key("s3://b/p/", "train/a"), "p/train/a");
        assert_eq!(key("s3://b", "/train/a"), "train/a");
        assert_eq!([key("s3://b/p", ""), key("s3://b", "")], ["p", ""]);
    }
}
