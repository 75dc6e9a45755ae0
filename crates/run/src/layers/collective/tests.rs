//! Tests readers and members on threads instead of processes.

use super::*;
use crate::comm::Comm;
use crate::comm::tests::ThreadRank;
use feedrate_data::storage::{self, Storage};
use std::path::Path;

/// Checks the reader and the members of each process, for a number of accelerators, processes and accelerators in a group.
#[test]
fn groups_that_extend_over_processes_have_a_reader_and_members() {
    let check = |accelerators, processes, group, expected: &[(Option<u32>, &[u32])]| {
        for (rank, &(reader, members)) in expected.iter().enumerate() {
            let found = Neighbours::new(rank as u32, processes, accelerators, group);
            let members = members.to_vec();
            assert_eq!(found, Neighbours { reader, members }, "{rank} of {processes}, {group}");
        }
    };
    let no_neighbours: (Option<u32>, &[u32]) = (None, &[]);
    check(4, 4, 1, &[no_neighbours; 4]);
    check(8, 4, 2, &[no_neighbours; 4]);
    check(4, 4, 2, &[(None, &[1]), (Some(0), &[]), (None, &[3]), (Some(2), &[])]);
    check(3, 3, 3, &[(None, &[1, 2]), (Some(0), &[]), (Some(0), &[])]);
    // The second group begins in the first process, the third in the second.
    check(6, 2, 2, &[(None, &[1]), (Some(0), &[])]);
    check(9, 3, 2, &[(None, &[1]), (Some(0), &[]), no_neighbours]);
    check(5, 2, 4, &[(None, &[1]), (Some(0), &[])]);
}

#[test]
fn readers_have_the_storage_share_of_their_members() {
    let all = |accelerators, processes, group| -> Vec<Range<u64>> {
        (0..processes)
            .map(|rank| served_accelerators(rank, processes, accelerators, group))
            .collect()
    };
    assert_eq!(all(4, 4, 1), [0..1, 1..2, 2..3, 3..4]);
    assert_eq!(all(4, 4, 2), [0..2, 2..2, 2..4, 4..4]);
    assert_eq!(all(4, 2, 4), [0..4, 4..4]);
    assert_eq!(all(8, 2, 3), [0..6, 6..8]);
}

/// Connects `size` ranks that form one group.
fn one_group(size: u32) -> Vec<Collective> {
    let collective = |rank: ThreadRank| Collective {
        neighbours: Neighbours::new(rank.rank(), size, size, size),
        peers: rank.peers().unwrap(),
        workers: 2,
        group_size: None,
        tags: 0,
        threads: Vec::new(),
        stop: Arc::default(),
        abandoned: Arc::default(),
    };
    ThreadRank::group(size).into_iter().map(collective).collect()
}

fn storage_with_file() -> Arc<dyn ReadStorage> {
    let storage = storage::open("memory", Path::new("/")).unwrap();
    let mut file = storage.create("train/a").unwrap();
    file.write(&(0..200).collect::<Vec<u8>>()).unwrap();
    file.commit().unwrap();
    Arc::<dyn Storage>::from(storage)
}

fn check_reading(storage: &dyn ReadStorage) {
    let mut buffer = [0; 50];
    for _ in 0..3 {
        let handle = storage.open("train/a").unwrap();
        assert_eq!(storage.len(&handle).unwrap(), 200);
        for offset in [0, 120, 10] {
            assert_eq!(storage.read_at(&handle, offset, &mut buffer).unwrap(), 50);
            assert!((0..50).all(|i| u64::from(buffer[i as usize]) == offset + i));
        }
        assert_eq!(storage.read_at(&handle, 190, &mut buffer).unwrap(), 10);
        assert_eq!(storage.read_at(&handle, 300, &mut buffer).unwrap(), 0);
        storage.close(handle);
    }
    let missing = storage.open("train/b").unwrap_err();
    assert_eq!((missing.action, missing.path.as_path()), ("open", Path::new("train/b")));
}

#[test]
fn members_read_what_only_the_reader_has() {
    let nothing = storage::open("null", Path::new("/")).unwrap();
    let nothing: Arc<dyn ReadStorage> = Arc::<dyn Storage>::from(nothing);
    std::thread::scope(|scope| {
        for (rank, mut collective) in one_group(3).into_iter().enumerate() {
            let storage = if rank == 0 { storage_with_file() } else { Arc::clone(&nothing) };
            scope.spawn(move || {
                // Two jobs of two workers each.
                for _ in 0..2 {
                    let GroupStorages { remote, serving } = collective.storages(&storage).unwrap();
                    let (storages, empty) =
                        if rank == 0 { (serving, remote) } else { (remote, serving) };
                    assert!(empty.is_empty());
                    assert_eq!(storages.len(), 2);
                    storages.iter().for_each(|storage| check_reading(&**storage));
                    // The reader closes files that are left open.
                    storages[0].open("train/a").unwrap();
                }
                collective.finish().unwrap();
            });
        }
    });
}

#[test]
fn an_interrupted_member_does_not_wait_for_its_reader() {
    let mut group = one_group(2);
    let mut member = group.pop().unwrap();
    let remote = member.storages(&storage_with_file()).unwrap().remote;
    member.stop.store(true, Relaxed);
    let error = remote[0].open("train/a").unwrap_err();
    assert_eq!(error.to_string(), "cannot reach `rank 0`: interrupted");
}

#[test]
fn a_reader_that_is_dropped_leaves_no_thread_behind() {
    let mut reader = one_group(3).swap_remove(0);
    let serving = reader.storages(&storage_with_file()).unwrap().serving;
    let ended = Arc::downgrade(&serving[0]);
    drop((reader, serving));
    assert!(ended.upgrade().is_none(), "its threads hold it");
}
