/** Limits by name: the order in which they are shown, and how they are told apart. */
import type { Candidate } from "./data.ts";

/** A limit, with the cause of a congestion window as part of the name. */
export type LimitName =
  | "receive_window"
  | "receiver_application"
  | "send_buffer"
  | "sender_application"
  | "slow_start"
  | "loss"
  | "link"
  | "application_window"
  | "unknown";

/** Every limit. */
export const LIMITS: readonly LimitName[] = [
  "receive_window",
  "receiver_application",
  "send_buffer",
  "sender_application",
  "slow_start",
  "loss",
  "link",
  "application_window",
  "unknown",
];

/** The name of a candidate; what this page does not know is `unknown`. */
export function limitName(of: Pick<Candidate, "limit" | "cause">): LimitName {
  if (of.limit === "congestion_window") return of.cause === "slow_start" ? "slow_start" : "loss";
  return LIMITS.find((name) => name === of.limit) ?? "unknown";
}

/** Time that a setting, a receiver or congestion control took: neither the path nor the sender's
 * application (`loses`, crates/flow/src/diagnosis). */
export function loses(name: LimitName): boolean {
  return !["link", "sender_application", "unknown"].includes(name);
}
