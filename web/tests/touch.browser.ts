/** What fingers do on a phone. */
import { expect, type Page, test } from "@playwright/test";
import { capture } from "./fixture.ts";
import { open } from "./open.ts";

test.use({ hasTouch: true, isMobile: true, viewport: { width: 360, height: 800 } });

/** Puts fingers on the page, moves them in steps and lifts them. */
async function fingers(page: Page, from: [number, number][], to: [number, number][]) {
  const session = await page.context().newCDPSession(page);
  const send = (type: "touchStart" | "touchMove" | "touchEnd", at: [number, number][]) =>
    session.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: at.map(([x, y], id) => ({ x, y, id })),
    });
  await send("touchStart", from);
  for (let step = 1; step <= 8; step++) {
    const between = from.map(([x, y], index): [number, number] => [
      x + ((to[index][0] - x) * step) / 8,
      y + ((to[index][1] - y) * step) / 8,
    ]);
    await send("touchMove", between);
  }
  await send("touchEnd", []);
}

const shown = (page: Page): Promise<number[] | null> =>
  page.evaluate(() => {
    const at = new URLSearchParams(location.hash.slice(1)).get("t");
    return at === null ? null : at.split("-").map(Number);
  });

test("two fingers zoom, one moves along, two taps come back", async ({ page }) => {
  const isClean = await open(page, capture(), "touch");
  const over = page.locator('[data-graph="throughput"] .u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box) throw new Error("no graph");
  const y = box.y + box.height / 2;
  const x = (part: number): number => box.x + part * box.width;
  await fingers(
    page,
    [
      [x(0.4), y],
      [x(0.6), y],
    ],
    [
      [x(0.1), y],
      [x(0.9), y],
    ],
  );
  const duration = capture().connections[0].facts.duration_us;
  // The address follows the fingers, and may be read while they still move.
  const share = async () => {
    const [start, end] = (await shown(page)) ?? [];
    return (end - start) / duration;
  };
  await expect.poll(share).toBeCloseTo(0.25, 1);
  const [start] = (await shown(page)) ?? [];
  await fingers(page, [[x(0.3), y]], [[x(0.8), y]]);
  await expect.poll(async () => (await shown(page))?.[0]).toBeLessThan(start - 0.05 * duration);
  await page.touchscreen.tap(x(0.5), y);
  await page.touchscreen.tap(x(0.5), y);
  await expect.poll(() => shown(page)).toBeNull();
  isClean();
});

test("a finger scrolls the page through a graph", async ({ page }) => {
  await open(page, capture(), "touch-scroll");
  const over = page.locator('[data-graph="sequence"] .u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box) throw new Error("no graph");
  const before = await page.evaluate(() => scrollY);
  const x = box.x + box.width / 2;
  await fingers(page, [[x, box.y + 0.8 * box.height]], [[x, box.y + 0.1 * box.height]]);
  await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(before + 50);
});
