"""Prints what TensorBoard itself reads from a run directory, as JSON. Run by the tests with the
Python of .deps/python, which has its reader."""

import json
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

[directory] = sys.argv[1:]
[path] = pathlib.Path(directory).glob("events.out.tfevents.*")
first = next(iter(EventFileLoader(str(path)).Load()))
run = EventAccumulator(directory, size_guidance={"scalars": 0})  # all of them
run.Reload()
scalars = {tag: {event.step: event.value for event in run.Scalars(tag)}
           for tag in run.Tags()["scalars"]}
times = [event.wall_time for event in run.Scalars("train/loss")]
print(json.dumps({"file_version": first.file_version, "scalars": scalars, "times": times}))
