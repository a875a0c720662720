"""Running the command line in this process, as `sfumato ...` does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sfumato import cli


@dataclass
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout; fails when there is anything else there."""
        return json.loads(self.out)


@pytest.fixture
def sfumato(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run `sfumato ARGS` and give its exit code, stdout and stderr."""

    def run(*args: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["sfumato", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        printed = capsys.readouterr()
        return Ended(int(left.value.code or 0), printed.out, printed.err)

    return run
