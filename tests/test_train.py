"""The training loop to keep: equal on any devices, in any pieces, after any end."""

import importlib.util
import io
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_site import ROOT
from tolerances import FLOAT32_STEPS

from chapter3.epochs import shuffled
from chapter3.fresh import clean_environment
from chapter3.launcher import launch

SCRIPT = ROOT / "examples/train.py"
SMALL = ["--epochs", "4", "--examples", "150", "--batch-size", "32"]


@pytest.fixture(scope="module")
def train():
    """The program as a module; this process has its eight devices already."""
    spec = importlib.util.spec_from_file_location("train", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Terminal(io.StringIO):
    """What takes the output and says that someone is looking."""

    def isatty(self):
        return True


@pytest.fixture(scope="module")
def run(train):
    """Run the program in this process, on the first n devices."""

    def run(*options, n=8, terminal=False):
        output, errors = io.StringIO(), Terminal() if terminal else io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            jax.numpy_dtype_promotion("standard"),  # optax mixes types itself
            redirect_stdout(output),
            redirect_stderr(errors),
        ):
            patch.setattr(sys, "argv", ["train.py", *SMALL, *map(str, options)])
            patch.setattr(train, "find_devices", lambda _: jax.devices()[:n])
            try:
                status = train.main()
            except SystemExit as end:  # of argparse
                status = end.code
        return status, output.getvalue(), errors.getvalue()

    return run


@pytest.fixture(scope="module")
def whole(run):
    """What a run prints that nobody disturbed."""
    status, output, errors = run()
    assert (status, errors) == (0, "")
    return output


@pytest.fixture(scope="module")
def two_epochs(run, tmp_path_factory):
    """What a run of two epochs prints, and the folder that it saved to."""
    folder = tmp_path_factory.mktemp("two")
    return run("--epochs", 2, "--checkpoints", folder)[1], folder


@pytest.fixture
def saved(two_epochs, tmp_path):
    """A folder of one's own with a training of two epochs."""
    return shutil.copytree(two_epochs[1], tmp_path / "saved")


def losses(output):
    lines = re.findall(r"^epoch +(\d+)  loss (\S+)  held out (\S+)", output, re.M)
    return {int(epoch): (float(a), float(b)) for epoch, a, b in lines}


def digest(output):
    return re.findall(r"^parameters (\w+)$", output, re.M)[-1]


@pytest.fixture(scope="module")
def expected(train):
    """Train on one device in float64, without filling and without pieces."""
    start = train.init_mlp(jax.random.key(0), train.SIZES)  # float32, as there
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        params = jax.tree.map(np.float64, start)
        (x, y), (hx, hy) = (
            [jnp.asarray(np.float64(a)) for a in train.make_data(150, 0, i)]
            for i in (0, 1)
        )

        @jax.jit
        def mean_loss(params, x, y):
            return jnp.mean((train.mlp(params, x) - y) ** 2)

        learn = jax.jit(jax.value_and_grad(mean_loss))
        optimizer, found = optax.adam(0.01), {}
        state = optimizer.init(params)
        for epoch in range(1, 5):
            order, total = shuffled(0, epoch, 150), 0.0
            for i in range(0, 150, 32):
                rows = order[i : i + 32]
                value, gradient = learn(params, x[rows], y[rows])
                updates, state = optimizer.update(gradient, state, params)
                params = optax.apply_updates(params, updates)
                total += float(value) * len(rows)
            found[epoch] = (total / 150, float(mean_loss(params, hx, hy)))
    return found


@pytest.mark.parametrize(
    ("n", "pieces"), [(1, 1), (1, 4), (2, 2), (4, 1), (8, 1), (8, 2), (8, 4)]
)
def test_any_devices_and_any_pieces_are_one_device_in_float64(n, pieces, run, expected):
    status, output, errors = run("--accumulate", pieces, n=n)
    assert (status, errors) == (0, "")
    assert f"{n} devices of platform cpu" in output
    found = losses(output)
    assert list(found) == [1, 2, 3, 4]
    for epoch, values in found.items():
        np.testing.assert_allclose(values, expected[epoch], **FLOAT32_STEPS)


def test_a_bar_for_who_looks_and_none_for_a_file(run, whole):
    _, output, bars = run(terminal=True)
    assert all(f"epoch {epoch}:" in bars for epoch in (1, 2, 3, 4)) and "/5 [" in bars
    assert output == whole  # and there, errors were empty


@pytest.mark.parametrize("options", [["--batch-size", 160], ["--examples", 3]])
def test_one_short_batch_is_an_epoch(options, run):
    status, output, _ = run(*options)
    assert status == 0 and np.isfinite(losses(output)[4]).all()


