/** The legend below a graph: buttons that show and hide lines, and what each line means. */
import { h } from "../dom.ts";
import type { Palette } from "../theme.ts";
import type { Words } from "../words/words.ts";
import type { Graph } from "./catalogue.ts";
import type { Layer } from "./layers.ts";
import { swatch } from "./paint.ts";

/** Buttons for the layers of a graph, and a fold with a sentence for each. */
export function legend(
  graph: Graph,
  hidden: Set<string>,
  words: Words,
  palette: Palette,
  changed: () => void,
): HTMLElement {
  const buttons = graph.layers.map((layer) => {
    const button = h(
      "button",
      {
        type: "button",
        class: "key",
        title: layer.entry.means,
        "aria-pressed": String(!hidden.has(layer.key)),
        onclick: () => {
          if (!hidden.delete(layer.key)) hidden.add(layer.key);
          button.setAttribute("aria-pressed", String(!hidden.has(layer.key)));
          changed();
        },
      },
      sample(layer, palette),
      layer.entry.name,
      layer.places ? h("span", { class: "count" }, String(layer.places.count)) : null,
    );
    return button;
  });
  const meanings = h(
    "dl",
    {},
    graph.layers.flatMap((layer) => [
      h("dt", {}, sample(layer, palette), layer.entry.name),
      h("dd", {}, layer.entry.means),
    ]),
  );
  const leftOut = graph.layers.flatMap(({ places, entry }) =>
    places && places.at.length < places.count
      ? [
          h(
            "p",
            { class: "quiet" },
            words.say.marksLeftOut(String(places.at.length), String(places.count), entry.name),
          ),
        ]
      : [],
  );
  return h(
    "div",
    { class: "legend" },
    h("div", { class: "keys", role: "group", "aria-label": words.ui.legend }, buttons),
    h("details", {}, h("summary", {}, words.ui.legend), meanings, ...leftOut),
  );
}

/** How a layer looks, as a small picture. */
function sample(layer: Layer, palette: Palette): HTMLCanvasElement {
  const ratio = 2;
  const canvas = h("canvas", {
    width: 20 * ratio,
    height: 14 * ratio,
    class: "sample",
    "aria-hidden": "true",
  });
  const pen = canvas.getContext("2d");
  if (pen) swatch(pen, layer.shape, palette[layer.colour], 10 * ratio, 7 * ratio, ratio);
  return canvas;
}
