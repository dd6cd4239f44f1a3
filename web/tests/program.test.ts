/** The WebAssembly program says what the binary says, on every capture that is given. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { bytesOf } from "../src/view/letters.ts";
import { run } from "../src/view/wasi.ts";

const root = resolve(import.meta.dirname, "../..");
const packed = readFileSync(join(root, "crates/cli/assets/view.wasm.gz"));
const program = await WebAssembly.compile(gunzipSync(packed));
const binary = join(root, process.env.CARGO_TARGET_DIR ?? "target", "debug/fullpipe");

/** Standard input of these bytes, in pieces. */
function input(bytes: Uint8Array): (most: number) => Uint8Array {
  let at = 0;
  return (most) => bytes.subarray(at, (at += Math.min(most, 65_536)));
}

/** All captures below a folder. */
function captures(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(pcap|pcapng|cap|snoop)(\.(gz|zst|xz|lz4))?$/.test(name))
    .map((name) => join(folder, name))
    .sort();
}

test.skipIf(!existsSync(binary))(
  "the same report as the binary's, to the letter",
  () => {
    const shared = captures(join(root, "../shared/captures"));
    const given = [
      ...captures(join(root, "crates/flow/tests/lab/captures")),
      ...shared.filter((_, i) => i % 6 === 0),
    ];
    expect(given.length).toBeGreaterThan(10);
    for (const file of given) {
      const bytes = readFileSync(file);
      if (bytes.length > 8e6) continue;
      const native = spawnSync(binary, ["report", "--data", "-"], {
        input: bytes,
        maxBuffer: 1 << 28,
      });
      const own = run(program, ["report", "standard input"], input(bytes));
      if (native.stdout.length === 0) {
        expect(own.code, file).toBe(1);
        continue;
      }
      // The title is the name as it was given; both read standard input.
      const expected = native.stdout
        .toString()
        .trimEnd()
        .replace('"title":"-"', '"title":"standard input"');
      expect(
        own.output === expected,
        `${file}: the program of the page is not current: cargo xtask page`,
      ).toBe(true);
    }
  },
  120_000,
);

test("the calculator answers, and what is no question is told", () => {
  const question = { rate_bps: 1e9, rtt_us: 146_000, window_bytes: 3_000_000, over: "rtt" };
  const asked = run(program, ["law"], input(new TextEncoder().encode(JSON.stringify(question))));
  expect(asked.code).toBe(0);
  const answer = JSON.parse(asked.output) as { goodput_bps: number; limit: string };
  expect(answer.limit).toBe("receive window");
  expect(answer.goodput_bps / 1e6).toBeCloseTo(164.38, 1);
  const none = run(program, ["law"], input(new TextEncoder().encode("{}")));
  expect(none.code).toBe(1);
  expect(none.output).toContain("question");
});

test("what is no capture is an error with a sentence", () => {
  const ended = run(
    program,
    ["report", "x"],
    input(new TextEncoder().encode("no capture at all, but text")),
  );
  expect(ended.code).toBe(1);
  expect(ended.output.length).toBeGreaterThan(10);
});

test("Z85 with a comma for the letter that could end the element", () => {
  // ZeroMQ RFC 32's own example, and lengths that are no multiple of four.
  expect([...bytesOf("8 HelloWorld")]).toEqual([0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]);
  expect([...bytesOf("6 HelloWorld")]).toHaveLength(6);
});
