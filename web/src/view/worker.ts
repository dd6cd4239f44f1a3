/** The analysis, beside the page: reads captures and answers the calculator, one after another. */
import { run } from "./wasi.ts";
import type { Answer, Task } from "./program.ts";

declare const self: {
  onmessage: ((event: MessageEvent<Task>) => void) | null;
  postMessage(answer: Answer): void;
};

/** Only workers have it, and only with it can a program that reads at once wait for a file. */
declare const FileReaderSync: new () => { readAsArrayBuffer(part: Blob): ArrayBuffer };

let program: WebAssembly.Module | null = null;
/** Bytes between two reports of progress. */
const STEP = 4 << 20;

self.onmessage = ({ data: task }) => {
  if (task.kind === "program") {
    program = task.module;
    return;
  }
  try {
    if (!program) throw new Error("there is no program");
    const { code, output } =
      task.kind === "capture"
        ? run(program, ["report", task.file.name], reader(task.id, task.file))
        : run(program, ["law"], text(task.question));
    self.postMessage({ kind: code === 0 ? "done" : "problem", id: task.id, text: output });
  } catch (error) {
    self.postMessage({ kind: "problem", id: task.id, text: String(error) });
  }
};

/** The bytes of a file, as they are asked for. */
function reader(id: number, file: File): (most: number) => Uint8Array {
  const files = new FileReaderSync();
  let at = 0,
    ahead = new Uint8Array(0),
    from = 0,
    told = 0;
  return (most) => {
    // Large pieces: each read of a file costs the same.
    if (from === ahead.length) {
      ahead = new Uint8Array(files.readAsArrayBuffer(file.slice(at, at + STEP)));
      at += ahead.length;
      from = 0;
      if (at - told >= STEP || at === file.size) {
        told = at;
        self.postMessage({ kind: "progress", id, bytes: at });
      }
    }
    const piece = ahead.subarray(from, from + most);
    from += piece.length;
    return piece;
  };
}

function text(question: string): (most: number) => Uint8Array {
  let rest = new TextEncoder().encode(question);
  return (most) => {
    const piece = rest.subarray(0, most);
    rest = rest.subarray(piece.length);
    return piece;
  };
}
