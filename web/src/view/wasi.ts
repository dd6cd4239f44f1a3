/**
 * As much of WASI (preview 1) as the analysis needs: arguments, standard input and output, a clock,
 * random bytes. It has no files and no network to give.
 */

/** What a program left behind. */
export interface Ended {
  /** Its exit code. */
  code: number;
  /** What it wrote to standard output. */
  output: string;
}

const SUCCESS = 0;
const BAD_DESCRIPTOR = 8;
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
/** `filetype` of `fdstat`: a character device. */
const CHARACTER_DEVICE = 2;

class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/**
 * Runs a program to its end. `read` gives up to so many bytes of standard input; none is the end.
 */
export function run(
  module: WebAssembly.Module,
  args: string[],
  read: (most: number) => Uint8Array,
): Ended {
  const output: Uint8Array[] = [];
  const words = ["fullpipe-view", ...args].map((word) => new TextEncoder().encode(`${word}\0`));
  let memory: WebAssembly.Memory;
  const view = () => new DataView(memory.buffer);
  const bytes = (at: number, length: number) => new Uint8Array(memory.buffer, at, length);

  /** The parts of memory that a list of `iovec` names. */
  const parts = (list: number, count: number) =>
    Array.from({ length: count }, (_, number) => ({
      at: view().getUint32(list + 8 * number, true),
      length: view().getUint32(list + 8 * number + 4, true),
    }));

  const calls: Record<string, (...values: never[]) => number> = {
    args_sizes_get(count: number, size: number) {
      view().setUint32(count, words.length, true);
      view().setUint32(
        size,
        words.reduce((sum, word) => sum + word.length, 0),
        true,
      );
      return SUCCESS;
    },
    args_get(pointers: number, buffer: number) {
      words.forEach((word, number) => {
        view().setUint32(pointers + 4 * number, buffer, true);
        bytes(buffer, word.length).set(word);
        buffer += word.length;
      });
      return SUCCESS;
    },
    environ_sizes_get(count: number, size: number) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    fd_read(descriptor: number, list: number, count: number, result: number) {
      if (descriptor !== STDIN) return BAD_DESCRIPTOR;
      let total = 0;
      for (const { at, length } of parts(list, count)) {
        if (length === 0) continue;
        const piece = read(length);
        bytes(at, piece.length).set(piece);
        total += piece.length;
        if (piece.length < length) break;
      }
      view().setUint32(result, total, true);
      return SUCCESS;
    },
    fd_write(descriptor: number, list: number, count: number, result: number) {
      if (descriptor !== STDOUT && descriptor !== STDERR) return BAD_DESCRIPTOR;
      let total = 0;
      for (const { at, length } of parts(list, count)) {
        if (descriptor === STDOUT) output.push(bytes(at, length).slice());
        total += length;
      }
      view().setUint32(result, total, true);
      return SUCCESS;
    },
    fd_fdstat_get(descriptor: number, result: number) {
      if (descriptor > STDERR) return BAD_DESCRIPTOR;
      bytes(result, 24).fill(0);
      view().setUint8(result, CHARACTER_DEVICE);
      return SUCCESS;
    },
    fd_close: () => SUCCESS,
    clock_time_get(_clock: number, _precision: bigint, result: number) {
      view().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
      return SUCCESS;
    },
    random_get(at: number, length: number) {
      // The browser gives at most 65,536 bytes a call.
      for (let from = 0; from < length; from += 65_536) {
        crypto.getRandomValues(bytes(at + from, Math.min(65_536, length - from)));
      }
      return SUCCESS;
    },
    sched_yield: () => SUCCESS,
    proc_exit(code: number): number {
      throw new Exit(code);
    },
  };
  // What is not here, such as opening a file, does not exist.
  const imports = new Proxy(calls, {
    get: (all, name) => all[String(name)] ?? (() => BAD_DESCRIPTOR),
  });
  const wasi = Object.fromEntries(
    WebAssembly.Module.imports(module).map(({ name }) => [
      name,
      imports[name] as WebAssembly.ImportValue,
    ]),
  );
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi });
  memory = instance.exports.memory as WebAssembly.Memory;
  let code = 0;
  try {
    (instance.exports._start as () => void)();
  } catch (end) {
    if (!(end instanceof Exit)) throw end;
    code = end.code;
  }
  return { code, output: joined(output) };
}

function joined(parts: Uint8Array[]): string {
  const decoder = new TextDecoder();
  return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
}
