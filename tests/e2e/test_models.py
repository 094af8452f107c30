"""Models by name and as text, from the command line."""

import re
import unittest

from ddptrain import EndToEnd

SMALL_RESNET = {"model": "resnet18", "synthetic_image": "3x8x8", "classes": 4, "global_batch": 8,
                "steps": 2, "limit_val": 9}


class ModelsAsText(EndToEnd):
    def schedule_hash(self, *arguments):
        result = self.ddptrain("plan", *arguments)
        self.assertEqual(result.code, 0, result)
        return re.search(r"^schedule_hash (\w+)$", result.stdout, re.MULTILINE).group(1)

    def test_every_shipped_model_is_printed_and_read_back(self):
        listed = self.ddptrain("--help").stdout.split("Models:")[1]
        models = re.findall(r"^  (\w+) ", listed.split("\n\n")[0], re.MULTILINE)
        self.assertGreaterEqual(set(models), {"mlp", "convnet", "resnet18", "resnet34", "resnet50"})
        for model in models:
            with self.subTest(model=model):
                dumped = self.ddptrain("plan", "--model", model, "--dump-model")
                self.assertEqual(dumped.code, 0, dumped)
                (self.directory / f"{model}.pbtxt").write_text(dumped.stdout)
                self.assertEqual(self.schedule_hash("--model", f"{model}.pbtxt"),
                                 self.schedule_hash("--model", model))

    def test_training_a_text_is_training_its_model(self):
        resnet = SMALL_RESNET | {"ranks": 2}
        self.train(out="name", **resnet)
        dumped = self.ddptrain("plan", "--model", "resnet18", "--synthetic-image", "3x8x8",
                               "--classes", "4", "--dump-model")
        (self.directory / "net.pbtxt").write_text(dumped.stdout)
        trained = self.train(out="text", **(resnet | {"model": "net.pbtxt"}))
        by_name, by_text = self.weights("name"), self.weights("text")
        self.assertEqual(by_name.header, by_text.header)
        self.assertEqual(self.losses("name"), self.losses("text"))
        # The weight file is enough to evaluate: the text may be gone.
        (self.directory / "net.pbtxt").unlink()
        scored = self.ddptrain("eval", "--weights", str(self.weights_path("text")), "--data",
                               "synthetic", "--limit-val", "9")
        self.assertEqual(scored.code, 0, scored)
        self.assertEqual(scored.summary["final"]["val_top1"],
                         trained.summary["final"]["val_top1"])

    def test_a_bad_text_ends_with_its_place(self):
        (self.directory / "bad.pbtxt").write_text(
            'layer { name: "flat" flatten {} }\nlayer { name: "fc" linar {} }\n')
        for command in ("plan", "train"):
            result = self.ddptrain(command, "--model", "bad.pbtxt")
            self.assertEqual(result.code, 2, result)
            self.assertIn("bad.pbtxt:2:20", result.stderr)
            self.assertIn("linear", result.stderr)
        result = self.ddptrain("plan", "--model", "missing.pbtxt")
        self.assertEqual(result.code, 2, result)
        self.assertIn("missing.pbtxt", result.stderr)

    def test_an_impossible_extent_ends_with_its_place(self):
        for layer in ("linear { units: 9223372036854775807 }",
                      "convolution { filters: 4 kernel: 2147483647 pad: 2147483647 }",
                      "convolution { filters: 4 kernel: 3 pad: 1000000000 }"):
            before = "flatten {} }\nlayer { name: \"b\" " if layer.startswith("linear") else ""
            (self.directory / "bad.pbtxt").write_text(f'layer {{ name: "a" {before}{layer} }}\n')
            for command in ("plan", "train"):
                result = self.ddptrain(command, "--model", "bad.pbtxt", "--data", "synthetic")
                self.assertEqual(result.code, 2, result)
                self.assertRegex(result.stderr, r"bad\.pbtxt:[12]:1: layer '[ab]'")

    def test_a_block_that_is_torn_apart_is_noted_when_blocks_are_recomputed(self):
        (self.directory / "net.pbtxt").write_text(
            'layer { name: "a" block: "x" relu {} }\n'
            'layer { name: "flat" flatten {} }\n'
            'layer { name: "b" block: "x" relu {} }\n'
            'layer { name: "fc" linear {} }\n')
        for command in (["plan"], ["train", "--data", "synthetic", "--dry-run"]):
            for recompute in ("block", "none"):
                result = self.ddptrain(*command, "--model", "net.pbtxt", "--recompute", recompute)
                self.assertEqual(result.code, 0, result)
                self.assertEqual("net.pbtxt:3:1: block 'x' ended" in result.stderr,
                                 recompute == "block")


class ResNets(EndToEnd):
    def test_without_data_they_take_imagenet_sized_synthetic_images(self):
        result = self.ddptrain("train", "--model", "resnet50", "--micro-batch", "2", "--dry-run")
        self.assertEqual(result.code, 0, result)
        self.assertIn("1000 classes, images 224x224x3", result.stderr)
        self.assertRegex(result.stderr, r"parameters +25557032 in 161 tensors")

    def test_weight_files_have_torchvisions_names(self):
        self.train(**SMALL_RESNET)
        header = self.weights().header
        self.assertEqual(header["layer2.0.downsample.0.weight"]["shape"], [128, 64, 1, 1])
        self.assertEqual(header["bn1.num_batches_tracked"]["dtype"], "I64")
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.assertEqual(header[f"layer4.1.bn2.{name}"]["shape"], [512])

    def test_ranks_whose_last_batch_is_padding_only(self):
        # 17 samples in batches of 8: the third step has one, on rank 0.
        result = self.train(4, **(SMALL_RESNET | {"synthetic_train": 17, "last_batch": "partial",
                                                  "steps": 3, "eval_every": "off"}))
        self.assertIsNotNone(result.summary["final"]["train_loss"])

    def test_evaluation_is_the_same_for_any_number_of_ranks(self):
        trained = self.train(ranks=2, check_replicas=1, **SMALL_RESNET)
        for ranks in (1, 4):
            scored = self.ddptrain("eval", "--weights", str(self.weights_path()), "--data",
                                   "synthetic", "--limit-val", "9", ranks=ranks)
            self.assertEqual(scored.code, 0, scored)
            self.assertEqual(scored.summary["final"]["val_top1"],
                             trained.summary["final"]["val_top1"])
            self.assertAlmostEqual(scored.summary["final"]["val_loss"],
                                   trained.summary["final"]["val_loss"], places=6)


if __name__ == "__main__":
    unittest.main()
