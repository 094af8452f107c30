#!/usr/bin/env python3
"""The dependency rule itself under test: each kind of violation is found at its line, what is allowed passes."""
import pathlib
import tempfile
import unittest

from dependency_rule import check


class DependencyRule(unittest.TestCase):
    def found(self, file: str, include: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, file)
            path.parent.mkdir(parents=True)
            path.write_text(f"#pragma once\n\n#include {include}\n", encoding="utf-8")
            return check(pathlib.Path(folder))[0]

    def test_refuses_what_breaks_the_rule_and_names_the_line(self):
        for file, include in [
            ("core/plan/slab.cpp", '"comm/bucket_plan.h"'),
            ("core/plan/slab.cpp", '"models/registry.h"'),
            ("core/plan/slab.cpp", '"launcher/launcher.h"'),
            ("comm/mpi/session.cpp", '"models/registry.h"'),
            ("comm/mpi/session.cpp", '"launcher/launcher.h"'),
            ("models/mlp.cpp", '"comm/bucket_plan.h"'),
            ("models/mlp.cpp", "<comm/bucket_plan.h>"),
            ("core/train/trainer.cpp", "<mpi.h>"),
            ("core/plan/slab.cpp", '"../../comm/bucket_plan.h"'),
            ("core/plan/slab.cpp", '"slab.h"'),
            ("core/ops/relu/relu.cpp", "<cuda_runtime.h>"),
            ("core/backend/cpu/blas.h", "<cublasLt.h>"),
            ("comm/mpi/session.cpp", "<nccl.h>"),
            ("launcher/main.cpp", "<cuda_runtime.h>"),
        ]:
            with self.subTest(file=file, include=include):
                found = self.found(file, include)
                self.assertEqual(len(found), 1)
                self.assertTrue(found[0].startswith(f"{file}:3: "), found[0])

    def test_allows_what_the_rule_allows(self):
        for file, include in [
            ("core/plan/slab.cpp", '"core/comm/communicator.h"'),
            ("core/plan/slab.cpp", "<vector>"),
            ("comm/mpi/session.cpp", "<mpi.h>"),
            ("comm/mpi/session.cpp", '"core/plan/bucket.h"'),
            ("models/mlp.cpp", '"core/graph/graph.h"'),
            ("launcher/train.cpp", '"comm/mpi/session.h"'),
            ("launcher/train.cpp", '"models/registry.h"'),
            ("core/ops/relu/relu.cu", "<cuda_runtime.h>"),
            ("core/ops/conv2d/conv2d_cuda.cpp", "<cudnn_frontend.h>"),
            ("core/backend/cuda/stream.cpp", "<cuda_runtime.h>"),
            ("comm/nccl/communicator.cpp", "<nccl.h>"),
        ]:
            with self.subTest(file=file, include=include):
                self.assertEqual(self.found(file, include), [])


if __name__ == "__main__":
    unittest.main()
