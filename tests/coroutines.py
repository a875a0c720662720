"""Coroutines in tests: each has a thread of its own, because the browser's driver keeps an event
loop running in the thread of the tests that follow it."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end, as `asyncio.run` does."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, coroutine).result()
