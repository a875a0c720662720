"""Array files by structure: whatever a certificate, a mechanism or a checkpoint holds, the answer
is a value or one sentence, in little memory."""

import io
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import FileError, SfumatoError
from sfumato.measure.certificate import load_certificate
from sfumato.measure.recheck import recheck
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.solver import learner
from tests.measure.test_certificate import problem_of, some_certificate
from tests.measure.test_forged_certificates import (
    Arrays,
    a_kind,
    a_name,
    a_number,
    a_shape,
    a_whole_array,
    write,
)
from tests.mechanism.registry import MECHANISMS, TRUTHS

EXAMPLES = int(os.environ.get("SFUMATO_FUZZ", "80"))  # 400 cases in all, beside 1,600 tables
MOST_BYTES = 200_000_000
CHANGES = (a_number, a_whole_array, a_shape, a_kind, a_name)
NAMES = ("format", "kind", "of", "notes", "grid.shares", "plane.cells", "truths", "data", "x" * 200)
KINDS = ("<f8", ">f8", "<f4", "<i8", "<u1", "<i4", "?", "<c16", "<U5", "<U0", "S3", "<M8[s]")


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """A small array of any kind and shape, with extreme numbers."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    body = draw(st.binary(min_size=8, max_size=8)) * (1 + int(np.prod(shape)) * kind.itemsize // 8)
    return (
        np.frombuffer(body[: int(np.prod(shape)) * kind.itemsize], dtype=np.uint8)
        .view(kind)
        .reshape(shape)
        if kind.kind not in "U?"
        else np.zeros(shape, dtype=kind)
    )


@st.composite
def changes(draw: st.DrawFn) -> Callable[[Arrays], None]:
    """One to four changes of an archive: of those of the forgeries, and arrays put in whole."""
    steps = draw(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from(CHANGES), st.integers(0, 10**6)),
                st.tuples(st.one_of(st.sampled_from(NAMES), st.integers(0, 30)), arrays()),
            ),
            min_size=1,
            max_size=4,
        )
    )

    def change(held: Arrays) -> None:
        for what, value in steps:
            if callable(what):
                try:
                    with np.errstate(all="ignore"):
                        what(np.random.default_rng(value), held)
                except (KeyError, IndexError, ValueError, TypeError, ArithmeticError):
                    continue
            else:
                names = list(held) or list(NAMES)
                held[names[what % len(names)] if isinstance(what, int) else what] = value

    return change


def held_by(save: Callable[[Path], None], path: Path) -> Arrays:
    save(path)
    with np.load(path) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


@pytest.fixture(scope="module")
def certificate(folder: Path) -> Arrays:
    return held_by(some_certificate(problem_of()).save, folder / "certificate.npz")


@settings(max_examples=EXAMPLES)
@given(change=changes())
def test_a_changed_certificate_gives_a_bound_or_a_sentence(
    change: Callable[[Arrays], None], certificate: Arrays, folder: Path
) -> None:
    held = dict(certificate)
    change(held)
    write(folder / "changed.npz", held)
    problem = problem_of()
    try:
        bounds = load_certificate(folder / "changed.npz").bound(problem)
    except SfumatoError:
        return
    assert np.isfinite(bounds.grid) and bounds.grid < 1


@pytest.fixture(scope="module")
def mechanisms(folder: Path) -> list[Arrays]:
    """Every mechanism of the registry that can be saved."""
    found = []
    for make in MECHANISMS.values():
        try:
            found.append(held_by(make().save, folder / "mechanism.npz"))
        except SfumatoError:  # a function of the user's
            continue
    assert len(found) > 6
    return found


@settings(max_examples=2 * EXAMPLES)
@given(change=changes(), which=st.integers(0, 100))
def test_a_changed_mechanism_is_one_or_a_sentence(
    change: Callable[[Arrays], None], which: int, mechanisms: list[Arrays], folder: Path
) -> None:
    held = dict(mechanisms[which % len(mechanisms)])
    change(held)
    write(folder / "changed.npz", held)
    try:
        mechanism: Mechanism = load_mechanism(folder / "changed.npz")
    except SfumatoError:
        return
    try:
        with np.errstate(all="ignore"):  # weights of 1e38 overflow, and the draw is refused
            reports = mechanism.sample(TRUTHS, seed=1)
    except SfumatoError:
        return
    assert reports.shape == TRUTHS.shape and np.all(np.isfinite(reports))


TREE = {"weights": np.ones((2, 3), dtype=np.float32), "step": np.array(3), "best": np.zeros(2)}


@settings(max_examples=EXAMPLES)
@given(change=changes())
def test_a_changed_checkpoint_is_one_or_a_sentence(
    change: Callable[[Arrays], None], folder: Path
) -> None:
    path = folder / "checkpoint.npz"
    learner.save(path, TREE, [], of="this game")
    held = held_by(lambda _: None, path)
    change(held)
    write(path, held)
    try:
        tree, history = learner.load(path, TREE, of="this game")
    except FileError:
        return
    assert {name: (leaf.shape, leaf.dtype) for name, leaf in tree.items()} == {
        name: (leaf.shape, leaf.dtype) for name, leaf in TREE.items()
    }
    assert isinstance(history, list)


@settings(max_examples=EXAMPLES)
@given(
    places=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.integers(0, 10**9),
    shorter=st.booleans(),
)
def test_changed_bytes_give_a_value_or_a_sentence(
    places: list[tuple[int, int]], cut: int, shorter: bool, certificate: Arrays, folder: Path
) -> None:
    """Not by structure: headers, offsets and sums of the archive itself."""
    path = folder / "bytes.npz"
    write(path, certificate)
    body = bytearray(path.read_bytes())
    for place, value in places:
        body[place % len(body)] = value
    path.write_bytes(body[: cut % len(body)] if shorter else body)
    for load in (load_certificate, load_mechanism):
        try:
            load(path)
        except SfumatoError:
            continue


def header(kind: str, shape: tuple[int, ...]) -> bytes:
    """The head of an array as NumPy writes it, whatever follows."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, body in members.items():
            opened.writestr(name + ".npy", body)


