"""Simulates loops whose workers share a token bucket of bytes, in virtual time, and calibrates them by src/command/calibrate.py. Run by calibrate.rs.

Prints a case per line as JSON: the calibrated costs, and the utilisation of the simulated loop in percent by the number of workers.
"""

import heapq
import itertools
import json
import sys

from calibrate_module import calibrate

SAMPLE_BYTES, BATCH, BATCHES = 1_000_000, 4, 400
RECEIVE_S = 0.0005


class Loop:
    """A loop whose workers work for `sample_s` on each sample, take its bytes from the bucket, and collate the batch for `collate_s`. The bucket gains
    `rate` bytes per second and holds those of `held` samples, 1 or 0."""

    def __init__(self, sample_s, collate_s, rate, held):
        self.sample_s, self.collate_s, self.rate, self.held = sample_s, collate_s, rate, held

    def run(self, workers, step_s, batch=BATCH):
        """Returns the utilisation in percent, and the time of a worker for each batch."""
        busy_s, complete, delivered_at = [], {}, [0.0] * (BATCHES + 2 * workers)
        # Times at which a worker takes bytes from the bucket, with the rest of its batch.
        events = [(self.sample_s, worker, worker, 0, 0.0) for worker in range(workers)]
        bucket_free_s, now_s, computed_s, next_batch = 0.0, 0.0, 0.0, 0
        heapq.heapify(events)
        waiting = {}
        while next_batch < BATCHES:
            at_s, worker, number, sample, start_s = heapq.heappop(events)
            service_s = SAMPLE_BYTES / self.rate
            bucket_free_s = max(bucket_free_s, at_s - self.held * service_s) + service_s
            at_s = max(at_s, bucket_free_s)
            if sample + 1 < batch:
                heapq.heappush(events, (at_s + self.sample_s, worker, number, sample + 1, start_s))
                continue
            complete[number] = at_s + self.collate_s
            busy_s.append(complete[number] - start_s)
            waiting[worker] = number + workers
            # The training process receives batches in order, and each opens the batch two rounds later.
            while next_batch in complete and next_batch < BATCHES:
                now_s = max(now_s, complete[next_batch]) + RECEIVE_S
                delivered_at[next_batch] = now_s
                now_s += step_s
                computed_s += step_s
                next_batch += 1
            for worker, number in list(waiting.items()):
                opened_by = number - 2 * workers
                if opened_by < next_batch:
                    opened_s = delivered_at[opened_by] if opened_by >= 0 else 0.0
                    start_s = max(complete[number - workers], opened_s)
                    heapq.heappush(events, (start_s + self.sample_s, worker, number, 0, start_s))
                    del waiting[worker]
        return 100 * computed_s / now_s, busy_s

    def phase(self, workers, batch=BATCH):
        _, busy_s = self.run(workers, 0.0, batch)
        rest_ns = 1e9 * self.collate_s
        rows = [[batch, batch * SAMPLE_BYTES, 1e9 * seconds - rest_ns, 1e9 * seconds, 0] for seconds in busy_s[2 * workers :]]
        return calibrate.PhaseTimes(rows, [RECEIVE_S])

    def client(self, workers):
        """The costs that `feedrate calibrate` would find with enough cores."""
        counts = {1, workers, 2 * workers}
        small = self.phase(workers, BATCH // 4)
        receiving = calibrate.PhaseTimes([[BATCH, BATCH * SAMPLE_BYTES, 0, 0, 0]], [RECEIVE_S])
        return calibrate.client_costs({count: self.phase(count) for count in counts}, workers, BATCH, small, receiving, receiving, receiving, 0.0)


def main():
    # The bucket passes a batch in 8 ms, so that 1.5 to 20 workers saturate it.
    rate = BATCH * SAMPLE_BYTES / 0.008
    for held, alone_s in itertools.product((0, 1), (0.012, 0.030, 0.042, 0.062, 0.160)):
        loop = Loop(0.8 * alone_s / BATCH, 0.2 * alone_s, rate, held)
        for step_s in (0.004, 0.008, 0.020):
            au = {workers: loop.run(workers, step_s)[0] for workers in range(1, 9)}
            for calibrated_with in (4, 8):
                case = {"step_s": step_s, "held": held, "alone_s": alone_s, "calibrated_with": calibrated_with}
                print(json.dumps({**case, "client": loop.client(calibrated_with), "au_percent": au}))


if __name__ == "__main__":
    sys.exit(main())
