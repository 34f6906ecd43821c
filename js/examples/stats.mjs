// A controller driven by samples of WebRTC's getStats: the round-trip time and the losses that the remote end reports.

/**
 * Returns a function that takes the reports of `RTCPeerConnection.getStats()` and passes what is new to the sender. It returns
 * the target, bit/s.
 */
export function statsDriver(sender) {
  const seen = new Map();
  return (nowMs, stats) => {
    for (const report of stats.values()) {
      if (report.type !== "remote-inbound-rtp") continue;
      const before = seen.get(report.id);
      if (before?.timestamp === report.timestamp) continue; // no new receiver report
      seen.set(report.id, { timestamp: report.timestamp });
      if (report.roundTripTime !== undefined) sender.handleRtt(nowMs, report.roundTripTime * 1000);
      if (report.fractionLost !== undefined) sender.handleLoss(nowMs, report.fractionLost);
    }
    sender.handleTimeout(nowMs);
    return sender.targetBps;
  };
}

/** In a page: follows a connection once per second, and limits its first video encoder to the target. */
export async function follow(connection, sender, seconds) {
  const next = statsDriver(sender);
  for (let second = 0; second < seconds; second++) {
    const target = next(performance.now(), await connection.getStats());
    const video = connection.getSenders().find(({ track }) => track?.kind === "video");
    const parameters = video.getParameters();
    parameters.encodings[0].maxBitrate = target;
    await video.setParameters(parameters);
    await new Promise((done) => setTimeout(done, 1000));
  }
}
