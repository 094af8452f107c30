#!/usr/bin/env python3
"""PyTorch on the CPU doing our default job: DDP over gloo, the same convnet, batch, data, augmentation and optimizer.

    torchrun --standalone --nproc-per-node 2 pytorch_cpu_ddp.py [--steps N] [--layout channels_last] ...

The last line on stdout of rank 0 is a JSON object whose samples_per_s covers the timed steps, loading and augmentation
included. The peer is given every cheap advantage: the whole data set decoded in memory, one vectorised flip per batch,
a fused optimizer, gradients that are views of the all-reduce buckets, a static graph.
"""
import argparse
import gzip
import json
import os
import pathlib
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

MEAN, STDDEV = 0.2860, 0.3530  # of Fashion-MNIST's training pixels scaled to [0, 1]


def read_idx(path: pathlib.Path) -> np.ndarray:
    """The uint8 array of an idx file: magic 00 00 08 <dimensions>, then big-endian sizes, then the data."""
    with gzip.open(path) as file:
        data = file.read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">u4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25),
        nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(128, 10))


def optimizer_for(model: nn.Module) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum; weight decay on matrices and filters only."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 5e-4}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True, fused=True)


def batches(images: torch.Tensor, labels: torch.Tensor, per_rank: int, rank: int, ranks: int,
            memory_format: torch.memory_format):
    """Endless micro-batches of this rank: a fresh permutation each epoch, random horizontal flip, normalisation."""
    order_generator = torch.Generator().manual_seed(1)
    flip_generator = torch.Generator().manual_seed(2 + rank)
    global_batch = per_rank * ranks
    while True:
        order = torch.randperm(len(images), generator=order_generator)
        for start in range(0, len(order) - global_batch + 1, global_batch):
            mine = order[start + rank * per_rank:start + (rank + 1) * per_rank]
            x = images[mine].float().mul_(1 / (255 * STDDEV)).sub_(MEAN / STDDEV)
            flip = torch.rand(per_rank, 1, 1, 1, generator=flip_generator) < 0.5
            x = torch.where(flip, x.flip(3), x)
            yield x.contiguous(memory_format=memory_format), labels[mine]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400, help="timed optimizer steps")
    parser.add_argument("--warmup", type=int, default=50, help="untimed optimizer steps before them")
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--layout", choices=["channels_first", "channels_last"], default="channels_first")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    args = parser.parse_args()

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    memory_format = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format

    images = torch.from_numpy(read_idx(args.data / "train-images-idx3-ubyte.gz").copy()).unsqueeze(1)
    labels = torch.from_numpy(read_idx(args.data / "train-labels-idx1-ubyte.gz").astype(np.int64))

    model = convnet().to(memory_format=memory_format)
    # One process needs no all-reduce: as for us, nothing is communicated at world size 1.
    trained = model
    if ranks > 1:
        trained = DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    if args.compile:
        trained = torch.compile(trained)
    optimizer = optimizer_for(model)
    stream = batches(images, labels, args.global_batch // ranks, rank, ranks, memory_format)

    def step() -> torch.Tensor:
        x, y = next(stream)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(trained(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(args.warmup):
        step()
    dist.barrier()
    begin = time.perf_counter()
    loss_sum = torch.zeros(())
    for _ in range(args.steps):
        loss_sum += step()
    dist.barrier()
    seconds = time.perf_counter() - begin

    if rank == 0:
        print(json.dumps({
            "samples_per_s": args.steps * args.global_batch / seconds,
            "train_loss": loss_sum.item() / args.steps,
            "ranks": ranks, "threads": torch.get_num_threads(), "global_batch": args.global_batch,
            "steps": args.steps, "layout": args.layout, "compile": args.compile, "torch": torch.__version__,
        }), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
