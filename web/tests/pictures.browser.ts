/**
 * Each graph beside the picture of it that a person has looked at (`tests/pictures`).
 *
 * What is compared is what was drawn, without the axes' text, whose fonts are the machine's, and
 * without the page around it, whose layout may shift it by half a pixel. A change of the drawing is
 * looked at, and then taken over: `npm run pictures`.
 */
import { expect, type Locator, test } from "@playwright/test";
import { capture } from "./fixture.ts";
import { open } from "./open.ts";

/** So much of the pixels may differ: what the edges of lines do, and less than any line has. */
const ALIKE = { maxDiffPixelRatio: 0.001, threshold: 0.2 };
/** The first connection of the capture has a full window, the second losses. */
const CONNECTIONS = { window: "#c=1", loss: "#c=2" };

/** What is drawn between a graph's axes, as PNG. */
async function drawn(graph: Locator): Promise<Buffer> {
  const url = await graph.evaluate(async (element) => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    const from = element.querySelector("canvas");
    if (!from) throw new Error("no canvas");
    const over = element.querySelector<HTMLElement>(".u-over") ?? from;
    const to = document.createElement("canvas");
    [to.width, to.height] = [over.offsetWidth, over.offsetHeight];
    to.getContext("2d")?.drawImage(from, -over.offsetLeft, -over.offsetTop);
    return to.toDataURL();
  });
  return Buffer.from(url.split(",")[1], "base64");
}

test.describe.configure({ timeout: 90_000 });

for (const [name, fragment] of Object.entries(CONNECTIONS)) {
  test(`the graphs of a transfer limited by ${name} look as they did`, async ({ page }) => {
    await open(page, capture(), `picture-${name}`, `${fragment}&theme=light&lang=en`);
    const graphs = page.locator(".graph[data-graph]");
    await expect(graphs).toHaveCount(5);
    for (const graph of await graphs.all()) {
      const which = await graph.getAttribute("data-graph");
      expect(await drawn(graph.locator(".plot"))).toMatchSnapshot(`${name}-${which}.png`, ALIKE);
    }
    const band = await drawn(page.locator(".band"));
    expect(band).toMatchSnapshot(`${name}-band.png`, ALIKE);
  });
}

test("a line that is missing is seen", async ({ page }) => {
  await open(page, capture(), "picture-missing", "#c=1&theme=light&lang=en");
  const graph = page.locator('[data-graph="window"]');
  const whole = await drawn(graph.locator(".plot"));
  expect(whole).toMatchSnapshot("window-window.png", ALIKE);
  await graph.locator("button[aria-pressed]").first().click();
  const less = await drawn(graph.locator(".plot"));
  expect(() => expect(less).toMatchSnapshot("window-window.png", ALIKE)).toThrow(/differ/);
});
