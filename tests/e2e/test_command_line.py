"""The command line: what it says, what it refuses, and how a command ends."""

import json
import os
import re
import unittest

import ddptrain
from ddptrain import SMALL_RUN, EndToEnd, flags

QUICK = 10.0  # seconds in which a job that cannot start must have ended


class Errors(EndToEnd):
    def assert_refused(self, arguments, sentence, code=2):
        result = self.ddptrain(*arguments)
        self.assertEqual(result.code, code, result)
        self.assertIn(sentence, result.stderr)
        return result

    def test_unknown_names_come_with_the_nearest_known_one(self):
        self.assert_refused(["trian"], "unknown command trian; did you mean train?")
        self.assert_refused(["train", "--micro-bach", "3"],
                            "unknown flag --micro-bach; did you mean --micro-batch?")
        self.assert_refused(["--sede=3"], "unknown flag --sede; did you mean --seed?")
        self.assert_refused(["eval", "--limit-vall", "3"], "did you mean --limit-val?")
        self.assert_refused(["plan", "--rank", "3"], "unknown flag --rank; did you mean --ranks?")
        self.assert_refused(["config", "--optimzer", "sgd"], "did you mean --optimizer?")
        self.assert_refused(["train", "--optimizer", "adam"], "did you mean adamw?")
        self.assert_refused(["train", "--model", "mpl", "--data", "synthetic"],
                            "did you mean 'mlp'?")

    def test_config_file_errors_say_file_line_and_column(self):
        for text, where in (("lr: 0.1\n  mico_batch: 3\n",
                             "a.pbtxt:2:3: unknown field mico_batch; did you mean micro_batch?"),
                            ("lr: fast\n", "a.pbtxt:1:5: "),
                            ("\n\nlr: -1\n", "a.pbtxt:3:1: lr: -1 is below 0"),
                            ('optimizer: "sdg"\n', 'a.pbtxt:1:1: optimizer: "sdg" is not one of')):
            (self.directory / "a.pbtxt").write_text(text)
            for command in ("train", "plan", "config"):
                self.assert_refused([command, "--config", "a.pbtxt"], where)

    def test_impossible_settings_name_the_legal_ones(self):
        small = flags(**(SMALL_RUN | {"global_batch": None}))
        self.assert_refused(["train", *small, "--global-batch", "30", "--micro-batch", "16"],
                            "--global-batch 16 or 32")
        self.assert_refused(["train", *small, "--epochs", "1"], "give one of them")
        self.assert_refused(["train", *small, "--lr", "0.1", "--lr", "0.2"], "given twice")
        self.assert_refused(["eval"], "--weights")
        self.assert_refused(["plan", "--ranks", "0"], "--ranks")

    def test_missing_data_names_the_package_and_the_alternative(self):
        result = self.ddptrain("train", env={"DDPTRAIN_DATA": "/nowhere"})
        self.assertEqual(result.code, 3, result)
        self.assertIn("apt-get install dataset-fashion-mnist", result.stderr)
        self.assertIn("--data synthetic", result.stderr)
        self.assert_refused(["train", "--data", "nowhere"], "nowhere", code=3)

    def test_cuda_without_a_device_is_refused(self):
        self.assert_refused(["train", *flags(**(SMALL_RUN | {"device": "cuda"}))],
                            "--device cuda", code=4)

    def test_options_of_commands_are_refused_like_flags(self):
        weights = ["--weights", "w", "--data", "synthetic"]
        self.assert_refused(["predict", *weights, "--top", "0"], "--top: 0 is below 1")
        self.assert_refused(["predict", *weights, "--split", "test"],
                            '--split: "test" is not one of val, train')
        self.assert_refused(["plan", "--ranks", "x"], '--ranks: "x" is not a whole number')
        self.assert_refused(["data", "check", "d", "--classes", "1"], "--classes: 1 is below 2")
        for command in ("eval", "predict"):
            self.assert_refused([command, *weights, "--model", "mlp"],
                                "--model: comes from the weight file")
        self.assert_refused(["train", "--schedule", "poly"], "did you mean polynomial?")

    def test_intervals_offer_only_what_the_flag_takes(self):
        for flag in ("--milestones", "--step-every"):
            result = self.assert_refused(["plan", flag, "x"], "is not an interval")
            for form in ("15m", "off"):
                self.assertNotIn(form, result.stderr)
        self.assert_refused(["plan", "--milestones", "0.5,"], "a comma with nothing behind it")
        self.assert_refused(["plan", "--milestones", "0.5,0.5"], "holds 0.5 twice")
        self.assertNotIn("15m", self.assert_refused(["plan", "--warmup", "x"], "off").stderr)

    def test_sizes_of_synthetic_images(self):
        for text in ("3x +32x 32", "3x32", "3x32x32x1", "x32x32", "3x-1x32", ""):
            result = self.ddptrain("plan", "--data", "synthetic", "--synthetic-image", text)
            self.assertEqual(result.code, 2, result)
        for text in ("3x99999x32", "99999x3x3", "3x99999999999999999999x32", "0x3x3"):
            self.assert_refused(["plan", "--data", "synthetic", "--synthetic-image", text],
                                "1 to 4096")

    def test_a_pipe_is_no_model_file(self):
        os.mkfifo(self.directory / "a.pbtxt")
        self.assert_refused(["plan", "--model", "a.pbtxt"], "'a.pbtxt' is not a regular file")
        self.assert_refused(["plan", "--config", "a.pbtxt"], "'a.pbtxt' is not a regular file")

    def test_a_file_that_cannot_be_read_is_not_asked_to_be_written(self):
        result = self.assert_refused(["plan", "--config", "none.pbtxt"], "check the path")
        self.assertNotIn("write", result.stderr)

    def test_results_that_stdout_does_not_take_are_a_storage_error(self):
        self.train()
        (self.directory / "d").mkdir()
        ddptrain.write_idx_set(self.directory / "d" / "set")
        weights = flags(weights=self.weights_path(), data="synthetic", threads=1)
        for arguments in (["--help"], ["--version"], ["config"], ["plan", "--model", "mlp"],
                          ["plan", "--model", "mlp", "--dump-model"], ["data", "check", "d/set"],
                          ["data", "stats", "d/set"], ["eval", *weights],
                          ["eval", *weights, "--per-class"],
                          ["train", *flags(**SMALL_RUN, out="full")]):
            with self.subTest(arguments=arguments):
                result = self.execute(["sh", "-c", 'exec "$@" > /dev/full', "sh", ddptrain.PROGRAM,
                                       *arguments])
                self.assertEqual(result.code, 7, result)
                self.assertEqual(result.stderr.count("stdout could not be written"), 1, result)

    def test_an_existing_run_is_not_overwritten_unasked(self):
        self.train()
        before = self.weights_path().read_bytes()
        result = self.train(code=2, lr=0.5)
        self.assertIn("--overwrite", result.stderr)
        self.assertEqual(self.weights_path().read_bytes(), before)
        self.train(overwrite=True, lr=0.5)
        self.assertNotEqual(self.weights_path().read_bytes(), before)

    def test_a_directory_of_other_files_is_left_alone(self):
        (self.directory / "run").mkdir()
        (self.directory / "run" / "thesis.txt").write_text("work of years")
        self.train(code=2, overwrite=True)
        self.assertEqual((self.directory / "run" / "thesis.txt").read_text(), "work of years")

    def test_stdout_ends_with_the_summary_however_a_run_ends(self):
        for ranks in (None, 2):
            with self.subTest(ranks=ranks):
                self.assert_last_line_is_a_summary(self.train(ranks, out=f"a{ranks}"))
                self.assert_last_line_is_a_summary(
                    self.train(ranks, out=f"b{ranks}", stop_at_step=2, code=75))
                self.assert_last_line_is_a_summary(
                    self.train(ranks, out=f"c{ranks}", lr=1e30, code=8))
                self.assert_last_line_is_a_summary(self.train(ranks, model="none", code=2))
                self.assert_last_line_is_a_summary(self.train(ranks, data="nowhere", code=3))
                self.assert_last_line_is_a_summary(
                    self.evaluate(self.weights_path(f"a{ranks}"), ranks))
                self.assert_last_line_is_a_summary(self.evaluate("nowhere", ranks, code=7))


