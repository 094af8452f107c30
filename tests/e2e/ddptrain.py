"""Runs the built ddptrain as a user would and reads what it leaves behind.

Every run has a time limit; one that passes it fails the test and is ended with all its ranks. The
environment variables DDPTRAIN and MPIEXEC, set by CMake, name the program and mpirun.
"""

import csv
import gzip
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["DDPTRAIN"]
MPIEXEC = os.environ.get("MPIEXEC", "mpirun")
TIME_LIMIT = 60.0  # seconds; far above what any run here needs

TIME_COLUMNS = {"samples_per_s", "data_ms", "forward_ms", "backward_ms", "exposed_comm_ms",
                "optimizer_ms"}

# A training run that takes a fraction of a second: 8 steps an epoch.
SMALL_RUN = {"model": "mlp", "data": "synthetic", "synthetic_train": 256, "synthetic_val": 64,
             "global_batch": 32, "steps": 6, "threads": 1, "device": "cpu"}


def environment(**extra):
    """The caller's environment, made fit for tests: many ranks on few cores, as root, no GPU."""
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(("OMPI_COMM_WORLD", "PMIX_", "DDPTRAIN_DATA"))}
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "CUDA_VISIBLE_DEVICES": ""}
    return inherited | ours | extra


def flags(**values):
    """lr=0.1 -> --lr 0.1; True -> the bare flag; None -> left out."""
    arguments = []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif value is not None:
            arguments += [flag, str(value)]
    return arguments


def mpirun(commands, options=()):
    """The mpirun line that starts one rank for each command."""
    line = [MPIEXEC, *options]
    for i, command in enumerate(commands):
        line += [":"] if i > 0 else []
        line += ["-np", "1", *command]
    return line


class Result:
    """How a command ended."""

    def __init__(self, code, stdout, stderr, seconds):
        self.code, self.stdout, self.stderr, self.seconds = code, stdout, stderr, seconds

    @property
    def summary(self):
        """The JSON object that ends stdout."""
        return json.loads(self.stdout.splitlines()[-1])

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


class Weights:
    """A safetensors file: metadata, header and raw bytes of each tensor."""

    def __init__(self, path):
        content = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack_from("<Q", content)
        self.header = json.loads(content[8:8 + length])
        self.metadata = self.header.pop("__metadata__")
        self._data = content[8 + length:]

    def numbers(self, name):
        tensor = self.header[name]
        start, end = tensor["data_offsets"]
        kind = {"F32": "f", "F64": "d"}[tensor["dtype"]]
        return [number for (number,) in struct.iter_unpack("<" + kind, self._data[start:end])]


def idx_images(count, size=28):
    """An idx3 file of deterministic images, as bytes."""
    pixels = bytes((i * 37 + p * 11) % 251 for i in range(count) for p in range(size * size))
    return struct.pack(">IIII", 0x803, count, size, size) + pixels


def idx_labels(labels):
    return struct.pack(">II", 0x801, len(labels)) + bytes(labels)


def write_idx_set(directory, train=64, validation=16, compressed=False):
    """A directory with the four MNIST files: labels 0..9 in turn."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True)
    for prefix, count in (("train", train), ("t10k", validation)):
        for kind, content in (("images-idx3", idx_images(count)),
                              ("labels-idx1", idx_labels([i % 10 for i in range(count)]))):
            name = f"{prefix}-{kind}-ubyte"
            if compressed:
                (directory / (name + ".gz")).write_bytes(gzip.compress(content))
            else:
                (directory / name).write_bytes(content)
    return directory


def process_status(pid, key):
    """A number from /proc/PID/status ("Threads", "VmRSS" in KiB); 0 once the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    match = re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)
    return int(match.group(1)) if match else 0


def children(pid):
    """Process ids of the children of a process: of mpirun, the ranks."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return sorted(found)


class EndToEnd(unittest.TestCase):
    """Gives each test an empty directory, in which its commands run."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ddptrain-e2e-")
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    # Commands

    def start(self, command, env=None, **options):
        """Starts a command; whatever is left of it is ended after the test."""
        process = subprocess.Popen(command, cwd=self.directory, env=environment(**(env or {})),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", **options)
        self.addCleanup(self._end, process)
        return process

    def _end(self, process):
        if process.poll() is None:
            process.terminate()  # mpirun ends its ranks
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
        process.stderr.close()

    def result_of(self, process, limit=TIME_LIMIT):
        start = time.monotonic()
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {limit} s: {process.args}")
        return Result(process.returncode, stdout, stderr, time.monotonic() - start)

    def execute(self, command, limit=TIME_LIMIT, **options):
        return self.result_of(self.start(command, **options), limit)

    def ddptrain(self, *arguments, ranks=None, limit=TIME_LIMIT, **options):
        """Runs ddptrain alone (ranks=None) or under mpirun."""
        command = [PROGRAM, *map(str, arguments)]
        if ranks is not None:
            command = [MPIEXEC, "-np", str(ranks), *command]
        return self.execute(command, limit, **options)

    def train(self, ranks=None, code=0, env=None, **values):
        """A small training run with these flags changed; its exit code is checked."""
        result = self.ddptrain("train", *flags(**(SMALL_RUN | {"out": "run"} | values)),
                               ranks=ranks, env=env)
        self.assertEqual(result.code, code, result)
        return result

    def evaluate(self, weights, ranks=None, code=0, command="eval", **values):
        """Runs a command that scores weights: eval or predict."""
        values = {"data": "synthetic", "synthetic_val": 64, "threads": 1, "device": "cpu"} | values
        result = self.ddptrain(command, *flags(weights=weights, **values), ranks=ranks)
        self.assertEqual(result.code, code, result)
        return result

    # Files of a run

    def metrics(self, out="run"):
        with open(self.directory / out / "metrics.csv", newline="") as file:
            return list(csv.DictReader(file))

    def column(self, name, out="run"):
        return [float(row[name]) for row in self.metrics(out)]

    def losses(self, out="run"):
        return self.column("loss", out)

    def weights(self, out="run", which="final"):
        return Weights(self.weights_path(out, which))

    def weights_path(self, out="run", which="final"):
        return self.directory / out / "weights" / f"{which}.safetensors"

    def environment_record(self, out="run"):
        return json.loads((self.directory / out / "environment.json").read_text())

    def failure_record(self, out="run"):
        return json.loads((self.directory / out / "failure.json").read_text())

    # Checks

    def wait_until(self, condition, what, limit=TIME_LIMIT):
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"after {limit} s still not so: {what}")
            time.sleep(0.01)

    def wait_for_steps(self, process, out="run"):
        """Waits until a run in progress has written its first step."""
        path = self.directory / out / "metrics.jsonl"
        self.wait_until(lambda: process.poll() is not None or
                        path.exists() and path.stat().st_size > 0, f"rows in {path}")
        if process.poll() is not None:
            self.fail(f"ended too early: {self.result_of(process)}")

    def assert_same_numbers(self, mine, other, tolerance):
        self.assertEqual(len(mine), len(other))
        for i, (a, b) in enumerate(zip(mine, other)):
            self.assertLessEqual(abs(a - b), tolerance, f"number {i}: {a} and {b}")

    def assert_last_line_is_a_summary(self, result):
        summary = result.summary
        self.assertEqual(list(summary)[:5], ["status", "exit", "run_dir", "steps", "epochs"])
        self.assertEqual(summary["exit"], result.code, result)
        status = {0: "finished", 75: "stopped"}.get(result.code, "failed")
        self.assertEqual(summary["status"], status)
        self.assertEqual(result.stdout.count('{"status"'), 1, "only rank 0 speaks")
