/** Pictures of every kind of report, in both themes, both languages and three widths. */
import { test } from "@playwright/test";
import { capture, lab, long } from "./fixture.ts";
import { open, picture } from "./open.ts";

const REPORTS = { capture, lab, long };

for (const [name, make] of Object.entries(REPORTS)) {
  for (const [width, theme, language] of [
    [1440, "light", "en"],
    [1440, "dark", "zh"],
    [360, "light", "zh"],
    [360, "dark", "en"],
  ] as const) {
    // The long report differs from the first in its graphs alone.
    if (name === "long" && language === "zh") continue;
    test(`${name} at ${width} pixels, ${theme}, ${language}`, async ({ page }) => {
      await page.setViewportSize({ width, height: 900 });
      const isClean = await open(
        page,
        make(),
        `look-${name}-${width}-${theme}`,
        `#lang=${language}&theme=${theme}`,
      );
      await picture(page, `${name}-${width}-${theme}-${language}`);
      isClean();
    });
  }
}

test("a phone: what a finger's tap tells, with the legend open", async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  const isClean = await open(
    page,
    capture(),
    "look-phone",
    "#c=2&theme=dark&lang=zh&t=1000000-2200000",
  );
  const graph = page.locator('[data-graph="sequence"]');
  await graph.locator("summary").click();
  await graph.scrollIntoViewIfNeeded();
  const box = await graph.locator(".u-over").boundingBox();
  if (box) await page.mouse.move(box.x + 0.8 * box.width, box.y + 0.3 * box.height);
  await graph.screenshot({ path: "../target/report-screenshots/phone-graph.png" });
  isClean();
});

test("a desktop, zoomed to a loss", async ({ page }) => {
  const isClean = await open(
    page,
    capture(),
    "look-loss",
    "#c=2&theme=dark&lang=en&t=950000-1300000",
  );
  const graph = page.locator('[data-graph="sequence"]');
  await graph.scrollIntoViewIfNeeded();
  const box = await graph.locator(".u-over").boundingBox();
  if (box) await page.mouse.move(box.x + 0.62 * box.width, box.y + 0.55 * box.height);
  await page.screenshot({ path: "../target/report-screenshots/loss.png" });
  isClean();
});
