/** The page as a program, in a real browser: a capture is dropped, a slider is moved. */
import AxeBuilder from "@axe-core/playwright";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, type Page, test } from "@playwright/test";
import { picture } from "./open.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const FILE = resolve(ROOT, "target/report-pages/view.html");
const CAPTURE = resolve(
  ROOT,
  "crates/flow/tests/lab/captures/limits/receiver_application/server.pcap.gz",
);
const LETTERS =
  "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&,>()[]{}@%$#";

/** Bytes as the page has them: their number, and Z85 with a comma for `<`. */
function lettersOf(bytes: Buffer): string {
  const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
  const out: string[] = [];
  for (let at = 0; at < padded.length; at += 4) {
    let word = padded.readUInt32BE(at);
    const five = new Array<string>(5);
    for (let i = 4; i >= 0; i--) {
      five[i] = LETTERS[word % 85];
      word = Math.floor(word / 85);
    }
    out.push(five.join(""));
  }
  return `${bytes.length} ${out.join("")}`;
}

test.beforeAll(() => {
  const page = readFileSync(resolve(ROOT, "crates/report/assets/page.html"), "utf8");
  const program = lettersOf(readFileSync(resolve(ROOT, "crates/cli/assets/view.wasm.gz")));
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(
    FILE,
    page.replace("<!--fullpipe-wasm-->", () => program),
  );
});

async function open(page: Page): Promise<() => void> {
  const problems: string[] = [];
  await page.context().setOffline(true);
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) problems.push(request.url());
  });
  await page.goto(pathToFileURL(FILE).href);
  await expect(page.locator("h1")).toBeVisible();
  return () => expect(problems).toEqual([]);
}

/** Drops a file on the page, as a reader does. */
async function drop(page: Page, name: string, bytes: Buffer): Promise<void> {
  const transfer = await page.evaluateHandle(
    ({ name, data }) => {
      const transfer = new DataTransfer();
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      transfer.items.add(new File([bytes], name));
      return transfer;
    },
    { name, data: bytes.toString("base64") },
  );
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
}

test("reads a capture that is dropped, and another one", async ({ page }) => {
  const isClean = await open(page);
  await drop(page, "<b>slow.pcap.gz", readFileSync(CAPTURE));
  await expect(page.locator("h1")).toHaveText(/^The receiving application limited it for/);
  await expect(page.locator(".what")).toContainText("<b>slow.pcap.gz");
  await expect(page.locator(".graph[data-graph]")).toHaveCount(4);
  await picture(page, "view-report");
  await page.locator(".back button").click();
  await page.setInputFiles("#file", CAPTURE);
  await expect(page.locator(".graph[data-graph]")).toHaveCount(4);
  isClean();
});

test("says in words what is no capture", async ({ page }) => {
  const isClean = await open(page);
  await drop(page, "notes.txt", Buffer.from("this is no capture\n".repeat(20)));
  await expect(page.getByRole("alert")).toContainText("notes.txt");
  isClean();
});

test("calculates while a slider is moved", async ({ page }) => {
  const isClean = await open(page);
  await page.locator("#tab-calculator").click();
  const answer = page.locator(".answer .sentence");
  await expect(answer).toContainText("limited by the receive window");
  const before = await answer.innerText();
  await page.locator("#slider-rtt").focus();
  for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowLeft");
  await expect(answer).not.toHaveText(before);
  await page.locator("#slider-window").press("End");
  await expect(answer).toContainText("limited by the link");
  await page.getByRole("button", { name: "中文" }).or(page.getByText("中文")).first().click();
  await expect(page.locator("h1")).toHaveText("计算器");
  await picture(page, "view-calculator");
  isClean();
});

for (const [width, colorScheme] of [
  [360, "dark"],
  [1440, "light"],
] as const) {
  test(`fits ${width} pixels, ${colorScheme}`, async ({ browser }) => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    await open(page);
    for (const tab of ["capture", "calculator"]) {
      await page.locator(`#tab-${tab}`).click();
      await picture(page, `view-${tab}-${width}-${colorScheme}`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        width,
      );
    }
    await page.close();
  });
}

test("has no serious barrier", async ({ page }) => {
  await open(page);
  for (const tab of ["capture", "calculator"]) {
    await page.locator(`#tab-${tab}`).click();
    const { violations } = await new AxeBuilder({ page }).analyze();
    const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(
      grave.map(({ id, nodes }) => `${id}: ${nodes.map((one) => one.html).join(" ")}`),
    ).toEqual([]);
  }
});
