# SPDX-License-Identifier: Apache-2.0
"""Every public name of Horovod's, with its parameters in their order and their defaults: horovod_surface.json has them, as they
are at its HEAD. What is not there says why."""

import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest
import torch

import hvrun.torch as hvd

TABLE = json.loads((pathlib.Path(__file__).parent / "horovod_surface.json").read_text())
ROWS = [(module, name, row) for module, names in TABLE.items() for name, row in names.items()]
# Differs on purpose: why.
OTHERWISE = {
    ("horovod.common.exceptions", "HorovodInternalError"): "takes what RuntimeError takes",
    ("horovod.common.basics", "HorovodBasics"): "its constants of an extension's error codes are of no use",
}
_BY_POSITION = "calls it by position"
for _handler in ("Model", "Optimizer", "Sampler"):
    OTHERWISE["horovod.torch.elastic.state", f"{_handler}StateHandler"] = _BY_POSITION
for _optimizer in ("_DistributedOptimizer", "_DistributedAdasumOptimizer"):  # which torch.optim's class follows
    for _method in ("load_state_dict", "find_duplicates", "zero_grad"):
        OTHERWISE["horovod.torch.optimizer", _optimizer, _method] = "torch.optim's own, or of use to nobody"
for _name in ("finished_event", "queue", "thread", "started"):
    OTHERWISE["horovod.data.data_loader_base", "AsyncDataLoaderMixin", _name] = "of its thread: each iteration has one of its own"
CHANGED_DEFAULTS = {("horovod.runner", "run", "num_proc")}  # None: one rank per slot




class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 3


def sampler():
    made = hvd.elastic.ElasticSampler(Rows())
    list(made)
    return made


# What has the attributes that are told of instances; of the others the class has them, as properties.
INSTANCES = {
    "StateHandler": lambda own: own(1),
    "ModelStateHandler": lambda own: own(torch.nn.Linear(1, 1)),
    "OptimizerStateHandler": lambda own: own(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)),
    "SamplerStateHandler": lambda own: own(sampler()),
    "TorchState": lambda own: own(torch.nn.Linear(1, 1), torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)),
    "ElasticSampler": lambda own: sampler(),
    "ProcessSet": lambda own: own([0]),
    "_DistributedOptimizer": lambda own: hvd.DistributedOptimizer(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)),
    "HostsUpdatedInterrupt": lambda own: own(True),
    "HorovodVersionMismatchError": lambda own: own("torch", "1", "2"),
    "AsyncDataLoaderMixin": lambda own: own(),
}


@pytest.fixture(scope="module", autouse=True)
def job():
    hvd.init()
    yield
    hvd.shutdown()


def parameters(signature):
    """[(name, default as text or None)] of a signature in the table."""
    namespace = {}
    text = signature.replace("Compression.none", "'Compression.none'").replace("=global_process_set", "='global_process_set'")
    text = text.replace("op=Average", "op='Average'")
    exec(f"def function{text}: pass", namespace)  # noqa: S102: the table is ours
    return list(inspect.signature(namespace["function"]).parameters.values())


def told(default):
    """Defaults that are objects of Horovod's, by their names."""
    from hvrun.torch import Average, Compression, global_process_set

    for name, value in (("Compression.none", Compression.none), ("global_process_set", global_process_set), ("Average", Average)):
        if default is value:
            return name
    return default


def assert_takes(function, signature, where):
    """Horovod's parameters, in their order, with their defaults; more may follow, with defaults."""
    wanted = [one for one in parameters(signature) if one.name != "ctx" or "ctx" in inspect.signature(function).parameters]
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in wanted):
        return
    own = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    assert [one.name for one in own[:len(wanted)]] == [one.name for one in wanted], f"{where}: {own}"
    for one, want in zip(own, wanted):
        if (*where, want.name) not in CHANGED_DEFAULTS:
            assert told(one.default) == want.default, f"{where}: the default of {want.name} is {one.default}"
    for more in own[len(wanted):]:
        assert more.default is not more.empty or more.kind in (more.VAR_POSITIONAL, more.VAR_KEYWORD), f"{where}: {more} must be given"


@pytest.mark.parametrize("module,name,row", ROWS, ids=[f"{module}.{name}" for module, name, _ in ROWS])
def test_name(module, name, row):
    home = importlib.import_module(module)
    try:
        own = getattr(home, name)
    except AttributeError as error:
        assert "hvrun" in str(error) and len(str(error)) > 60, f"{module}.{name} is missing, and nothing says why: {error}"
        return
    if row["kind"] == "function":
        assert callable(own)
        assert_takes(own, row["signature"], (module, name))
    elif row["kind"] == "class":
        assert inspect.isclass(own)
        if row.get("init") and "torch.autograd.Function" not in row["bases"] and (module, name) not in OTHERWISE:
            assert_has_init(own, row["init"], (module, name))
        for method, signature in row.get("methods", {}).items():
            if "torch.autograd.Function" not in row["bases"] and (module, name, method) not in OTHERWISE:
                assert_takes(getattr(own, method), signature, (module, name, method))
        if (module, name) not in OTHERWISE or OTHERWISE[module, name] is _BY_POSITION:
            assert_has(INSTANCES.get(name, lambda own: own)(own), row["attributes"], (module, name))


