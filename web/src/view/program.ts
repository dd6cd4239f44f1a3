/** The analysis as a worker of the page: captures and questions in, texts out. */
import { bytesOf } from "./letters.ts";
import AnalysisWorker from "./worker.ts?worker&inline";

/** What the page asks of the worker. */
export type Task =
  | { kind: "program"; module: WebAssembly.Module }
  | { kind: "capture"; id: number; file: File }
  | { kind: "law"; id: number; question: string };

/** What the worker answers. */
export type Answer =
  | { kind: "progress"; id: number; bytes: number }
  | { kind: "done"; id: number; text: string }
  | { kind: "problem"; id: number; text: string };

interface Waiting {
  resolve: (text: string) => void;
  reject: (error: Error) => void;
  progress?: (bytes: number) => void;
}

/** The program with its worker. */
export class Program {
  private readonly worker = new AnalysisWorker();
  private readonly waiting = new Map<number, Waiting>();
  private next = 0;

  private constructor(module: WebAssembly.Module) {
    this.worker.onmessage = ({ data: answer }: MessageEvent<Answer>) => this.answered(answer);
    this.worker.postMessage({ kind: "program", module } satisfies Task);
  }

  /** Unpacks the program that stands in the page: WebAssembly, packed with gzip, as Z85. */
  static async load(text: string): Promise<Program> {
    const unpacked = new Blob([bytesOf(text)])
      .stream()
      .pipeThrough(new DecompressionStream("gzip"));
    const bytes = await new Response(unpacked).arrayBuffer();
    return new Program(await WebAssembly.compile(bytes));
  }

  /** What the report on a capture shows, as JSON. `progress` hears how many bytes were read. */
  report(file: File, progress: (bytes: number) => void): Promise<string> {
    return this.ask((id) => ({ kind: "capture", id, file }), progress);
  }

  /** The answer to a question of the calculator, as JSON. */
  law(question: object): Promise<string> {
    return this.ask((id) => ({ kind: "law", id, question: JSON.stringify(question) }));
  }

  private ask(task: (id: number) => Task, progress?: (bytes: number) => void): Promise<string> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, ...(progress && { progress }) });
      this.worker.postMessage(task(id));
    });
  }

  private answered(answer: Answer): void {
    const waiting = this.waiting.get(answer.id);
    if (answer.kind === "progress") {
      waiting?.progress?.(answer.bytes);
      return;
    }
    this.waiting.delete(answer.id);
    if (answer.kind === "done") waiting?.resolve(answer.text);
    else waiting?.reject(new Error(answer.text));
  }
}
