/** The card at the top: what limited the connection, how sure that is, and what to change. */
import type { ConnectionData, Direction, Finding, Source } from "./data.ts";
import { copyButton, h, prose } from "./dom.ts";
import { accountBar, waitedFor, waitSentence } from "./account.ts";
import { type LimitName, limitName } from "./limits.ts";
import type { Palette } from "./theme.ts";
import { count, percent } from "./units.ts";
import {
  changes,
  either,
  findings,
  heldBy,
  rival,
  shares,
  shellLines,
  type Span,
  spansOf,
} from "./verdict.ts";
import type { Words } from "./words/words.ts";

/** What the card shows, and whom it tells. */
export interface CardOptions {
  readonly connection: ConnectionData;
  readonly direction: Direction;
  /** Where it was read from. */
  readonly source?: Source | undefined;
  /** Above the sentence: which connection this is. */
  readonly which: string;
  readonly words: Words;
  readonly palette: Palette;
  /** What was set after this transfer, where that is known: it is what to change. */
  readonly plan?: readonly unknown[] | undefined;
  /** Whether there are graphs to show spans in. */
  readonly hasGraphs: boolean;
  show(span: Span): void;
}

/** The card. */
export function card(options: CardOptions): HTMLElement {
  const {
    connection: { facts },
    direction,
    words,
    which,
  } = options;
  const [first, ...others] = findings(facts, direction);
  const causes = facts.sub_causes.filter((one) => one.direction === direction);
  const unanswered = causes.find((one) => one.sub_cause === "no_answer");
  const waited = waitedFor(facts);
  const verdict = first
    ? headline(words, first)
    : unanswered
      ? words.subCause(unanswered).claim
      : words.noVerdict;
  const sentence =
    waited && facts.account && !unanswered ? waitSentence(words, facts.account, waited) : verdict;
  const element = h(
    "section",
    { class: "card verdict", "aria-labelledby": "verdict" },
    h("p", { class: "eyebrow" }, which),
    h("h1", { id: "verdict" }, sentence),
    sentence !== verdict && first ? h("p", {}, verdict) : null,
    accountBar(words, options.palette, facts),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "column" }, first ? reasons(options, first) : null, shareBar(options)),
      first ? advice(words, first, options.plan) : null,
    ),
    behind(words, causes),
    others.length ? rest(options, others) : null,
    warnings(words, facts.warnings, options.source),
  );
  element.style.setProperty(
    "--accent",
    options.palette.limits[first ? limitName(first) : "unknown"],
  );
  return element;
}

/** The sentence of a finding. */
export function headline(words: Words, finding: Finding): string {
  const two = either(finding);
  return two
    ? words.guess(...two)
    : words.verdict(limitName(finding), percent(finding.share), finding.evidence);
}

function reasons(options: CardOptions, finding: Finding): HTMLElement {
  const { words } = options;
  const name = limitName(finding),
    other = rival(finding);
  const doubt = words.doubt(finding, other && words.limit[other].name);
  return h(
    "div",
    { class: "because" },
    h("p", {}, words.because(name, finding).join(words.code === "en" ? " " : "")),
    finding.confidence === null || finding.confidence === undefined
      ? null
      : h("p", { class: "quiet" }, doubt ?? words.confidence(finding.confidence)),
    h("p", { class: "actions" }, showButton(options, name, true)),
  );
}

/** A button that goes to the spans of a limit, from the longest on. */
function showButton(options: CardOptions, name: LimitName, isMain: boolean): HTMLElement | null {
  const { connection, direction, words, hasGraphs } = options;
  const spans = hasGraphs ? spansOf(heldBy(connection.facts, direction), name) : [];
  if (spans.length === 0) return null;
  let next = 0;
  const count = spans.length > 1 ? h("span", { class: "count" }, `1/${spans.length}`) : null;
  return h(
    "button",
    {
      type: "button",
      class: isMain ? "primary" : "small",
      "data-show": name,
      "aria-label": `${words.ui.showMe}: ${words.limit[name].name}, ${words.say.spans(spans.length)}`,
      onclick: () => {
        options.show(spans[next]);
        if (count) count.textContent = `${next + 1}/${spans.length}`;
        next = (next + 1) % spans.length;
      },
    },
    words.ui.showMe,
    count,
  );
}

