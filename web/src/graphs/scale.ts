/** The y axis that a graph has over a part of its x axis. */
import type { Graph } from "./catalogue.ts";
import type { Layer } from "./layers.ts";
import { type Frame, type Pen, SANS } from "./pen.ts";

/** Least and greatest value to show, with some room. */
export function yRange(
  graph: Graph,
  shown: readonly Layer[],
  start: number,
  end: number,
  pixels: number,
): [number, number] {
  let low = Infinity,
    high = -Infinity;
  const far: [low: number, high: number, times: number][] = [];
  for (const layer of shown) {
    const extent = layer.extent(start, end, pixels);
    if (!extent) continue;
    if (layer.farFrom) {
      far.push([...extent, layer.farFrom]);
      continue;
    }
    low = Math.min(low, extent[0]);
    high = Math.max(high, extent[1]);
  }
  for (const [least, most, times] of far) {
    const now = high - (graph.isFromZero ? Math.min(0, low) : low);
    const reach = Math.max(high, most) - Math.min(low, least);
    if (low <= high && reach > times * now) continue;
    low = Math.min(low, least);
    high = Math.max(high, most);
  }
  if (!(low <= high)) return [0, 1];
  if (graph.isFromZero) low = Math.min(0, low);
  if (high <= low) high = low + Math.max(1, Math.abs(low) * 0.1);
  const room = (high - low) * 0.06;
  return [graph.isFromZero ? low : Math.max(0, low - room), high + room];
}

/** Names the lines that lie above the picture, at its upper edge. */
export function nameOutside(pen: Pen, frame: Frame, shown: readonly Layer[]): void {
  const { ratio, palette } = frame;
  pen.font = `600 ${11 * ratio}px ${SANS}`;
  pen.textAlign = "right";
  pen.textBaseline = "top";
  let top = frame.top + 5 * ratio;
  for (const layer of shown) {
    if (!layer.farFrom) continue;
    const extent = layer.extent(frame.start, frame.end, frame.width / ratio);
    if (!extent || extent[0] <= frame.high) continue;
    pen.fillStyle = palette[layer.colour];
    pen.fillText(`↑ ${layer.entry.name}`, frame.left + frame.width - 6 * ratio, top);
    top += 15 * ratio;
  }
}
