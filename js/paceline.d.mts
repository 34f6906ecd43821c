/** Times are in ms, rates in bit/s, sizes in bytes. */
export interface Sender {
  handleSent(nowMs: number, bytes: number): number;
  handleFeedback(nowMs: number, packets: Iterable<{ number: number; arrivalMs: number | null }>): void;
  handleRtt(nowMs: number, rttMs: number): void;
  handleLoss(nowMs: number, fraction: number): void;
  handleTimeout(nowMs: number): void;
  readonly timeoutMs: number;
  readonly targetBps: number;
  readonly pacingBps: number;
  free(): void;
}

export interface Paceline {
  readonly controllers: string[];
  sender(controller: string, rates: { startBps: number; minBps: number; maxBps: number }): Sender;
}

type Bytes = ArrayBuffer | ArrayBufferView | WebAssembly.Module | Response;
export function load(source: Bytes | Promise<Bytes>): Promise<Paceline>;
