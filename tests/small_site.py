"""A small project that is built like the real one, to build faults into."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PAGE = """\
---
file_format: mystnb
kernelspec:
  name: python3
  display_name: Python 3
{front}---

# {title}

{body}
"""


def cell(code, tags=""):
    """A code cell as a page writes it."""
    option = f":tags: [{tags}]\n" if tags else ""
    return f"```{{code-cell}} python3\n{option}{code}\n```\n"


@dataclass
class Build:
    """A finished build."""

    returncode: int
    output: str

    def assert_failed(self, *shown):
        """The build failed, and said what is given, each text on some line."""
        assert self.returncode != 0, self.output
        for text in shown:
            assert text in self.output, self.output

    def assert_succeeded(self):
        """The build succeeded."""
        assert self.returncode == 0, self.output


@dataclass
class SmallSite:
    """The project's own conf.py and extensions, over pages of the test's choice."""

    root: Path
    language: str = "en"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        """Copy what the build needs, but no page."""
        (self.root / "docs").mkdir(parents=True)
        for name in ("conf.py", "uv.lock"):
            shutil.copy(ROOT / name, self.root)
        for folder in ("_ext", "_static", "_templates", "_inventories"):
            shutil.copytree(
                ROOT / "docs" / folder,
                self.root / "docs" / folder,
                ignore=shutil.ignore_patterns("__pycache__"),
            )

    def write(self, name, *body, front="", text=False):
        """Write a page; `text` is one without cells."""
        content = "\n".join(body)
        page = f"# {name}\n\n{content}\n"
        if not text:
            page = PAGE.format(front=front, title=name, body=content)
        (self.root / "docs" / f"{name}.md").write_text(page)
        names = sorted(p.stem for p in (self.root / "docs").glob("*.md"))
        others = "\n".join(n for n in names if n != "index")
        (self.root / "docs/index.md").write_text(
            f"# Small\n\n```{{toctree}}\n{others}\n```\n"
        )

    def command(self, *options):
        """Return the command of the Makefile, for this folder."""
        return [
            *(sys.executable, "-m", "sphinx", "-c", ".", "-W", "--keep-going", "-n"),
            *("-q", "-b", "html", "-D", f"language={self.language}", *options),
            *("-d", "_build/doctrees/en", "docs", "_build/html/en"),
        ]

    def start(self, *options):
        """Start a build and return its process, which writes to one pipe."""
        return subprocess.Popen(
            self.command(*options),
            cwd=self.root,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def build(self, *options, seconds=120):
        """Build the site, within a time limit."""
        with self.start(*options) as process:
            output, _ = process.communicate(timeout=seconds)
        return Build(process.returncode, output)

    def article(self, name):
        """Return the HTML of a built page's text, without the frame around it."""
        html = (self.root / f"_build/html/en/{name}.html").read_text()
        return html[html.index("<article") : html.index("</article>")]
