//! The contract of every way of communicating.

use super::{Comm, CommError, Solo, Threads};

fn contract(rank: &dyn Comm) {
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
    let told = rank.broadcast(format!("from {}", rank.rank()).as_bytes()).unwrap();
    assert_eq!(told, b"from 0");
    let node = rank.node();
    assert!(node.node < node.nodes && node.local_rank < node.local_size);
}

#[test]
fn solo_keeps_the_contract() {
    contract(&Solo);
}

#[test]
fn threads_keep_the_contract() {
    for size in [1, 2, 7] {
        std::thread::scope(|scope| {
            for rank in Threads::group(size) {
                scope.spawn(move || contract(&rank));
            }
        });
    }
}

#[test]
fn a_rank_that_gives_up_frees_those_who_wait() {
    std::thread::scope(|scope| {
        for rank in Threads::group(3) {
            scope.spawn(move || match rank.rank() {
                1 => rank.give_up("no such file"),
                _ => {
                    let error = rank.barrier().unwrap_err();
                    assert!(matches!(error, CommError::Lost { rank: 1, .. }), "{error}");
                    assert_eq!(error.to_string(), "rank 1 gave up: no such file");
                }
            });
        }
    });
}