def assert_has(one, attributes, where):
    for name in attributes:
        if " " not in name and (*where, name) not in OTHERWISE:  # else it is a sentence
            assert hasattr(one, name), f"{where}: {name} is missing"


@pytest.mark.parametrize("program", [
    "import horovod.torch as hvd, hvrun.torch as own, horovod\n"
    "for one in hvd, own:\n"
    "    one.mpi_ops.allreduce, one.functions, one.compression, one.optimizer, one.sync_batch_norm, one.elastic.state\n"
    "horovod.common.basics, horovod.common.elastic, horovod.common.exceptions, horovod.common.process_sets, horovod.common.util",
    "import horovod; horovod.runner.run, horovod.run, horovod.common",
])
def test_modules_are_there_that_horovods_own_import(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_nowhere_is_told_of_the_module_that_was_asked():
    for package in ("horovod", "horovod.torch", "horovod.common", "horovod.runner"):
        with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute 'nonsense'"):
            importlib.import_module(package).nonsense  # noqa: B018


def test_attributes_of_a_wrapped_optimizer():
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.1), gradient_predivide_factor=2.0, sparse_as_dense=True)
    assert (optimizer.op, optimizer.gradient_predivide_factor, optimizer.sparse_as_dense) == (hvd.Average, 2.0, True)
    assert optimizer.process_set is hvd.global_process_set
    optimizer.backward_passes_per_step = 3
    assert optimizer.backward_passes_per_step == 3
    with pytest.raises(ValueError, match="from 1 on"):
        optimizer.backward_passes_per_step = 0


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_an_optimizer_has_its_parameters_names(op):
    model = torch.nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=op)
    assert optimizer._parameter_names == {model.weight: "weight", model.bias: "bias"}
    more = torch.nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": [more]})
    assert optimizer._parameter_names[more] == "group1.0"
    unnamed = hvd.DistributedOptimizer(torch.optim.SGD([more], lr=0.1), op=op)
    assert unnamed._parameter_names == {more: "parameter.0"}


def test_cycles_that_are_to_be_marked_are_told_of(tmp_path):
    with pytest.warns(UserWarning, match="^mark_cycles=True marks nothing: the timeline has no CYCLE_START events, since") as told:
        hvd.start_timeline(str(tmp_path / "timeline.json"), mark_cycles=True)
    hvd.stop_timeline()
    assert told[0].filename == __file__
    for settings, words in (({"HOROVOD_TIMELINE": "DYNAMIC"}, "HOROVOD_TIMELINE_MARK_CYCLES marks nothing"), ({}, "")):
        done = subprocess.run([sys.executable, "-c", "import hvrun.basics as b; b.init()"], capture_output=True, text=True, check=True,
                              env={**os.environ, "HOROVOD_TIMELINE_MARK_CYCLES": "1", **settings})
        assert words in done.stderr and bool(done.stderr) == bool(words)


ABSENT = ("horovod.tensorflow", "horovod.keras", "horovod.mxnet", "horovod.spark", "horovod.ray", "horovod.runner.launch")


@pytest.mark.parametrize("module", ABSENT)
def test_a_module_that_is_not_there_says_so_and_what_is(module):
    package, _, name = module.rpartition(".")
    for program in (f"import {module} as hvd", f"from {package} import {name}", f"from {module}.keras import callbacks"):
        with pytest.raises(ModuleNotFoundError) as told:
            exec(program, {})  # noqa: S102
        assert str(told.value).startswith(f"{module} is not there: this is hvrun's horovod, which has horovod.torch, "), program
    assert importlib.util.find_spec(module) is None
    assert not hasattr(importlib.import_module(package), name)


def test_other_modules_that_are_not_there_are_python_s_own_error():
    with pytest.raises(ModuleNotFoundError, match="^No module named 'horovod.nonsense'$"):
        importlib.import_module("horovod.nonsense")


def test_util_needs_no_framework_and_says_what_is_of_compiled_extensions():
    program = ("import sys, horovod.common.util as util, horovod.common.exceptions, horovod.common.process_sets\n"
               "assert 'torch' not in sys.modules\n"
               "print(util.get_extension_full_path('/a/b/__init__.py', 'c', 'mpi_lib'), util.get_ext_suffix())")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert (done.stdout, done.stderr) == (f"/a/b/c/mpi_lib{suffix} {suffix}\n", "")
    util = importlib.import_module("horovod.common.util")
    assert util.get_average_backwards_compatibility_fun(None)(None, None) is hvd.Average
    with pytest.raises(AttributeError, match="_check_extension_lambda asks Horovod's compiled extensions .* Try: .*mpi_built"):
        util._check_extension_lambda  # noqa: B018


def test_an_elastic_sampler_says_which_indices_are_processed():
    one = hvd.elastic.ElasticSampler(Rows(), seed=3)
    order = list(one)
    assert one.processed_indices == set()
    one.record_batch(0, 2)
    assert one.processed_indices == set(order[:2])
    one.set_epoch(1)
    assert one.processed_indices == set()


def assert_has_init(own, signature, where):
    if "params, named_parameters" in signature:  # of optimizers that the factory makes
        return
    assert_takes(own.__init__, signature, where)


def test_the_table_is_whole():
    assert {"allreduce", "DistributedOptimizer", "SyncBatchNorm", "elastic", "join"} <= set(TABLE["horovod.torch"])
    assert len(ROWS) > 200
