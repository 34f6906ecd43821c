"""Runs the command: `python -m paceline …`."""

from .command import main

main()
