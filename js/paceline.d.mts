/** Times are in ms, rates in bit/s, sizes in bytes. */
export interface Rates {
  startBps: number;
  minBps: number;
  maxBps: number;
}

export interface SenderOptions extends Rates {
  /** Parameters of the controller that differ from their defaults. */
  parameters?: Record<string, number>;
}

export type Ecn = "not-ect" | "ect0" | "ect1" | "ce";
export type PacketKind = "media" | "retransmission" | "fec" | "padding";
export type SenderEvent =
  | { type: "probe-result"; probe: number; rateBps: number }
  | { type: "stream-rates"; rateBps: number }
  | {
      type:
        | "decision"
        | "frame-dropped"
        | "key-frame-requested"
        | "feedback-lost"
        | "feedback-resumed"
        | "clock-stepped-back"
        | "controller-failed";
    };

export interface Transmit<T> {
  number: number;
  packet: T | undefined;
  bytes: number;
  probe: number | null;
  ecn: Ecn;
}

export interface ProbeCluster {
  id: number;
  rateBps: number;
  durationMs: number;
  packets: number;
}

export interface Sender<T = unknown> {
  handleSent(nowMs: number, bytes: number, packet?: { kind?: PacketKind; probe?: number | null }): number;
  handleFeedback(nowMs: number, packets: Iterable<{ number: number; arrivalMs: number | null; ecn?: Ecn | null }>): void;
  handleRtt(nowMs: number, rttMs: number): void;
  handleLoss(nowMs: number, fraction: number): void;
  handleRemb(nowMs: number, bps: number): void;
  setBounds(nowMs: number, bounds: { minBps: number; maxBps: number }): void;
  handleRouteChange(nowMs: number, rates: Rates): void;
  setAvailable(nowMs: number, available: boolean): void;
  handleTimeout(nowMs: number): void;
  pushFrame(nowMs: number, packets: Iterable<{ packet: T; bytes: number }>, options?: { key?: boolean }): boolean;
  pollTransmit(nowMs: number): Transmit<T> | null;
  pollProbe(): ProbeCluster | null;
  pollEvent(): SenderEvent | null;
  readonly timeoutMs: number;
  readonly targetBps: number;
  readonly stableTargetBps: number;
  readonly pacingBps: number;
  readonly paddingBps: number;
  readonly window: { bytes: number; inFlight: number; isOpen: boolean };
  readonly queueMaxMs: number;
  readonly queuedBytes: number;
  readonly ecn: Ecn;
  free(): void;
}

export interface Paceline {
  readonly controllers: string[];
  needs(controller: string): { feedback: boolean; ecn: boolean; remb: boolean; receiver: boolean };
  sender<T = unknown>(controller: string, options: SenderOptions): Sender<T>;
}

type Bytes = ArrayBuffer | ArrayBufferView | WebAssembly.Module | Response;
export function load(source: Bytes | Promise<Bytes>): Promise<Paceline>;
