//! Contract tests of storages, run on every row of the table according to its abilities.

#[cfg(feature = "object")]
mod servers;

use super::*;
use feedrate_spec::catalog::Ability;
use feedrate_spec::part::final_name;
use std::io::{Error, ErrorKind};

/// Calls `check` with each storage, on a folder that does not exist yet. Stores of objects are a bucket of S3 in this process.
fn for_each_storage(check: impl Fn(&dyn Storage, &Path)) {
    #[cfg(feature = "object")]
    {
        let server = object::TestServer::start();
        let root = PathBuf::from(format!("{}/deep/root", server.url()));
        check(&*open("s3", &root).unwrap(), &root);
    }
    for kind in local_storages() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("deep/root");
        let storage = (kind.open)(&root, engine::ENGINES[0]).unwrap();
        assert_eq!(storage.member().name, kind.member.name);
        check(&*storage, &root);
    }
}

fn local_storages() -> impl Iterator<Item = &'static StorageKind> {
    STORAGES.iter().filter(|kind| !kind.member.has(Ability::Remote))
}

/// A check of a storage with an empty root.
type Part = fn(&dyn Storage);

/// The parts of the contract of storages that keep bytes.
const PARTS: [(&str, Part); 6] = [
    ("ranges", check_ranges),
    ("patches", check_patches),
    ("dropped-file", check_dropped_file),
    ("listing", check_listing),
    ("missing-file", check_missing_file),
    ("long-name", check_long_name),
];

fn for_each_that_keeps_bytes(check: impl Fn(&dyn Storage)) {
    for_each_storage(|storage, _| {
        if storage.member().has(Ability::KeepsBytes) {
            storage.make_dir("train/0").unwrap();
            check(storage);
        }
    });
}

fn put(storage: &dyn Storage, path: &str, bytes: &[u8]) {
    let mut file = storage.create(path).unwrap();
    file.write(bytes).unwrap();
    file.sync().unwrap();
    file.commit().unwrap();
}

fn get(storage: &dyn Storage, path: &str) -> Vec<u8> {
    let file = storage.open(path).unwrap();
    let mut bytes = vec![0; storage.len(&file).unwrap() as usize];
    assert_eq!(storage.read_at(&file, 0, &mut bytes).unwrap(), bytes.len());
    storage.close(file);
    bytes
}

#[test]
fn names_are_unique_and_found() {
    for kind in STORAGES {
        let name = kind.member.name;
        assert_eq!(STORAGES.iter().filter(|other| other.member.name == name).count(), 1);
        let root = if kind.member.has(Ability::Remote) { "s3://bucket" } else { "/" };
        let is_opened = name == "s3" || !kind.member.has(Ability::Remote);
        assert!(!is_opened || open(name, Path::new(root)).unwrap().member().name == name);
    }
    let error = open("nosuch", Path::new("/")).err().unwrap();
    assert_eq!(error.to_string(), "cannot open `/`: there is no storage `nosuch`");
}

#[test]
fn written_bytes_can_be_read_in_any_range() {
    for_each_that_keeps_bytes(check_ranges);
}

fn check_ranges(storage: &dyn Storage) {
    let bytes: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    let mut file = storage.create("train/a").unwrap();
    file.write(&bytes[..70_000]).unwrap();
    file.write(&bytes[70_000..]).unwrap();
    file.commit().unwrap();
    assert_eq!(get(storage, "train/a"), bytes);
    let file = storage.open("train/a").unwrap();
    let mut part = [0; 5000];
    assert_eq!(storage.read_at(&file, 12_345, &mut part).unwrap(), 5000);
    assert_eq!(part, bytes[12_345..17_345]);
    assert_eq!(storage.read_at(&file, 99_999, &mut part).unwrap(), 1);
    assert_eq!(storage.read_at(&file, 100_000, &mut part).unwrap(), 0);
    assert_eq!(storage.read_at(&file, 1 << 40, &mut part).unwrap(), 0);
    storage.close(file);
}

#[test]
fn a_file_can_be_patched_before_it_is_visible() {
    for_each_that_keeps_bytes(check_patches);
}

fn check_patches(storage: &dyn Storage) {
    let mut file = storage.create("a").unwrap();
    file.write(b"0123456789").unwrap();
    file.patch(3, b"xyz").unwrap();
    file.write(b"ab").unwrap();
    assert_eq!(storage.stat("a").unwrap(), None);
    file.commit().unwrap();
    assert_eq!(get(storage, "a"), b"012xyz6789ab");
}

#[test]
fn a_file_dropped_before_its_commit_leaves_nothing() {
    for_each_that_keeps_bytes(check_dropped_file);
}

fn check_dropped_file(storage: &dyn Storage) {
    put(storage, "train/a", b"old");
    let mut file = storage.create("train/a").unwrap();
    file.write(b"new and longer").unwrap();
    let listed = storage.list("train").unwrap();
    assert!(
        listed.iter().all(|name| ["0", "a"].contains(&name.as_str()) || final_name(name).is_some())
    );
    drop(file);
    assert_eq!(get(storage, "train/a"), b"old");
    assert!(!storage.list("train").unwrap().iter().any(|name| final_name(name).is_some()));
}

