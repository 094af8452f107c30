"""Every flag of every subcommand does something that can be seen.

The test of a flag is the method named after it: --lr is test_lr. The flags that --help lists and
the tests of a class must be the same set, so that a new flag without a test fails.
"""

import hashlib
import json
import math
import os
import re
import unittest

import ddptrain
from ddptrain import SMALL_RUN, EndToEnd, flags


def listed_flags(help_text):
    """{"lr", "no_nesterov", …} as --help shows them."""
    listed = re.findall(r"^ +(?:-\w,)?--([a-z0-9-]+)", help_text, re.MULTILINE)
    listed += re.findall(r"\(?or\s+--(no-[a-z-]+)\)", help_text)
    return {name.replace("-", "_") for name in listed}


class FlagTests(EndToEnd):
    command = None  # set by the class of each subcommand

    def check_all_flags_are_covered(self):
        listed = listed_flags(self.ddptrain(self.command, "--help").stdout)
        tested = {name[len("test_"):] for name in dir(self) if name.startswith("test_")}
        self.assertEqual({flag for flag in listed if not flag.startswith("no_")},
                         tested - {"every_flag_has_a_test"})

    def start_long_run(self, **values):
        """Training that goes on until the test ends it; returns once the first step is done."""
        values = SMALL_RUN | {"out": "run", "steps": 10**9, "eval_every": "off"} | values
        process = self.start([ddptrain.PROGRAM, "train", *flags(**values)])
        self.wait_for_steps(process, values["out"])
        return process

    def has_more_threads(self, process, count):
        return ddptrain.process_status(process.pid, "Threads") > count

    def resident_bytes(self, process):
        return ddptrain.process_status(process.pid, "VmRSS") * 1024


