//! Lets so many through at once; the others wait, first come first served. Only where fewer threads may decode than read, fewer reads are served than begun, or a worker reads for others.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Counts those that came and those that may go in.
pub(crate) struct Gate {
    tickets: Mutex<Tickets>,
    left: Condvar,
}

struct Tickets {
    /// The ticket of who comes next.
    next: u64,
    /// Who has a lower one is let in.
    served: u64,
}

/// Someone is in, until this is dropped.
pub(crate) struct Permit<'g>(&'g Gate);

impl Gate {
    /// For `places` at once.
    pub(crate) fn new(places: u32) -> Self {
        let tickets = Tickets { next: 0, served: places.max(1).into() };
        Gate { tickets: Mutex::new(tickets), left: Condvar::new() }
    }

    /// Wait for a place, and take it.
    pub(crate) fn enter(&self) -> Permit<'_> {
        let mut tickets = self.tickets();
        let own = tickets.next;
        tickets.next += 1;
        let waited = self.left.wait_while(tickets, |tickets| tickets.served <= own);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Permit(self)
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.tickets().served += 1;
        // The place is of one of those that wait, and no other.
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    #[test]
    fn no_more_than_asked_for_are_in() {
        let gate = Gate::new(2);
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let permit = gate.enter();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.load(SeqCst)), "{most:?}");
        let tickets = gate.tickets();
        assert_eq!((tickets.next, tickets.served), (3000, 3002));
    }

    /// Who leaves and comes again at once goes behind those that waited.
    #[test]
    fn who_came_first_goes_in_first() {
        let (gate, order) = (Gate::new(1), Mutex::new(Vec::new()));
        let go_in = |who: u64| {
            let permit = gate.enter();
            order.lock().unwrap().push(who);
            permit
        };
        std::thread::scope(|scope| {
            let first = go_in(0);
            for who in 1..=5 {
                scope.spawn(move || drop(go_in(who)));
                while gate.tickets().next <= who {
                    std::thread::yield_now();
                }
            }
            drop(first);
            drop(go_in(6));
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6]);
    }
}
