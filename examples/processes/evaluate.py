"""One process of several: evaluate the expressions on the command line, one by one.

Every process evaluates the same expressions in the same order, and reports for each
what came out: the value's text, or the error. They can use the names defined here.

    mpirun -n 2 python evaluate.py 'np.asarray(x)' 'float(x.sum())'
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join, report


def names() -> dict[str, Any]:
    """Make the arrays to try things out on: `x` is 1, 2, ..., N over all N devices."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    process, each = jax.process_index(), jax.local_device_count()
    full = np.arange(jax.device_count(), dtype=np.float32) + 1  # equal in all processes
    local = full[each * process :][:each]  # the rows of this process
    x = jax.make_array_from_process_local_data(by_rows, local, full.shape)
    return {
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "P": P,
        **vars(multihost_utils),
        **locals(),
    }


def outcome(expression: str, known: dict[str, Any]) -> str:
    """Evaluate, and return the value as text, or the error."""
    try:
        return repr(eval(expression, known))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Join the other processes, evaluate, report a dictionary of outcomes."""
    join()
    known = names()
    report({expression: outcome(expression, known) for expression in sys.argv[1:]})


if __name__ == "__main__":
    main()
