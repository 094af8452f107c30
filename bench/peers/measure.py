#!/usr/bin/env python3
"""Runs one measurement: measure.py NAME COMMAND… prints the command's last line, a JSON object, on one line with the name,
the command and the share of the machine that other processes used meanwhile: above a few percent, the figure is not
one of this program alone.
"""
import json
import os
import resource
import subprocess
import sys
import time


def busy_seconds() -> float:
    """CPU time that all processes of the machine have used: user, nice, system, interrupts and time stolen by the host."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    name, *command = sys.argv[1:]
    busy, begin = busy_seconds(), time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    busy, seconds = busy_seconds() - busy, time.monotonic() - begin
    if done.returncode != 0:
        print(f"{' '.join(command)} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}", file=sys.stderr)
        return 1
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = (busy - own.ru_utime - own.ru_stime) / (seconds * os.cpu_count())
    result = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({"name": name, "command": " ".join(command), "cpu_share_of_others": round(max(others, 0.0), 3), **result}))
    print(f"{name}: {result['samples_per_s']:.0f} samples/s, others took {max(others, 0.0):.0%} of the machine", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
