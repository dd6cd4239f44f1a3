/** The table of connections: sortable, the one that lost most time first. */
import { waitedFor } from "./account.ts";
import type { ConnectionData, PageData } from "./data.ts";
import { h } from "./dom.ts";
import type { Palette } from "./theme.ts";
import { bytes, count, percent, rate, time } from "./units.ts";
import { bulk, either, findings, lost, sentAgain, shares } from "./verdict.ts";
import type { UiName, Words } from "./words/words.ts";

/** A column: what stands in it, and by what it is sorted. */
interface Column {
  readonly name: UiName;
  readonly isNumber: boolean;
  sort(connection: ConnectionData, place: number): number | string;
  show(connection: ConnectionData, place: number): Node | string;
  /** Below it, in small letters. */
  note?(connection: ConnectionData): string | undefined;
}

/** How the table is sorted; the page keeps it when it is drawn anew. */
export interface Sorting {
  /** Without one, the connection that lost most time is first. */
  column?: UiName;
  isDown: boolean;
  /** Rows that are shown, at most. */
  most: number;
}

/** Rows that are shown at first, so that the graphs are not far below; the rest is on demand. */
export const ROWS = 10;

/** The table. */
export function connectionTable(
  data: PageData,
  selected: number,
  words: Words,
  palette: Palette,
  sorting: Sorting,
  select: (place: number) => void,
): HTMLElement {
  const columns = columnsOf(data, words, palette);
  const body = h("tbody", { role: "rowgroup" });
  const heads = columns.map((column) => head(column, words, sorting, () => fillRows()));
  const fillRows = (): void => {
    const order = sorted(data.connections, columns, sorting);
    // The one whose graphs are shown stands in the table wherever it comes.
    const shown = order.slice(0, sorting.most);
    if (!shown.includes(selected) && selected >= 0) shown.push(selected);
    body.replaceChildren(
      ...shown.map((place) => row(data, place, columns, place === selected, words, select)),
    );
    heads.forEach((one, i) => {
      const isBy = columns[i].name === sorting.column;
      one.setAttribute("aria-sort", isBy ? (sorting.isDown ? "descending" : "ascending") : "none");
    });
    more.hidden = order.length <= sorting.most;
  };
  const more = h(
    "button",
    {
      type: "button",
      class: "small",
      onclick: () => {
        sorting.most = Infinity;
        fillRows();
      },
    },
    words.say.all(count(data.connections.length)),
  );
  fillRows();
  return h(
    "div",
    {},
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": words.ui.connections },
      h(
        "table",
        { class: "connections", role: "table" },
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
        body,
      ),
    ),
    more,
  );
}

function head(column: Column, words: Words, sorting: Sorting, changed: () => void): HTMLElement {
  return h(
    "th",
    { scope: "col", role: "columnheader", class: column.isNumber ? "number" : null },
    h(
      "button",
      {
        type: "button",
        "aria-label": `${words.ui.sortBy} ${words.ui[column.name]}`,
        onclick: () => {
          sorting.isDown =
            sorting.column === column.name
              ? !sorting.isDown
              : column.isNumber && column.name !== "place";
          sorting.column = column.name;
          changed();
        },
      },
      words.ui[column.name],
    ),
  );
}

function sorted(connections: ConnectionData[], columns: Column[], sorting: Sorting): number[] {
  const column = columns.find(({ name }) => name === sorting.column);
  if (!column) return connections.map((_, place) => place);
  const keys = connections.map((connection, place) => column.sort(connection, place));
  const order = (a: number, b: number): number => {
    const [left, right] = [keys[a], keys[b]];
    const by = typeof left === "string" ? left.localeCompare(String(right)) : left - Number(right);
    return (sorting.isDown ? -by : by) || a - b;
  };
  return connections.map((_, place) => place).sort(order);
}

