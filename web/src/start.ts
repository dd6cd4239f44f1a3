/**
 * The page: `start` shows a report's data. It does not matter where the data comes from: an
 * element of the HTML, or an analysis in the browser.
 */
import type { ConnectionData, Direction, PageData } from "./data.ts";
import { card } from "./card.ts";
import { h } from "./dom.ts";
import { Panel } from "./graphs/panel.ts";
import { tracksOf } from "./graphs/tracks.ts";
import { beforeAfter, comparison, curves, runs } from "./lab.ts";
import { stallList } from "./stalls.ts";
import { connectionTable, numberOf, ROWS, type Sorting } from "./table.ts";
import { palettes } from "./theme.ts";
import { bytes, count } from "./units.ts";
import { bulk, directions, type Span } from "./verdict.ts";
import { fromFragment, toFragment, type ViewState } from "./view-state.ts";
import { en } from "./words/en.ts";
import type { Words } from "./words/words.ts";
import { zh } from "./words/zh.ts";

/** Shows a report in an element. The returned function takes it away. */
export function start(data: PageData, root: HTMLElement): () => void {
  return new Page(data, root).stop;
}

class Page {
  private state: ViewState = fromFragment(location.hash);
  private readonly sorting: Sorting = { isDown: false, most: ROWS };
  private readonly darkness = matchMedia("(prefers-color-scheme: dark)");
  private panel: Panel | undefined;
  private graphs = h("section");
  private written = "";
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly data: PageData,
    private readonly root: HTMLElement,
  ) {
    addEventListener("hashchange", this.fragmentChanged);
    this.darkness.addEventListener("change", this.draw);
    this.draw();
  }

  readonly stop = (): void => {
    removeEventListener("hashchange", this.fragmentChanged);
    this.darkness.removeEventListener("change", this.draw);
    clearTimeout(this.timer);
    this.panel?.destroy();
    this.root.replaceChildren();
  };

  private readonly fragmentChanged = (): void => {
    if (location.hash.replace(/^#/, "") === this.written) return;
    this.state = fromFragment(location.hash);
    this.draw();
  };

  private get words(): Words {
    return (this.state.language ?? (navigator.language.startsWith("zh") ? "zh" : "en")) === "zh"
      ? zh
      : en;
  }

  private get theme(): "light" | "dark" {
    return this.state.theme ?? (this.darkness.matches ? "dark" : "light");
  }

  private get place(): number {
    return Math.min(this.state.connection ?? 0, this.data.connections.length - 1);
  }

  private direction(connection: ConnectionData): Direction {
    return this.state.direction ?? bulk(connection.facts);
  }

  /** Changes what is looked at and draws the page. */
  private go(change: Partial<ViewState>): void {
    this.state = { ...this.state, ...change };
    this.write();
    this.draw();
  }

  /** Keeps the fragment; browsers refuse too many changes in a short time. */
  private write(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.written = toFragment(this.state);
      history.replaceState(
        null,
        "",
        this.written ? `#${this.written}` : location.pathname + location.search,
      );
    }, 120);
  }

  private readonly draw = (): void => {
    const { words, data } = this;
    const focused = focusPath(this.root);
    document.documentElement.lang = words.code;
    document.documentElement.dataset.theme = this.theme;
    document.title = `${data.title} · fullpipe`;
    this.panel?.destroy();
    this.panel = undefined;
    this.graphs = h("section", { class: "card graphs", "aria-labelledby": "graphs" });
    const connection = data.connections[this.place];
    this.root.replaceChildren(
      this.header(),
      h("main", {}, ...this.sections(connection)),
      this.footer(),
    );
    if (connection) this.drawGraphs(connection);
    if (focused) this.root.querySelector<HTMLElement>(focused)?.focus({ preventScroll: true });
  };

  private sections(connection: ConnectionData | undefined): (HTMLElement | null | string)[] {
    const { words, data } = this;
    const palette = palettes[this.theme];
    const selectRun = (run: number): void => {
      const place = data.connections.findIndex((one) => one.run === run);
      if (place >= 0) this.go({ connection: place, direction: undefined, zoom: undefined });
    };
    const pair = comparison(data);
    const lab = data.lab;
    return [
      connection
        ? card({
            connection,
            direction: this.direction(connection),
            source: data.sources[connection.source],
            which: this.which(connection),
            words,
            palette,
            plan: connection.part === "before" ? lab?.plan : undefined,
            hasGraphs: tracksOf(connection, this.direction(connection)) !== undefined,
            show: (span) => this.showSpan(span),
          })
        : h("section", { class: "card" }, h("h1", {}, words.ui.empty)),
      pair
        ? beforeAfter(pair, lab, words, palette, (one) =>
            this.go({
              connection: data.connections.indexOf(one),
              direction: undefined,
              zoom: undefined,
            }),
          )
        : null,
      lab ? curves(lab, words, palette, selectRun) : null,
      lab && lab.runs.length > 1 ? runs(lab, connection?.run, words, selectRun) : null,
      data.connections.length > 1 && !this.isOneForEachRun() ? this.tableSection() : null,
      connection ? this.graphs : null,
      connection ? this.stallSection(connection) : null,
    ].filter((one) => one !== null);
  }

  /** Whether the table of runs says what a table of connections would. */
  private isOneForEachRun(): boolean {
    const { connections, lab } = this.data;
    const places = new Set(connections.map((one) => one.run));
    return (
      lab !== undefined &&
      lab.runs.length > 1 &&
      places.size === connections.length &&
      !places.has(undefined)
    );
  }

  /** Which connection this is, in words. */
  private which(connection: ConnectionData): string {
    const { words, data } = this;
    const all = data.connections_total;
    const run = connection.run === undefined ? undefined : data.lab?.runs[connection.run]?.name;
    const place =
      this.place === 0 && !connection.part
        ? words.say.worst(count(all))
        : words.say.connection(String(numberOf(data, this.place)));
    return [
      connection.part && words.ui[connection.part],
      typeof run === "string" ? run !== connection.part && run : all > 1 && place,
      `${connection.facts.client} → ${connection.facts.server}`,
      run === undefined && data.sources.length > 1 && data.sources[connection.source]?.name,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  private tableSection(): HTMLElement {
    const { words, data } = this;
    const shown = data.connections.length;
    return h(
      "section",
      { class: "card", "aria-labelledby": "connections" },
      h(
        "h2",
        { id: "connections" },
        words.ui.connections,
        " ",
        h("span", { class: "count" }, count(data.connections_total)),
      ),
      shown < data.connections_total
        ? h(
            "p",
            { class: "quiet" },
            words.say.connections(count(shown), count(data.connections_total)),
          )
        : null,
      connectionTable(data, this.place, words, palettes[this.theme], this.sorting, (place) =>
        this.go({ connection: place, direction: undefined, zoom: undefined }),
      ),
    );
  }

  private stallSection(connection: ConnectionData): HTMLElement | null {
    const tracks = tracksOf(connection, this.direction(connection));
    // Samples of a socket do not show silences.
    if (!tracks || connection.facts.warnings.includes("no_packets")) return null;
    const { words } = this;
    return h(
      "section",
      { class: "card", "aria-labelledby": "stalls" },
      h(
        "h2",
        { id: "stalls" },
        words.ui.stalls,
        " ",
        h("span", { class: "count" }, count(tracks.stalls.length)),
      ),
      stallList(tracks.stalls, words, (span) => this.showSpan(span)),
    );
  }

  private showSpan(span: Span): void {
    this.panel?.showSpan(span);
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.graphs.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "start" });
  }

  private drawGraphs(connection: ConnectionData): void {
    const { words } = this;
    const direction = this.direction(connection);
    const tracks = tracksOf(connection, direction);
    const choices = directions(connection.facts).map((one) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          "data-direction": one,
          "aria-pressed": String(one === direction),
          onclick: () =>
            this.go({
              direction: one === bulk(connection.facts) ? undefined : one,
              zoom: undefined,
            }),
        },
        words.direction[one],
      ),
    );
    this.graphs.append(
      h(
        "div",
        { class: "graphs-head" },
        h("h2", { id: "graphs" }, words.ui.graphs),
        h("div", { class: "switch", role: "group", "aria-label": words.ui.direction }, choices),
      ),
      h("p", { class: "quiet keys-help" }, words.ui.keys),
    );
    if (!tracks) {
      const has = connection.facts[direction].payload_bytes > 0;
      this.graphs.append(h("p", { class: "quiet" }, has ? words.ui.noTrace : words.ui.noData));
      return;
    }
    this.panel = new Panel({
      tracks,
      words,
      palette: palettes[this.theme],
      zoom: this.state.zoom,
      pathRtt: connection.facts.handshake_rtt_us ?? undefined,
      isOverSequence: this.state.overSequence ?? false,
      caption: `${connection.facts.client} → ${connection.facts.server} · ${this.data.title}`,
      zoomed: (zoom) => {
        this.state = { ...this.state, zoom: zoom && [zoom[0], zoom[1]] };
        this.write();
      },
      setOverSequence: (is) => this.go({ overSequence: is || undefined }),
    });
    this.graphs.append(this.panel.element);
    this.panel.start();
  }

  private header(): HTMLElement {
    const { words, data, theme } = this;
    const choice = (
      group: string,
      is: boolean,
      label: string,
      lang: string | null,
      act: () => void,
    ): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          "aria-pressed": String(is),
          lang,
          "data-choice": group,
          onclick: act,
        },
        label,
      );
    return h(
      "header",
      { class: "top" },
      h(
        "div",
        { class: "brand" },
        h("span", { class: "mark" }, "fullpipe"),
        h(
          "span",
          { class: "quiet what", title: data.title },
          `${words.ui[data.kind]} · `,
          h("bdi", {}, data.title),
        ),
      ),
      h(
        "div",
        { class: "choices" },
        h(
          "div",
          { class: "switch", role: "group", "aria-label": words.ui.language },
          choice("en", words === en, "English", "en", () => this.go({ language: "en" })),
          choice("zh", words === zh, "中文", "zh-CN", () => this.go({ language: "zh" })),
        ),
        h(
          "div",
          { class: "switch", role: "group", "aria-label": words.ui.theme },
          choice("light", theme === "light", words.ui.light, null, () =>
            this.go({ theme: "light" }),
          ),
          choice("dark", theme === "dark", words.ui.dark, null, () => this.go({ theme: "dark" })),
        ),
      ),
    );
  }

  private footer(): HTMLElement {
    const { words, data } = this;
    const sources = data.sources.map((source) => {
      const facts = [
        source.packets === undefined ? "" : `${count(source.packets)} ${words.ui.packets}`,
        source.bytes === undefined ? "" : bytes(source.bytes),
      ]
        .filter(Boolean)
        .join(", ");
      return h(
        "li",
        {},
        h("bdi", {}, source.name),
        facts ? ` (${facts})` : "",
        source.problem ? ` – ${source.problem}` : "",
      );
    });
    return h(
      "footer",
      {},
      h("div", {}, h("h2", {}, words.ui.sources), h("ul", {}, sources)),
      h("p", { class: "quiet" }, `${words.ui.program} ${data.program}`),
    );
  }
}

/** How to find the focused element again after the page was drawn anew. */
function focusPath(root: HTMLElement): string | undefined {
  const active = document.activeElement;
  if (!(active instanceof HTMLElement) || !root.contains(active)) return undefined;
  for (const name of ["data-choice", "data-direction"]) {
    const value = active.getAttribute(name);
    if (value) return `[${name}="${value}"]`;
  }
  return active.closest("table.connections") ? "table.connections tr.selected button" : undefined;
}
