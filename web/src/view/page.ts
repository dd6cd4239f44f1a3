/** The page as a program: a place to drop a capture, its report, and the calculator. */
import "./view.css";
import type { PageData } from "../data.ts";
import { h } from "../dom.ts";
import { start } from "../start.ts";
import { palettes } from "../theme.ts";
import { bytes } from "../units.ts";
import { Calculator } from "./calculator.ts";
import { Program } from "./program.ts";
import { en, type ViewWords, zh } from "./words.ts";

type Tab = "capture" | "calculator";

/** Starts the program that stands in the page as text. */
export async function startProgram(text: string, root: HTMLElement): Promise<void> {
  new ViewPage(await Program.load(text), root).draw();
}

class ViewPage {
  private tab: Tab = "capture";
  private language: "en" | "zh" = navigator.language.startsWith("zh") ? "zh" : "en";
  private problem = "";
  private calculator: Calculator | undefined;

  constructor(
    private readonly program: Program,
    private readonly root: HTMLElement,
  ) {
    // A file that is dropped beside the place must not take the page's.
    for (const kind of ["dragover", "drop"] as const) {
      addEventListener(kind, (event) => {
        event.preventDefault();
        const file = kind === "drop" ? event.dataTransfer?.files[0] : undefined;
        if (file) void this.read(file);
      });
    }
  }

  private get words(): ViewWords {
    return this.language === "zh" ? zh : en;
  }

  draw(): void {
    const { words } = this;
    this.calculator?.stop();
    this.calculator = undefined;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.lang = words.code;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.title = "fullpipe";
    const tab = (name: Tab, label: string) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          role: "tab",
          id: `tab-${name}`,
          "aria-selected": String(this.tab === name),
          "aria-controls": "panel",
          onclick: () => this.go({ tab: name }),
        },
        label,
      );
    const language = (code: "en" | "zh", label: string) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          lang: code,
          "aria-pressed": String(this.language === code),
          onclick: () => this.go({ language: code }),
        },
        label,
      );
    if (this.tab === "calculator") {
      this.calculator = new Calculator(this.program, words, palettes[dark ? "dark" : "light"]);
    }
    this.root.replaceChildren(
      h(
        "header",
        { class: "top" },
        h("div", { class: "brand" }, h("span", { class: "mark" }, "fullpipe")),
        h(
          "div",
          { class: "choices" },
          h(
            "div",
            { class: "switch", role: "tablist" },
            tab("capture", words.capture),
            tab("calculator", words.calculator),
          ),
          h(
            "div",
            { class: "switch", role: "group", "aria-label": "Language 语言" },
            language("en", "English"),
            language("zh", "中文"),
          ),
        ),
      ),
      h(
        "main",
        {},
        h(
          "section",
          { class: "card", id: "panel", role: "tabpanel", "aria-labelledby": `tab-${this.tab}` },
          h("h1", {}, this.tab === "capture" ? words.capture : words.calculator),
          this.calculator ? this.calculator.element() : this.dropPlace(),
        ),
      ),
    );
  }

  private go(change: { tab?: Tab; language?: "en" | "zh" }): void {
    this.tab = change.tab ?? this.tab;
    this.language = change.language ?? this.language;
    this.draw();
  }

  private dropPlace(): HTMLElement {
    const { words } = this;
    const input = h("input", {
      type: "file",
      id: "file",
      class: "off-screen",
      onchange: () => {
        const file = input.files?.[0];
        if (file) void this.read(file);
      },
    });
    return h(
      "div",
      { class: "drop" },
      h("p", { class: "sentence" }, words.drop),
      h("label", { for: "file", class: "choose" }, words.choose),
      input,
      h("p", { class: "quiet" }, words.reads),
      h("p", { class: "quiet" }, words.stays),
      this.problem ? h("p", { class: "warnings", role: "alert" }, this.problem) : null,
    );
  }

  private async read(file: File): Promise<void> {
    const { words } = this;
    this.calculator?.stop();
    const bar = h("progress", { max: file.size || 1, value: 0, "aria-label": words.capture });
    const told = h("p", { role: "status" }, words.reading(bytes(0), bytes(file.size)));
    this.root
      .querySelector("#panel")
      ?.replaceChildren(h("h1", {}, h("bdi", {}, file.name)), bar, told);
    try {
      const text = await this.program.report(file, (done) => {
        bar.value = done;
        told.textContent = words.reading(bytes(done), bytes(file.size));
      });
      this.show(JSON.parse(text) as PageData);
    } catch (error) {
      this.problem = words.failed(file.name, (error as Error).message);
      this.tab = "capture";
      this.draw();
      this.problem = "";
    }
  }

  /** Shows the report, with a way back. */
  private show(data: PageData): void {
    const report = h("div", {});
    const stop = start(data, report);
    const back = h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          stop();
          history.replaceState(null, "", location.pathname + location.search);
          this.draw();
        },
      },
      this.words.another,
    );
    this.root.replaceChildren(h("nav", { class: "back" }, back), report);
    scrollTo(0, 0);
  }
}
