#!/usr/bin/env python3
"""A controller in Python: it decreases at 10 % loss and else increases by 5 % per second."""

import json
import sys


def say(line):
    print(json.dumps(line), flush=True)


say({"protocol": 1, "summary": "AIMD in Python", "signals": [{"name": "loss"}]})
rate, setup, last_ns = 0, {}, None
for line in sys.stdin:
    message = json.loads(line)
    signals = {}
    if message["type"] == "start":
        setup = message["setup"]
        rate = setup["start_bps"]
    else:
        for event in message["events"]:
            if event["type"] == "feedback" and event["packets"]:
                packets = event["packets"]
                loss = sum(p["arrival_ns"] is None for p in packets) / len(packets)
                seconds = 0 if last_ns is None else (event["at_ns"] - last_ns) / 1e9
                rate *= 1 - loss / 2 if loss > 0.1 else 1 + 0.05 * seconds
                last_ns, signals = event["at_ns"], {"loss": loss}
            elif event["type"] in ("bounds", "route"):
                setup = {**setup, **event.get("setup", event)}
        rate = min(max(rate, setup["min_bps"]), setup["max_bps"])
    say({"target_bps": round(rate), "signals": signals})
