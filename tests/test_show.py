"""Values find who words them, once and late."""

import subprocess
import sys

import numpy as np
import pytest

import sfumato as sf
from sfumato import show


def test_a_notebook_gets_the_table_of_the_value() -> None:
    samples = sf.Samples(secret=np.array([0, 1]), truth=np.zeros((2, 2)), secrets=("a", "b"))
    assert samples._repr_html_() == show.html(samples)
    assert samples._repr_html_().startswith("<table>")


@pytest.mark.parametrize("shown", [show.text, show.html, show.page])
def test_a_value_without_words_is_refused(shown: object) -> None:
    with pytest.raises(TypeError, match="nothing says how to show a int"):
        shown(3)  # type: ignore[operator]


def test_nothing_that_words_is_imported_before_something_is_shown() -> None:
    code = (
        "import sys, numpy as np, sfumato as sf\n"
        "data = sf.Samples(secret=np.array([0]), truth=np.zeros((1, 2)), secrets=('a',))\n"
        "assert not {'jinja2', 'matplotlib'} & set(sys.modules)\n"
        "data._repr_html_()\n"
        "assert 'jinja2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
