// Runs a WebAssembly program with WASI: `node wasi.mjs PROGRAM.wasm`.
import { readFile } from "node:fs/promises";
import { argv } from "node:process";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1" });
const imports = { wasi_snapshot_preview1: wasi.wasiImport };
const { instance } = await WebAssembly.instantiate(await readFile(argv[2]), imports);
process.exitCode = wasi.start(instance);
