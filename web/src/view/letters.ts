/** Bytes as text in the page. */

/** The letters of Z85 (ZeroMQ RFC 32) by value, with a comma for `<`. */
const LETTERS =
  "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&,>()[]{}@%$#";

/** The bytes that a length and a text in Z85 stand for. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const [length, letters] = text.trim().split(" ") as [string, string];
  const values = new Uint8Array(128);
  [...LETTERS].forEach((letter, value) => (values[letter.charCodeAt(0)] = value));
  const bytes = new Uint8Array((letters.length / 5) * 4);
  const view = new DataView(bytes.buffer);
  for (let at = 0, to = 0; at < letters.length; at += 5, to += 4) {
    let word = 0;
    for (let i = 0; i < 5; i++) word = word * 85 + (values[letters.charCodeAt(at + i)] ?? 0);
    view.setUint32(to, word);
  }
  return bytes.subarray(0, Number(length));
}
