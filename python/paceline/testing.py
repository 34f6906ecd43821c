# SPDX-License-Identifier: MIT OR Apache-2.0
"""Drives the halves of a controller by hand, to test what no scenario does: new limits of the target, another route, and the
loss of the network.

    sender = paceline.testing.Sender(mine, start_bps=300_000)
    sender.handle_bounds(1.0, min_bps=50_000, max_bps=200_000)
    assert sender.decision.target_bps <= 200_000

A sender is under the guard, as in a run. Exceptions of a half are raised by the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _paceline
from ._paceline import Decision
from .controllers import Controller, named, with_registered

__all__ = ["Receiver", "Sender"]


def _built(
    half: Any, controller: Controller | str, setup: tuple[int, int, int, int], parameters: Mapping[str, float] | None
) -> Any:
    name, own = named(controller)
    return half(name, setup, list((parameters or {}).items()), with_registered(own))


class Sender:
    """The send half of a controller."""

    def __init__(
        self,
        controller: Controller | str,
        *,
        start_bps: int = 300_000,
        min_bps: int = 50_000,
        max_bps: int = 2_000_000,
        packet_size_bytes: int = 1200,
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        """Makes the half of a flow with these limits."""
        setup = (start_bps, min_bps, max_bps, packet_size_bytes)
        self._half: _paceline.Sender = _built(_paceline.Sender, controller, setup, parameters)

    @property
    def decision(self) -> Decision:
        """The current decision."""
        return self._half.decision

    def handle_bounds(self, now_s: float, *, min_bps: int, max_bps: int) -> None:
        """Passes new limits of the target."""
        self._half.handle_bounds(now_s, min_bps, max_bps)

    def handle_route_change(
        self, now_s: float, *, start_bps: int, min_bps: int, max_bps: int, packet_size_bytes: int = 1200
    ) -> None:
        """Passes a change of the network route."""
        self._half.handle_route_change(now_s, (start_bps, min_bps, max_bps, packet_size_bytes))

    def handle_availability(self, now_s: float, available: bool) -> None:
        """Passes the loss or the return of the network."""
        self._half.handle_availability(now_s, available)

    def handle_stream_removed(self, now_s: float, stream: int) -> None:
        """Passes the end of a stream."""
        self._half.handle_stream_removed(now_s, stream)


class Receiver:
    """The receive half of a controller. Times are on the receiver's clock."""

    def __init__(
        self,
        controller: Controller | str,
        *,
        start_bps: int = 300_000,
        min_bps: int = 50_000,
        max_bps: int = 2_000_000,
        packet_size_bytes: int = 1200,
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        """Makes the half of a flow with these limits."""
        setup = (start_bps, min_bps, max_bps, packet_size_bytes)
        self._half: _paceline.Receiver = _built(_paceline.Receiver, controller, setup, parameters)

    def handle_bounds(self, now_s: float, *, min_bps: int, max_bps: int) -> None:
        """Passes new limits of the target."""
        self._half.handle_bounds(now_s, min_bps, max_bps)

    def handle_route_change(
        self, now_s: float, *, start_bps: int, min_bps: int, max_bps: int, packet_size_bytes: int = 1200
    ) -> None:
        """Passes a change of the network route."""
        self._half.handle_route_change(now_s, (start_bps, min_bps, max_bps, packet_size_bytes))
