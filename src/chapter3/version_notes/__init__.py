"""What older material gets wrong, as checks that can be run on any JAX.

Each note is a short session with what its lines show. `python -m
chapter3.version_notes` plays them and says which show something else here.
"""

from chapter3.version_notes import (
    on_axis_names,
    on_collectives,
    on_data_parallelism,
    on_devices,
    on_hosts,
    on_meshes,
    on_shardings,
    on_training,
)
from chapter3.version_notes.note import Checked, Note, Seen, check

__all__ = ["NOTES", "Checked", "Note", "Seen", "check"]

_MODULES = (
    *(on_devices, on_data_parallelism, on_collectives, on_axis_names),
    *(on_meshes, on_shardings, on_hosts, on_training),
)

NOTES: dict[int, Note] = {
    note.number: note for module in _MODULES for note in module.NOTES
}
"""All notes by number, in the order of the chapter's sections."""
