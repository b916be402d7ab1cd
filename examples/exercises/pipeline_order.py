# %% [markdown]
# # Exercise 4
#
# The order in which a pipeline stage works, one forward one backward.
#
# Write your answer in place of `raise NotAnsweredError`. Then run the cells from the
# top, or this file, `python pipeline_order.py`. Statement and hints: page *Exercises*.

# %%
from chapter3.exercises import NotAnsweredError, pipeline_order


# %%
def order(stage, stages, microbatches):
    """Return the work of one stage in order, such as [("F", 0), ("B", 0)]."""
    raise NotAnsweredError


# %%
print(pipeline_order.check(order))
