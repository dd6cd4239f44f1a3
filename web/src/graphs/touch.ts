/**
 * Fingers on a graph: two zoom about the place between them, one moves what is zoomed along, and
 * two quick taps come back to the whole. Up and down scroll the page, as everywhere else.
 */
import type { Span } from "../verdict.ts";

/** What fingers ask for. */
export interface TouchEvents {
  /** What is shown now. */
  shown(): Span;
  /** Show this. */
  show(to: Span): void;
  /** Show the whole. */
  reset(): void;
}

/** Two fingers closer than this, in pixels, do not zoom: a pixel would be too much. */
const APART_LEAST = 24;
/** Two taps within this many milliseconds are one wish. */
const TAPS_WITHIN = 300;
/** A finger that moved further than this, in pixels, did not tap. */
const TAP_MOVES_AT_MOST = 10;

/** The span in which the places under the fingers stay under them, of a graph `width` pixels wide. */
export function pinched(
  shown: Span,
  from: readonly number[],
  to: readonly number[],
  width: number,
): Span {
  const [start, end] = shown;
  const [before, after] = [from, to].map(([one, other]) =>
    other === undefined ? undefined : Math.max(Math.abs(one - other), APART_LEAST),
  );
  const scale = before && after ? before / after : 1;
  const middle = (at: readonly number[]): number => at.reduce((sum, x) => sum + x, 0) / at.length;
  const perPixel = (end - start) / Math.max(1, width);
  const held = start + middle(from) * perPixel;
  const first = held - middle(to) * perPixel * scale;
  return [first, first + (end - start) * scale];
}

/** Follows the fingers on an element. */
export function followFingers(element: HTMLElement, events: TouchEvents): void {
  /** Where each finger is: its distance from the left edge of the element. */
  const fingers = new Map<number, number>();
  let tapped = -Infinity;
  let moved = 0;
  const place = (event: PointerEvent): number =>
    event.clientX - element.getBoundingClientRect().left;
  element.style.touchAction = "pan-y";
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || fingers.size === 2) return;
    if (fingers.size === 0) moved = 0;
    fingers.set(event.pointerId, place(event));
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    const was = fingers.get(event.pointerId);
    if (was === undefined) return;
    const from = [...fingers.values()];
    fingers.set(event.pointerId, place(event));
    moved += Math.abs(place(event) - was);
    if (fingers.size === 1 && moved <= TAP_MOVES_AT_MOST) return;
    events.show(pinched(events.shown(), from, [...fingers.values()], element.clientWidth));
  });
  for (const end of ["pointerup", "pointercancel"] as const) {
    element.addEventListener(end, (event) => {
      if (!fingers.delete(event.pointerId) || end === "pointercancel") return;
      if (moved > TAP_MOVES_AT_MOST || fingers.size > 0) return;
      if (event.timeStamp - tapped < TAPS_WITHIN) events.reset();
      tapped = event.timeStamp;
    });
  }
}
