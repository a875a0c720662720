"""The game between two rounds, on disk: arrays and one JSON line, nothing pickled."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sfumato.errors import FileError
from sfumato.files import read_arrays, written_beside

FORMAT = "sfumato game 1"


def save(path: Path, tree: Any, *, of: str, notes: dict[str, Any]) -> None:
    """Write a tree of arrays; `of` says which game it belongs to.  A killed job leaves the last
    whole one."""
    leaves = jax.tree.leaves(tree)
    arrays = {f"leaf.{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    with written_beside(path, private=True) as beside, beside.open("wb") as target:
        np.savez(
            target,
            allow_pickle=False,
            format=np.array(FORMAT),
            of=np.array(of),
            notes=np.array(json.dumps(notes)),
            **arrays,
        )


def load(path: Path, like: Any, *, of: str) -> tuple[Any, dict[str, Any]]:
    """A tree of the shape of `like` with the arrays that `save` wrote, and its notes."""
    try:
        arrays = read_arrays(path, what="checkpoint")
    except FileError as error:
        if not path.exists():
            raise FileError(f"there is no checkpoint {path}; nothing to resume") from None
        raise FileError(f"{error}; or start the learning again without it") from None
    if str(arrays.get("format")) != FORMAT:
        raise FileError(f"{path} is not a checkpoint of this version; expected '{FORMAT}'")
    if str(arrays.get("of")) != of:
        raise FileError(
            f"{path} belongs to another run: data, budget, grid, settings or seed differ; resume"
            " with the same ones"
        )
    leaves, shape = jax.tree.flatten(like)
    wanted = {f"leaf.{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    try:
        notes = json.loads(str(arrays["notes"]))
        sound = isinstance(notes, dict) and arrays.keys() == {"format", "of", "notes", *wanted}
    except (KeyError, ValueError, RecursionError):
        sound = False
    if not sound or any(
        (arrays[name].shape, arrays[name].dtype) != (leaf.shape, leaf.dtype)
        for name, leaf in wanted.items()
    ):
        raise FileError(
            f"{path} does not hold what a checkpoint of this run holds; start the learning again"
            " without it"
        )
    return jax.tree.unflatten(shape, [arrays[name] for name in wanted]), notes
