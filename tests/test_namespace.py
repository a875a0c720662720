"""Names of a package: from the stub beside it, imported when they are asked for, and found again
where they moved."""

import subprocess
import sys

import pytest

import sfumato
from sfumato import measure
from sfumato.namespace import homes


def test_the_stub_says_where_each_name_is() -> None:
    found = homes(sfumato.__file__)
    assert found["solve"] == ("sfumato.study.solve", "solve")
    for name, (module, own) in homes(measure.__file__).items():
        assert getattr(measure, name) is getattr(sys.modules[module], own)


def test_a_misspelt_name_says_the_nearest_and_a_moved_one_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"did you mean sfumato\.compare\?"):
        _ = sfumato.comapre
    for name in ("measure.bayes_vulnerability", "mechanism.Channel", "data.Joint"):
        with pytest.raises(AttributeError, match=f"it is sfumato.{name}"):
            getattr(sfumato, name.partition(".")[2])
    with pytest.raises(AttributeError, match=r"has no 'qqqq'; help\(sfumato\) lists"):
        _ = sfumato.qqqq


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, sfumato; print({'numpy', 'scipy', 'jax', 'pyarrow'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"