def test_resumed_is_undisturbed_to_the_bit(run, whole, two_epochs, saved):
    first, _ = two_epochs
    _, second, _ = run("--checkpoints", saved)
    assert "resumed" not in first and "resumed after epoch 2\n" in second
    assert losses(whole) == losses(first) | losses(second)
    assert digest(second) == digest(whole) != digest(first)
    # Again: there is nothing left to do, and nothing is done.
    status, again, _ = run("--checkpoints", saved)
    assert (status, losses(again), digest(again)) == (0, {}, digest(whole))


def test_that_test_would_see_an_order_that_is_not_a_function(
    run, train, tmp_path, monkeypatch
):
    def with_memory():
        generator = np.random.default_rng(0)
        return lambda seed, epoch, examples: generator.permutation(examples)

    def fresh_run(*options):
        monkeypatch.setattr(train, "shuffled", with_memory())  # a new process
        return run(*options)[1]

    whole = fresh_run()
    fresh_run("--epochs", 2, "--checkpoints", tmp_path)
    assert digest(fresh_run("--checkpoints", tmp_path)) != digest(whole)


def test_and_an_optimizer_that_was_not_restored(run, whole, train, saved, monkeypatch):
    restore = train.resume

    def forgetful(manager, state):
        fresh = state["optimizer"]
        state, epoch = restore(manager, state)
        return state | {"optimizer": fresh}, epoch

    monkeypatch.setattr(train, "resume", forgetful)
    assert digest(run("--checkpoints", saved)[1]) != digest(whole)


def test_resumed_on_other_devices_in_other_pieces(run, saved, expected):
    _, output, _ = run("--checkpoints", saved, "--accumulate", 4, n=2)
    assert list(losses(output)) == [3, 4]
    for epoch, values in losses(output).items():
        np.testing.assert_allclose(values, expected[epoch], **FLOAT32_STEPS)


def test_killed_and_started_again(run, whole, tmp_path):
    command = [sys.executable, SCRIPT, *SMALL, "--checkpoints", tmp_path]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=clean_environment(), **pipes) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("epoch   3"):
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL
    _, second, _ = run("--checkpoints", tmp_path)
    assert re.search(r"resumed after epoch [23]\n", second)
    assert digest(second) == digest(whole)


def test_an_unfinished_checkpoint_does_not_count(run, whole, saved):
    shutil.copytree(saved / "2", saved / "3.orbax-checkpoint-tmp")
    _, second, _ = run("--checkpoints", saved)
    assert "resumed after epoch 2\n" in second and digest(second) == digest(whole)


def test_two_processes_save_together_and_one_goes_on(run, tmp_path, expected):
    options = ["--distributed", *SMALL, "--epochs", "2", "--checkpoints", str(tmp_path)]
    first, other = launch(SCRIPT, *options, processes=2, devices=2)
    assert "4 devices of platform cpu" in first.output
    assert other.output == ""  # process 0 speaks for both
    _, rest, _ = run("--checkpoints", tmp_path)
    assert "resumed after epoch 2\n" in rest
    found = losses(first.output) | losses(rest)
    assert list(found) == [1, 2, 3, 4]
    for epoch, values in found.items():
        np.testing.assert_allclose(values, expected[epoch], **FLOAT32_STEPS)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--batch-size", "20"], "batch_size=20 must be a multiple of 8 = 8 devices"),
        (
            ["--accumulate", "3"],
            "must be a multiple of 24 = 8 devices x --accumulate 3",
        ),
        (["--checkpoints", str(SCRIPT)], "cannot save in"),
        (["--seed", "9223372036854775808"], "seed=9223372036854775808 must be below"),
    ],
)
def test_options_that_do_not_fit_together(options, reason, run):
    status, _, errors = run(*options)
    assert status == 2 and reason in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--rate", "nan", "'nan' is not a number above 0"),
        ("--rate", "-1", "'-1' is not a number above 0"),
        ("--rate", "fast", "'fast' is not a number above 0"),
        ("--seed", "-1", "'-1' is not a whole number from 0 on"),
        ("--epochs", "0", "'0' is not a whole number from 1 on"),
        ("--batch-size", "1.5", "'1.5' is not a whole number from 1 on"),
    ],
)
def test_impossible_values(option, value, reason, run):
    status, _, errors = run(f"{option}={value}")
    assert status == 2 and reason in errors


def test_a_folder_with_another_training_is_refused(run, saved):
    status, _, errors = run("--checkpoints", saved, "--seed", 1)
    assert status == 2
    assert "'seed': 0}, not {" in errors and "or another folder" in errors


def test_a_loss_that_is_not_finite_ends_the_training_unsaved(run, tmp_path):
    status, output, errors = run("--rate", "1e20", "--checkpoints", tmp_path)
    assert status == 1 and losses(output) == {}
    assert "the loss of epoch 1 is nan: lower --rate" in errors
    assert not list(tmp_path.iterdir())
