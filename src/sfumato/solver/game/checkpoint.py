"""The game between two rounds, on disk: arrays and one JSON line, nothing pickled."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sfumato.errors import FileError
from sfumato.files import written_beside

FORMAT = "sfumato game 1"


def save(path: Path, tree: Any, *, of: str, notes: dict[str, Any]) -> None:
    """Write a tree of arrays; `of` says which game it belongs to.  A killed job leaves the last
    whole one."""
    leaves = jax.tree.leaves(tree)
    arrays = {f"leaf.{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    with written_beside(path) as beside, beside.open("wb") as target:
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
        with path.open("rb") as source, np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise FileError(f"there is no checkpoint {path}; nothing to resume") from None
    except (
        Exception
    ) as error:  # a damaged archive raises anything: zip, zlib, struct or value errors
        raise FileError(
            f"{path} is not a whole checkpoint ({type(error).__name__}); start the game again"
        ) from None
    if str(arrays.get("format")) != FORMAT:
        raise FileError(f"{path} is not a checkpoint of this version; expected '{FORMAT}'")
    if str(arrays["of"]) != of:
        raise FileError(
            f"{path} belongs to another run: data, budget, grid, settings or seed differ; resume"
            " with the same ones"
        )
    leaves, shape = jax.tree.flatten(like)
    found = [arrays[f"leaf.{number}"] for number in range(len(leaves))]
    return jax.tree.unflatten(shape, found), json.loads(str(arrays["notes"]))
