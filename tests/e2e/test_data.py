"""Image files: CIFAR sets are trained on; `ddptrain data` finds all that is wrong with a set."""

import json
import re
import statistics
import struct
import unittest

import ddptrain
from ddptrain import EndToEnd

CIFAR_CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
                 "truck"]


def cifar_record(label, number):
    """Image `number`: a pattern of its class in each colour plane, and the number in the first."""
    planes = b"".join(bytes(200 if pixel % 11 == label else 50 * channel for pixel in range(1024))
                      for channel in range(3))
    return bytes([label]) + struct.pack("<I", number) + planes[4:]


def cifar_file(labels, first):
    return b"".join(cifar_record(label, first + i) for i, label in enumerate(labels))


def write_cifar_set(directory, first_label=0):
    """CIFAR-10 of 100 training and 20 validation samples, the ten labels in turn."""
    directory.mkdir(parents=True)
    labels = [first_label + i % 10 for i in range(20)]
    for batch in range(5):
        (directory / f"data_batch_{batch + 1}.bin").write_bytes(cifar_file(labels, 20 * batch))
    (directory / "test_batch.bin").write_bytes(cifar_file(labels, 1000))
    (directory / "batches.meta.txt").write_text("\n".join(CIFAR_CLASSES) + "\n\n")
    return directory


class Cifar(EndToEnd):
    def test_is_learnt_and_scored(self):
        write_cifar_set(self.directory / "data" / "cifar-10-batches-bin")
        result = self.train(ranks=2, data="data", global_batch=20, steps=60, lr=0.02,
                            augment="none")
        self.assertRegex(result.stderr, r"100 training, 20 validation samples, 10 classes, "
                                        r"images 32x32x3")
        self.assertRegex(result.stderr, r"normalisation +mean 0\.4914 0\.4822 0\.4465, standard "
                                        r"deviation 0\.2470 0\.2435 0\.2616 \(preset of cifar-10\)")
        self.assertEqual(result.summary["final"]["val_top1"], 1.0)
        scored = self.evaluate(self.weights_path(), data="data")
        self.assertEqual(scored.summary["final"]["val_loss"], result.summary["final"]["val_loss"])

    def test_is_found_by_name(self):
        write_cifar_set(self.directory / "sets" / "cifar-10-batches-bin")
        env = {"DDPTRAIN_DATA": "sets"}
        self.assertIn("100 training", self.train(data="cifar-10", global_batch=20, env=env).stderr)
        missing = self.train(data="cifar-100", out="other", env=env, code=3)
        for text in ("cifar-100 is not there", "binary version", "cifar-100-binary",
                     "--data synthetic"):
            self.assertIn(text, missing.stderr)

    def test_labels_counted_from_one_are_recognised(self):
        write_cifar_set(self.directory / "data", first_label=1)
        result = self.train(data="data", code=3)
        self.assertIn("data_batch_1.bin, record 9: label 10 ", result.stderr)
        self.assertIn("counted from 1", result.stderr)

    def test_measured_normalisation_is_said_to_be(self):
        ddptrain.write_idx_set(self.directory / "images")
        self.assertIn("(measured over 64 training images)", self.train(data="images").stderr)


