"""What eval and predict say of each class and sample: exact, and the same for any ranks."""

import csv
import io
import json
import re
import unittest

import ddptrain
from ddptrain import EndToEnd


class Scoring(EndToEnd):
    """Weights that are often wrong: nothing is learnt in one step."""

    RANKS = (None, 1, 2, 3)

    def setUp(self):
        super().setUp()
        self.train(steps=1, lr=0.01)
        self.file = self.weights_path()

    def rows(self, **values):
        text = self.evaluate(self.file, command="predict", **values).stdout
        return list(csv.DictReader(io.StringIO(text)))


class PerClass(Scoring):
    def test_figures_follow_from_the_predictions_on_any_ranks(self):
        rows = self.rows()
        for ranks in self.RANKS:
            with self.subTest(ranks=ranks):
                result = self.evaluate(self.file, ranks, per_class=True)
                classes = result.summary["per_class"]
                self.assertEqual([entry["class"] for entry in classes], list(range(10)))
                for entry in classes:
                    name = str(entry["class"])
                    labelled = [row for row in rows if row["label"] == name]
                    predicted = [row for row in rows if row["predicted"] == name]
                    correct = sum(row["predicted"] == name for row in labelled)
                    self.assertEqual(
                        (entry["samples"], entry["correct"], entry["recall"], entry["precision"]),
                        (len(labelled), correct, correct / len(labelled) if labelled else None,
                         correct / len(predicted) if predicted else None))
                final = result.summary["final"]
                self.assertEqual(sum(entry["correct"] for entry in classes),
                                 final["val_top1"] * len(rows))

    def test_table_stands_before_the_summary(self):
        result = self.evaluate(self.file, 2, per_class=True)
        self.assertRegex(result.stdout, r"^class +samples +correct +recall +precision +most confused")
        self.assertEqual(len(result.stdout.splitlines()), 1 + 10 + 1)
        self.assert_last_line_is_a_summary(result)
        self.assertNotIn("per_class", self.evaluate(self.file).summary)

    def test_confusion_matrix_counts_the_predictions_on_any_ranks(self):
        rows = self.rows()
        expected = [[sum((row["label"], row["predicted"]) == (str(label), str(predicted))
                         for row in rows) for predicted in range(10)] for label in range(10)]
        for ranks in self.RANKS:
            with self.subTest(ranks=ranks):
                self.evaluate(self.file, ranks, confusion="c.csv")
                with open(self.directory / "c.csv", newline="") as file:
                    header, *lines = csv.reader(file)
                self.assertEqual(header, ["label", *map(str, range(10))])
                self.assertEqual([line[0] for line in lines], header[1:])
                self.assertEqual([list(map(int, line[1:])) for line in lines], expected)
        self.evaluate(self.file, 2, confusion="c.json")
        matrix = json.loads((self.directory / "c.json").read_text())
        self.assertEqual(matrix["counts"], expected)
        self.assertEqual(matrix["no_prediction"], [0] * 10)

    def test_a_matrix_that_cannot_be_written_is_a_storage_error(self):
        for ranks in (None, 2):
            result = self.evaluate(self.file, ranks, code=7, confusion="nowhere/c.csv")
            self.assertIn("'nowhere/c.csv'", result.stderr)
            self.assertNotIn("scores", result.stderr, "known before anything is computed")
            self.assert_last_line_is_a_summary(result)
        result = self.evaluate(self.file, code=2, confusion="c.txt")
        self.assertIn("ends with .csv or .json", result.stderr)


