"""The clients of the service: a name and a token each, in a file that its owner alone can read."""

import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import FileError, ProblemError
from sfumato.files import read_json, write_json

_FORMAT = "sfumato clients 1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,128}")


@dataclass(frozen=True)
class Clients:
    """Tokens by name; shown without a token."""

    tokens: dict[str, str] = field(repr=False)

    def named_by(self, token: str) -> str | None:
        """The client that holds a token.  Every token is compared, each in the same time."""
        client = None
        for name, stored in self.tokens.items():
            if hmac.compare_digest(stored.encode(), token.encode("utf-8", "replace")):
                client = name
        return client


def read_clients(path: Path, *, add: tuple[str, ...] = ()) -> Clients:
    """The clients in a file, with a new token for each name in `add` that it does not hold.

    A file that is not there is made, with a client of the name `default` if none is to be added.
    """
    for name in add:
        if not _NAME.fullmatch(name):
            raise ProblemError(
                "a client's name is 1 to 64 letters, digits, dots, dashes and underscores; got"
                f" {name[:70]!r}"
            )
    known = _tokens(path) if path.exists() else {}
    names = add or (() if known else ("default",))
    wanted = {name: secrets.token_urlsafe(24) for name in names if name not in known}
    if wanted:
        if not path.parent.is_dir():
            raise FileError(f"cannot write {path}: there is no folder {path.parent}; name another")
        known |= wanted
        write_json(path, {"format": _FORMAT, "clients": known}, private=True)
    return Clients(known)


def _tokens(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise FileError(f"{path} is not a file; name a file of clients, or a new one")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise FileError(f"others can read {path}; expected mode 600: run chmod 600 on it")
    record = read_json(path, what="file of clients")
    clients = record.get("clients")
    if (
        record.get("format") != _FORMAT
        or not isinstance(clients, dict)
        or not all(
            _NAME.fullmatch(name) and isinstance(token, str) and _TOKEN.fullmatch(token)
            for name, token in clients.items()
        )
        or len(set(clients.values())) < len(clients)
    ):
        raise FileError(f"{path} is not a token file of sfumato; name a new file and it is made")
    return clients
