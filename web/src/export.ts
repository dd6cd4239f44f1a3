/** Graphs as files and on the clipboard. */
import type { Graph } from "./graphs/catalogue.ts";
import type { Layer } from "./graphs/layers.ts";
import { type Caption, paintGraph } from "./graphs/paint.ts";
import { SvgPen } from "./graphs/svg.ts";

/** What a picture shows. */
export interface Picture {
  readonly graph: Graph;
  readonly shown: readonly Layer[];
  readonly view: readonly [number, number];
  readonly caption: Caption;
}

const SIZE = { width: 1000, height: 480 };

/** The picture as SVG. */
export function svg({ graph, shown, view, caption }: Picture): string {
  const pen = new SvgPen();
  paintGraph(pen, graph, shown, view, SIZE, 1, caption);
  return pen.text(SIZE.width, SIZE.height);
}

/** The picture as PNG, with two pixels for each of the page. */
export function png({ graph, shown, view, caption }: Picture): Promise<Blob> {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE.width * 2;
  canvas.height = SIZE.height * 2;
  const pen = canvas.getContext("2d");
  if (!pen) return Promise.reject(new Error("no canvas"));
  paintGraph(pen, graph, shown, view, SIZE, 2, caption);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png"),
  );
}

/** Puts a picture on the clipboard; false where the browser refuses. */
export async function copyPng(picture: Picture): Promise<boolean> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png(picture) })]);
    return true;
  } catch {
    return false;
  }
}

/** Saves a file by the browser's own way. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
