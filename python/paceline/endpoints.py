# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sends media under a controller: everything between an encoder and a socket, for programs that use the network themselves.

    sender = paceline.Sender("drc", start_bps=300_000, min_bps=50_000, max_bps=5_000_000)
    sender.push_frame(now_s, [(payload, 1200), (payload, 800)])
    while packet := sender.poll_transmit(now_s):
        socket.send(my_header(packet.head) + (packet.packet or b""))  # None: padding up to packet.size

A sender reads no clock and no socket: each call gets the time in seconds. After one or more calls, before the program waits, it
calls `poll_transmit` until that returns `None`, then `poll_event`, and waits until `poll_timeout`. The rate of the encoder is
`target_bps`, less the headers of the program's packets. Sizes are those on the network, IP and UDP headers included. A call in
which a controller in Python raises an exception raises it, once; the sender then goes on without the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from . import _paceline
from .controllers import Controller, named, with_registered

__all__ = ["Receiver", "Sender"]


def _arguments(
    controller: Controller | str, setup: tuple[int, int, int, int], parameters: Mapping[str, float] | None
) -> tuple[str, tuple[int, int, int, int], list[tuple[str, float]], list[Any]]:
    name, own = named(controller)
    return name, setup, list((parameters or {}).items()), with_registered(own)


class Sender(_paceline.FlowSender):
    """The sender of a flow. It begins with a video stream of number 0, up to `max_bps`."""

    def __new__(
        cls,
        controller: Controller | str,
        *,
        start_bps: int = 300_000,
        min_bps: int = 50_000,
        max_bps: int = 2_000_000,
        packet_size_bytes: int = 1200,
        parameters: Mapping[str, float] | None = None,
    ) -> Self:
        """Makes a sender whose target has these limits. `packet_size_bytes` is the largest RTP packet, without IP and UDP
        headers."""
        setup = (start_bps, min_bps, max_bps, packet_size_bytes)
        return super().__new__(cls, *_arguments(controller, setup, parameters))


class Receiver(_paceline.FlowReceiver):
    """The receiver of a flow, on its own clock. Both ends must use the same controller and parameters."""

    def __new__(
        cls,
        controller: Controller | str,
        *,
        start_bps: int = 300_000,
        min_bps: int = 50_000,
        max_bps: int = 2_000_000,
        packet_size_bytes: int = 1200,
        parameters: Mapping[str, float] | None = None,
        rtp: tuple[int, int] | None = None,
        extension_ids: tuple[int, int] = (2, 3),
    ) -> Self:
        """Makes a receiver. With `rtp`, its own SSRC and that of the media, it takes RTP packets by `handle_rtp` and writes RTCP by
        `poll_rtcp`; `extension_ids` are the ids of abs-send-time and of the transport-wide sequence number. Without, it takes
        packets of a format of the program by `handle_packet` and writes reports by `poll_report`."""
        setup = (start_bps, min_bps, max_bps, packet_size_bytes)
        return super().__new__(cls, *_arguments(controller, setup, parameters), rtp and (*rtp, *extension_ids))
