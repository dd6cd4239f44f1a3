/** Elements. Text goes in as text nodes only, so that foreign names stay text. */

type Child = Node | string | number | null | undefined | false;
type Handler = (event: never) => void;

/** Attributes; `on...` are listeners, `class` and `data-...` as in HTML. */
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

/** An element with attributes and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function")
      element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false)
      element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Text in which what stands between backquotes is code. */
export function prose(text: string): (string | HTMLElement)[] {
  return text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

/** A small drawing of one path in a box of 20 units. */
export function icon(path: string): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** Puts text on the clipboard; false where the browser refuses. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A file:// page may have no clipboard: the old way works from a click.
    const area = h("textarea", { class: "off-screen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A button that says for a moment that it has done it. */
export function copyButton(label: string, done: string, text: () => string): HTMLButtonElement {
  const button = h(
    "button",
    {
      type: "button",
      class: "small",
      onclick: async () => {
        const worked = await copyText(text());
        button.textContent = worked ? done : label;
        setTimeout(() => (button.textContent = label), 1500);
      },
    },
    label,
  );
  return button;
}