function shareBar({ connection, direction, words, palette }: CardOptions): HTMLElement | null {
  const all = shares(connection.facts, direction);
  if (all.length === 0) return null;
  const bar = h(
    "div",
    { class: "share-bar", "aria-hidden": "true" },
    all.map(([name, share]) => {
      const part = h("i", { title: `${words.limit[name].name} ${percent(share)}` });
      part.style.flexGrow = String(share);
      part.style.background = palette.limits[name];
      return part;
    }),
  );
  const list = h(
    "ul",
    { class: "keys", "aria-label": words.ui.shares },
    all.map(([name, share]) => {
      const mark = h("i", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = palette.limits[name];
      return h(
        "li",
        { title: words.limit[name].means },
        mark,
        words.limit[name].name,
        " ",
        h("b", {}, percent(share)),
      );
    }),
  );
  return h("div", { class: "shares" }, bar, list);
}

function advice(words: Words, finding: Finding, plan: readonly unknown[] | undefined): HTMLElement {
  const all = changes(plan?.length ? plan : finding.changes);
  const ends = (["receiver", "sender"] as const).filter((end) =>
    all.some((one) => one.end === end),
  );
  return h(
    "div",
    { class: "advice" },
    h("h2", {}, words.ui.whatToDo),
    h("p", {}, prose(words.remedy(finding))),
    ends.map((end) => {
      const lines = shellLines(all.filter((one) => one.end === end));
      return h(
        "figure",
        { class: "shell" },
        h(
          "figcaption",
          {},
          words.say.on(end),
          copyButton(words.ui.copy, words.ui.copied, () => lines),
        ),
        h("pre", { tabindex: 0, "aria-label": words.say.on(end) }, h("code", {}, lines)),
      );
    }),
  );
}

function behind(words: Words, causes: Parameters<Words["subCause"]>[0][]): HTMLElement | null {
  const told = causes.map((cause) => words.subCause(cause));
  if (told.length === 0) return null;
  return h(
    "div",
    { class: "behind" },
    h("h2", {}, words.ui.behind),
    told.map(({ claim, remedy }) =>
      h("div", { class: "cause" }, h("p", {}, h("b", {}, claim)), h("p", {}, remedy)),
    ),
  );
}

function rest(options: CardOptions, others: Finding[]): HTMLElement {
  const { words, palette } = options;
  return h(
    "details",
    { class: "rest" },
    h("summary", {}, words.ui.otherLimits),
    others.map((finding) => {
      const name = limitName(finding);
      const mark = h("i", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = palette.limits[name];
      return h(
        "div",
        { class: "cause" },
        h("p", {}, mark, h("b", {}, words.verdict(name, percent(finding.share), finding.evidence))),
        h("p", {}, words.because(name, finding).join(words.code === "en" ? " " : "")),
        h("p", { class: "quiet" }, prose(words.remedy(finding))),
        h("p", { class: "actions" }, showButton(options, name, false)),
      );
    }),
  );
}

/** What puts the answer into doubt: of the connection, and of the capture that it is from. */
function warnings(words: Words, names: string[], source?: Source): HTMLElement | null {
  const { dropped = 0, backwards = 0, unsorted = 0 } = source ?? {};
  const told = names.map((name) => words.warning(name));
  if (dropped > 0) told.push(words.say.dropped(count(dropped)));
  if (backwards > 0) {
    const order = unsorted === 0 ? "sorted" : unsorted === backwards ? "as_taken" : "partly";
    told.push(words.say.backwards(count(backwards), order, count(unsorted)));
  }
  if (told.length === 0) return null;
  return h(
    "div",
    { class: "warnings", role: "note" },
    h("h2", {}, words.ui.warnings),
    h(
      "ul",
      {},
      told.map((one) => h("li", {}, one)),
    ),
  );
}
