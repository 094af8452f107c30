"""Event files, read back with TensorBoard's own reader."""

import json
import os
import pathlib
import struct
import subprocess
import time
import unittest

from ddptrain import EndToEnd

PYTHON = os.environ["PYTHON_WITH_READERS"]
READER = pathlib.Path(__file__).with_name("read_events.py")


def tag_of(column):
    if column.startswith("val_"):
        return "val/" + column.removeprefix("val_")
    return ("time/" if column.endswith("_ms") else "train/") + column


def as_float32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


class EventFile(EndToEnd):
    def read(self, out="run"):
        home = pathlib.Path(PYTHON).parents[1]
        if not (home / "installed").exists():
            self.fail(f"{home} has no TensorBoard: ./docker/install.sh --readers installs it, from PyPI")
        reader = subprocess.run([PYTHON, "-B", READER, self.directory / out], capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(reader.returncode, 0, reader.stderr)
        return json.loads(reader.stdout)

    def event_files(self, out="run"):
        return list((self.directory / out).glob("events.out.tfevents.*"))

    def assert_events_are_the_rows(self, out="run"):
        expected = {}
        for row in self.metrics(out):
            for column, text in row.items():
                if text and column != "step":
                    expected.setdefault(tag_of(column), {})[row["step"]] = as_float32(text)
        scalars = self.read(out)["scalars"]
        self.assertEqual(scalars.keys(), expected.keys())
        for tag, values in expected.items():
            # As text, since NaN is no equal of itself.
            self.assertEqual({step: repr(value) for step, value in scalars[tag].items()},
                             {step: repr(value) for step, value in values.items()}, tag)

    def test_tensorboard_reads_every_figure_of_the_rows(self):
        before = time.time()
        self.train(2, steps=10, eval_every=4)
        self.assert_events_are_the_rows()
        events = self.read()
        self.assertEqual(events["file_version"], "brain.Event:2")
        self.assertEqual(list(events["scalars"]["val/top1"]), ["4", "8", "10"])
        self.assertEqual(events["times"], sorted(events["times"]))
        self.assertTrue(before <= events["times"][0] <= events["times"][-1] <= time.time())

    def test_figures_that_are_not_finite_are_read_too(self):
        self.train(lr=1e30, on_nan="skip")
        self.assert_events_are_the_rows()
        self.assertEqual(sum(self.read()["scalars"]["train/skipped"].values()), 5)

    def test_overwriting_a_run_leaves_one_file(self):
        self.train()
        [first] = self.event_files()
        first.rename(first.with_name("events.out.tfevents.1764537600.other-host"))
        self.train(overwrite=True, steps=3)
        self.assertEqual(len(self.event_files()), 1)
        self.assert_events_are_the_rows()

    def test_the_file_is_named_after_time_and_host(self):
        before = int(time.time())
        self.train()
        [path] = self.event_files()
        start, host = path.name.removeprefix("events.out.tfevents.").split(".", 1)
        self.assertTrue(before <= int(start) <= time.time())
        self.assertEqual(host, self.environment_record()["ranks"][0]["host"])


if __name__ == "__main__":
    unittest.main()