ZEROS = bytes(150_000_000)
LARGE: dict[str, dict[str, bytes]] = {
    "150 MB of zeros in 150 kB": {"grid.shares": header("<f8", (18_750_000, 1)) + ZEROS},
    "a header that promises 8 TB": {"grid.shares": header("<f8", (10**12, 1)) + bytes(800)},
    "a million million empty texts": {"format": header("<U0", (10**12,))},
    "one text of 4 GB": {"format": header("<U1000000000", ()) + bytes(8)},
    "an unknown name": {"more": header("<f8", (18_750_000,)) + ZEROS},
    "a shape beyond 64 bits": {"grid.shares": header("<f8", (2**63, 2**63)) + bytes(16)},
    "a negative shape": {"grid.shares": header("<f8", (-(2**40), -2)) + bytes(16)},
    "a head nested a thousand deep": {
        "format": b"\x93NUMPY\x01\x00" + struct.pack("<H", 2001) + b"(" * 1000 + b")" * 1000 + b"\n"
    },
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    "load", [load_certificate, load_mechanism], ids=["certificate", "mechanism"]
)
def test_large_archives_are_refused_in_little_memory(
    name: str, load: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / "large.npz"
    archive(path, LARGE[name])
    tracemalloc.start()
    try:
        with pytest.raises(FileError):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_cells_that_are_many_and_small_are_refused_in_little_memory(
    certificate: Arrays, folder: Path
) -> None:
    """12 kB of cells once took 8.6 GB: squares of the smallest side were counted over the hull."""
    rng = np.random.default_rng(0)
    count = 200_000
    cells = np.column_stack([np.full(count, 30), rng.integers(0, 2**30, (count, 2))])
    once = np.unique(cells, axis=0)
    held = {
        **certificate,
        "plane.cells": once,
        "plane.shares": np.full((len(once), 3), 1 / 3),
        "plane.root": np.array([-5e5, -5e5, 1e6]),
    }
    write(folder / "many.npz", held)
    problem = problem_of()
    tracemalloc.start()
    try:
        with pytest.raises(SfumatoError, match="do not cover"):
            load_certificate(folder / "many.npz").bound(problem)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_the_second_checker_reads_no_large_archive_either(folder: Path) -> None:
    from sfumato.measure.certificate import question_of

    question = question_of(problem_of())
    for name, members in LARGE.items():
        archive(folder / "large.npz", members)
        tracemalloc.start()
        try:
            with pytest.raises(SfumatoError):
                recheck(folder / "large.npz", question)
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES, name
        finally:
            tracemalloc.stop()


def test_an_archive_of_many_members_is_refused(tmp_path: Path) -> None:
    body = io.BytesIO()
    np.lib.format.write_array(body, np.zeros(1))
    archive(tmp_path / "many.npz", {f"a{number}": body.getvalue() for number in range(10_001)})
    with pytest.raises(FileError, match="holds 10001 arrays"):
        load_mechanism(tmp_path / "many.npz")
