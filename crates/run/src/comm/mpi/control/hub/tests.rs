//! Tests of the hub: silent ranks, ranks that never connect, and strangers.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command};

const RANK_TIMEOUT: Duration = Duration::from_secs(20);

fn hub() -> (HubState, HubAddress) {
    HubState::new(&["a".to_owned(), "a".to_owned()], true, RANK_TIMEOUT).unwrap()
}

/// Sends the first message of rank 1.
fn connect(address: &HubAddress, process: Option<ProcessIdentity>) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port)).unwrap();
    ControlMessage::Hello { token: address.token.clone(), rank: 1, process }.send(&stream);
    stream
}

fn receive_all(hub: &mut HubState) {
    hub.accept();
    (0..hub.connections.len()).for_each(|i| hub.receive(i));
    hub.close_strangers();
    hub.connections.retain(|connection| !connection.closed);
}

/// Returns a hub to which rank 1 has connected, with the process `child`. The rank sends no further messages.
fn hub_with_rank_1(child: &Child) -> (HubState, TcpStream) {
    let (mut hub, address) = hub();
    let stream = connect(&address, ProcessIdentity::from_pid(child.id()));
    while hub.joined.is_empty() {
        receive_all(&mut hub);
    }
    (hub, stream)
}

fn beat(hub: &mut HubState, beats: u32) {
    for _ in 0..beats {
        hub.beat_ns = 0;
        hub.beat();
    }
}

fn silent_rank_1() -> Option<ControlMessage> {
    Some(ControlMessage::Lost { rank: 1, host: "a".to_owned(), end: End::Silent })
}

#[test]
fn a_silent_rank_is_lost_within_ten_beats_if_it_is_stopped() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let (mut hub, _stream) = hub_with_rank_1(&child);
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    while !stat().contains(") T ") {
        std::thread::yield_now();
    }
    beat(&mut hub, 10);
    assert_eq!(hub.end, silent_rank_1());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_silent_rank_that_runs_is_lost_only_after_the_rank_timeout() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let (mut hub, _stream) = hub_with_rank_1(&child);
    hub.inquire(5, Duration::from_secs(1), OnTimeout::Waits);
    hub.inquiry.as_mut().unwrap().deadline_ns = 0;
    hub.conclude_inquiry();
    assert_eq!(hub.reported, Some(0), "the wait is reported");
    beat(&mut hub, RANK_TIMEOUT.as_secs() as u32);
    assert_eq!(hub.end, None);
    beat(&mut hub, 1);
    assert_eq!(hub.end, silent_rank_1());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_rank_that_never_connected_is_missing_if_the_others_have_arrived() {
    let check = |started: u64, on_timeout: OnTimeout, expected: Option<&[u32]>| {
        let (mut hub, address) = hub();
        let _stream = connect(&address, None);
        while hub.joined.is_empty() {
            receive_all(&mut hub);
        }
        let waited = Duration::from_secs(1);
        hub.inquire(5, waited, on_timeout);
        hub.conclude_inquiry();
        assert!(hub.inquiry.is_some(), "rank 1 has not answered");
        hub.handle(0, 1, ControlMessage::Started { operations: started });
        hub.conclude_inquiry();
        let missing = |ranks: &[u32]| ControlMessage::Missing { ranks: ranks.to_vec(), waited };
        assert_eq!(hub.end, expected.map(missing), "{started} {on_timeout:?}");
    };
    check(5, OnTimeout::Waits, Some(&[0]));
    check(5, OnTimeout::Ends, Some(&[0]));
    // Rank 1 may have work to do alone.
    check(4, OnTimeout::Waits, None);
    check(4, OnTimeout::Ends, Some(&[1]));
}

#[test]
fn the_number_of_beats_of_a_long_timeout_does_not_wrap() {
    let timeout = Duration::from_secs(1 << 32);
    let (hub, _) = HubState::new(&["a".to_owned()], true, timeout).unwrap();
    assert_eq!(hub.silent_max, u32::MAX);
}

#[test]
fn strangers_are_limited_and_closed_and_ranks_still_connect() {
    let (mut hub, address) = hub();
    hub.strangers_max = 3;
    let strangers: Vec<TcpStream> =
        (0..10).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, address.port)).unwrap()).collect();
    let _rank = connect(&address, None);
    while hub.connections.len() < 3 {
        receive_all(&mut hub);
    }
    receive_all(&mut hub);
    assert_eq!(hub.connections.len(), 3);
    assert!(!hub.can_accept(), "the listener is not polled");
    while hub.joined.is_empty() {
        hub.connections.iter_mut().for_each(|connection| connection.hello_ns = 0);
        receive_all(&mut hub);
    }
    beat(&mut hub, MISSED_MAX);
    assert_eq!((hub.end, hub.connections.iter().filter(|c| c.rank.is_some()).count()), (None, 1));
    drop(strangers);
}
