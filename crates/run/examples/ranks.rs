//! A rank under test: says what it sees, and behaves or misbehaves as its argument tells. Started by `tests/mpi.rs`.

#![expect(clippy::print_stdout, reason = "what a rank sees is what the test reads")]

use feedrate_run::comm::mpi::{Options, connect};
use feedrate_run::comm::{Comm, CommError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let timeout = std::env::var("RANK_TIMEOUT_S").ok().and_then(|s| s.parse().ok()).unwrap_or(30);
    let options = Options {
        library: std::env::var_os("MPI_LIBRARY").map(Into::into),
        rank_timeout: Duration::from_secs(timeout),
        stop: Arc::new(AtomicBool::new(false)),
        on_loss: Some(Arc::new(|error: &CommError| println!("told: {error}"))),
    };
    let mpi = match connect(&options) {
        Ok(Some(mpi)) => mpi,
        Ok(None) => return println!("alone"),
        Err(error) => {
            println!("refused: {error}\nhint: {}", error.hint().unwrap_or_default());
            std::process::exit(2);
        }
    };
    let result = match arguments.get(1).map(String::as_str) {
        Some("bench") => bench(&mpi),
        _ => contract(&mpi),
    };
    if let Err(error) = result {
        println!("rank {}: {error}", mpi.rank());
        drop(mpi);
        std::process::exit(1);
    }
}

fn contract(mpi: &dyn Comm) -> Result<(), CommError> {
    for _ in 0..100 {
        mpi.barrier()?;
    }
    let all = mpi.gather(&mpi.rank().to_le_bytes())?;
    if mpi.rank() == 0 {
        assert_eq!(all, (0..mpi.size()).map(|r| r.to_le_bytes().to_vec()).collect::<Vec<_>>());
    }
    assert_eq!(mpi.broadcast(format!("from {}", mpi.rank()).as_bytes())?, b"from 0");
    let start = Instant::now();
    let offset = mpi.clock(&|| start.elapsed().as_nanos() as u64)?;
    println!("rank {} of {} {:?} {offset:?}", mpi.rank(), mpi.size(), mpi.node());
    Ok(())
}

fn bench(mpi: &feedrate_run::comm::mpi::Mpi) -> Result<(), CommError> {
    for (name, barrier) in [("own", true), ("library", false)] {
        mpi.barrier()?;
        let start = Instant::now();
        let rounds = 1000;
        for _ in 0..rounds {
            if barrier { mpi.barrier()? } else { mpi.library_barrier()? }
        }
        if mpi.rank() == 0 {
            println!("{name} {:?}", start.elapsed() / rounds);
        }
    }
    Ok(())
}
