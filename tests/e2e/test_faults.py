"""What breaks, breaks with a sentence, an exit code, and no rank left behind."""

import gzip
import os
import resource
import shutil
import signal
import struct
import unittest

import ddptrain
from ddptrain import SMALL_RUN, EndToEnd, flags

QUICK = 10.0  # seconds in which a job must have ended after a fault


class OneRankFails(EndToEnd):
    """A fault that only one rank sees ends the job for all, and rank 0 says whose it was."""

    def job_with_data(self, *folders):
        """One rank for each folder that DDPTRAIN_DATA names."""
        arguments = flags(**(SMALL_RUN | {"data": "fashion-mnist", "out": "run"}))
        commands = [["env", f"DDPTRAIN_DATA={folder}", ddptrain.PROGRAM, "train", *arguments]
                    for folder in folders]
        return self.execute(ddptrain.mpirun(commands), limit=QUICK)

    def data_folder(self, name):
        return ddptrain.write_idx_set(self.directory / name / "fashion-mnist")

    def test_a_truncated_file(self):
        good = self.data_folder("good")
        bad = self.directory / "bad" / "fashion-mnist"
        shutil.copytree(good, bad)
        file = bad / "train-images-idx3-ubyte"
        os.truncate(file, file.stat().st_size - 1000)
        self.assertEqual(self.job_with_data("good", "good").code, 0)
        shutil.rmtree(self.directory / "run")
        for folders, rank in ((("good", "bad", "good"), 1), (("bad", "good"), 0)):
            result = self.job_with_data(*folders)
            self.assertEqual(result.code, 3, result)
            self.assertRegex(result.stderr, rf"rank {rank}\b.*bad/fashion-mnist/{file.name}")
            self.assert_last_line_is_a_summary(result)

    def test_a_data_set_that_is_not_there(self):
        self.data_folder("good")
        result = self.job_with_data("good", "nowhere")
        self.assertEqual(result.code, 3, result)
        self.assertRegex(result.stderr, r"rank 1\b.*apt-get install dataset-fashion-mnist")

    def test_another_data_set_than_the_others(self):
        self.data_folder("good")
        ddptrain.write_idx_set(self.directory / "other" / "fashion-mnist", train=60)
        result = self.job_with_data("good", "other")
        self.assertEqual(result.code, 2, result)
        self.assertIn("rank 0: 64 samples", result.stderr)
        self.assertIn("rank 1: 60 samples", result.stderr)

    def test_weights_of_one_rank_are_damaged(self):
        self.train()
        for folder in ("a", "b"):
            shutil.copytree(self.directory / "run", self.directory / folder / "run")
        os.truncate(self.weights_path("b/run"), 100000)
        arguments = flags(weights="run/weights/final.safetensors", data="synthetic", threads=1)
        commands = [["env", "-C", folder, ddptrain.PROGRAM, "eval", *arguments]
                    for folder in ("a", "b")]
        result = self.execute(ddptrain.mpirun(commands), limit=QUICK)
        self.assertEqual(result.code, 7, result)
        self.assertRegex(result.stderr, r"rank 1\b.*final\.safetensors")


class LostRanks(EndToEnd):
    def start_job(self, ranks):
        values = SMALL_RUN | {"steps": 10**9, "eval_every": "off", "out": "run"}
        process = self.start([ddptrain.MPIEXEC, "-np", str(ranks), ddptrain.PROGRAM, "train",
                              *flags(**values)])
        self.wait_for_steps(process)
        ranks_of_job = ddptrain.children(process.pid)
        self.assertEqual(len(ranks_of_job), ranks)
        return process, ranks_of_job

    def assert_all_gone(self, pids):
        self.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids),
                        "no process is left", QUICK)

    def test_a_killed_rank_ends_the_job(self):
        for victim in (0, 1):
            process, ranks = self.start_job(4)
            os.kill(ranks[victim], signal.SIGKILL)
            result = self.result_of(process, QUICK)
            self.assertNotIn(result.code, (0, 75), result)
            self.assert_all_gone(ranks)
            shutil.rmtree(self.directory / "run")

    def test_a_terminated_mpirun_takes_its_ranks_with_it(self):
        process, ranks = self.start_job(2)
        process.terminate()
        self.assertNotEqual(self.result_of(process, QUICK).code, 0)
        self.assert_all_gone(ranks)


class Signals(EndToEnd):
    def test_a_report_on_demand_is_ignored_and_a_stop_is_not(self):
        values = SMALL_RUN | {"steps": 10**9, "eval_every": "off", "out": "run"}
        process = self.start([ddptrain.MPIEXEC, "-np", "2", ddptrain.PROGRAM, "train",
                              *flags(**values)])
        self.wait_for_steps(process)
        log = self.directory / "run" / "logs" / "rank-000.log"
        process.send_signal(signal.SIGUSR2)
        self.wait_until(lambda: "SIGUSR2" in log.read_text(), "the signal is noted")
        process.send_signal(signal.SIGUSR1)
        result = self.result_of(process)
        self.assertEqual(result.code, 75, result)
        self.assertEqual(result.stderr.count("SIGUSR2"), 1)


