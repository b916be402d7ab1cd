"""Check the version notes against the JAX that is installed here.

Each note of the chapter is a short session. They are all played in new processes, so
that a JAX that aborts ends only one, and each line is compared with what is noted. The
exit status is 0 if all is as noted, 1 if something is different here (which is no fault
of yours: this JAX is another), and 2 if the notes could not be played.
"""

import argparse
import json
import sys
from collections.abc import Sequence

import jax

from chapter3.commandline import refuse
from chapter3.devices import simulate_devices
from chapter3.version_notes import NOTES, check, text


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the notes that were asked for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m chapter3.version_notes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "notes", nargs="*", type=int, metavar="N", help="check only these, in full"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.notes) - set(NOTES)):
        return refuse(f"there is no note {unknown[0]}; they are 1 to {len(NOTES)}")
    try:
        simulate_devices(8)
    except RuntimeError as error:
        return refuse(str(error))

    found = check([NOTES[n] for n in given.notes or sorted(NOTES)], apart=True)
    different = [checked for checked in found if checked.differences]
    if given.json:
        notes = [text.as_json(checked) for checked in found]
        print(json.dumps({"jax": jax.__version__, "notes": notes}, indent=2))
    else:
        print(f"JAX {jax.__version__}\n")
        print(text.overview(found))
        for checked in found if given.notes else different:
            note = checked.note
            print(f"\nNote {note.number}: older material {note.older}")
            print(f"See {note.taught} in the chapter.\n")
            print(text.sessions(checked))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