class Information(EndToEnd):
    def test_help_is_printed_once_with_and_without_mpirun(self):
        for arguments in (["--help"], ["train", "--help"], ["eval", "--help"],
                          ["predict", "--help"], ["plan", "--help"],
                          ["config", "--help"], ["data", "--help"], ["data", "check", "--help"]):
            alone = self.ddptrain(*arguments)
            self.assertEqual(alone.code, 0, alone)
            self.assertEqual(alone.stdout.count("Usage: "), 1)
            job = self.ddptrain(*arguments, ranks=4)
            self.assertEqual((job.code, job.stdout), (0, alone.stdout))

    def test_help_lists_commands_and_models(self):
        text = self.ddptrain("--help").stdout
        for name in ("train", "eval", "predict", "plan", "data", "config", "convnet", "mlp"):
            self.assertRegex(text, rf"(?m)^ +{name} ")

    def test_version_is_printed_once(self):
        alone = self.ddptrain("--version")
        self.assertEqual(alone.code, 0)
        self.assertRegex(alone.stdout, r"^ddptrain \d+\.\d+\.\d+ \(.+\)\n$")
        self.assertEqual(self.ddptrain("--version", ranks=4).stdout, alone.stdout)

    def test_dry_run_does_no_step_and_writes_nothing(self):
        for ranks in (None, 2):
            result = self.train(ranks, dry_run=True)
            self.assert_last_line_is_a_summary(result)
            self.assertEqual((result.summary["steps"], result.summary["run_dir"]), (0, None))
            self.assertIn("schedule_hash", result.stderr)
            self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_printed_configuration_means_the_same_when_read_back(self):
        changed = ["--lr", "0.3", "--no-nesterov", "--warmup", "2ep", "--out", 'a "b"\\c',
                   "--eps", "1e-7", "--seed", "9007199254740993"]
        for style in ("full", "diff"):
            printed = self.ddptrain("train", *changed, f"--print-config={style}")
            self.assertEqual(printed.code, 0, printed)
            (self.directory / "printed.pbtxt").write_text(printed.stdout)
            again = self.ddptrain("config", "--config", "printed.pbtxt", "--print-config", "full")
            settings = [re.sub(r" +# .*", "", text) for text in
                        (self.ddptrain("config", *changed).stdout, again.stdout)]
            self.assertEqual(*settings)

    def test_the_recorded_configuration_repeats_the_run(self):
        self.train(lr=0.3, micro_batch=8)
        again = self.ddptrain("train", "--config", "run/config.pbtxt", "--out", "again")
        self.assertEqual(again.code, 0, again)
        self.assertEqual(self.losses("again"), self.losses())

    def test_the_recorded_configuration_has_no_notes(self):
        self.train()
        again = self.ddptrain("train", "--config", "run/config.pbtxt", "--out", "again")
        self.assertNotIn("does nothing beside", again.stderr)
        result = self.train(out="noted", eps=1)
        self.assertRegex(result.stderr, r"(?m)^note: --eps 1 does nothing beside")

    def test_the_default_file_is_read_and_said_aloud(self):
        settings = "".join(f'{name}: {json.dumps(value)}\n' for name, value in SMALL_RUN.items())
        (self.directory / "ddptrain.pbtxt").write_text(settings + 'out: "here"\n')
        result = self.ddptrain()
        self.assertEqual(result.code, 0, result)
        self.assertIn("ddptrain.pbtxt", result.stderr)
        self.assertEqual(result.summary["run_dir"], "here")
        (self.directory / "other.pbtxt").write_text("")
        named = self.ddptrain("config", "--config", "other.pbtxt", "--print-config=diff")
        self.assertEqual(named.stdout, "")

    def test_the_command_train_may_be_left_out(self):
        result = self.ddptrain(*flags(**SMALL_RUN, out="run"))
        self.assertEqual((result.code, result.summary["steps"]), (0, 6), result)


