#!/usr/bin/env python3
"""Overlap of all-reduces with the backward pass, on against off, on CPU ranks: bench/overlap_cpu.py [ROUNDS] [STEPS].

The two settings take turns on the default job with 2 ranks of 1 thread. Prints the exposed communication of each in
milliseconds a step, checks that the weights are the same bytes, and writes bench/results/overlap-cpu-DATE.json and .md.
"""
import datetime
import hashlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from peers.report import machine, output_of

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(overlap: str, steps: int, out: pathlib.Path) -> dict:
    command = (f"mpirun -np 2 build/bin/ddptrain train --deterministic --threads 1 --eval-every off --limit-val 64 "
               f"--overlap {overlap} --steps {steps} --out {out} --overwrite")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(shlex.split(command), cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"overlap_cpu: '{command}' failed:\n{done.stderr}")
    summary = json.loads(done.stdout.splitlines()[-1])
    weights = pathlib.Path(out, "weights/final.safetensors").read_bytes()
    return {"exposed_comm_ms": summary["exposed_comm_ms"], "samples_per_s": summary["samples_per_s"],
            "weights_sha256": hashlib.sha256(weights).hexdigest(), "command": command.replace(str(out), "DIR")}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    sides = {"on": [], "off": []}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            for overlap, runs in sides.items():
                runs.append(run(overlap, steps, pathlib.Path(scratch, "run")))
                print(f"round {number + 1} of {rounds}, overlap {overlap}: {runs[-1]['exposed_comm_ms']:.2f} ms exposed, "
                      f"{runs[-1]['samples_per_s']:.0f} samples/s", file=sys.stderr)

    hashes = {r["weights_sha256"] for runs in sides.values() for r in runs}
    m = machine()
    lines = ["# All-reduce overlapped with the backward pass, on against off: default job, 2 CPU ranks of 1 thread", "",
             f"{m['cpu']}, {m['cores']} cores, {m['system']}; {output_of('build/bin/ddptrain', '--version').strip()}. "
             f"{rounds} rounds of {steps} steps, taking turns (`bench/overlap_cpu.py {rounds} {steps}`).", "",
             "| overlap | exposed communication, ms a step: median (min–max) | samples/s, median |", "|---|---:|---:|"]
    for overlap, runs in sides.items():
        exposed = [r["exposed_comm_ms"] for r in runs]
        rate = statistics.median(r["samples_per_s"] for r in runs)
        lines.append(f"| {overlap} | {statistics.median(exposed):.2f} ({min(exposed):.2f}–{max(exposed):.2f}) | {rate:.0f} |")
    same = "the same bytes in all runs" if len(hashes) == 1 else f"NOT the same: {len(hashes)} different files"
    lines += ["", f"Final weights: {same}.", "", "Command: `" + sides["on"][0]["command"] + "`"]
    text = "\n".join(lines) + "\n"
    target = ROOT / "bench/results" / f"overlap-cpu-{datetime.date.today()}"
    target.with_suffix(".md").write_text(text)
    target.with_suffix(".json").write_text(json.dumps({"machine": m, "rounds": rounds, "sides": sides}, indent=2) + "\n")
    print(text)
    sys.exit(0 if len(hashes) == 1 else 1)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
