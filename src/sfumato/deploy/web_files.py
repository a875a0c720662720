"""Where the page for devices, its modules and the browser extension are: beside the package, or in
the source tree."""

import shutil
from pathlib import Path

from sfumato.errors import FileError
from sfumato.files import folder_beside

_MODULES = ("sfumato.js", "onnx.js", "plane.js", "policy.js")


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


def copy_extension(folder: Path) -> None:
    """Put the browser extension and the modules that it uses into a folder."""
    source = web_folder()
    for path in sorted((source / "extension").iterdir()):
        if path.suffix != ".md":
            shutil.copyfile(path, folder / path.name)
    for name in _MODULES:
        shutil.copyfile(source / name, folder / name)


def write_extension(target: str | Path) -> Path:
    """Write the browser extension without a bundle: it answers with planar Laplace noise until one
    is imported.

    >>> (write_extension("extension") / "manifest.json").exists()
    True
    """
    folder = Path(target)
    if folder.exists():
        raise FileError(f"{folder} exists; name a new folder for the extension")
    with folder_beside(folder) as beside:
        copy_extension(beside)
    return folder
