"""What a run computes and records: the same for any number of ranks, repeatable, and all there."""

import json
import math
import re
import signal
import unittest

import ddptrain
from ddptrain import SMALL_RUN, TIME_COLUMNS, EndToEnd, flags


class Invariance(EndToEnd):
    def test_ranks_and_accumulation_can_be_traded_in_float64(self):
        tolerance = 1e-10
        layouts = ((1, 4), (2, 2), (4, 1))
        for model, steps in (("mlp", 12), ("convnet", 12)):
            for ranks, accum in layouts:
                self.train(ranks, model=model, precision="fp64", micro_batch=8, accum=accum,
                           global_batch=None, steps=steps, out=f"{model}{ranks}", limit_val=8)
            reference = self.weights(f"{model}1")
            for ranks in (2, 4):
                out = f"{model}{ranks}"
                with self.subTest(run=out):
                    self.assert_same_numbers(self.losses(out), self.losses(f"{model}1"), tolerance)
                    weights = self.weights(out)
                    for name in reference.header:
                        self.assert_same_numbers(weights.numbers(name), reference.numbers(name),
                                                 tolerance)

    def test_ranks_do_not_change_the_first_losses_in_float32(self):
        # Another order of summation: a few units in the last place, which later steps amplify.
        for ranks in (1, 2, 4):
            self.train(ranks, steps=3, out=f"run{ranks}")
        for ranks in (2, 4):
            self.assert_same_numbers(self.losses(f"run{ranks}"), self.losses("run1"), 2e-5)

    def test_a_job_of_one_rank_is_a_run_without_mpirun(self):
        self.train(None, out="alone")
        self.train(1, out="job")
        self.assertEqual(self.weights_path("alone").read_bytes(),
                         self.weights_path("job").read_bytes())

    def assert_same_run(self, one, other):
        self.assertEqual(self.weights_path(one).read_bytes(), self.weights_path(other).read_bytes())
        for mine, others in zip(self.metrics(one), self.metrics(other), strict=True):
            for name in mine.keys() - TIME_COLUMNS:
                self.assertEqual(mine[name], others[name], name)

    def test_deterministic_runs_are_the_same_bytes(self):
        for ranks in (1, 2, 4):
            for out in (f"one{ranks}", f"two{ranks}"):
                self.train(ranks, deterministic=True, augment="crop-flip", eval_every=3, out=out)
            self.assert_same_run(f"one{ranks}", f"two{ranks}")

    def test_overlap_does_not_change_a_byte(self):
        for overlap in ("on", "off"):
            self.train(2, deterministic=True, overlap=overlap, bucket_mb=0.1, accum=2, out=overlap)
        self.assert_same_run("on", "off")

    def test_buckets_do_not_change_a_byte_of_two_ranks(self):
        # A sum of two has one order only. (The recorded norm is summed in bucket order.)
        for size in (0.01, 100):
            self.train(2, bucket_mb=size, out=f"bucket{size}")
        self.assertEqual(self.weights_path("bucket0.01").read_bytes(),
                         self.weights_path("bucket100").read_bytes())
        self.assertEqual(self.losses("bucket0.01"), self.losses("bucket100"))

    def test_loader_does_not_change_a_byte(self):
        self.train(augment="crop-flip", out="one")
        self.train(augment="crop-flip", loader_threads=5, prefetch=1, out="other")
        self.assert_same_run("one", "other")


class ExactEvaluation(EndToEnd):
    def test_scores_of_the_saved_weights_are_those_of_the_run_on_any_ranks(self):
        for limit in (1, 3, 21, 22):
            out = f"limit{limit}"
            self.train(2, limit_val=limit, out=out)
            last = self.metrics(out)[-1]
            for ranks in (None, 1, 2, 4):
                with self.subTest(limit=limit, ranks=ranks):
                    scores = self.evaluate(self.weights_path(out), ranks,
                                           limit_val=limit).summary["final"]
                    self.assertEqual(scores["val_top1"], float(last["val_top1"]))
                    self.assertEqual(scores["val_top5"], float(last["val_top5"]))
                    self.assertEqual(scores["val_loss"], float(last["val_loss"]))

    def test_float64_weights_are_scored_in_float64(self):
        self.train(precision="fp64")
        scores = self.evaluate(self.weights_path()).summary["final"]
        self.assertEqual(scores["val_loss"], self.train(out="again", precision="fp64")
                         .summary["final"]["val_loss"])

    def test_images_of_a_directory_are_normalised_as_in_training(self):
        ddptrain.write_idx_set(self.directory / "images")
        last = self.train(data="images", global_batch=16).summary["final"]
        scores = self.evaluate(self.weights_path(), data="images").summary["final"]
        self.assertEqual(scores["val_loss"], last["val_loss"])

    def test_compressed_files_hold_the_same_images(self):
        for name, compressed in (("plain", False), ("packed", True)):
            ddptrain.write_idx_set(self.directory / name, compressed=compressed)
            self.train(data=name, out="run-" + name)
        self.assertEqual(self.losses("run-plain"), self.losses("run-packed"))

    def test_best_weights_are_those_with_the_highest_accuracy(self):
        result = self.train(2, steps=24, eval_every=4, lr=0.3)
        best = result.summary["best"]
        evaluated = {int(row["step"]): float(row["val_top1"])
                     for row in self.metrics() if row["val_top1"]}
        self.assertEqual(best["metric"], "val_top1")
        self.assertEqual(best["value"], max(evaluated.values()))
        self.assertEqual(evaluated[best["step"]], best["value"])
        scores = self.evaluate(self.directory / best["path"]).summary["final"]
        self.assertEqual(scores["val_top1"], best["value"])