class RanksThatDiffer(EndToEnd):
    """All leave with exit 2 in short time, and both sides and their ranks are named."""

    def job(self, *arguments_of_ranks):
        base = {name: value for name, value in SMALL_RUN.items() if name != "model"}
        commands = [[ddptrain.PROGRAM, *command.split(), *(flags(**base) if add else [])]
                    for command, add in arguments_of_ranks]
        return self.execute(ddptrain.mpirun(commands), limit=QUICK)

    def assert_refused(self, result, *texts):
        self.assertEqual(result.code, 2, result)
        for text in texts:
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stderr.count(text), 1, result)
        self.assert_last_line_is_a_summary(result)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_models(self):
        result = self.job(("train --model mlp", True), ("train --model convnet", True),
                          ("train --model mlp", True))
        self.assert_refused(result, 'model: "mlp" on ranks 0, 2; "convnet" on rank 1')

    def test_flags(self):
        result = self.job(("train --model mlp --lr 0.1", True),
                          ("train --model mlp --lr 0.2", True))
        self.assert_refused(result, "lr: 0.1 on rank 0; 0.2 on rank 1")

    def test_a_bad_flag_of_one_rank(self):
        good, bad = ("train --model mlp", True), ("train --model mlp --lrr 1", True)
        sentence = "unknown flag --lrr; did you mean --lr?"
        self.assert_refused(self.job(good, bad), "rank 1: " + sentence)
        self.assert_refused(self.job(bad, good), "rank 0: " + sentence)

    def test_commands(self):
        train = ("train --model mlp", True)
        self.assert_refused(self.job(train, ("trian", False)), "rank 1: unknown command trian")
        self.assert_refused(self.job(train, ("eval --weights w", False)),
                            "'train' on rank 0, 'eval --weights w' on rank 1")
        self.assert_refused(self.job(train, ("train --model mlp --dry-run", True)),
                            "'train' on rank 0, 'train --dry-run' on rank 1")

    def test_commands_without_a_job_of_ranks(self):
        train = ("train --model mlp", True)
        for other in ("--version", "--help", "train --help", "plan --model mlp", "config",
                      "data check nowhere", "train --print-config"):
            for ranks in ((train, (other, False)), ((other, False), train)):
                with self.subTest(commands=ranks):
                    result = self.job(*ranks)
                    self.assertEqual(result.code, 2, result)
                    self.assertIn("started with different commands", result.stderr)
                    self.assertIn(f"'{other}' on rank", result.stderr)
        result = self.job(("plan --model mlp", False), ("plan --model mlp --ranks 3", False))
        self.assertEqual(result.code, 2, result)

    def test_a_command_without_a_job_fails_on_all_ranks(self):
        result = self.job(("data check nowhere", False), ("data check nowhere", False))
        self.assertEqual(result.code, 3, result)
        self.assertEqual(result.stderr.count("No such file"), 1)

    def test_settings_of_one_rank_alone_are_allowed(self):
        small = flags(**(SMALL_RUN | {"threads": None, "out": "run"}))
        commands = [[ddptrain.PROGRAM, "train", *small, "--threads", threads] for threads in "12"]
        result = self.execute(ddptrain.mpirun(commands))
        self.assertEqual(result.code, 0, result)
        ranks = self.environment_record()["ranks"]
        self.assertEqual([rank["threads"] for rank in ranks], [1, 2])


