# %% [markdown]
# # Exercise 1
#
# Transpose a matrix that is cut by rows over eight devices, with one all-to-all.
#
# Write your answer in place of `raise NotAnsweredError`. Then run the cells from the
# top, or this file, `python transpose.py`. Statement and hints: page *Exercises*.

# %%
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from chapter3 import simulate_devices
from chapter3.exercises import NotAnsweredError, transpose

simulate_devices(8)
mesh = transpose.mesh()  # eight devices, one axis "i"


# %%
def transposed(x):
    """Transpose x of shape (rows, columns); x and the result are cut by rows."""
    raise NotAnsweredError


# %%
print(transpose.check(transposed))
