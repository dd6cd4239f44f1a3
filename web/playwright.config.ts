/** Tests of the built page in Debian's Chromium; nothing is downloaded. */
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  testMatch: process.env.FULLPIPE_SPEED ? "speed.ts" : "*.browser.ts",
  outputDir: "../target/report-test-results",
  snapshotPathTemplate: "tests/pictures/{arg}{ext}",
  fullyParallel: true,
  workers: 2,
  timeout: 30_000,
  // Where the machine stood still for a moment. What passes only then is listed as flaky.
  retries: 1,
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    locale: "en-US",
    colorScheme: "light",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu"],
    },
  },
});