class DataCommands(EndToEnd):
    def setUp(self):
        super().setUp()
        self.data = write_cifar_set(self.directory / "cifar")

    def data_command(self, *arguments, code=0, **options):
        result = self.ddptrain("data", *arguments, **options)
        self.assertEqual(result.code, code, result)
        return result

    def test_every_option_has_a_test(self):
        for command, options in (("check", {"help", "classes"}),
                                 ("stats", {"help", "classes", "json"})):
            text = self.data_command(command, "--help").stdout
            self.assertEqual(set(re.findall(r"^ +(?:-\w,)?--([a-z-]+)", text, re.MULTILINE)),
                             options)

    def test_a_set_without_defects(self):
        for ranks in (None, 2):
            result = self.data_command("check", "cifar", ranks=ranks)
            self.assertIn("100 training, 20 validation samples, 10 classes", result.stdout)
            self.assertEqual(result.stdout.splitlines()[-1], "no defects, 2 warnings")
            self.assertEqual(result.stdout.count("as published"), 2, "only rank 0 speaks")
        ddptrain.write_idx_set(self.directory / "idx", compressed=True)
        text = self.data_command("check", "idx").stdout
        # Both splits of this set begin with the same images.
        self.assertIn("16 of the 16 validation images are training images too", text)

    def test_all_defects_are_listed_and_training_names_the_first(self):
        (self.data / "data_batch_2.bin").write_bytes(cifar_file([3, 12, 200], 0)[:-10])
        (self.data / "data_batch_3.bin").unlink()
        (self.data / "test_batch.bin").write_bytes(b"")
        lines = self.data_command("check", "cifar", code=3).stdout.splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        for found, text in zip(errors, ("holds no data_batch_3.bin",
                                        "data_batch_2.bin, record 2: the file ends at byte 9209",
                                        "data_batch_2.bin, record 1: label 12 at byte 3073",
                                        "test_batch.bin: is empty"), strict=True):
            self.assertIn(text, found)
        self.assertTrue(lines[-1].startswith("4 defects"), lines[-1])
        self.assertIn(errors[0].removeprefix("error: "), self.train(data="cifar", code=3).stderr)
        stats = self.data_command("stats", "cifar", code=3)
        self.assertIn("data check cifar", stats.stderr)
        self.assertEqual(stats.stdout, "")

    def test_classes(self):
        ddptrain.write_idx_set(self.directory / "idx")
        few = self.data_command("check", "idx", "--classes", "9", code=3).stdout
        self.assertIn("record 9: label 9 ", few)
        self.assertIn("so are those of records 19, 29, 39, 49, 59", few)
        many = self.data_command("stats", "idx", "--classes", "12").stdout
        self.assertRegex(many, r"(?m)^ +11 +0 +0$")

    def test_stats(self):
        text = self.data_command("stats", "cifar").stdout
        self.assertRegex(text, r"(?m)^samples +100 +20$")
        self.assertRegex(text, r"(?m)^smallest / largest class +1\.0000 +1\.0000$")
        for label, name in enumerate(CIFAR_CLASSES):
            self.assertRegex(text, rf"(?m)^ +{label} +{name} +10 +2$")

    def test_json(self):
        record = cifar_record(5, 7)
        (self.data / "data_batch_5.bin").write_bytes(record * 3)
        (self.data / "test_batch.bin").write_bytes(record + cifar_record(1, 10**6))
        self.data_command("stats", "cifar", "--json", "stats.json")
        stats = json.loads((self.directory / "stats.json").read_text())
        self.assertEqual((stats["name"], stats["image"], stats["classes"]),
                         ("cifar-10", [32, 32, 3], 10))
        self.assertEqual(stats["class_names"], CIFAR_CLASSES)
        train, validation = stats["train"], stats["validation"]
        self.assertEqual(train["samples"], 83)
        self.assertEqual(train["class_counts"], [8] * 5 + [11] + [8] * 4)
        self.assertEqual(train["smallest_to_largest_class"], 8 / 11)
        self.assertEqual(train["repeated_images"], 2)
        self.assertEqual(validation["class_counts"], [0, 1, 0, 0, 0, 1, 0, 0, 0, 0])
        self.assertEqual(stats["validation_images_in_training"], 1)
        blue = [byte / 255 for byte in record[1 + 2048:] + cifar_record(1, 10**6)[1 + 2048:]]
        self.assertAlmostEqual(validation["mean"][2], statistics.fmean(blue), places=12)
        self.assertAlmostEqual(validation["stddev"][2], statistics.pstdev(blue), places=12)

    def test_names_that_are_not_utf8(self):
        names = b"\n".join([b"caf\xe9"] + [b"c%d" % i for i in range(9)])
        (self.data / "batches.meta.txt").write_bytes(names)
        self.data_command("stats", "cifar", "--json", "stats.json")
        stats = json.loads((self.directory / "stats.json").read_text())
        self.assertEqual(stats["class_names"][0], "caf\ufffd")

    def test_bad_command_lines_say_what_to_do(self):
        for arguments, sentence in ((["chek", "cifar"], "did you mean check?"),
                                    ([], "check or stats"),
                                    (["check"], "DIR"),
                                    (["check", "synthetic"], "no files to look into"),
                                    (["stats", "cifar", "--jsno", "a"], "did you mean --json?")):
            self.assertIn(sentence, self.data_command(*arguments, code=2).stderr)
        self.assertIn("No such file", self.data_command("check", "nowhere", code=3).stderr)


if __name__ == "__main__":
    unittest.main()
