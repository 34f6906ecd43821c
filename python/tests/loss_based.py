"""The send half of gcc-2016 (mmsys16, equation 5) in Python: its loss controller under a REMB."""

import math

import paceline


class LossBased(paceline.SendHalf):
    """A_s grows at low loss, stays constant at medium loss, and falls at high loss; A = min(A_s, A_r)."""

    signals = {"A_s": "bit/s", "A_r received": "bit/s", "f_l": ""}

    def __init__(self, setup):
        self.a_s, self.a_r, self.min = setup.start_bps, math.inf, setup.min_bps

    def handle_report(self, now_s, report):
        f = report.fraction_lost
        if f > 0.1:
            self.a_s = rounded(self.a_s * (1.0 - 0.5 * f))
        elif f < 0.02:
            self.a_s = rounded(self.a_s * 1.05)
        self.a_s = self.bounded()
        self.emit("A_s", self.a_s)
        self.emit("f_l", f)

    def handle_message(self, now_s, message):
        if message.kind == "remb":
            self.a_r = message.rate_bps
            self.a_s = self.bounded()
            self.emit("A_s", self.a_s)
            self.emit("A_r received", self.a_r)

    def decision(self):
        return self.bounded()

    def bounded(self):
        return max(min(self.a_s, self.a_r), self.min)


def rounded(bps):
    """Rounds to 1 bit/s, as the library does."""
    return math.floor(bps + 0.5)


def controller(name="loss-based", half=LossBased):
    return paceline.Controller(name, send=half, receive="gcc-2016", feedback="none")