class Predict(Scoring):
    def test_rows_are_complete_in_order_and_the_same_bytes_on_any_ranks(self):
        for limit in (1, 63, 150):
            values = {"command": "predict", "synthetic_val": 150, "limit_val": limit, "top": 3}
            alone = self.evaluate(self.file, **values).stdout
            indices = [row["index"] for row in csv.DictReader(io.StringIO(alone))]
            self.assertEqual(indices, list(map(str, range(limit))))
            for ranks in self.RANKS[1:]:
                with self.subTest(limit=limit, ranks=ranks):
                    self.assertEqual(self.evaluate(self.file, ranks, **values).stdout, alone)

    def test_classes_stand_in_falling_order_of_their_probabilities(self):
        for row in self.rows(top=10):
            classes = [row["predicted"]] + [row[f"top{k}"] for k in range(2, 11)]
            self.assertEqual(sorted(map(int, classes)), list(range(10)))
            probabilities = [float(row["probability"])]
            probabilities += [float(row[f"top{k}_probability"]) for k in range(2, 11)]
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertAlmostEqual(sum(probabilities), 1, places=12)

    def test_accuracy_is_that_of_eval(self):
        rows = self.rows()
        correct = sum(row["label"] == row["predicted"] for row in rows)
        self.assertEqual(correct / len(rows), self.evaluate(self.file).summary["final"]["val_top1"])

    def test_both_formats_say_the_same(self):
        for name in ("p.csv", "p.jsonl"):
            result = self.evaluate(self.file, 2, command="predict", output=name, top=2)
            self.assert_last_line_is_a_summary(result)
            self.assertEqual(len(result.stdout.splitlines()), 1)
        with open(self.directory / "p.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        lines = (self.directory / "p.jsonl").read_text().splitlines()
        for row, line in zip(rows, lines, strict=True):
            record = json.loads(line)
            for key in ("index", "label", "predicted", "probability"):
                self.assertEqual(record[key], float(row[key]))
            self.assertEqual(record["top"], [[record["predicted"], record["probability"]],
                                             [int(row["top2"]), float(row["top2_probability"])]])
        self.assertEqual(list(self.directory.glob("*.tmp")), [])

    def test_an_output_of_another_kind_is_refused_before_anything_is_read(self):
        result = self.evaluate("nowhere", 2, command="predict", output="p.txt", code=2)
        self.assertIn(".csv or .jsonl", result.stderr)

    def test_more_classes_than_there_are_cannot_be_asked_for(self):
        for ranks in (None, 2):
            result = self.evaluate(self.file, ranks, command="predict", top=11, code=2)
            self.assertIn("--top 11 is above the 10 classes", result.stderr)

    def test_rows_that_stdout_does_not_take_are_a_storage_error(self):
        values = {"weights": self.file, "data": "synthetic", "threads": 1, "device": "cpu"}
        result = self.execute(["sh", "-c", 'exec "$@" > /dev/full', "sh", ddptrain.PROGRAM,
                               "predict", *ddptrain.flags(**values)])
        self.assertEqual(result.code, 7, result)
        self.assertIn("stdout could not be written", result.stderr)


class OtherData(EndToEnd):
    def test_weights_bring_their_normalisation(self):
        """Without training files nothing could be measured."""
        images = ddptrain.write_idx_set(self.directory / "images")
        result = self.train(data="images", steps=2, global_batch=16)
        for file in images.glob("train-*"):
            file.unlink()
        scored = self.evaluate(self.weights_path(), data="images")
        self.assertEqual(scored.summary["final"]["val_loss"],
                         result.summary["final"]["val_loss"])

    def test_images_of_other_channels_are_refused(self):
        self.train(synthetic_image="3x28x28", steps=1)
        ddptrain.write_idx_set(self.directory / "images")
        result = self.evaluate(self.weights_path(), data="images", code=2)
        self.assertIn("images of 1 channel", result.stderr)


class NotFinite(Scoring):
    def test_weights_are_named_and_the_exit_code_says_so(self):
        content = bytearray(self.file.read_bytes())
        content[-4:] = b"\x00\x00\xc0\x7f"  # a NaN
        bad = self.directory / "bad.safetensors"
        bad.write_bytes(content)
        for ranks in (None, 2):
            result = self.evaluate(bad, ranks, code=8)
            self.assertEqual(len(re.findall(r"(?m)^warning: .*tensor \S+ holds numbers that are not "
                                            r"finite", result.stderr)), 1, result)
            self.assert_last_line_is_a_summary(result)
            result = self.evaluate(bad, ranks, command="predict", output="p.csv", code=8)
            self.assertIn("not finite", result.stderr)
            self.assertEqual(len((self.directory / "p.csv").read_text().splitlines()), 1 + 64)


class Hints(EndToEnd):
    def hints(self, **values):
        values = {"synthetic_train": 1024, "steps": 120, "warmup": "off", "log_every": "off"} | values
        return re.findall(r"(?m)^hint: .*$", self.train(**values).stderr)

    def test_a_run_that_learns_gets_none(self):
        self.assertEqual(self.hints(eval_every=10), [])

    def test_a_loss_that_does_not_fall_is_said_once_on_any_ranks(self):
        for ranks in (1, 2):
            hints = self.hints(ranks=ranks, lr=0, out=f"run{ranks}")
            self.assertEqual(len([hint for hint in hints if "--lr is 0" in hint]), 1, hints)

    def test_predicting_one_class_only_is_said_once(self):
        images = ddptrain.write_idx_set(self.directory / "images", validation=32)
        (images / "train-labels-idx1-ubyte").write_bytes(ddptrain.idx_labels([3] * 63 + [9]))
        [hint] = self.hints(data="images", steps=30, eval_every=10)
        self.assertIn("predicts class 3 for 100.0 % of the samples", hint)


if __name__ == "__main__":
    unittest.main()
