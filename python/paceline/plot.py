"""Plots of runs with matplotlib, which is imported at the first plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(run: Any) -> Figure:
    """Draws rates and capacity of a `Run`, queuing delay of hops with a capacity, and losses."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("plots need matplotlib: pip install 'paceline[plot]'") from missing
    figure = Figure(figsize=(8, 6), layout="constrained")
    rate, queue, loss = figure.subplots(3, 1, sharex=True, height_ratios=[3, 2, 1])
    end = float(run["duration_s"])
    limited = {hop: steps for hop, steps in run.capacity.items() if steps}
    for hop, steps in limited.items():
        time, bps = np.array([*steps, (end, steps[-1][1])]).T
        rate.step(time, bps / 1e6, where="post", color="0.6", linewidth=2, label=f"capacity of {hop}")
        if f"{hop}.queue_ms" in run.series:
            delay = run.series[f"{hop}.queue_ms"]
            queue.plot(delay.time_s, delay.value, linewidth=0.8, label=f"delay at {hop}")
    for number, flow in enumerate(f["id"] for f in run["flows"]):
        colour = f"C{number}"
        if f"{flow}.received_bytes" in run.series:
            received = run.received_bps(flow)
            rate.step(received.time_s, received.value / 1e6, where="post", color=colour, label=f"{flow} received")
        if f"{flow}.target_bps" in run.series:
            target = run.series[f"{flow}.target_bps"]
            rate.step(target.time_s, target.value / 1e6, where="post", color=colour, ls=":", label=f"{flow} target")
        if f"{flow}.fraction_lost" in run.series:
            lost = run.series[f"{flow}.fraction_lost"]
            loss.plot(lost.time_s, lost.value * 100, color=colour, label=f"{flow} lost")
    rate.set(title=f"{run.scenario}: {run.title}", ylabel="rate (Mbit/s)")
    queue.set(ylabel="queuing delay (ms)")
    loss.set(ylabel="reported loss (%)", xlabel="time (s)", xlim=(0, end))
    for axes in (rate, queue):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small", loc="best")
    return figure
