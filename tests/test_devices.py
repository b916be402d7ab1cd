import jax
import pytest
from jax.sharding import AxisType

from chapter3 import device_mesh
from chapter3.fresh import run_python

FLAG = "--xla_force_host_platform_device_count"
ASK = "from chapter3 import simulate_devices; print(len(simulate_devices(8)))"


def last_line(run):
    return run.stderr.splitlines()[-1]


def test_eight_devices_by_default():
    assert run_python(ASK).stdout == "8"


def test_other_xla_flags_are_kept():
    run = run_python(
        f"{ASK}; import os; print(os.environ['XLA_FLAGS'])",
        XLA_FLAGS="--xla_cpu_enable_fast_math=false",
    )
    kept = f"--xla_cpu_enable_fast_math=false {FLAG}=8"
    assert run.stdout.splitlines() == ["8", kept]


@pytest.mark.parametrize("flags", [f"{FLAG}=8", f"{FLAG}=2 {FLAG}=8"])
def test_the_same_number_asked_for_before_is_fine(flags):
    assert run_python(ASK, XLA_FLAGS=flags).stdout == "8"


def test_another_number_in_xla_flags_is_named_with_the_remedy():
    run = run_python(ASK, XLA_FLAGS=f"{FLAG}=4")
    assert run.returncode != 0
    assert last_line(run).startswith("RuntimeError: XLA_FLAGS already asks for 4")
    assert f"Take {FLAG}=4 out of XLA_FLAGS" in last_line(run)


def test_another_number_in_the_configuration_is_named_with_the_remedy():
    run = run_python(ASK, JAX_NUM_CPU_DEVICES="2")
    assert run.returncode != 0
    assert "RuntimeError: jax_num_cpu_devices is 2, but 8" in last_line(run)
    assert "JAX_NUM_CPU_DEVICES" in last_line(run)


def test_jax_used_before_is_named_with_the_remedy():
    run = run_python(f"import jax; jax.numpy.ones(3); {ASK}")
    assert run.returncode != 0
    assert "JAX was initialised before with 1 device(s) of platform 'cpu'" in last_line(
        run
    )
    assert "restart the kernel" in last_line(run)


def test_an_absent_platform_in_the_shell_does_not_matter():
    assert run_python(ASK, JAX_PLATFORMS="no_such_platform").stdout == "8"


FIND = "from chapter3.devices import find_devices as f; print(len(f()), len(f(8)))"


def test_a_program_finds_eight_devices_without_an_accelerator():
    assert run_python(FIND).stdout == "8 8"
    # It does not choose the platform: what the shell says stands.
    assert "Unable to initialize" in last_line(run_python(FIND, JAX_PLATFORMS="tpu2"))


def test_a_program_that_asks_too_late_hears_it():
    run = run_python(f"import jax; jax.devices(); {FIND}")
    assert "should be updated before backends are initialized" in last_line(run)


@pytest.mark.parametrize("shape", [(8,), (4, 2), (2, 4), (1, 8), (3,), (5, 1)])
def test_device_mesh_uses_the_first_devices_in_order(shape):
    axes = dict(zip("ab", shape, strict=False))
    mesh = device_mesh(axes)
    assert dict(mesh.shape) == axes
    assert mesh.axis_types == (AxisType.Explicit,) * len(shape)
    assert mesh.devices.ravel().tolist() == jax.devices()[: mesh.size]


def test_device_mesh_of_another_axis_type():
    assert device_mesh({"a": 8}, AxisType.Auto).axis_types == (AxisType.Auto,)


def test_too_large_a_mesh_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"needs 16 devices.*simulate_devices\(16\)"):
        device_mesh({"a": 4, "b": 4})
