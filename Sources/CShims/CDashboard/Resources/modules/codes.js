// The error codes: the gateway's texts, and a colour and pattern for each, equal on all screens.

import { api } from "./api.js";
import { s } from "./dom.js";

// Unlisted codes look like `other`.
const looks = {
  10: ["plum", "dots"], 20: ["brick", "back"], 21: ["violet", "solid"], 22: ["amber", "solid"],
  23: ["rose", "cross"], 24: ["moss", "forward"], 25: ["brick", "rows"], 26: ["slate", "solid"],
  27: ["blue", "forward"], 28: ["violet", "back"], 30: ["blue", "dots"], 31: ["rose", "rows"],
  32: ["moss", "dots"], 33: ["plum", "forward"], 34: ["plum", "columns"], 35: ["brick", "solid"],
  36: ["slate", "back"],
};
const strokes = {
  forward: "M-1 1 1-1M0 6 6 0M5 7 7 5", back: "M-1 5 1 7M0 0l6 6M5-1l2 2",
  rows: "M0 1.5h6M0 4.5h6", columns: "M1.5 0v6M4.5 0v6", cross: "M0 3h6M3 0v6",
};

function look(code) {
  return looks[code] ?? ["slate", "cross"];
}

/** The value of the attribute `fill` for a code. */
export function paint(code) {
  return `url(#paint-${looks[code] ? code : "other"})`;
}

/** The SVG patterns for `paint`, and the pattern of unfinished bars. Needed once in a page. */
export function paints() {
  const patterns = [...Object.keys(looks), "other"].map((code) => {
    const [hue, kind] = look(code);
    return s("pattern", { id: `paint-${code}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", class: `hue-${hue}` },
      s("rect", { class: "paint-ground", width: 6, height: 6 }),
      kind === "dots" && s("circle", { class: "paint-dot", cx: 3, cy: 3, r: 1.4 }),
      strokes[kind] && s("path", { class: "paint-stroke", d: strokes[kind] }));
  });
  const unfinished = s("pattern", { id: "paint-unfinished", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    s("path", { class: "unfinished-stroke", d: strokes.forward }));
  return s("svg", { class: "paints", width: 0, height: 0, "aria-hidden": "true", focusable: "false" }, s("defs", {}, patterns, unfinished));
}

export function swatch(code) {
  return s("svg", { class: "swatch", width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true", focusable: "false" },
    s("rect", { width: 14, height: 14, rx: 3, fill: paint(code) }));
}

let table = new Map();

/** Loads the gateway's table of codes, once for each page load. */
export async function loadCodes(signal) {
  if (table.size > 0) return;
  const { items } = await api.get("/error-codes", {}, signal);
  table = new Map(items.map((item) => [item.code, item]));
}

/** The gateway's codes, ascending. */
export function everyCode() {
  return [...table.keys()];
}

/** The gateway's texts about a code; undefined for an unknown code. */
export function about(code) {
  return table.get(code);
}

/** The dashboard screen where an app's fault with this code can be fixed, with its text; null without one. */
export function remedy(code) {
  if (code === 27 || code === 25) return { text: "Add key", screen: "keys", query: "?add=1" };
  if (code === 24 || (code >= 32 && code <= 34)) return { text: "Claims policy", screen: "policy", query: "" };
  return null;
}

/** The link to a code's section in the documentation. */
export function docsOf(code) {
  return `#/docs/reference/error-codes?at=${code}-${reason(code).toLowerCase()}`;
}

export function reason(code) {
  return table.get(code)?.reason ?? "UNKNOWN";
}