class Records(EndToEnd):
    COLUMNS = ("step,epoch,loss,lr,grad_norm,samples_per_s,data_ms,forward_ms,backward_ms,"
               "exposed_comm_ms,optimizer_ms,val_loss,val_top1").split(",")

    def test_run_directory_is_complete(self):
        self.train(2)
        for file in ("config.pbtxt", "environment.json", "metrics.jsonl", "metrics.csv",
                     "logs/rank-000.log", "logs/rank-001.log", "weights/final.safetensors",
                     "weights/best.safetensors"):
            self.assertTrue((self.directory / "run" / file).is_file(), file)
        self.assertEqual(list((self.directory / "run").rglob("*.tmp")), [])

    def test_metrics_have_one_row_a_step_and_both_files_agree(self):
        self.train(2, steps=10, eval_every=4)
        rows = self.metrics()
        self.assertEqual([int(row["step"]) for row in rows], list(range(1, 11)))
        self.assertEqual(list(rows[0])[:len(self.COLUMNS)], self.COLUMNS)
        self.assertEqual([int(row["step"]) for row in rows if row["val_loss"]], [4, 8, 10])
        lines = (self.directory / "run/metrics.jsonl").read_text().splitlines()
        for row, line in zip(rows, lines, strict=True):
            record = json.loads(line)
            self.assertEqual(list(record), list(row))
            for name, text in row.items():
                self.assertEqual(record[name], float(text) if text else None)

    def test_last_row_and_summary_agree(self):
        summary = self.train(2, steps=8).summary
        last = self.metrics()[-1]
        self.assertEqual(summary["final"]["val_top1"], float(last["val_top1"]))
        self.assertEqual(summary["final"]["val_loss"], float(last["val_loss"]))
        mean = math.fsum(self.losses()) / 8  # the last epoch: all 8 steps
        self.assertAlmostEqual(summary["final"]["train_loss"], mean, places=12)

    def test_weights_say_what_is_needed_to_use_them_and_nothing_else(self):
        self.train()
        weights = self.weights()
        self.assertEqual(weights.metadata, {"format": "pt", "model": "mlp", "classes": "10",
                                            "input": "1,28,28", "mean": "0.5", "std": "0.2049"})
        shapes = {name: tensor["shape"] for name, tensor in weights.header.items()}
        self.assertEqual(shapes, {"fc1.weight": [256, 784], "fc1.bias": [256],
                                  "fc2.weight": [256, 256], "fc2.bias": [256],
                                  "fc3.weight": [10, 256], "fc3.bias": [10]})
        for name in weights.header:
            self.assertTrue(all(map(math.isfinite, weights.numbers(name))), name)

    def test_environment_names_ranks_and_versions(self):
        self.train(2)
        record = self.environment_record()
        self.assertEqual([rank["rank"] for rank in record["ranks"]], [0, 1])
        self.assertEqual(record["command_line"][0], ddptrain.PROGRAM)
        for name in ("ddptrain", "mpi", "blas", "protobuf"):
            self.assertRegex(record["versions"][name], r"^[\x20-\x7e]+$")

    def test_every_rank_logs_and_only_rank_0_speaks(self):
        result = self.train(2, log_every=2)
        self.assertEqual(result.stderr.count("schedule_hash"), 1)
        log = (self.directory / "run/logs/rank-000.log").read_text()
        self.assertIn("step 6/6", log)


