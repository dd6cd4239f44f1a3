/** Opens reports as their readers do: as files, without a network. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, type Page } from "@playwright/test";
import type { PageData } from "../src/data.ts";

const TARGET = resolve(import.meta.dirname, "../../target");
const TEMPLATE = resolve(import.meta.dirname, "../../crates/report/assets/page.html");

/** The report as `crates/report` writes it: the JSON in place of the marker. */
export function html(data: PageData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  return readFileSync(TEMPLATE, "utf8").replace("<!--fullpipe-data-->", () => json);
}

/** Opens a report; fails the test at an error on the console or a request for anything else. */
export async function open(
  page: Page,
  data: PageData,
  name: string,
  fragment = "",
): Promise<() => void> {
  const file = resolve(TARGET, "report-pages", `${name}.html`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, html(data));
  const problems: string[] = [];
  await page.context().setOffline(true);
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) problems.push(`request for ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href + fragment);
  await expect(page.locator("h1")).toBeVisible();
  return () => expect(problems).toEqual([]);
}

/** A picture for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({
    path: resolve(TARGET, "report-screenshots", `${name}.png`),
    fullPage: true,
  });
}
