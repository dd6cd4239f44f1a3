/** What is said of a connection before its graphs: pure, for the card at the top and the table. */
import type { ConnectionData, Direction, Facts, Finding } from "./data.ts";
import { type LimitName, limitName, loses } from "./limits.ts";

/** A stretch of time from a connection's first packet, in µs. */
export type Span = readonly [start: number, end: number];

/** The direction that carried more data. */
export function bulk(facts: Facts): Direction {
  return facts.client_to_server.unique_payload_bytes > facts.server_to_client.unique_payload_bytes
    ? "client_to_server"
    : "server_to_client";
}

/** Both directions, the one that carried more first. */
export function directions(facts: Facts): [Direction, Direction] {
  const first = bulk(facts);
  return [first, first === "client_to_server" ? "server_to_client" : "client_to_server"];
}

/** The findings of a direction, largest share first. */
export function findings(facts: Facts, direction: Direction): Finding[] {
  return facts.findings.filter((one) => one.direction === direction);
}

/** Shares of the limits of a direction, those of the same name together. */
export function shares(facts: Facts, direction: Direction): [LimitName, number][] {
  const sums = new Map<LimitName, number>();
  for (const one of facts.limits) {
    if (one.direction !== direction || !(one.share > 0)) continue;
    const name = limitName(one);
    sums.set(name, (sums.get(name) ?? 0) + one.share);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** The time over which the shares of a direction are told, in µs. */
function timeOf(facts: Facts, direction: Direction): number {
  const first = findings(facts, direction).find((one) => one.share > 0 && one.evidence.time_us);
  return first ? first.evidence.time_us / first.share : facts.duration_us;
}

/** What remedies would give back, in µs: of all the time or, where no packets show that, of the time
 * of the data that neither the path nor the sending application took. */
export function lost(facts: Facts): number {
  if (facts.account) return facts.account.lost_us;
  if (facts.sub_causes.some((cause) => cause.sub_cause === "no_answer")) return facts.duration_us;
  const direction = bulk(facts);
  const losing = shares(facts, direction).filter(([name]) => loses(name));
  return losing.reduce((sum, [, share]) => sum + share, 0) * timeOf(facts, direction);
}

/** Where the time of an interval's start is, from the connection's first packet. */
export function startOf(facts: Facts, interval: { start_ns: number }): number {
  return (interval.start_ns - facts.start_ns) / 1000;
}

/** A stretch that one limit held. */
export interface Held {
  readonly name: LimitName;
  readonly span: Span;
  /** How sure its finding is, 0 to 1; null where the limit has none. */
  readonly confidence: number | null;
}

/** Who held the data of a direction, in order; neighbours with the same limit are one. */
export function heldBy(facts: Facts, direction: Direction): Held[] {
  const out: { name: LimitName; span: [number, number]; confidence: number | null }[] = [];
  const sure = new Map(
    findings(facts, direction).map((one) => [limitName(one), one.confidence ?? null]),
  );
  for (const interval of facts.intervals ?? []) {
    if (interval.direction !== direction || interval.candidates.length === 0) continue;
    const start = startOf(facts, interval),
      end = start + interval.length_us;
    const name = limitName(interval.candidates[0]);
    const last = out[out.length - 1];
    if (last?.name === name && start - last.span[1] < 0.01 * interval.length_us + 2)
      last.span[1] = end;
    else out.push({ name, span: [start, end], confidence: sure.get(name) ?? null });
  }
  return out;
}

/** The spans that a limit held, the longest first; gaps shorter than a tenth of a span close. */
export function spansOf(held: readonly Held[], name: LimitName): Span[] {
  const out: [number, number][] = [];
  for (const { span } of held.filter((one) => one.name === name)) {
    const last = out[out.length - 1];
    if (last && span[0] - last[1] < 0.1 * (span[1] - last[0])) last[1] = span[1];
    else out.push([span[0], span[1]]);
  }
  return out.sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
}

/** The greatest rival of a finding that has one. */
export function rival(finding: Finding): LimitName | undefined {
  const [first] = [...(finding.rivals ?? [])].sort((a, b) => b.share - a.share);
  return first && limitName(first);
}

/** The sum of labels that mean that data was sent again. */
export function sentAgain(connection: ConnectionData, direction: Direction): number {
  const { labels } = connection.facts[direction];
  return labels.retransmission ?? 0;
}

/** The two limits of a finding that is no more than a guess, the likelier first. */
export function either(finding: Finding): [LimitName, LimitName] | undefined {
  const [first, second] = (finding.either ?? []).map(limitName);
  return first && second ? [first, second] : undefined;
}

/** A setting to raise. */
export interface Change {
  readonly end: "sender" | "receiver";
  /** A line for a shell, made with the data: it never lowers what is there. */
  readonly command: string;
}

/** The changes of a finding or a plan, by what is in them; what is no change is left out. */
export function changes(of: readonly unknown[] | undefined): Change[] {
  return (of ?? []).flatMap((change) => {
    const { host, command } = (change ?? {}) as Record<string, unknown>;
    if (host !== "sender" && host !== "receiver") return [];
    return typeof command === "string" ? [{ end: host, command }] : [];
  });
}

/** The changes at one end as lines of a shell. */
export function shellLines(of: readonly Change[]): string {
  return of.map(({ command }) => command).join("\n");
}
