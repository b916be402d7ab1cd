"""Name the dimensions of arrays by what they mean, and say once where each goes.

A model says that a weight has the dimensions ("embed", "hidden"). A table of rules says
that "hidden" is cut along mesh axis "model", or along several. Another strategy is
another table; the model does not change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Rules:
    """Which mesh axis, or axes, each logical axis goes to.

    Attributes:
        table: by logical axis, what a `PartitionSpec` has in the place of a dimension:
            a mesh axis, a tuple of them, or None, which leaves the dimension whole.
    """

    table: Mapping[str, str | tuple[str, ...] | None]

    def spec(self, logical: Sequence[str | None]) -> P:
        """Translate the logical axes of an array to a PartitionSpec.

        Args:
            logical: a name for each dimension; None for one that is never cut.

        Raises:
            KeyError: a name that has no rule.
            ValueError: two dimensions of the array would go to one mesh axis.

        >>> Rules({"batch": ("host", "data"), "embed": None}).spec(("batch", "embed"))
        P(('host', 'data'), None)
        """
        entries = [name if name is None else self.table[name] for name in logical]
        taken: dict[str, str | None] = {}  # mesh axis -> the logical axis that has it
        for name, entry in zip(logical, entries, strict=True):
            for axis in (entry,) if isinstance(entry, str) else entry or ():
                if axis in taken:
                    raise ValueError(
                        f"logical axes {[taken[axis], name]} would both go to mesh "
                        f"axis {axis!r}; change the rule of one of them"
                    )
                taken[axis] = name
        return P(*entries)

    def sharding(self, mesh: Mesh, logical: Sequence[str | None]) -> NamedSharding:
        """Translate to a sharding on `mesh`. Errors are those of `spec`."""
        return NamedSharding(mesh, self.spec(logical))
