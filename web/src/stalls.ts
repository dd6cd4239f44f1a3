/** The list of stalls: when, for how long, why and what it cost. */
import type { Stall } from "./data.ts";
import { h } from "./dom.ts";
import { bytes, count, time } from "./units.ts";
import type { Span } from "./verdict.ts";
import type { Words } from "./words/words.ts";

/** More rows than this are shown on demand only. */
const ROWS = 20;

/** The list; `show` goes to a stall in the graphs. */
export function stallList(
  stalls: readonly Stall[],
  words: Words,
  show: (span: Span) => void,
): HTMLElement {
  const { ui } = words;
  if (stalls.length === 0) return h("p", { class: "quiet" }, ui.noStalls);
  const body = h("tbody");
  const fill = (most: number): void =>
    body.replaceChildren(...stalls.slice(0, most).map((stall) => row(stall, words, show)));
  const more = h(
    "button",
    {
      type: "button",
      class: "small",
      onclick: () => {
        fill(Infinity);
        more.hidden = true;
      },
    },
    words.say.all(count(stalls.length)),
  );
  more.hidden = stalls.length <= ROWS;
  fill(ROWS);
  const length = stalls.reduce((sum, stall) => sum + stall.length_us, 0);
  const cost = stalls.reduce((sum, stall) => sum + stall.cost_bytes, 0);
  return h(
    "div",
    {},
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": ui.stalls },
      h(
        "table",
        { class: "stalls" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, ui.time),
            h("th", { scope: "col", class: "number" }, ui.length),
            h("th", { scope: "col" }, ui.cause),
            h("th", { scope: "col", class: "number" }, ui.cost),
          ),
        ),
        body,
        h(
          "tfoot",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "row" }, ui.sum),
            h("td", { class: "number" }, time(length)),
            h("td"),
            h("td", { class: "number" }, bytes(cost)),
          ),
        ),
      ),
    ),
    more,
  );
}

function row(stall: Stall, words: Words, show: (span: Span) => void): HTMLElement {
  const cause = words.stall[stall.cause] ?? { name: stall.cause, means: words.stall.unknown.means };
  const go = (): void => show([stall.start_us, stall.start_us + stall.length_us]);
  return h(
    "tr",
    { onclick: go },
    h(
      "th",
      { scope: "row" },
      h(
        "button",
        {
          type: "button",
          "aria-label": `${words.ui.go}: ${time(stall.start_us)}`,
          onclick: (event: Event) => {
            event.stopPropagation();
            go();
          },
        },
        time(stall.start_us),
      ),
    ),
    h("td", { class: "number" }, time(stall.length_us)),
    h("td", {}, h("b", {}, cause.name), " ", h("span", { class: "quiet" }, cause.means)),
    h("td", { class: "number" }, bytes(stall.cost_bytes)),
  );
}
