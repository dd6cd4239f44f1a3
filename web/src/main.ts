/** A report's page: the data stands in its HTML. As a program it has the analysis there instead. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { PageData } from "./data.ts";
import { start } from "./start.ts";
import { startProgram } from "./view/page.ts";
import { en } from "./words/en.ts";

const root = document.getElementById("page") ?? document.body;

/** What stands in an element of the page; nothing where nobody put anything in the mark's place. */
function part(id: string): string {
  const text = document.getElementById(id)?.textContent?.trim() ?? "";
  return text.startsWith("<!--") ? "" : text;
}

async function open(): Promise<void> {
  const program = part("fullpipe-wasm");
  if (program) await startProgram(program, root);
  else start(JSON.parse(part("fullpipe-data")) as PageData, root);
}

open().catch((error: unknown) => {
  const told = document.createElement("p");
  told.className = "broken";
  told.textContent = en.ui.broken;
  root.replaceChildren(told);
  console.error(error);
});
