//! A fair counting semaphore: permits are granted in the order of arrival. It is used only if the plan limits concurrent decoding or
//! reads, or if one worker reads on behalf of other workers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A fair counting semaphore.
pub(crate) struct Gate {
    tickets: Mutex<Tickets>,
    released: Condvar,
}

struct Tickets {
    /// The next ticket to hand out.
    next: u64,
    /// Tickets below this are admitted.
    served: u64,
}

/// A permit of the gate, returned on drop.
pub(crate) struct Permit<'g>(&'g Gate);

impl Gate {
    /// Creates a gate with `permits` permits, at least one.
    pub(crate) fn new(permits: u32) -> Self {
        let tickets = Tickets { next: 0, served: permits.max(1).into() };
        Gate { tickets: Mutex::new(tickets), released: Condvar::new() }
    }

    /// Waits for a permit and takes it.
    pub(crate) fn enter(&self) -> Permit<'_> {
        let mut tickets = self.tickets();
        let ticket = tickets.next;
        tickets.next += 1;
        let waited = self.released.wait_while(tickets, |tickets| tickets.served <= ticket);
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
        // The permit is for one particular waiter, so all waiters have to check.
        self.0.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    #[test]
    fn concurrent_permits_are_limited() {
        let gate = Gate::new(2);
        let inside = AtomicU32::new(0);
        let max_inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let permit = gate.enter();
                        max_inside.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!((1..=2).contains(&max_inside.load(SeqCst)), "{max_inside:?}");
        let tickets = gate.tickets();
        assert_eq!((tickets.next, tickets.served), (3000, 3002));
    }

    /// A thread that leaves and enters again at once is queued behind the waiting threads.
    #[test]
    fn permits_are_granted_in_the_order_of_arrival() {
        let gate = Gate::new(1);
        let order = Mutex::new(Vec::new());
        let enter = |number: u64| {
            let permit = gate.enter();
            order.lock().unwrap().push(number);
            permit
        };
        std::thread::scope(|scope| {
            let first = enter(0);
            for number in 1..=5 {
                scope.spawn(move || drop(enter(number)));
                while gate.tickets().next <= number {
                    std::thread::yield_now();
                }
            }
            drop(first);
            drop(enter(6));
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6]);
    }
}
