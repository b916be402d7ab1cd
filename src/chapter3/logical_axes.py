"""Name the dimensions of arrays by what they mean, and say once where each goes.

A model says that a weight has the dimensions ("embed", "hidden"). A table of rules says
that "hidden" is cut along mesh axis "model". Another strategy is another table; the
model does not change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Rules:
    """Which mesh axis each logical axis goes to.

    Attributes:
        table: mesh axis by logical axis; None leaves the dimension whole.
    """

    table: Mapping[str, str | None]

    def spec(self, logical: Sequence[str | None]) -> P:
        """Translate the logical axes of an array to a PartitionSpec.

        Args:
            logical: a name for each dimension; None for one that is never cut.

        Raises:
            KeyError: a name that has no rule.
            ValueError: two dimensions of the array would go to one mesh axis.

        >>> Rules({"batch": "data", "embed": None}).spec(("batch", "embed"))
        P('data', None)
        """
        axes = [name if name is None else self.table[name] for name in logical]
        used = [axis for axis in axes if axis is not None]
        for axis in used:
            if used.count(axis) > 1:
                both = [n for n, a in zip(logical, axes, strict=True) if a == axis]
                raise ValueError(
                    f"logical axes {both} would both go to mesh axis {axis!r}; change "
                    "the rule of one of them"
                )
        return P(*axes)

    def sharding(self, mesh: Mesh, logical: Sequence[str | None]) -> NamedSharding:
        """Translate to a sharding on `mesh`. Errors are those of `spec`."""
        return NamedSharding(mesh, self.spec(logical))
