"""The tools that we compare with, each in an environment of its own under .bench."""

import subprocess
import sys
import venv
from pathlib import Path


def python_with(*packages: str, home: str) -> Path:
    """The Python of the environment `home` that holds these packages; made on first use."""
    folder = Path(__file__).resolve().parent.parent / ".bench" / home
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"making an environment for {packages[0]}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages],
            check=True,
        )
        ready.touch()
    return python
