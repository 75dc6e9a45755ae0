//! A rank under test: prints what it observes, and behaves or misbehaves as requested.

use feedrate_run::clock::machine_ns;
use feedrate_run::comm::mpi::{Mpi, Options, connect, detect_launcher};
use feedrate_run::comm::{Comm, CommError, End};
use rustix::process::{Signal, getpid, kill_process};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Runs as a rank with `action`.
pub(crate) fn run(action: &str) {
    let timeout = std::env::var("RANK_TIMEOUT_S").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let options = Options {
        launched: detect_launcher(|name| std::env::var(name).ok()),
        library: std::env::var_os("MPI_LIBRARY").map(Into::into),
        rank_timeout: Duration::from_secs_f64(timeout),
        stop: stop(),
        on_wait: None,
        on_loss: Some(Arc::new(|error: &CommError| print_line(&format!("lost: {error}")))),
    };
    let options = match action {
        "busy" => Options { on_wait: Some(Arc::new(note)), ..options },
        _ => options,
    };
    let mpi = match connect(&options) {
        Ok(Some(mpi)) => mpi,
        Ok(None) => return print_line("alone"),
        Err(error) => {
            print_line(&format!("refused: {error}\nhint: {}", error.hint().unwrap_or_default()));
            std::process::exit(2);
        }
    };
    let must_misbehave = mpi.rank() == 2.min(mpi.size() - 1);
    let result = match action {
        "join" => Ok(()),
        "files" => files(&mpi),
        "bench" => bench(&mpi),
        "kill" => misbehave(&mpi, must_misbehave, die),
        "kill-first" => misbehave(&mpi, mpi.rank() == 0, die),
        "give-up" => misbehave(&mpi, must_misbehave, |mpi| {
            mpi.give_up(End::Failed("no such file".to_owned()))
        }),
        "panic" => misbehave(&mpi, must_misbehave, |_| panic!("as requested")),
        "stop" if mpi.rank() == 3 => misbehave(&mpi, true, |_| sleep()),
        "stop" => misbehave(&mpi, must_misbehave, |_| signal(Signal::TERM)),
        "busy" => busy(&mpi, must_misbehave),
        "sleep" => misbehave(&mpi, must_misbehave, |_| sleep()),
        _ => contract(&mpi),
    };
    if let Err(error) = result {
        print_line(&format!("rank {}: {error}", mpi.rank()));
        drop(mpi);
        std::process::exit(1);
    }
}

/// Prints a line in one write, so that launchers do not mix lines.
fn print_line(text: &str) {
    println!("{text}");
}

/// Returns a flag that is set by the signals that launchers send when a rank has died.
fn stop() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).expect("these can be caught");
    }
    stop
}

fn contract(mpi: &Mpi) -> Result<(), CommError> {
    for _ in 0..100 {
        mpi.barrier()?;
    }
    let message = |rank: u32| vec![rank as u8; 1_000 * rank as usize];
    let all = mpi.gather(&message(mpi.rank()))?;
    let ranks = if mpi.rank() == 0 { mpi.size() } else { 0 };
    assert_eq!(all, (0..ranks).map(message).collect::<Vec<_>>());
    assert_eq!(mpi.broadcast(format!("from {}", mpi.rank()).as_bytes())?, b"from 0");
    assert_eq!(mpi.broadcast(&[])?, b"");
    // All ranks are actually on one machine, so the correct offset is known.
    let ahead_ns = u64::from(mpi.rank()) * 10_000_000_000;
    let offset = mpi.clock_offset(&|| machine_ns() + ahead_ns)?;
    let error_ns = (offset.offset_ns + ahead_ns as i64).unsigned_abs();
    assert!(error_ns <= offset.error_ns, "{offset:?}");
    ring(mpi)?;
    print_line(&format!("rank {} of {}: {:?}", mpi.rank(), mpi.size(), mpi.node()));
    Ok(())
}

