"""EASY backfilling, written plainly: the yardstick for `tallyman simulate` with Backfill.

One queue in order of arrival, one number of devices. The head that doesn't fit gets a reservation at
the earliest time by which enough devices are back, as the bounds say; a later job goes first if it
ends by then, or needs no more devices than are left over beside the reservation.
Lifka, "The ANL/IBM SP Scheduling System", 1995.
"""
import heapq
from dataclasses import dataclass

SLOWDOWN_FLOOR_S = 10
CLOCK_S = 1  # what is written on a Job has whole seconds


@dataclass
class Job:
    submit: float
    run: float
    devices: int
    bound: float = 0
    start: float = -1

    @property
    def end(self):
        return self.start + self.run


def shadow(running, free, needed):
    """When the head can start at the latest, and what is left over beside it then. `running` has
    (end by its bound, devices)."""
    ends = sorted(running)
    for index, (end, devices) in enumerate(ends):
        free += devices
        is_last = index + 1 == len(ends) or ends[index + 1][0] > end
        if is_last and free >= needed:
            return end, free - needed
    raise ValueError("needs more than there is")


def start_what_may(queue, running, free, now):
    """Starts the head, and the next ones, while they fit; then fills in. Returns what is free."""
    def begin(job):
        job.start = now
        heapq.heappush(running, (now + job.run, id(job), job))

    while queue and queue[0].devices <= free:
        free -= queue[0].devices
        begin(queue.pop(0))
    if not queue or free == 0:
        return free
    by_bound = [(job.start + max(job.bound, job.run), job.devices) for _, _, job in running]
    at, extra = shadow(by_bound, free, queue[0].devices)
    waiting = [queue[0]]
    for job in queue[1:]:
        ends_before = now + max(job.bound, job.run) <= at
        if job.devices <= free and (ends_before or job.devices <= extra):
            free -= job.devices
            extra -= 0 if ends_before else job.devices
            begin(job)
        else:
            waiting.append(job)
    queue[:] = waiting
    return free


def easy(jobs, devices):
    """Sets `start` of every job; they come in order of submission."""
    queue, running, free, at = [], [], devices, 0
    while at < len(jobs) or running:
        now = min(jobs[at].submit if at < len(jobs) else float("inf"),
                  running[0][0] if running else float("inf"))
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[2].devices
        while at < len(jobs) and jobs[at].submit <= now:
            queue.append(jobs[at])
            at += 1
        free = start_what_may(queue, running, free, now)


def mean_slowdown(jobs):
    return sum(max(1.0, (job.end - job.submit) / max(job.run, SLOWDOWN_FLOOR_S))
               for job in jobs) / len(jobs)


def delayed(jobs, devices, patience=0):
    """The heads that started later than the reservation which they had once they had been at the
    head for `patience`: (job, started, promised). Bounds are taken as exact."""
    late = []
    head_since = 0
    order = sorted(jobs, key=lambda job: job.start)
    for index, job in enumerate(jobs):
        promised_at = max(job.submit, head_since) + patience
        head_since = max(head_since, job.start)
        if job.start <= promised_at:
            continue
        running = [(other.end, other.devices) for other in order
                   if other.start <= promised_at < other.end]
        free = devices - sum(used for _, used in running)
        promised = promised_at if free >= job.devices else shadow(running, free, job.devices)[0]
        if job.start >= promised + CLOCK_S:
            late.append((index, job.start, promised))
    return late
