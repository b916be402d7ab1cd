"""A digest of all that the pages' outputs depend on besides their own cells.

MyST-NB's cache knows a page by its cells alone: after a change in the package it would
go on to show the old output. A cache folder named by this digest cures that. It is
coarse on purpose: a change in the package executes every page again.
"""

import hashlib
import sys
from importlib import metadata
from pathlib import Path

_FILES = (
    "src/**/*",
    "examples/**/*",
    "docs/_ext/kernel_environment.py",
    "uv.lock",
)
_PACKAGES = ("jax", "jaxlib", "numpy", "optax", "matplotlib", "ipykernel")


def input_digest(root: Path) -> str:
    """Return 16 hexadecimal digits that change with the inputs.

    Args:
        root: folder of the project.
    """
    digest = hashlib.sha256(sys.version.encode())
    for package in _PACKAGES:
        digest.update(f"{package}=={metadata.version(package)}\0".encode())
    for path in sorted(p for pattern in _FILES for p in root.glob(pattern)):
        name = path.relative_to(root)
        if any(part.startswith((".", "__pycache__")) for part in name.parts):
            continue  # left by tools
        if path.is_file():
            digest.update(f"{name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
