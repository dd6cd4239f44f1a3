/** What a reader does with a report, in a real browser without a network. */
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page, test } from "@playwright/test";
import { readFileSync } from "node:fs";
import { capture, hostile, lab, long, RAISE } from "./fixture.ts";
import { open, picture } from "./open.ts";

/** The middle of a graph's plotting area, and its width. */
async function area(page: Page, graph: string) {
  const over = page.locator(`[data-graph="${graph}"] .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box) throw new Error(`no graph ${graph}`);
  return { ...box, middle: [box.x + box.width / 2, box.y + box.height / 2] as const };
}

async function drag(page: Page, graph: string, from: number, to: number): Promise<void> {
  const box = await area(page, graph);
  await page.mouse.move(box.x + box.width * from, box.middle[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + (box.width * (from + to)) / 2, box.middle[1], { steps: 3 });
  await page.mouse.move(box.x + box.width * to, box.middle[1], { steps: 3 });
  await page.mouse.up();
}

const zoomed = (page: Page): Promise<string | null> =>
  page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("t"));

test("leads with the verdict and asks nothing of a network", async ({ page }) => {
  const isClean = await open(page, capture(), "page");
  await expect(page.locator("h1")).toHaveText(
    /^The receive window limited it for \d+\s% of the time\.$/,
  );
  await expect(page.locator(".advice pre")).toHaveText(RAISE);
  await expect(page.locator(".graph[data-graph]")).toHaveCount(5);
  const blocked = await page.evaluate(() =>
    fetch("https://example.com/").then(
      () => "loaded",
      () => "refused",
    ),
  );
  expect(blocked).toBe("refused");
  // The refusal itself is what the policy says on the console.
  expect(isClean).toThrow(/Content Security Policy/);
});

test("has the account on the time axis of the graphs", async ({ page }) => {
  const data = capture();
  const [connection] = data.connections;
  const whole = connection.facts.duration_us;
  const path = { owner: "path", cause: "tls" };
  const server = { owner: "server_application", cause: "server_thinks" };
  connection.spans = [
    { start_us: 0, length_us: whole / 4, ...path },
    { start_us: whole / 4, length_us: (whole * 3) / 4, ...server },
  ];
  const isClean = await open(page, data, "account");
  const box = page.locator(".band-box").first();
  await expect(box.locator("h3")).toHaveText("Where the time went");
  await expect(box.locator("li")).toHaveText([
    "round trips of the handshake of TLS",
    "the server did not answer yet",
  ]);
  // Pointing tells what it was, and a click shows that time.
  const canvas = box.locator("canvas");
  const size = await canvas.boundingBox();
  if (!size) throw new Error("the band has a place");
  await canvas.hover({ position: { x: size.width * 0.1, y: 10 } });
  await expect(canvas).toHaveAttribute("title", /^round trips of the handshake of TLS, /);
  await canvas.click({ position: { x: size.width * 0.1, y: 10 } });
  await expect.poll(() => zoomed(page)).toBe(`0-${Math.round(whole / 4)}`);
  isClean();
});

test("tells beside the verdict what its capture dropped and how its times run", async ({
  page,
}) => {
  const data = capture();
  data.connections[0].facts.warnings = [];
  Object.assign(data.sources[0], { dropped: 1234, backwards: 7, unsorted: 7 });
  const isClean = await open(page, data, "dropped");
  const notes = page.locator(".card.verdict .warnings li");
  await expect(notes).toHaveText([/^1.?234 packets were dropped/, /as they came\.$/]);
  isClean();
});

test("zooms by dragging, in all graphs at once, and comes back", async ({ page }) => {
  const isClean = await open(page, capture(), "zoom");
  await drag(page, "throughput", 0.25, 0.5);
  await expect(page.locator(".zoom-status")).toHaveText(/^Showing /);
  await expect.poll(() => zoomed(page)).toMatch(/^\d+-\d+$/);
  await picture(page, "zoomed");
  const [start, end] = ((await zoomed(page)) ?? "").split("-").map(Number);
  expect((end - start) / capture().connections[0].facts.duration_us).toBeCloseTo(0.25, 1);
  const [x, y] = (await area(page, "sequence")).middle;
  await page.mouse.dblclick(x, y);
  await expect.poll(() => zoomed(page)).toBeNull();
  await expect(page.locator(".zoom-status")).toHaveText("Whole transfer");
  isClean();
});

test("moves and zooms with keys", async ({ page }) => {
  const isClean = await open(page, capture(), "keys");
  await page.locator(".panel").focus();
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => zoomed(page)).not.toBeNull();
  await page.keyboard.press("Shift+ArrowRight");
  await expect(page.locator('[data-graph="sequence"] .tip')).toContainText("Packet");
  await expect(page.locator(".panel > .off-screen")).toContainText("sent Packet");
  await page.keyboard.press("Escape");
  await expect.poll(() => zoomed(page)).toBeNull();
  isClean();
});

test("tells in words what happened under the pointer", async ({ page }) => {
  const isClean = await open(page, capture(), "hover", "#c=2");
  const [x, y] = (await area(page, "sequence")).middle;
  await page.mouse.move(x, y);
  const tip = page.locator('[data-graph="sequence"] .tip');
  await expect(tip).toContainText("Packet");
  await expect(tip).toContainText("Limited here by");
  // All graphs have their line at the same time.
  const lines = await page
    .locator(".graph[data-graph] .u-cursor-x")
    .evaluateAll((all) => all.map((one) => new DOMMatrix(getComputedStyle(one).transform).e));
  expect(lines).toHaveLength(5);
  expect(Math.max(...lines) - Math.min(...lines)).toBeLessThanOrEqual(1);
  // A mark tells what it means.
  const marks = capture().connections[1].trace?.server_to_client?.marks.fast_retransmission;
  const duration = capture().connections[1].facts.duration_us;
  const box = await area(page, "sequence");
  let told = "";
  for (let top = 10; top < box.height && !told.includes("fast retransmission"); top += 8) {
    await page.mouse.move(box.x + ((marks?.time_us[0] ?? 0) / duration) * box.width, box.y + top);
    told = await tip.innerText();
  }
  expect(told).toContain("without waiting for a timer");
  await page.screenshot({ path: "../target/report-screenshots/hover.png" });
  isClean();
});

test("goes to where the limit held, and to a stall", async ({ page }) => {
  const isClean = await open(page, capture(), "show", "#c=2");
  await page.locator("[data-show]").first().click();
  await expect.poll(() => zoomed(page)).toMatch(/^\d+-\d+$/);
  await expect(page.locator(".panel")).toBeFocused();
  await page.locator(".stalls tbody button").first().click();
  const stall = capture().connections[1].trace?.server_to_client?.stalls[0];
  await expect
    .poll(async () => Number((await zoomed(page))?.split("-")[0]))
    .toBeLessThan(stall?.start_us ?? 0);
  isClean();
});

test("switches connection, direction, order, language and theme, and keeps them in the address", async ({
  page,
}) => {
  const isClean = await open(page, capture(), "switch");
  await page.locator(".connections tbody tr").nth(1).click();
  await expect(page.locator("h1")).toHaveText(/^Packet loss limited it/);
  await page.locator('[data-choice="zh"]').click();
  await expect(page.locator("h1")).toHaveText(/瓶颈是丢包/);
  await page.locator('[data-choice="dark"]').click();
  await page.locator('[data-direction="client_to_server"]').click();
  await expect(page.locator(".graphs")).toContainText("没有该连接的图表数据");
  await expect.poll(() => page.evaluate(() => location.hash)).toBe("#c=2&d=c2s&lang=zh&theme=dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(page.locator("tr.selected")).toContainText("10.77.0.2:40001");
  const numbers = page.locator('.connections tbody [data-column="rtt"]');
  await page.locator(".connections thead button").nth(5).click();
  await expect(page.locator(".connections thead th").nth(5)).toHaveAttribute(
    "aria-sort",
    "descending",
  );
  await expect(numbers.first()).toHaveText("80 ms");
  isClean();
});

test("keeps long lists short until they are asked for", async ({ page }) => {
  const data = capture();
  const [first] = data.connections;
  data.connections = Array.from({ length: 500 }, () => ({ ...first, trace: undefined }));
  data.connections_total = 12_000;
  const isClean = await open(page, data, "many", "#c=400");
  await expect(page.locator(".connections tbody tr")).toHaveCount(11);
  await expect(page.locator("tr.selected")).toHaveCount(1);
  await page.getByRole("button", { name: "Show all 500" }).click();
  await expect(page.locator(".connections tbody tr")).toHaveCount(500);
  isClean();
});

test("shows round trips over sequence numbers, and hides lines", async ({ page }) => {
  const isClean = await open(page, capture(), "rtt");
  const rtt = page.locator('[data-graph="rtt"]');
  await rtt.getByRole("button", { name: "over sequence" }).click();
  await expect(rtt.getByRole("button", { name: "over sequence" })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
  await expect.poll(() => page.evaluate(() => location.hash)).toContain("x=sequence");
  const key = page.locator('[data-graph="window"] .key').first();
  await key.click();
  await expect(key).toHaveAttribute("aria-pressed", "false");
  isClean();
});

test("says where round trips have no sequence numbers", async ({ page }) => {
  const isClean = await open(page, long(), "no-sequence");
  await expect(
    page.locator('[data-graph="rtt"] button', { hasText: "over sequence" }),
  ).toBeDisabled();
  isClean();
});

test("gives graphs as PNG and SVG", async ({ page }) => {
  const isClean = await open(page, capture(), "export", "#c=2");
  const sequence = page.locator('[data-graph="sequence"]');
  for (const [label, start] of [
    ["PNG", "\x89PNG"],
    ["SVG", "<svg"],
  ] as const) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      sequence.getByText(label, { exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toBe(`fullpipe-sequence.${label.toLowerCase()}`);
    await download.saveAs(`../target/report-screenshots/export.${label.toLowerCase()}`);
    expect(readFileSync(await download.path()).toString("latin1", 0, 4)).toBe(start);
  }
  isClean();
});

test("copies sysctls", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const isClean = await open(page, capture(), "copy");
  await page.locator(".shell button").click();
  await expect(page.locator(".shell button")).toHaveText("Copied");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(
    "sysctl -w net.ipv4.tcp_rmem=",
  );
  isClean();
});

test("compares before and after, and a curve with its law", async ({ page }) => {
  const isClean = await open(page, lab(), "lab");
  await expect(page.locator(".compare .lead")).toHaveText(/^[\d.]+ times as fast as before\.$/);
  await expect(page.locator(".curve canvas")).toHaveAttribute("aria-label", /link\.rtt/);
  await page.locator(".runs tbody tr").nth(2).click();
  await expect(page.locator("tr.selected")).toContainText("rtt=20ms");
  await expect(page.locator(".eyebrow").first()).toContainText("10.77.0.2:40002");
  await expect(page.locator("table.connections")).toHaveCount(0);
  isClean();
});

test("a plan that was carried out is what to change, at both ends", async ({ page }) => {
  const data = lab();
  const raise = (host: string, name: string) => ({ host, command: `sysctl -w ${name}=1` });
  data.lab!.plan = [raise("sender", "net.ipv4.tcp_wmem"), raise("receiver", "net.ipv4.tcp_rmem")];
  const isClean = await open(page, data, "plan");
  await expect(page.locator(".eyebrow").first()).toContainText("Before");
  const lines = await page.locator(".advice .shell code").allInnerTexts();
  expect(lines).toEqual(["sysctl -w net.ipv4.tcp_rmem=1", "sysctl -w net.ipv4.tcp_wmem=1"]);
  // The tile and the table of runs have one figure.
  const figure = await page.locator(".compare .figure").first().innerText();
  const cell = page.locator(".runs tbody tr", { hasText: "before" }).locator("td").nth(1);
  expect(figure).toContain(await cell.innerText());
  isClean();
});

test("keeps hostile names as text", async ({ page }) => {
  const isClean = await open(page, hostile(), "hostile");
  await expect(page.locator("h1")).toBeVisible();
  expect(await page.title()).toContain("onerror");
  expect(await page.locator("img").count()).toBe(0);
  await page.locator('[data-choice="zh"]').click();
  expect(await page.locator("#page script").count()).toBe(0);
  expect(await page.evaluate(() => document.title)).not.toBe("owned");
  isClean();
});

test("shows what has next to nothing in it", async ({ page }) => {
  const none = capture();
  Object.assign(none, { connections: [], connections_total: 0, sources: [] });
  const isEmpty = await open(page, none, "nothing");
  await expect(page.locator("h1")).toHaveText("There is no TCP connection in this report.");
  isEmpty();
  const bare = capture();
  const points = { bucket_us: 0, time_us: [], value: [] };
  for (const { facts } of bare.connections) {
    Object.assign(facts, {
      duration_us: 0,
      intervals: [],
      handshake_rtt_us: null,
      limits: [],
      findings: [],
    });
    facts.server_to_client.rtt = { count: 0, min_us: null, p50_us: null, p99_us: null };
  }
  bare.connections[0].trace = {
    client_to_server: null,
    server_to_client: {
      segments: points,
      acks: points,
      in_flight: points,
      rtt: points,
      marks: {},
      stalls: [],
      rate: { width_us: 1000, payload_bytes: [], wire_bytes: [] },
    },
  };
  const isBare = await open(page, bare, "bare");
  await expect(page.locator("h1")).toHaveText("No data was transferred, so nothing limited it.");
  await page.locator(".panel").focus();
  for (const key of ["+", "Shift+ArrowRight", "ArrowRight", "0"]) await page.keyboard.press(key);
  const [x, y] = (await area(page, "sequence")).middle;
  await page.mouse.move(x, y);
  expect(await page.locator("#page").innerText()).not.toMatch(/NaN|undefined|Infinity/);
  isBare();
});

test("says so where there is no report in it", async ({ page }) => {
  const { html } = await import("./open.ts");
  await page.setContent(html(capture()).replace(/(id="fullpipe-data">)[^<]*/, "$1"));
  await expect(page.locator(".broken")).toBeVisible();
});

for (const width of [360, 768, 1440]) {
  test(`does not overflow at ${width} pixels`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const [name, data] of [
      ["capture", capture()],
      ["hostile", hostile()],
      ["lab", lab()],
    ] as const) {
      await open(page, data, `overflow-${name}-${width}`);
      await page
        .locator("details")
        .evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth),
        name,
      ).toBeLessThanOrEqual(width);
    }
  });
}

for (const [theme, language] of [
  ["light", "en"],
  ["dark", "zh"],
]) {
  for (const [name, make] of [
    ["capture", capture],
    ["lab", lab],
  ] as const) {
    test(`has no serious barrier: ${name}, ${theme}, ${language}`, async ({ page }) => {
      await open(page, make(), `axe-${name}-${theme}`, `#c=2&theme=${theme}&lang=${language}`);
      await page
        .locator("details")
        .evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
      const { violations } = await new AxeBuilder({ page }).analyze();
      const grave = violations.filter(
        ({ impact }) => impact === "serious" || impact === "critical",
      );
      expect(
        grave.map(({ id, nodes }) => `${id}: ${nodes.map((one) => one.html).join(" ")}`),
      ).toEqual([]);
    });
  }
}
