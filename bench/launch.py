"""Starts a program and writes its costs: wall seconds, CPU seconds, peak resident KiB, wait status.

Imports almost nothing: the kernel counts the memory of the forking process in the peak of its child, so this process must be small.
Usage: python3 -I -S launch.py NUMBERS PROGRAM ARGUMENT...
"""

import posix
import sys
import time

start = time.perf_counter()
pid = posix.fork()
if pid == 0:
    try:
        posix.execv(sys.argv[2], sys.argv[2:])
    finally:
        posix._exit(127)
_, status, usage = posix.wait4(pid, 0)
wall_s = time.perf_counter() - start
with open(sys.argv[1], "w") as numbers:
    print(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, status, file=numbers)
