# %% [markdown]
# # Exercise 5
#
# One step of Adam with ZeRO-1: each device updates an eighth of the parameters.
#
# Write your answer in place of `raise NotAnsweredError`. Then run the cells from the
# top, or this file, `python zero_one.py`. Statement and hints: page *Exercises*.

# %%
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from chapter3 import simulate_devices
from chapter3.exercises import NotAnsweredError, zero_one
from chapter3.exercises.zero_one import BETA1, BETA2, EPSILON, RATE, loss

simulate_devices(8)
mesh = zero_one.mesh()  # eight devices, one axis "data"


# %%
def zero1_step(params, state, x, y):
    """Return the new params, whole everywhere, and the new state, in shares."""
    raise NotAnsweredError


# %%
print(zero_one.check(zero1_step))