class Plan(EndToEnd):
    def plan(self, *arguments, ranks=None):
        result = self.ddptrain("plan", "--model", "mlp", "--micro-batch", "16", "--json", "p.json",
                               *arguments, ranks=ranks)
        self.assertEqual(result.code, 0, result)
        plan = json.loads((self.directory / "p.json").read_text())
        return plan | {"stdout": result.stdout}

    def test_json_holds_what_scripts_read(self):
        plan = self.plan()
        for key in ("parameters", "schedule_hash", "kernel_hash", "flops", "memory", "buckets",
                    "steps"):
            self.assertIn(key, plan)
        parameters = 784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10
        self.assertEqual(plan["parameters"], parameters)
        self.assertIs(type(plan["parameters"]), int)
        self.assertIn(plan["schedule_hash"], plan["stdout"])
        self.assertIn(plan["kernel_hash"], plan["stdout"])
        in_buckets = [name for bucket in plan["buckets"] for name in bucket["parameters"]]
        self.assertEqual(len(in_buckets), len(set(in_buckets)))
        self.assertEqual(len(in_buckets), 6)
        reduced = [step["bytes"] for step in plan["steps"]
                   if step["type"] == "comm" and step["region"] == "gradients"]
        self.assertEqual(reduced, [bucket["bytes"] for bucket in plan["buckets"]])

    def test_flops_are_those_of_the_matrix_products(self):
        matrices = 784 * 256 + 256 * 256 + 256 * 10
        # Forward, weight gradient, and input gradient of all layers but the first: 2 FLOPs each.
        products = 2 * 16 * (3 * matrices - 784 * 256)
        flops = self.plan("--accum", "2")["flops"]  # of a micro-step
        self.assertGreaterEqual(flops, products)
        self.assertLess(flops, 1.2 * products)

    def test_a_plan_for_gpus_needs_none(self):
        cpu, gpu = self.plan(), self.plan("--precision", "bf16")
        self.assertEqual(gpu["parameters"], cpu["parameters"])
        self.assertEqual(gpu["memory"]["parameters"], cpu["memory"]["parameters"], "kept in fp32")
        self.assertEqual(gpu["memory"]["compute_parameters"], cpu["memory"]["parameters"] // 2)
        self.assertEqual(cpu["memory"]["compute_parameters"], 0)
        steps = [step for step in gpu["steps"] if step["type"] == "compute"]
        self.assertEqual(steps[1]["op"], "cast")
        logits = next(step for step in steps if step["name"].startswith("fc3"))
        self.assertEqual(logits["outputs"][0]["dtype"], "BF16")

    def test_ranks_are_those_it_runs_under_and_at_least_two(self):
        self.assertEqual(self.plan()["ranks"], 2)
        self.assertEqual(self.plan(ranks=1)["ranks"], 2)
        self.assertEqual(self.plan(ranks=4)["ranks"], 4)
        self.assertEqual(self.plan("--ranks", "7")["ranks"], 7)
        hashes = [self.plan("--ranks", ranks)["schedule_hash"] for ranks in "237"]
        self.assertEqual(len(set(hashes)), 3)


if __name__ == "__main__":
    unittest.main()