class TrainFlags(FlagTests):
    command = "train"

    def test_every_flag_has_a_test(self):
        self.check_all_flags_are_covered()

    def losses_with(self, name, **values):
        self.train(**({"out": name} | values))
        return self.losses(name)

    def assert_changes_losses(self, *variants, common=None, first_step=True):
        """The runs differ in their losses: from the first step on, or only once weights changed."""
        losses = [self.losses_with(f"run{i}", **((common or {}) | values))
                  for i, values in enumerate(variants)]
        for i, mine in enumerate(losses):
            for other in losses[:i]:
                self.assertNotEqual(mine[-1], other[-1], variants)
                if first_step:
                    self.assertNotEqual(mine[0], other[0], variants)
                else:
                    self.assertEqual(mine[0], other[0], variants)

    # Configuration

    def test_help(self):
        result = self.ddptrain("train", "--help")
        self.assertEqual(result.code, 0)
        self.assertIn("--micro-batch N", result.stdout)
        self.assertEqual(self.ddptrain("train", "-h").stdout, result.stdout)

    def test_config(self):
        (self.directory / "a.pbtxt").write_text('steps: 3\nlr: 0.25\nschedule: "constant"\n')
        (self.directory / "b.pbtxt").write_text("steps: 2\nmin_lr: 0.01\n")
        arguments = flags(**(SMALL_RUN | {"steps": None, "out": "run", "warmup": "off"}))
        result = self.ddptrain("train", "--config", "a.pbtxt", "--config", "b.pbtxt", *arguments)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.column("lr"), [0.25, 0.25])  # steps of b, lr of a

    def test_dry_run(self):
        result = self.train(dry_run=True)
        self.assertEqual(result.summary["steps"], 0)
        self.assertIn("no step was done", result.stderr)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_print_config(self):
        result = self.train(print_config="diff", lr=0.25)
        self.assertIn("lr: 0.25", result.stdout)
        self.assertEqual(list(self.directory.iterdir()), [])

    # Model

    def test_model(self):
        self.train(model="convnet", steps=1, global_batch=8, limit_val=8)
        self.assertTrue(any("conv" in name for name in self.weights().header))
        self.train(model="mlp", out="other")
        self.assertFalse(any("conv" in name for name in self.weights("other").header))

    def test_classes(self):
        self.train(classes=12)
        self.assertEqual(self.weights().header["fc3.weight"]["shape"], [12, 256])
        self.assertEqual(self.weights().metadata["classes"], "12")

    def test_stem(self):
        shapes = {}
        for stem in ("auto", "imagenet", "small"):
            result = self.ddptrain("plan", "--model", "resnet18", "--stem", stem, "--micro-batch", "2",
                                   "--synthetic-image", "3x32x32", "--json", "plan.json")
            self.assertEqual(result.code, 0, result)
            steps = json.loads((self.directory / "plan.json").read_text())["steps"]
            shapes[stem] = any(step.get("op") == "max_pool" for step in steps)
        self.assertEqual(shapes, {"auto": False, "imagenet": True, "small": False})

    def test_dropout(self):
        self.assert_changes_losses({"dropout": 0}, {"dropout": 0.5})

    # Data

    def test_data(self):
        ddptrain.write_idx_set(self.directory / "images")
        result = self.train(data="images")
        self.assertRegex(result.stderr, r"data +images: 64 training, 16 validation samples")

    def test_limit_train(self):
        result = self.train(limit_train=96, steps=3)
        self.assertEqual(result.summary["epochs"], 1.0)

    def test_limit_val(self):
        result = self.train(limit_val=21)
        self.assertIn("21 validation samples", result.stderr)
        correct = result.summary["final"]["val_top1"] * 21
        self.assertAlmostEqual(correct, round(correct), places=9)

    def test_last_batch(self):
        drop = self.train(limit_train=40, steps=2, last_batch="drop")
        partial = self.train(limit_train=40, steps=2, last_batch="partial", out="partial")
        self.assertEqual(drop.summary["epochs"], 2.0)
        self.assertEqual(partial.summary["epochs"], 1.0)

    def test_augment(self):
        self.assert_changes_losses(*({"augment": kind}
                                     for kind in ("none", "crop", "flip", "crop-flip")))

    def test_loader_threads(self):
        few = self.start_long_run(loader_threads=1, out="few")
        self.assertFalse(self.has_more_threads(few, 40))
        few.terminate()
        few.wait()
        many = self.start_long_run(loader_threads=40, out="many")
        self.assertTrue(self.has_more_threads(many, 40))

    def test_prefetch(self):
        batch = {"global_batch": 256, "synthetic_train": 512}
        few = self.start_long_run(prefetch=2, out="few", **batch)
        before = self.resident_bytes(few)
        few.terminate()
        few.wait()
        many = self.start_long_run(prefetch=502, out="many", **batch)
        ahead = 500 * 256 * 28 * 28
        self.assertGreater(self.resident_bytes(many) - before, 0.8 * ahead)

    def test_synthetic_image(self):
        result = self.train(synthetic_image="3x9x11")
        self.assertIn("images 9x11x3", result.stderr)
        self.assertEqual(self.weights().header["fc1.weight"]["shape"], [256, 3 * 9 * 11])
        for bad in ("3x9", "3x9x0", "3x9x11x2", "many"):
            self.assertRegex(self.train(code=2, synthetic_image=bad, out="bad").stderr,
                             "as 3x32x32|1 to 4096 channels and sides")

    def test_synthetic_train(self):
        result = self.train(synthetic_train=64, steps=4)
        self.assertEqual(result.summary["epochs"], 2.0)

    def test_synthetic_val(self):
        self.assertIn(" 37 validation samples", self.train(synthetic_val=37).stderr)

    # Batch and length

    def test_global_batch(self):
        self.assertIn("global 16 = 1 rank x micro-batch 16 x accumulation 1",
                      self.train(global_batch=16).stderr)

    def test_micro_batch(self):
        self.assertIn("global 32 = 1 rank x micro-batch 8 x accumulation 4",
                      self.train(micro_batch=8).stderr)

    def test_accum(self):
        self.assertIn("global 32 = 1 rank x micro-batch 16 x accumulation 2",
                      self.train(accum=2).stderr)

    def test_epochs(self):
        result = self.train(epochs=1.5, steps=None)
        self.assertEqual((result.summary["steps"], result.summary["epochs"]), (12, 1.5))

    def test_steps(self):
        self.assertEqual(self.train(steps=3).summary["steps"], 3)
        self.assertEqual(len(self.metrics()), 3)

    def test_max_time(self):
        result = self.train(code=75, steps=10**9, max_time="1s", eval_every="off")
        self.assertGreaterEqual(result.summary["steps"], 1)

    def test_stop_at_step(self):
        self.train(out="whole")
        result = self.train(code=75, stop_at_step=3)
        self.assertEqual(result.summary["steps"], 3)
        self.assertEqual(self.column("lr"), self.column("lr", "whole")[:3])

    # Optimizer

    def test_optimizer(self):
        rates = {"sgd": 0.1, "lars": 3, "adamw": 0.001, "lion": 0.0003}
        self.assert_changes_losses(*({"optimizer": kind} for kind in rates), first_step=False)
        for i, rate in enumerate(rates.values()):
            self.assertEqual(max(self.column("lr", f"run{i}")), rate)

    def test_lr(self):
        self.train(lr=0.03, schedule="constant", warmup="off")
        self.assertEqual(self.column("lr"), [0.03] * 6)

    def test_momentum(self):
        self.assert_changes_losses({"momentum": 0}, {"momentum": 0.9},
                                   common={"no_nesterov": True}, first_step=False)

    def test_nesterov(self):
        self.assert_changes_losses({"nesterov": True}, {"no_nesterov": True}, first_step=False)

    def test_beta1(self):
        self.assert_changes_losses({"beta1": 0.9}, {"beta1": 0.5},
                                   common={"optimizer": "adamw"}, first_step=False)

    def test_beta2(self):
        for optimizer, default in (("adamw", 0.999), ("lion", 0.99)):
            self.assert_changes_losses({"beta2": default}, {"beta2": 0.5}, first_step=False,
                                       common={"optimizer": optimizer, "overwrite": True})
            self.assertEqual(self.losses_with("unset", optimizer=optimizer, overwrite=True),
                             self.losses("run0"))

    def test_eps(self):
        self.assert_changes_losses({"eps": 1e-8}, {"eps": 1},
                                   common={"optimizer": "adamw"}, first_step=False)
        self.assertIn('--eps 1 does nothing beside optimizer "sgd"',
                      self.train(eps=1, out="sgd").stderr)

    def test_lars_trust(self):
        self.assert_changes_losses({}, {"lars_trust": 0.01}, common={"optimizer": "lars"},
                                   first_step=False)

    def test_weight_decay(self):
        self.assert_changes_losses({"weight_decay": 0}, {"weight_decay": 0.5}, first_step=False)

    def test_decay(self):
        self.assert_changes_losses({"decay": "matrices"}, {"decay": "all"},
                                   common={"weight_decay": 0.5}, first_step=False)

    def test_clip_norm(self):
        self.assert_changes_losses({}, {"clip_norm": 0.01}, first_step=False)
        # What is recorded is the norm before clipping.
        self.assertEqual(self.column("grad_norm", "run0")[0], self.column("grad_norm", "run1")[0])
        self.assertGreater(self.column("grad_norm", "run1")[0], 0.01)

    def test_schedule(self):
        heights = {"constant": lambda t: 1, "linear": lambda t: 1 - t,
                   "cosine": lambda t: (1 + math.cos(math.pi * t)) / 2,
                   "one-cycle": lambda t: (1 + math.cos(math.pi * t)) / 2,
                   "polynomial": lambda t: (1 - t) ** 2,
                   "step": lambda t: 0.1 ** (t * 6 // 2),
                   "multistep": lambda t: 0.1 ** ((t >= 1 / 2) + (t >= 5 / 6))}
        for kind, height in heights.items():
            self.train(schedule=kind, warmup="off", out=kind)
            self.assert_same_numbers(self.column("lr", kind),
                                     [0.1 * height(step / 6) for step in range(6)], 1e-15)

    def test_warmup(self):
        self.train(warmup=4, schedule="constant")
        self.assert_same_numbers(self.column("lr"), [0.025, 0.05, 0.075, 0.1, 0.1, 0.1], 1e-15)
        self.train(schedule="one-cycle", out="one-cycle")
        self.assert_same_numbers(self.column("lr", "one-cycle")[:3], [0.004, 0.052, 0.1], 1e-15)

    def test_step_every(self):
        self.train(schedule="step", step_every=4, warmup="off")
        self.assert_same_numbers(self.column("lr"), [0.1] * 4 + [0.01] * 2, 1e-15)

    def test_milestones(self):
        self.train(schedule="multistep", milestones="2,0.5,5", warmup="off")
        self.assert_same_numbers(self.column("lr"), [0.1, 0.1, 0.01, 1e-3, 1e-3, 1e-4], 1e-15)

    def test_gamma(self):
        self.train(schedule="step", step_every=2, gamma=0.5, warmup="off")
        self.assert_same_numbers(self.column("lr"), [0.1] * 2 + [0.05] * 2 + [0.025] * 2, 1e-15)

    def test_power(self):
        self.train(schedule="polynomial", power=0.5, warmup="off")
        self.assert_same_numbers(self.column("lr"), [0.1 * (1 - step / 6) ** 0.5
                                                     for step in range(6)], 1e-15)

    def test_min_lr(self):
        self.train(min_lr=0.04, schedule="linear", warmup="off")
        self.assert_same_numbers(self.column("lr"), [0.04 + 0.06 * (1 - step / 6)
                                                     for step in range(6)], 1e-15)

    def test_label_smoothing(self):
        self.assert_changes_losses({}, {"label_smoothing": 0.2})

    def test_ema(self):
        self.train(out="without")
        result = self.train(ema=0.5, eval_every=3, ranks=2)
        final = result.summary["final"]
        for row in self.metrics():
            self.assertEqual(row["val_ema_loss"] != "", row["step"] in ("3", "6"))
        self.assertEqual(final["val_ema_loss"], float(self.metrics()[-1]["val_ema_loss"]))
        self.assertNotEqual(final["val_ema_loss"], final["val_loss"])
        # What was evaluated is what is saved.
        scores = self.evaluate(self.weights_path(which="ema")).summary["final"]
        for figure in ("loss", "top1", "top5"):
            self.assertEqual(final[f"val_ema_{figure}"], scores[f"val_{figure}"])
        self.assertIn("averaged weights after step 6: loss", result.stderr)

        # The weights themselves are what they are without.
        self.train(ema=0.5, out="alone")
        self.assertEqual(self.weights_path("alone").read_bytes(),
                         self.weights_path("without").read_bytes())
        self.assertFalse(self.weights_path("without", "ema").exists())

    # Run

    def test_out(self):
        result = self.train(out="here/and/there")
        self.assertEqual(result.summary["run_dir"], "here/and/there")
        self.assertTrue(self.weights_path("here/and/there").is_file())
        result = self.train(out=None)
        self.assertRegex(result.summary["run_dir"], r"^runs/mlp-\d{8}-\d{6}$")

    def test_overwrite(self):
        self.train()
        self.train(code=2)
        self.train(overwrite=True, steps=2)
        self.assertEqual(len(self.metrics()), 2)

    def test_seed(self):
        self.assert_changes_losses({"seed": 1}, {"seed": 2})

    def test_deterministic(self):
        for out in ("one", "two"):
            self.train(ranks=2, deterministic=True, out=out)
        self.assertEqual(self.weights_path("one").read_bytes(),
                         self.weights_path("two").read_bytes())
        self.assertIn("deterministic: true", (self.directory / "one/config.pbtxt").read_text())

    def evaluated_steps(self, out):
        return [int(row["step"]) for row in self.metrics(out) if row["val_top1"]]

    def test_eval_every(self):
        for every, steps in (("2", [2, 4, 6]), ("0.5", [3, 6]), ("off", [6])):
            self.train(eval_every=every, out="every" + every)
            self.assertEqual(self.evaluated_steps("every" + every), steps)

    def test_early_stop(self):
        # At learning rate 0 no evaluation is better than the first.
        for ranks in (None, 2):
            out = f"ranks{ranks}"
            result = self.train(lr=0, eval_every=1, early_stop=2, ranks=ranks, out=out)
            self.assertEqual((result.summary["status"], result.summary["steps"]), ("finished", 3))
            self.assertTrue(result.summary["early_stopped"])
            self.assertIn("--early-stop: val_top1 has not risen in 2 evaluations", result.stderr)
            self.assertTrue(self.weights_path(out).exists())
        self.assertFalse(self.train(lr=0, eval_every=1).summary["early_stopped"])
        self.assertIn("--early-stop 2 needs evaluations",
                      self.train(code=2, eval_every="off", early_stop=2, out="off").stderr)

    def test_log_every(self):
        for every, lines in (("1", 6), ("4", 2), ("off", 0)):
            result = self.train(log_every=every, out="every" + every)
            self.assertEqual(len(re.findall(r"^step +\d+/6 ", result.stderr, re.MULTILINE)), lines)

    def test_on_nan(self):
        self.train(code=8, lr=1e30, on_nan="stop")
        self.train(code=0, lr=1e30, on_nan="skip", out="skip")
        self.assertGreater(sum(self.column("skipped", "skip")), 0)

    def test_check_replicas(self):
        library = {"LD_PRELOAD": os.environ["FLIP_BIT"],
                   "ASAN_OPTIONS": "verify_asan_link_order=0"}
        command = [ddptrain.MPIEXEC, "-np", "2"]
        for name, value in library.items():
            command += ["-x", f"{name}={value}"]
        command += [ddptrain.PROGRAM, "train"]
        unseen = self.execute(command + flags(**SMALL_RUN, out="unseen"))
        self.assertEqual(unseen.code, 0, unseen)
        seen = self.execute(command + flags(**SMALL_RUN, out="seen", check_replicas=2))
        self.assertEqual(seen.code, 6, seen)
        self.assertRegex(seen.stderr, r"'[a-z0-9.]+' is not the same .* rank 1 differs")
        self.assertEqual(seen.summary["steps"], 2)

    # Device and communication

    def test_device(self):
        self.assertIn("(auto:", self.train(device="auto", out="auto").stderr)
        self.assertNotIn("(auto:", self.train(device="cpu", out="cpu").stderr)
        self.assertIn("--device cpu", self.train(code=4, device="cuda", out="cuda").stderr)

    def test_precision(self):
        self.train(precision="fp64")
        self.assertEqual(self.weights().header["fc1.weight"]["dtype"], "F64")
        self.train(precision="fp32", out="fp32")
        self.assertEqual(self.weights("fp32").header["fc1.weight"]["dtype"], "F32")
        for precision in ("bf16", "tf32"):
            self.assertIn("needs a GPU", self.train(precision=precision, out="gpu", code=2).stderr)

    def test_threads(self):
        self.train(threads=3)
        self.assertEqual(self.environment_record()["ranks"][0]["threads"], 3)

    def run_on_one_core(self, **values):
        core = min(os.sched_getaffinity(0))
        process = self.start([ddptrain.PROGRAM, "train", *flags(**(SMALL_RUN | values))],
                             preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        result = self.result_of(process)
        self.assertEqual(result.code, 0, result)
        return int(re.search(r"; (\d+) cores shared", result.stderr).group(1))

    def test_keep_binding(self):
        self.assertEqual(self.run_on_one_core(keep_binding=True, out="kept"), 1)
        self.assertGreaterEqual(self.run_on_one_core(out="widened"), len(os.sched_getaffinity(0)))

    def buckets(self, result):
        return int(re.search(r"buckets +(\d+),", result.stderr).group(1))

    def test_bucket_mb(self):
        small = self.buckets(self.train(ranks=2, bucket_mb=0.01, out="small"))
        large = self.buckets(self.train(ranks=2, bucket_mb=100, out="large"))
        self.assertEqual(large, 1)
        self.assertGreater(small, 2)

    def test_recompute(self):
        resnet = {"model": "resnet18", "synthetic_image": "3x8x8", "classes": 4, "global_batch": 4,
                  "steps": 1, "limit_val": 4, "threads": 2}
        kept = self.train(out="none", recompute="none", **resnet)
        again = self.train(out="block", recompute="block", **resnet)
        self.assertEqual(self.weights_path("none").read_bytes(),
                         self.weights_path("block").read_bytes())
        self.assertLess(again.summary["peak_memory"]["allocated_bytes"],
                        kept.summary["peak_memory"]["allocated_bytes"])
        self.assertRegex(again.stderr, r"recomputation +activations .* instead of .* GFLOP")
        self.assertIn("no blocks", self.train(code=2, out="mlp", recompute="block").stderr)

    def test_overlap(self):
        on = self.train(ranks=2, overlap="on", out="on").stderr
        off = self.train(ranks=2, overlap="off", out="off").stderr
        self.assertIn("overlap off", off)
        hashes = [re.search(r"schedule_hash +(\w+)", text).group(1) for text in (on, off)]
        self.assertNotEqual(*hashes)


class ScoringFlags:
    """What eval and predict have in common; `score` gives what they found out."""

    def setUp(self):
        super().setUp()
        self.train()
        self.file = self.weights_path()

    def test_every_flag_has_a_test(self):
        self.check_all_flags_are_covered()

    def evaluate(self, weights, **values):
        return super().evaluate(weights, command=self.command, **values)

    def start_long_evaluation(self, **values):
        values = {"weights": self.file, "data": "synthetic", "synthetic_val": 10**8,
                  "threads": 1, "device": "cpu"} | values
        return self.start([ddptrain.PROGRAM, self.command, *flags(**values)])

    def test_help(self):
        result = self.ddptrain(self.command, "--help")
        self.assertEqual(result.code, 0)
        self.assertIn("--weights", result.stdout)

    def test_config(self):
        (self.directory / "a.pbtxt").write_text("limit_val: 3\n")
        self.assertEqual(self.score(config="a.pbtxt"), self.score(limit_val=3))

    def test_weights(self):
        self.train(out="other", seed=1, steps=12)
        before = self.score()
        self.file = self.weights_path("other")
        self.assertNotEqual(self.score(), before)

    def test_data(self):
        ddptrain.write_idx_set(self.directory / "images")
        self.assertNotEqual(self.score(data="images"), self.score())

    def test_limit_val(self):
        result = self.evaluate(self.file, limit_val=21)
        self.assertIn("21 validation samples", result.stderr)

    def test_synthetic_val(self):
        result = self.evaluate(self.file, synthetic_val=37)
        self.assertIn("37 validation samples", result.stderr)

    def test_seed(self):
        self.assertNotEqual(self.score(seed=2), self.score())

    def test_loader_threads(self):
        process = self.start_long_evaluation(loader_threads=40)
        self.wait_until(lambda: self.has_more_threads(process, 40), "40 loader threads")

    def test_prefetch(self):
        ahead = 1000 * 64 * 28 * 28  # evaluation takes 64 samples at a time
        process = self.start_long_evaluation(prefetch=1000)
        self.wait_until(lambda: self.resident_bytes(process) > ahead, "samples read ahead")
        process.terminate()
        process.wait()

    def test_device(self):
        self.evaluate(self.file, device="cuda", code=4)

    def test_threads(self):
        process = self.start_long_evaluation(threads=40)
        self.wait_until(lambda: self.has_more_threads(process, 39), "40 compute threads")

    def mask_of_evaluation(self, **values):
        core = min(os.sched_getaffinity(0))
        values = {"weights": self.file, "data": "synthetic", "synthetic_val": 10**8,
                  "threads": 1} | values
        process = self.start([ddptrain.PROGRAM, self.command, *flags(**values)],
                             preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        process.stderr.readline()  # "… scores …": the mask was set before it
        return os.sched_getaffinity(process.pid)

    def test_keep_binding(self):
        self.assertEqual(len(self.mask_of_evaluation(keep_binding=True)), 1)
        self.assertLessEqual(os.sched_getaffinity(0), self.mask_of_evaluation())


class EvalFlags(ScoringFlags, FlagTests):
    command = "eval"

    def score(self, **values):
        return self.evaluate(self.file, **values).summary["final"]

    def test_per_class(self):
        self.assertEqual(len(self.evaluate(self.file, per_class=True).summary["per_class"]), 10)

    def test_confusion(self):
        self.evaluate(self.file, confusion="c.csv")
        self.assertEqual(len((self.directory / "c.csv").read_text().splitlines()), 11)


class PredictFlags(ScoringFlags, FlagTests):
    command = "predict"

    def score(self, **values):
        return self.evaluate(self.file, **values).stdout

    def test_split(self):
        val, train = self.score(split="val"), self.score(split="train")
        self.assertEqual(val, self.score())
        self.assertEqual((len(val.splitlines()), len(train.splitlines())), (1 + 64, 1 + 4096))

    def test_limit_train(self):
        self.assertEqual(len(self.score(split="train", limit_train=70).splitlines()), 1 + 70)

    def test_synthetic_train(self):
        self.assertEqual(len(self.score(split="train", synthetic_train=70).splitlines()), 1 + 70)

    def test_output(self):
        self.evaluate(self.file, output="p.csv")
        self.assertEqual((self.directory / "p.csv").read_text(), self.score())

    def test_top(self):
        self.assertIn("top3_probability", self.score(top=3))
        self.assertNotIn("top", self.score(top=1))
        self.evaluate(self.file, top=11, code=2)


# A value other than the default for each field, as `config` prints it.
OTHER_VALUES = {
    "model": "mlp", "classes": 12, "stem": "imagenet", "dropout": 0.5, "data": "synthetic", "limit_train": 96,
    "limit_val": 21, "last_batch": "partial", "augment": "none", "loader_threads": 3,
    "prefetch": 9, "synthetic_train": 77, "synthetic_val": 33,
    "synthetic_image": "3x32x32", "global_batch": 48,
    "micro_batch": 8, "accum": 2, "epochs": 3, "steps": 5, "max_time": "15m", "stop_at_step": 4,
    "optimizer": "adamw", "lr": 0.25, "momentum": 0.5, "nesterov": False, "beta1": 0.5,
    "beta2": 0.5, "eps": 0.001, "lars_trust": 0.01, "weight_decay": 0.01, "decay": "all",
    "clip_norm": 2, "schedule": "linear", "warmup": "2ep", "min_lr": 0.01, "step_every": "2ep",
    "milestones": "1ep,0.5", "gamma": 0.5, "power": 1.5, "label_smoothing": 0.125, "ema": 0.99,
    "out": "there", "overwrite": True, "seed": 7, "deterministic": True, "eval_every": "500",
    "early_stop": 3, "log_every": "15m", "on_nan": "skip", "check_replicas": 3, "device": "cpu",
    "precision": "fp64", "threads": 5, "keep_binding": True, "bucket_mb": 100, "overlap": "off",
    "recompute": "block",
}


def flag_with_value(name, value):
    flag = "--" + name.replace("_", "-")
    return [f"{flag}={str(value).lower()}"] if isinstance(value, bool) else [flag, str(value)]


class ConfigFlags(FlagTests):
    command = "config"

    def test_each_flag_is_shown_with_its_origin(self):
        listed = {flag for flag in listed_flags(self.ddptrain("config", "--help").stdout)
                  if not flag.startswith("no_")}
        self.assertEqual(listed, set(OTHER_VALUES) | {"help", "config", "print_config"})
        for name, value in OTHER_VALUES.items():
            with self.subTest(flag=name):
                result = self.ddptrain("config", *flag_with_value(name, value))
                text = f'"{value}"' if isinstance(value, str) else str(value).lower()
                self.assertRegex(result.stdout, rf"(?m)^{name}: {re.escape(text)} +# flag$")

    def test_config_file_is_named_with_its_line(self):
        (self.directory / "a.pbtxt").write_text("\nlr: 0.25\n")
        result = self.ddptrain("config", "--config", "a.pbtxt")
        self.assertRegex(result.stdout, r"(?m)^lr: 0.25 +# a.pbtxt:2$")

    def test_print_config_diff_shows_what_was_set(self):
        result = self.ddptrain("config", "--print-config", "diff", "--lr", "0.25")
        self.assertRegex(result.stdout, r"^lr: 0.25 +# flag\n$")


class PlanFlags(FlagTests):
    command = "plan"

    # Flags of training that leave its plan as it is: a training command can be planned unchanged.
    NOT_IN_THE_PLAN = {
        "data", "limit_train", "limit_val", "last_batch", "loader_threads", "prefetch",
        "synthetic_train", "synthetic_val", "epochs", "steps", "max_time", "stop_at_step", "warmup",
        "step_every", "milestones", "early_stop", "out", "overwrite", "deterministic", "eval_every",
        "log_every", "check_replicas", "device", "keep_binding"}
    # What some flags need beside them to have an effect.
    BESIDE = {"beta1": {"optimizer": "adamw"}, "beta2": {"optimizer": "adamw"},
              "eps": {"optimizer": "adamw"}, "lars_trust": {"optimizer": "lars"},
              "recompute": {"model": "resnet18"}, "synthetic_image": {"data": "synthetic"},
              "stem": {"model": "resnet18", "data": "synthetic", "synthetic_image": "3x32x32"}}

    def plan(self, *arguments):
        """A digest of all that plan says."""
        result = self.ddptrain("plan", *arguments, "--json", "plan.json")
        self.assertEqual(result.code, 0, result)
        text = result.stdout + (self.directory / "plan.json").read_text()
        return hashlib.sha256(text.encode()).hexdigest()

    def test_each_flag_changes_the_plan_or_is_known_not_to(self):
        listed = {flag for flag in listed_flags(self.ddptrain("plan", "--help").stdout)
                  if not flag.startswith("no_")}
        self.assertEqual(listed, set(OTHER_VALUES) | {"help", "config", "ranks", "json", "dump_model"})
        for name, value in OTHER_VALUES.items():
            with self.subTest(flag=name):
                flag = flag_with_value(name, value)
                beside = flags(**self.BESIDE.get(name, {}))
                compare = self.assertEqual if name in self.NOT_IN_THE_PLAN else self.assertNotEqual
                compare(self.plan(*beside, *flag), self.plan(*beside))

    def test_config_file_is_read(self):
        (self.directory / "a.pbtxt").write_text('model: "mlp"\n')
        self.assertEqual(self.plan("--config", "a.pbtxt"), self.plan("--model", "mlp"))


if __name__ == "__main__":
    unittest.main()