function row(
  data: PageData,
  place: number,
  columns: Column[],
  isSelected: boolean,
  words: Words,
  select: (place: number) => void,
): HTMLElement {
  const connection = data.connections[place];
  const cells = columns.map((column) => {
    const shown = column.show(connection, place);
    const attributes = {
      class: column.isNumber ? "number" : null,
      "data-column": column.name,
      "data-label": words.ui[column.name],
    };
    if (column.name !== "client") return h("td", { ...attributes, role: "cell" }, shown);
    const button = h(
      "button",
      {
        type: "button",
        "aria-label": `${words.ui.select}: ${numberOf(data, place)}`,
        "aria-current": isSelected ? "true" : null,
        onclick: (event: Event) => {
          event.stopPropagation();
          select(place);
        },
      },
      shown,
    );
    const note = column.note?.(connection);
    return h(
      "th",
      { ...attributes, scope: "row", role: "rowheader" },
      button,
      note ? h("div", { class: "quiet small-note" }, note) : null,
    );
  });
  return h(
    "tr",
    { class: isSelected ? "selected" : null, role: "row", onclick: () => select(place) },
    cells,
  );
}

/**
 * The number of a connection, as `fullpipe analyze` gives it: by first packet in its capture, from 0.
 * Runs of the lab have a connection each, so there it is its place in the list.
 */
export function numberOf(data: PageData, place: number): number {
  return data.kind === "lab" ? place + 1 : data.connections[place].facts.id;
}

/** The columns. */
function columnsOf(data: PageData, words: Words, palette: Palette): Column[] {
  const sources = data.sources.length > 1 ? data.sources.map((one) => one.name) : [];
  const facts = (of: ConnectionData) => of.facts[bulk(of.facts)];
  const number = (
    name: UiName,
    get: (of: ConnectionData) => number | null | undefined,
    say: (value: number) => string,
  ): Column => ({
    name,
    isNumber: true,
    sort: (of) => get(of) ?? -1,
    show(of) {
      const value = get(of);
      return value === null || value === undefined ? "–" : say(value);
    },
  });
  const text = (name: UiName, get: (of: ConnectionData) => string): Column => ({
    name,
    isNumber: false,
    sort: get,
    show: (of) => h("span", { class: get(of).length > 24 ? "address" : "short address" }, get(of)),
  });
  return [
    {
      name: "place",
      isNumber: true,
      sort: (_, place) => numberOf(data, place),
      show: (_, place) => String(numberOf(data, place)),
    },
    {
      ...text("client", (of) => of.facts.client),
      note: (of) => sources[of.source],
    },
    text("server", (of) => of.facts.server),
    number("bytes", (of) => facts(of).unique_payload_bytes, bytes),
    number("goodput", (of) => facts(of).goodput_bps, rate),
    // As in the table of `analyze`: the path's round trip, without the queue of its own data.
    number("rtt", (of) => of.facts.handshake_rtt_us ?? facts(of).rtt.min_us, time),
    {
      name: "limit",
      isNumber: false,
      sort: (of) => shares(of.facts, bulk(of.facts))[0]?.[0] ?? "",
      show: (of) => limitCell(of, words, palette),
    },
    // What was waited for outside the transfer is counted, not judged.
    number(
      "confidence",
      (of) => (waitedFor(of.facts) ? undefined : findings(of.facts, bulk(of.facts))[0]?.confidence),
      percent,
    ),
    number("lost", (of) => lost(of.facts), time),
    number("retransmissions", (of) => sentAgain(of, bulk(of.facts)), count),
  ];
}

function limitCell(connection: ConnectionData, words: Words, palette: Palette): Node {
  const { account } = connection.facts;
  const waited = waitedFor(connection.facts);
  if (account && waited) {
    const cause = words.account.cause[waited.cause] ?? waited.cause;
    return h("span", {}, `${cause} ${percent(waited.time_us / account.time_us)}`);
  }
  const all = shares(connection.facts, bulk(connection.facts));
  if (all.length === 0) return h("span", {}, "–");
  const [name, share] = all[0];
  const [first] = findings(connection.facts, bulk(connection.facts));
  const two = first && either(first);
  const bar = h(
    "span",
    { class: "mini-bar", "aria-hidden": "true" },
    all.map(([name, share]) => {
      const part = h("i");
      part.style.flexGrow = String(share);
      part.style.background = palette.limits[name];
      return part;
    }),
  );
  return h(
    "span",
    { class: "limit-cell" },
    h("span", {}, two ? words.either(...two) : `${words.limit[name].name} ${percent(share)}`),
    bar,
  );
}
