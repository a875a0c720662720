"""Lets the tests here import the registry beside them, in every import mode of pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
