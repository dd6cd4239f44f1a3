/** How quick a report is: prints what it measures. Run with `npm run speed`; nothing is asserted tightly. */
import { expect, test } from "@playwright/test";
import { statSync } from "node:fs";
import { capture, long } from "./fixture.ts";
import { open } from "./open.ts";

const middle = (values: number[], part: number): string =>
  [...values].sort((a, b) => a - b)[Math.floor(part * (values.length - 1))].toFixed(1);

for (const [name, make] of [
  ["every packet (9 MB with loss)", capture],
  ["a million packets in 4000 stretches", () => long(4000)],
] as const) {
  test(name, async ({ page }) => {
    const isClean = await open(page, make(), "speed", name.startsWith("every") ? "#c=2" : "");
    const paint = await page.evaluate(() => ({
      first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
      loaded: performance.getEntriesByType("navigation")[0]?.toJSON()
        .domContentLoadedEventEnd as number,
    }));
    const times = await page.evaluate(async () => {
      const panel = document.querySelector<HTMLElement>(".panel"),
        over = document.querySelector<HTMLElement>(".u-over");
      if (!panel || !over) throw new Error("no graphs");
      over.scrollIntoView();
      await new Promise(requestAnimationFrame);
      const zoom: number[] = [],
        frame: number[] = [],
        hover: number[] = [];
      for (const key of [
        "+",
        "+",
        "+",
        "ArrowRight",
        "-",
        "ArrowLeft",
        "+",
        "+",
        "+",
        "+",
        "0",
        "+",
        "-",
      ]) {
        const start = performance.now();
        panel.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        await Promise.resolve();
        await Promise.resolve();
        zoom.push(performance.now() - start);
        await new Promise(requestAnimationFrame);
        await new Promise((done) => setTimeout(done));
        frame.push(performance.now() - start);
      }
      const box = over.getBoundingClientRect();
      for (let i = 0; i < 200; i++) {
        const start = performance.now();
        over.dispatchEvent(
          new MouseEvent("mousemove", {
            bubbles: true,
            clientX: box.left + (box.width * i) / 200,
            clientY: box.top + box.height * (1 - i / 200),
            movementX: 5,
          } as MouseEventInit),
        );
        hover.push(performance.now() - start);
        if (i % 20 === 0) await new Promise(requestAnimationFrame);
      }
      return { zoom, frame, hover };
    });
    const size = statSync("../target/report-pages/speed.html").size;
    console.log(
      `${name}: file ${(size / 1e6).toFixed(2)} MB; first paint ${paint.first.toFixed(0)} ms, ready ${paint.loaded.toFixed(0)} ms; ` +
        `zoom ${middle(times.zoom, 0.5)} ms (95 %: ${middle(times.zoom, 0.95)}), with its frame ${middle(times.frame, 0.5)} ms; ` +
        `hover ${middle(times.hover, 0.5)} ms (95 %: ${middle(times.hover, 0.95)})`,
    );
    expect(paint.first).toBeLessThan(10_000);
    isClean();
  });
}
