"""What each figure means, in a sentence or three: one source for the report and the studio.

`templates/terms.json` has, by the word that links to it, a figure's name with the way that is more
private, and what it means.
"""

import json
from importlib.resources import files

_READ = json.loads((files("sfumato.render") / "templates/terms.json").read_text(encoding="utf-8"))
TERMS: dict[str, list[str]] = _READ["everywhere"]
STUDIO_TERMS: dict[str, list[str]] = {**TERMS, **_READ["studio"]}
