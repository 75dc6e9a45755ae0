//! The contract of every way of communicating.

use super::{Comm, Solo, Threads};

fn contract(rank: &dyn Comm) {
    assert!(rank.rank() < rank.size());
    for _ in 0..100 {
        rank.barrier();
    }
    let n = f64::from(rank.size());
    assert_eq!(rank.sum(f64::from(rank.rank() + 1)), n * (n + 1.0) / 2.0);
    let gathered = rank.gather(&rank.rank().to_le_bytes());
    if rank.rank() == 0 {
        let ranks: Vec<Vec<u8>> = (0..rank.size()).map(|r| r.to_le_bytes().to_vec()).collect();
        assert_eq!(gathered, ranks);
    } else {
        assert!(gathered.is_empty());
    }
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
