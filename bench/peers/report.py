#!/usr/bin/env python3
"""Sums up alternating measurements: report.py MEASUREMENTS.jsonl RESULT writes RESULT.json and RESULT.md.

Each line of MEASUREMENTS comes from measure.py. The ratio is ddptrain's median over the median of the fastest peer.
"""
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys


def first_match(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else "unknown"


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def machine() -> dict:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": first_match(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "system": first_match(r'^PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text()),
        "kernel": platform.release(),
        "load_average_after": os.getloadavg()[0],
    }


def main() -> None:
    measurements = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    sides = {}
    for m in measurements:
        side = sides.setdefault(m["name"], {"command": m["command"], "samples_per_s": [], "cpu_share_of_others": []})
        side["samples_per_s"].append(m["samples_per_s"])
        side["cpu_share_of_others"].append(m["cpu_share_of_others"])
    for side in sides.values():
        side["median"] = statistics.median(side["samples_per_s"])
    ours = sides["ddptrain"]["median"]
    peer = max((name for name in sides if name != "ddptrain"), key=lambda name: sides[name]["median"])
    result = {
        "machine": machine(),
        "versions": {
            "ddptrain": output_of("build/bin/ddptrain", "--version").strip(),
            "torch": next(m["torch"] for m in measurements if "torch" in m),
            "open_mpi": first_match(r"\(Open MPI\) (\S+)", output_of("mpirun", "--version")),
        },
        "rounds": len(sides["ddptrain"]["samples_per_s"]),
        "sides": sides,
        "fastest_peer": peer,
        "ratio": ours / sides[peer]["median"],
    }
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")

    m, v = result["machine"], result["versions"]
    lines = [
        "# Default job (convnet on Fashion-MNIST, global batch 128) on the CPU: 2 ranks of 1 thread", "",
        f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['system']}; {v['ddptrain']}, "
        f"Open MPI {v['open_mpi']}, PyTorch {v['torch']}. "
        f"{result['rounds']} rounds, the sides taking turns (`bench/peers/run_cpu.sh`).", "",
        "| | samples/s, median | min–max | ddptrain is … times as fast | machine taken by others |", "|---|---:|---:|---:|---:|"]
    for name, side in sides.items():
        rates = side["samples_per_s"]
        lines.append(f"| {name} | {side['median']:.0f} | {min(rates):.0f}–{max(rates):.0f} | {ours / side['median']:.2f} | "
                     f"{min(side['cpu_share_of_others']):.0%}–{max(side['cpu_share_of_others']):.0%} |")
    lines += ["", "Commands:", ""] + [f"- {name}: `{side['command']}`" for name, side in sides.items()]
    text = "\n".join(lines) + "\n"
    target.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
