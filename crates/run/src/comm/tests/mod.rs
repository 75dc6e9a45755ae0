//! Tests the contract of every kind of communication.

mod threads;

pub(crate) use threads::ThreadRank;

use super::{Comm, CommError, End, Solo, most_on_one_machine};
use std::sync::atomic::AtomicBool;

fn check_contract(rank: &dyn Comm) {
    assert!(rank.rank() < rank.size());
    for _ in 0..100 {
        rank.barrier().unwrap();
    }
    let gathered = rank.gather(&rank.rank().to_le_bytes()).unwrap();
    if rank.rank() == 0 {
        let ranks: Vec<Vec<u8>> = (0..rank.size()).map(|r| r.to_le_bytes().to_vec()).collect();
        assert_eq!(gathered, ranks);
    } else {
        assert!(gathered.is_empty());
    }
    let received = rank.broadcast(format!("from {}", rank.rank()).as_bytes()).unwrap();
    assert_eq!(received, b"from 0");
    let node = rank.node();
    assert!(node.node < node.nodes && node.local_rank < node.local_size);
    assert!(node.local_size <= node.local_size_max && node.local_size_max <= rank.size());
}

#[test]
fn processes_may_be_distributed_unevenly_over_machines() {
    assert_eq!(most_on_one_machine(&[0, 1, 1, 1, 4, 1, 4]), 4);
    assert_eq!(most_on_one_machine(&[0; 8]), 8);
}

#[test]
fn solo_keeps_the_contract() {
    check_contract(&Solo);
}

#[test]
fn threads_keep_the_contract() {
    for size in [1, 2, 7] {
        std::thread::scope(|scope| {
            for rank in ThreadRank::group(size) {
                scope.spawn(move || check_contract(&rank));
            }
        });
    }
}

#[test]
fn a_rank_that_gives_up_ends_the_waits_of_others() {
    std::thread::scope(|scope| {
        for rank in ThreadRank::group(3) {
            scope.spawn(move || match rank.rank() {
                1 => rank.give_up(End::Failed("no such file".into())),
                _ => {
                    let error = rank.barrier().unwrap_err();
                    assert!(matches!(error, CommError::Lost { rank: 1, .. }), "{error}");
                    assert_eq!(error.to_string(), "rank 1 gave up: no such file");
                }
            });
        }
    });
}

/// Checks messages between two ranks: messages with the same tag arrive in order, independently of other tags.
fn check_peers(rank: &dyn Comm) {
    let peers = rank.peers().unwrap();
    let stop = AtomicBool::new(false);
    let other = 1 - rank.rank();
    for tag in [7, 8] {
        for i in 0..20_u8 {
            let bytes = vec![i; usize::from(i) + tag as usize];
            assert_eq!(peers.send(other, tag, bytes.clone(), &stop).unwrap(), bytes);
        }
    }
    for tag in [8, 7] {
        for i in 0..20_u8 {
            let buffer = vec![0; usize::from(i) + tag as usize];
            assert!(
                peers.receive(other, tag, buffer, &stop).unwrap().iter().all(|&byte| byte == i)
            );
        }
    }
    rank.barrier().unwrap();
    if rank.rank() == 0 {
        let stopped = peers.receive(other, 7, vec![0], &AtomicBool::new(true));
        assert_eq!(stopped, Err(CommError::Stopped));
        rank.give_up(End::Failed("no such file".into()));
    } else {
        let lost = peers.receive(other, 7, vec![0], &stop).unwrap_err();
        assert!(matches!(lost, CommError::Lost { end: End::Failed(_), .. }), "{lost}");
    }
}

#[test]
fn peers_keep_the_contract() {
    std::thread::scope(|scope| {
        for rank in ThreadRank::group(2) {
            scope.spawn(move || check_peers(&rank));
        }
    });
    assert!(Solo.peers().is_err());
}

#[test]
fn only_ranks_of_mpi_read_files_together() {
    assert!(Solo.files().is_err());
    assert!(ThreadRank::group(1)[0].files().is_err());
}
