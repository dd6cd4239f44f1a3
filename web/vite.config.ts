/// Builds the page into one HTML file without data, which `crates/report` embeds.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const PAGE = resolve(import.meta.dirname, "../crates/report/assets/page.html");

/**
 * Nothing is loaded from anywhere: style and script are parts of the page, and so are the worker and
 * the WebAssembly of the page as a program. `default-src` says nothing of where a `<base>` or a form
 * leads, so those have rules of their own.
 */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; " +
  "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'";

/** Puts the script and the styles into the HTML and writes that alone. */
function onePage(): Plugin {
  return {
    name: "one-page",
    enforce: "post",
    generateBundle(_, bundle) {
      let html = "",
        script = "",
        style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") script += file.code;
        else if (name.endsWith(".css")) style += String(file.source);
        else if (name.endsWith(".html")) html = String(file.source);
        delete bundle[name];
      }
      html = html
        .replace(
          /\s*<(script type="module"|link rel="(stylesheet|modulepreload)")[^>]*>(<\/script>)?/g,
          "",
        )
        .replace(
          "<!--policy-->",
          () => `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
        )
        .replace("<!--style-->", () => `<style>${style.trim()}</style>`)
        .replace(
          "<!--script-->",
          () =>
            `<script type="module">${script.trim().replaceAll("</script", "<\\/script")}</script>`,
        );
      const out = process.env.FULLPIPE_PAGE ?? PAGE;
      mkdirSync(dirname(out), { recursive: true });
      writeFileSync(out, html.trim() + "\n");
    },
  };
}

export default defineConfig({
  plugins: [onePage()],
  build: {
    target: "es2022",
    write: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 30,
    modulePreload: false,
    reportCompressedSize: false,
  },
  test: { include: ["tests/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
