/** Where all the time of a connection went: a bar, its parts, and the sentence about the first. */
import type { Account, Accounted, AccountPart, Facts } from "./data.ts";
import { h } from "./dom.ts";
import { limitName, type LimitName } from "./limits.ts";
import type { Palette } from "./theme.ts";
import { percent, time } from "./units.ts";
import type { Words } from "./words/words.ts";

/** Parts below this share of the time are not listed. */
const LEAST = 0.005;

/** The limit of a part in which data was on its way. */
function limitOf(part: Accounted): LimitName | undefined {
  if (!part.direction) return undefined;
  if (part.cause === "transfer") return "unknown";
  const ofWindow = part.cause === "slow_start" || part.cause === "loss";
  return limitName(
    ofWindow ? { limit: "congestion_window", cause: part.cause } : { limit: part.cause },
  );
}

/** What one program does slowly is one thing, whether it holds back or comes to a stop. */
const KIN: readonly (readonly string[])[] = [
  ["sender_application", "paused"],
  ["receiver_application", "window_shut"],
];

function isKin(one: AccountPart, other: AccountPart): boolean {
  return (
    one.owner === other.owner &&
    KIN.some((kin) => kin.includes(one.cause) && kin.includes(other.cause))
  );
}

/** The parts, the longest first, with those of a kind as one: it is called what took longer. */
function together(parts: readonly AccountPart[]): AccountPart[] {
  const all: AccountPart[] = [];
  for (const part of parts) {
    const kin = all.find((one) => isKin(one, part));
    if (kin) {
      kin.time_us += part.time_us;
      kin.lost_us += part.lost_us;
    } else {
      all.push({ ...part });
    }
  }
  return all;
}

/** The part that lost most, where that was outside the transfer and a tenth of the time. */
export function waitedFor(facts: Facts): AccountPart | undefined {
  const parts = together(facts.account?.parts ?? []);
  const first = parts.reduce<AccountPart | undefined>(
    (most, part) => (part.lost_us > (most?.lost_us ?? 0) ? part : most),
    undefined,
  );
  const all = facts.account?.time_us ?? 0;
  return first && !first.direction && first.lost_us * 10 >= all ? first : undefined;
}

/** "4 s of 4.01 s: the server did not answer yet." */
export function waitSentence(words: Words, account: Account, part: AccountPart): string {
  return words.account.sentence(
    time(part.time_us),
    time(account.time_us),
    words.account.cause[part.cause] ?? part.cause,
  );
}

/** How opaque the path's own parts are, as hexadecimal digits: they are told apart by it. */
const SHADES: Record<string, string> = {
  connect: "66",
  syn_repeated: "66",
  tls: "99",
  turns: "cc",
};

/** The colour of a part in bars. */
export function accountColour(palette: Palette, part: Accounted): string {
  const limit = limitOf(part);
  if (limit) return palette.limits[limit];
  switch (part.owner) {
    case "server_application":
      return palette.violet;
    case "client_application":
      return palette.pink;
    case "path":
      return palette.sky + (SHADES[part.cause] ?? "");
    case "peer_gone":
      return palette.red;
    case "nobody":
    case "not_captured":
      return palette.grid;
    default:
      return palette.amber;
  }
}

/** What a part is called. */
export function accountName(words: Words, part: Accounted): string {
  const limit = limitOf(part);
  const what = limit ? words.limit[limit].name : (words.account.cause[part.cause] ?? part.cause);
  return limit && part.direction ? `${words.direction[part.direction]}: ${what}` : what;
}

/** The bar with its parts; nothing where no time was counted. */
export function accountBar(words: Words, palette: Palette, facts: Facts): HTMLElement | null {
  const account = facts.account;
  if (!account || account.time_us === 0) return null;
  const parts = account.parts.filter((part) => part.time_us >= LEAST * account.time_us);
  if (parts.length === 0) return null;
  const bar = h(
    "div",
    { class: "share-bar", "aria-hidden": "true" },
    parts.map((part) => {
      const piece = h("i", { title: `${accountName(words, part)} ${time(part.time_us)}` });
      piece.style.flexGrow = String(part.time_us);
      piece.style.background = accountColour(palette, part);
      return piece;
    }),
  );
  const list = h(
    "ul",
    { class: "keys", "aria-label": words.account.title },
    parts.map((part) => {
      const mark = h("i", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = accountColour(palette, part);
      return h(
        "li",
        { title: words.account.owner[part.owner] ?? part.owner },
        mark,
        accountName(words, part),
        " ",
        h("b", {}, `${time(part.time_us)} (${percent(part.time_us / account.time_us)})`),
      );
    }),
  );
  return h("div", { class: "shares account" }, h("h2", {}, words.account.title), bar, list);
}
