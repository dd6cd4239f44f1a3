/** The buttons of a graph: its x axis, and its picture. */
import { h } from "../dom.ts";
import { copyPng, type Picture, png, save, svg } from "../export.ts";
import type { Words } from "../words/words.ts";

/** Chooses whether round trips are shown over time or over the sequence number. */
export function axisSwitch(
  { ui }: Words,
  isOverSequence: boolean,
  canBe: boolean,
  choose: (isOverSequence: boolean) => void,
): HTMLElement {
  const choice = (name: string, is: boolean): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-pressed": String(is === (isOverSequence && canBe)),
        disabled: is && !canBe,
        title: is && !canBe ? ui.noSequence : null,
        onclick: () => choose(is),
      },
      name,
    );
  return h(
    "div",
    { class: "switch", role: "group", "aria-label": ui.rtt },
    choice(ui.overTime, false),
    choice(ui.overSequence, true),
  );
}

/** Copies a graph as PNG, and saves it as PNG and as SVG. */
export function pictureButtons(
  { ui }: Words,
  title: string,
  picture: () => Picture,
): HTMLElement[] {
  const small = (label: string, name: string, act: (button: HTMLElement) => void): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `${name}: ${title}`,
        title: name,
        onclick: (event: MouseEvent) => act(event.currentTarget as HTMLElement),
      },
      label,
    );
  const name = (ending: string): string => `fullpipe-${picture().graph.name}.${ending}`;
  return [
    small(ui.copy, ui.copyPng, async (button) => {
      button.textContent = (await copyPng(picture())) ? ui.copied : ui.failed;
      setTimeout(() => (button.textContent = ui.copy), 1500);
    }),
    small("PNG", ui.savePng, async () => save(await png(picture()), name("png"))),
    small("SVG", ui.saveSvg, () =>
      save(new Blob([svg(picture())], { type: "image/svg+xml" }), name("svg")),
    ),
  ];
}
