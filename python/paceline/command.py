# SPDX-License-Identifier: MIT OR Apache-2.0
"""The `paceline` command of the package: `paceline …`, or `python -m paceline …`."""

from __future__ import annotations

import signal
import sys

from . import _paceline

__all__ = ["main"]


def main() -> None:
    """Runs the command with the arguments of this process, and ends it with the command's exit code."""
    # The command ends by the signal, as every program; Python would only note it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_paceline.command(["paceline", *sys.argv[1:]], [sys.executable, "-m", "paceline"]))
