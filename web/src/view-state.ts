/** What is looked at, as the fragment of the page's address: `#c=2&d=s2c&t=1000-250000`. */
import type { Direction } from "./data.ts";

/** What is looked at. Absent parts are as the page chooses. */
export interface ViewState {
  /** Place in the list of connections, from 0. */
  connection?: number;
  direction?: Direction;
  /** The time that is shown, in µs. */
  zoom?: [number, number];
  language?: "en" | "zh";
  theme?: "light" | "dark";
  /** Round trips over the sequence number. */
  overSequence?: boolean;
}

const SHORT: Record<Direction, string> = { client_to_server: "c2s", server_to_client: "s2c" };

/** The fragment, without `#`; empty where all is as the page chooses. */
export function toFragment(state: ViewState): string {
  const parts = new URLSearchParams();
  if (state.connection !== undefined) parts.set("c", String(state.connection + 1));
  if (state.direction) parts.set("d", SHORT[state.direction]);
  if (state.zoom) parts.set("t", state.zoom.map(Math.round).join("-"));
  if (state.overSequence) parts.set("x", "sequence");
  if (state.language) parts.set("lang", state.language);
  if (state.theme) parts.set("theme", state.theme);
  return parts.toString();
}

/** The view of a fragment; what it does not know or cannot be is left out. */
export function fromFragment(fragment: string): ViewState {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: ViewState = {};
  const connection = /^[1-9]\d{0,8}$/.exec(parts.get("c") ?? "");
  if (connection) state.connection = Number(connection[0]) - 1;
  const direction = parts.get("d");
  if (direction === "c2s") state.direction = "client_to_server";
  if (direction === "s2c") state.direction = "server_to_client";
  const zoom = /^(\d{1,15})-(\d{1,15})$/.exec(parts.get("t") ?? "");
  if (zoom && Number(zoom[1]) < Number(zoom[2])) state.zoom = [Number(zoom[1]), Number(zoom[2])];
  if (parts.get("x") === "sequence") state.overSequence = true;
  const language = parts.get("lang");
  if (language === "en" || language === "zh") state.language = language;
  const theme = parts.get("theme");
  if (theme === "light" || theme === "dark") state.theme = theme;
  return state;
}