class Storage(EndToEnd):
    def test_an_output_that_cannot_be_made(self):
        (self.directory / "file").write_text("")
        for ranks in (None, 2):
            result = self.train(ranks, out="file/run", code=7)
            self.assertIn("file/run", result.stderr)
            self.assert_last_line_is_a_summary(result)

    def train_with_file_limit(self, limit, **values):
        """A disk that fills up: no file gets larger than `limit` bytes."""
        def restrict():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        process = self.start([ddptrain.PROGRAM, "train",
                              *flags(**(SMALL_RUN | {"out": "run"} | values))],
                             preexec_fn=restrict, restore_signals=False)
        return self.result_of(process)

    def test_weights_that_do_not_fit(self):
        result = self.train_with_file_limit(200_000, eval_every=2)
        self.assertEqual(result.code, 7, result)
        self.assertEqual(result.summary["steps"], 6)  # trained to the end all the same
        self.assertEqual(len(self.metrics()), 6)
        self.assertIn("training goes on", result.stderr)
        self.assertIn("final.safetensors", result.stderr)
        self.assertFalse(self.weights_path().exists(), "no half-written weights")
        self.assert_last_line_is_a_summary(result)
        self.assertEqual(self.failure_record()["phase"], "saving")

    def test_metrics_that_do_not_fit(self):
        self.train(out="whole")
        limit = self.weights_path("whole").stat().st_size + 4096
        result = self.train_with_file_limit(limit, global_batch=1, steps=4500, lr=0.001,
                                            log_every="off", eval_every="off")
        self.assertEqual(result.code, 7, result)
        self.assertEqual(result.summary["steps"], 4500)
        self.assertEqual(result.stderr.count("no more metrics are written, training goes on"), 1)
        lines = (self.directory / "run/metrics.jsonl").read_text()
        self.assertTrue(lines.endswith("}\n"), "the file stops at a whole row")
        self.evaluate(self.weights_path())  # the weights are whole


class MalformedImages(EndToEnd):
    def assert_refused(self, name, content, *texts):
        """A set in which the file `name` holds `content`, or is not there."""
        shutil.rmtree(self.directory / "images", ignore_errors=True)
        file = ddptrain.write_idx_set(self.directory / "images") / name
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        with self.subTest(file=name, texts=texts):
            result = self.train(data="images", code=3)
            for text in texts:
                self.assertIn(text, result.stderr)
            self.assertFalse((self.directory / "run").exists())

    def test_are_refused_with_file_and_record(self):
        images, labels = ddptrain.idx_images(64), ddptrain.idx_labels([i % 10 for i in range(64)])
        names = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
        self.assert_refused(names[0], None, "train-images-idx3-ubyte")
        self.assert_refused(names[0], b"", names[0])
        self.assert_refused(names[0], images[:10], names[0])
        self.assert_refused(names[0], b"\0\0\x08\x01" + images[4:], names[0])
        self.assert_refused(names[0], images[:-1], names[0], "record 63")
        self.assert_refused(names[0], images + b"x", names[0])
        self.assert_refused(names[0], struct.pack(">IIII", 0x803, 64, 0, 28), names[0])
        self.assert_refused(names[0], struct.pack(">IIII", 0x803, 2**31, 2**31 - 1, 2**31 - 1),
                            names[0])
        self.assert_refused(names[1], labels[:-1], names[1])
        self.assert_refused(names[1], ddptrain.idx_labels([0] * 63), "64 images", "63 labels")
        validation_labels = ddptrain.idx_labels([0] * 7 + [200] + [0] * 8)
        self.assert_refused("t10k-labels-idx1-ubyte", validation_labels,
                            "t10k-labels-idx1-ubyte, record 7", "label 200")
        self.assert_refused("t10k-images-idx3-ubyte", ddptrain.idx_images(16, size=14), "14x14")

    def test_compressed_files_that_end_early_are_refused(self):
        directory = ddptrain.write_idx_set(self.directory / "images", compressed=True)
        file = directory / "train-images-idx3-ubyte.gz"
        whole = file.read_bytes()
        for content in (whole[:-20], whole[:5], b"not gzip at all", gzip.compress(b"")):
            file.write_bytes(content)
            result = self.train(data="images", code=3)
            self.assertIn(file.name, result.stderr)

    def test_a_label_beyond_the_asked_classes_is_named(self):
        ddptrain.write_idx_set(self.directory / "images")
        result = self.train(data="images", classes=5, code=3)
        self.assertIn("train-labels-idx1-ubyte, record 5: label 5", result.stderr)


class MalformedWeights(EndToEnd):
    def setUp(self):
        super().setUp()
        self.train()
        self.whole = self.weights_path().read_bytes()

    def assert_refused(self, content, *texts, code=7):
        (self.directory / "w.safetensors").write_bytes(content)
        with self.subTest(texts=texts):
            result = self.evaluate("w.safetensors", code=code)
            for text in ("w.safetensors", *texts):
                self.assertIn(text, result.stderr)

    def replaced(self, old, new):
        self.assertEqual(self.whole.count(old), 1)
        self.assertEqual(len(old), len(new))
        return self.whole.replace(old, new)

    def test_are_refused_with_the_file(self):
        self.assert_refused(b"")
        self.assert_refused(b"\xff" * 64)
        self.assert_refused(self.whole[:1000])
        self.assert_refused(self.whole[:-4])
        self.assert_refused(self.whole + b"\0\0\0\0")
        self.assert_refused(self.replaced(b'"shape":[256,784]', b'"shape":[256,785]'))
        self.assert_refused(self.replaced(b'"classes":"10"', b'"clasess":"10"'), "classes")
        self.assert_refused(self.replaced(b'"input":"1,28,28"', b'"input":"1,28,-8"'))
        self.assert_refused(self.replaced(b'"fc3.weight"', b'"fc4.weight"'), "fc3.weight")

    def test_of_an_unknown_model_or_other_images(self):
        (self.directory / "w.safetensors").write_bytes(self.replaced(b'"mlp"', b'"mpl"'))
        self.assertIn("mlp", self.evaluate("w.safetensors", code=2).stderr)
        self.assert_refused(self.replaced(b'"1,28,28"', b'"1,20,28"'), "fc1.weight")


if __name__ == "__main__":
    unittest.main()