class Learning(EndToEnd):
    def test_learns_to_tell_the_classes_apart(self):
        for ranks in (1, 2):
            result = self.train(ranks, synthetic_train=4096, synthetic_val=512, steps=None,
                                epochs=1, out=f"run{ranks}")
            self.assertGreater(result.summary["final"]["val_top1"], 0.9)
            self.assertLess(result.summary["final"]["val_loss"], math.log(10) / 2)

    def test_convnet_learns(self):
        result = self.train(2, model="convnet", synthetic_train=1024, steps=32, lr=0.05)
        self.assertGreater(result.summary["final"]["val_top1"], 0.9)

    def test_accumulation_is_the_larger_micro_batch(self):
        # Without batch statistics only the order of summation differs.
        for accum in (1, 2, 4):
            self.train(accum=accum, precision="fp64", out=f"accum{accum}", limit_val=8)
        for accum in (2, 4):
            self.assert_same_numbers(self.losses(f"accum{accum}"), self.losses("accum1"), 1e-10)

    def test_a_partial_batch_is_a_smaller_batch(self):
        # The whole set in one step, padded or not: the same mean over its 20 samples.
        common = {"limit_train": 20, "steps": 3, "precision": "fp64", "limit_val": 8}
        self.train(global_batch=20, out="exact", **common)
        for ranks in (1, 2, 4):
            self.train(ranks, global_batch=32, last_batch="partial", out=f"padded{ranks}", **common)
            self.assert_same_numbers(self.losses(f"padded{ranks}"), self.losses("exact"), 1e-10)
            self.assert_same_numbers(self.column("grad_norm", f"padded{ranks}"),
                                     self.column("grad_norm", "exact"), 1e-10)


class Stopping(EndToEnd):
    def assert_stopped(self, result, steps):
        self.assert_last_line_is_a_summary(result)
        self.assertEqual(result.summary["steps"], steps)
        self.assertIn("cannot be continued", result.stderr)
        self.assertEqual(len(self.metrics()), steps)
        self.assertTrue(self.metrics()[-1]["val_top1"], "stopping evaluates once more")
        self.assertEqual(self.evaluate(self.weights_path()).summary["final"]["val_loss"],
                         result.summary["final"]["val_loss"])

    def test_at_a_step(self):
        self.train(2, out="whole")
        result = self.train(2, stop_at_step=4, code=75)
        self.assert_stopped(result, 4)
        self.assertEqual(self.losses(), self.losses("whole")[:4])

    def test_at_the_last_step_is_the_end(self):
        self.assertEqual(self.train(2, stop_at_step=6).summary["status"], "finished")

    def test_after_a_time(self):
        result = self.train(2, steps=10**9, max_time="1s", eval_every="off", code=75)
        self.assert_stopped(result, result.summary["steps"])

    def test_by_signal(self):
        values = SMALL_RUN | {"steps": 10**9, "eval_every": "off", "out": "run"}
        for command in ([ddptrain.PROGRAM], [ddptrain.MPIEXEC, "-np", "2", ddptrain.PROGRAM]):
            process = self.start([*command, "train", *flags(**values), "--overwrite"])
            self.wait_for_steps(process)
            process.send_signal(signal.SIGUSR1)
            result = self.result_of(process)
            self.assertEqual(result.code, 75, result)
            self.assert_stopped(result, result.summary["steps"])
            (self.directory / "run/metrics.jsonl").unlink()


class NotFinite(EndToEnd):
    def test_stop_names_step_and_tensor_on_any_ranks(self):
        for ranks in (None, 1, 2):
            out = f"run{ranks}"
            result = self.train(ranks, lr=1e30, code=8, out=out)
            self.assertRegex(result.stderr, r"step 2: .* first bad tensor is \S.* on rank \d")
            self.assert_last_line_is_a_summary(result)
            failure = self.failure_record(out)
            self.assertEqual((failure["step"], failure["phase"], failure["exit"]),
                             (2, "training", 8))
            self.assertRegex(failure["cause"], "first bad tensor")
            for key in ("rank", "host", "device", "advice"):
                self.assertIn(key, failure)

    def test_skip_leaves_such_steps_out(self):
        result = self.train(2, lr=1e30, on_nan="skip")
        self.assertEqual(result.summary["steps"], 6)
        skipped = [int(row["skipped"]) for row in self.metrics()]
        self.assertEqual(skipped, [0, 1, 1, 1, 1, 1])
        self.assertEqual(len(re.findall("the update was skipped", result.stderr)), 5)
        self.assertEqual(result.summary["skipped_steps"], 5)
        self.assertIn("5 of 6 steps were skipped", result.stderr)
        self.assertTrue(math.isfinite(result.summary["final"]["train_loss"]))
        # The weights are those of the only update there was: finite.
        for name in self.weights().header:
            self.assertTrue(all(map(math.isfinite, self.weights().numbers(name))), name)

    def test_weights_that_the_last_update_spoiled_are_no_finish(self):
        for ranks in (1, 2):
            out = f"last{ranks}"
            result = self.train(ranks, lr=1e30, steps=1, code=8, out=out)
            self.assertRegex(result.stderr, "loss of the evaluation after step 1 is not finite")
            self.assertIn("lower --lr", result.stderr)
            self.assert_last_line_is_a_summary(result)
            self.assertEqual(self.failure_record(out)["exit"], 8)

    def test_too_many_skips_in_a_row_end_the_run(self):
        result = self.train(2, lr=1e30, on_nan="skip", steps=200, code=8)
        self.assertIn("the last 100 steps", result.stderr)
        self.assertEqual((result.summary["steps"], result.summary["skipped_steps"]), (101, 100))


if __name__ == "__main__":
    unittest.main()
