# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the command: `python -m paceline …`."""

from .command import main

main()