#[test]
fn files_can_be_listed_and_removed() {
    for_each_that_keeps_bytes(check_listing);
}

fn check_listing(storage: &dyn Storage) {
    for path in ["train/0/b", "train/c", "train/a"] {
        put(storage, path, path.as_bytes());
    }
    assert_eq!(storage.list("train").unwrap(), ["0", "a", "c"]);
    assert_eq!(storage.list("train/0").unwrap(), ["b"]);
    assert_eq!(storage.list("nowhere").unwrap(), [""; 0]);
    assert_eq!(storage.stat("train/0/b").unwrap(), Some(9));
    assert_eq!(storage.stat("train/nothing").unwrap(), None);
    storage.remove("train/a").unwrap();
    storage.remove("train/a").unwrap();
    assert_eq!(storage.stat("train/a").unwrap(), None);
    storage.sync_all().unwrap();
    assert!(storage.free_bytes().unwrap().is_none_or(|bytes| bytes > 0));
}

#[test]
fn the_error_for_a_missing_file_contains_its_name() {
    for_each_that_keeps_bytes(check_missing_file);
}

fn check_missing_file(storage: &dyn Storage) {
    // Opening an object sends no request.
    let opened = storage.open("train/no such file");
    let error = opened.and_then(|file| storage.len(&file)).unwrap_err();
    assert_eq!(error.source.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("train/no such file"), "{error}");
}

#[test]
fn an_empty_root_reads_as_an_empty_folder() {
    for_each_storage(|storage, _| {
        assert!(storage.list("").unwrap().is_empty());
        if storage.member().has(Ability::KeepsBytes) {
            assert_eq!(storage.stat("manifest.json").unwrap(), None);
            assert!(storage.open("manifest.json").and_then(|file| storage.len(&file)).is_err());
        }
    });
}

#[test]
fn storages_without_the_ability_refuse_writes() {
    for_each_storage(|storage, _| {
        let writable = storage.member().has(Ability::Writable);
        storage.make_dir("").unwrap();
        assert_eq!(storage.create("a").is_ok(), writable);
    });
}

#[test]
fn the_page_cache_can_be_inspected_emptied_and_filled() {
    for_each_that_keeps_bytes(|storage| {
        put(storage, "a", &vec![1; 1 << 20]);
        storage.evict("a").unwrap();
        if !storage.member().has(Ability::PageCache) {
            assert_eq!(storage.resident_bytes("a").unwrap(), None);
            return;
        }
        // tmpfs cannot drop pages. On other file systems nothing stays in the cache.
        let after = storage.resident_bytes("a").unwrap().unwrap();
        assert!(after == 0 || after == 1 << 20, "{after}");
        get(storage, "a");
        assert_eq!(storage.resident_bytes("a").unwrap(), Some(1 << 20));
        storage.evict("a").unwrap();
        storage.warm("a").unwrap();
        assert_eq!(storage.resident_bytes("a").unwrap(), Some(1 << 20));
    });
}

#[test]
fn null_serves_any_range_and_does_not_change_the_buffer() {
    let storage = open("null", Path::new("/")).unwrap();
    let file = storage.open("any").unwrap();
    let mut buffer = [7; 100];
    assert_eq!(storage.read_at(&file, 1 << 50, &mut buffer).unwrap(), 100);
    assert_eq!(buffer, [7; 100]);
}

#[test]
fn a_root_that_is_a_file_is_refused_with_a_hint() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = open("file", file.path()).err().unwrap();
    assert_eq!(error.source.kind(), ErrorKind::NotADirectory);
    assert!(error.hint().is_some());
}

#[test]
fn a_name_longer_than_the_stack_buffer_works() {
    for_each_that_keeps_bytes(check_long_name);
}

fn check_long_name(storage: &dyn Storage) {
    let path = format!("train/{}", "n".repeat(240));
    put(storage, &path, b"x");
    assert_eq!(get(storage, &path), b"x");
}

#[test]
fn an_exceeded_quota_counts_as_a_full_device() {
    let hint = |errno| StorageError::new("write", "a", Error::from_raw_os_error(errno)).hint();
    assert!(hint(libc::EDQUOT).is_some());
    assert_eq!(hint(libc::EDQUOT), hint(libc::ENOSPC));
    assert!(hint(libc::ENOSPC).unwrap().contains("`--results`"));
}

#[test]
fn a_missing_file_of_the_dataset_has_a_hint_also_when_it_is_evicted() {
    let hint = |action| StorageError::new(action, "a", ErrorKind::NotFound).hint();
    assert!(hint("evict").unwrap().contains("`feedrate generate`"));
    assert_eq!(hint("evict"), hint("open"));
    assert_eq!(hint("list"), None);
}
