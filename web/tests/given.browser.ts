/** Reports that the product wrote: every JSON file of a folder, as `fullpipe report --data` gives it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import type { PageData } from "../src/data.ts";
import { open, picture } from "./open.ts";

const folder = process.env.FULLPIPE_REPORTS;
const files =
  folder && existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];

test("there are reports that the product wrote", () => {
  test.skip(
    files.length === 0,
    "SKIPPED: given: FULLPIPE_REPORTS names no folder with the output of fullpipe report --data",
  );
});

for (const file of files) {
  test(`shows ${file}`, async ({ page }) => {
    const data = JSON.parse(readFileSync(join(folder ?? "", file), "utf8")) as PageData;
    const isClean = await open(page, data, `given-${file}`);
    await expect(page.locator("h1")).not.toBeEmpty();
    await picture(page, `given-${file.replace(".json", "")}`);
    isClean();
  });
}