/// Sends to the next rank and receives from the previous one in two threads of each rank, while the main thread waits at a barrier.
fn ring(mpi: &Mpi) -> Result<(), CommError> {
    let peers = &mpi.peers()?;
    let stop = &AtomicBool::new(false);
    let next = (mpi.rank() + 1) % mpi.size();
    let previous = (mpi.rank() + mpi.size() - 1) % mpi.size();
    std::thread::scope(|scope| {
        let exchange = |tag: u32| {
            move || -> Result<(), CommError> {
                let mut bytes = vec![tag as u8; 300_000];
                for round in 1..=10_u8 {
                    // Even ranks send first; if all did, a send could wait for its receiver forever.
                    if mpi.rank().is_multiple_of(2) {
                        bytes = peers.send(next, tag, bytes, stop)?;
                    }
                    let received = peers.receive(previous, tag, vec![0; 300_000], stop)?;
                    assert!(received.iter().all(|&byte| byte == tag as u8), "round {round}");
                    if !mpi.rank().is_multiple_of(2) {
                        bytes = peers.send(next, tag, bytes, stop)?;
                    }
                }
                Ok(())
            }
        };
        let threads = [7, 8].map(|tag| scope.spawn(exchange(tag)));
        mpi.barrier()?;
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

/// Reads parts of a file in the workers of all ranks together, while the main threads call barriers.
fn files(mpi: &Mpi) -> Result<(), CommError> {
    let path = file();
    let files = mpi.files()?;
    let rank = u64::from(mpi.rank());
    let worker = std::thread::spawn(move || {
        let missing = files.open(Path::new("/nonexistent/file")).err();
        let file = files.open(Path::new(&path))?;
        let mut bytes = [0; 1_000];
        let mut read = Vec::new();
        for round in 0..10 {
            let len = file.read_at_all(rank * 1_000 + round * 4_000, &mut bytes)?;
            read.push((bytes[0], bytes[999], len));
        }
        file.close()?;
        Ok((missing, read))
    });
    for _ in 0..100 {
        mpi.barrier()?;
    }
    let (missing, read) = worker.join().expect("the worker does not panic")?;
    // Each thousand bytes of the file have their number as value.
    let expected = (0..10).map(|round| (rank as u8 + 4 * round, rank as u8 + 4 * round, 1_000));
    assert_eq!(read, expected.collect::<Vec<_>>());
    let missing = missing.expect("there is no such file").to_string();
    assert!(missing.starts_with("MPI_File_open: `/nonexistent/file`: "), "{missing}");
    print_line(&format!("rank {rank} has read"));
    Ok(())
}

/// Calls barriers. The rank with `must_misbehave` calls `act` before the last one.
fn misbehave(mpi: &Mpi, must_misbehave: bool, act: impl Fn(&Mpi)) -> Result<(), CommError> {
    for _ in 0..10 {
        mpi.barrier()?;
    }
    if must_misbehave {
        eprintln!("rank {} at {}", mpi.rank(), now_ms());
        act(mpi);
    }
    let result = mpi.barrier_with_timeout();
    eprintln!("rank {} knows at {}", mpi.rank(), now_ms());
    result
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

fn file() -> PathBuf {
    std::env::var_os("FEEDRATE_TEST_FILE").expect("the test names a file").into()
}

/// Prints a reported wait for the busy rank, and lets that rank continue.
fn note(late: &CommError) {
    print_line(&format!("noted: {late}"));
    if matches!(late, CommError::Missing { ranks, .. } if ranks.contains(&2)) {
        std::fs::write(file(), "noted").expect("the file can be written");
    }
}

/// Keeps one rank busy until another one has waited for longer than the timeout.
fn busy(mpi: &Mpi, must_misbehave: bool) -> Result<(), CommError> {
    mpi.barrier()?;
    while must_misbehave && std::fs::read(file()).is_ok_and(|content| content.is_empty()) {
        std::thread::yield_now();
    }
    let all = mpi.gather(&[mpi.rank() as u8])?;
    mpi.barrier()?;
    if mpi.rank() == 0 {
        print_line(&format!("all came: {all:?}"));
    }
    Ok(())
}

/// Sleeps until the other ranks end this process.
fn sleep() {
    std::thread::sleep(Duration::from_secs(600));
}

fn die(_: &Mpi) {
    signal(Signal::KILL);
}

fn signal(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may signal itself");
}

/// Times a barrier.
fn bench(mpi: &Mpi) -> Result<(), CommError> {
    const ROUNDS: u32 = 1_000;
    mpi.barrier()?;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        mpi.barrier()?;
    }
    let duration = start.elapsed() / ROUNDS;
    if mpi.rank() == 0 {
        print_line(&format!("barrier: {duration:?}"));
    }
    Ok(())
}
