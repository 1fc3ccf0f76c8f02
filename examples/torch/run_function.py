"""A function on two ranks from inside a program, as from a notebook.

SPDX-License-Identifier: Apache-2.0

    pip install cloudpickle
    python run_function.py
"""

import hvrun


def train(learning_rate):
    """What every rank does; its result comes back."""
    import torch

    import hvrun.torch as hvd

    hvd.init()
    model = torch.nn.Linear(1, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=learning_rate))
    for _ in range(200):
        inputs = torch.randn(16, 1)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), 3 * inputs + 1).backward()
        optimizer.step()
    return model.weight.item(), model.bias.item()


if __name__ == "__main__":
    for rank, (weight, bias) in enumerate(hvrun.run(train, args=(0.1,), np=2)):
        print(f"rank {rank} has learned {weight:.2f} x + {bias:.2f}")
