"""Where the page for devices and its modules are: beside the package, or in the source tree."""

from pathlib import Path

from sfumato.errors import FileError


def web_folder() -> Path:
    """The folder of the page for devices."""
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "web", here.parents[3] / "web"):
        if (folder / "sfumato.js").exists():
            return folder
    raise FileError("the page's files are not installed with this sfumato; install it again")


def web_files() -> list[Path]:
    """The page and its modules."""
    kinds = (".js", ".html", ".css", ".json")
    return sorted(path for path in web_folder().iterdir() if path.suffix in kinds)
