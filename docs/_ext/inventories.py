"""Links into the documentation of other projects, without asking them at build."""

import zlib
from pathlib import Path


def inventory(text: Path, build: Path) -> str:
    """Compress a plain-text inventory to the form that intersphinx reads.

    Args:
        text: the inventory as it is kept: the head of a version 2 inventory, a blank
            line, then one object on each line.
        build: folder to write to.

    Returns:
        The path of the compressed file.
    """
    head, body = text.read_text(encoding="utf-8").split("\n\n", 1)
    target = build / "inventories" / f"{text.stem}.inv"
    target.parent.mkdir(parents=True, exist_ok=True)
    packed = zlib.compress(body.encode())
    target.write_bytes(f"{head}\n# compressed using zlib.\n".encode() + packed)
    return str(target)
