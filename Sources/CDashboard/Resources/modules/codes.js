// The failure codes: one colour and one pattern each, the same on every screen.

import { s } from "./dom.js";

const looks = {
  10: ["plum", "dots"], 20: ["brick", "back"], 21: ["violet", "solid"], 22: ["amber", "solid"],
  23: ["rose", "cross"], 24: ["moss", "forward"], 25: ["brick", "rows"], 26: ["slate", "solid"],
  27: ["blue", "forward"], 28: ["violet", "back"], 30: ["amber", "dots"], 31: ["amber", "rows"],
  32: ["moss", "dots"], 33: ["plum", "forward"], 34: ["plum", "columns"], 35: ["brick", "solid"],
};
const strokes = {
  forward: "M-1 1 1-1M0 6 6 0M5 7 7 5", back: "M-1 5 1 7M0 0l6 6M5-1l2 2",
  rows: "M0 1.5h6M0 4.5h6", columns: "M1.5 0v6M4.5 0v6", cross: "M0 3h6M3 0v6",
};

function look(code) {
  return looks[code] ?? ["slate", "cross"];
}

/** The paint of a code, as the value of the attribute `fill`. */
export function paint(code) {
  return `url(#paint-${looks[code] ? code : "other"})`;
}

/** The patterns that `paint` names; once a page. */
export function paints() {
  const patterns = [...Object.keys(looks), "other"].map((code) => {
    const [hue, kind] = look(code);
    return s("pattern", { id: `paint-${code}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", class: `hue-${hue}` },
      s("rect", { class: "paint-ground", width: 6, height: 6 }),
      kind === "dots" && s("circle", { class: "paint-dot", cx: 3, cy: 3, r: 1.4 }),
      strokes[kind] && s("path", { class: "paint-stroke", d: strokes[kind] }));
  });
  return s("svg", { class: "paints", width: 0, height: 0, "aria-hidden": "true", focusable: "false" }, s("defs", {}, patterns));
}

/** A small square in the code's paint. */
export function swatch(code) {
  return s("svg", { class: "swatch", width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true", focusable: "false" },
    s("rect", { width: 14, height: 14, rx: 3, fill: paint(code) }));
}

// The words on the wire.
const reasons = {
  10: "EXPIRATION_REQUIRED", 20: "DECODING_ERROR", 21: "SUBJECT_MISMATCH", 22: "EXPIRED", 23: "INVALID_PAYLOAD",
  24: "INCORRECT_ALGORITHM", 25: "PUBLIC_KEY_ERROR", 26: "MISSING_TOKEN", 27: "NO_MATCHING_PUBLIC_KEYS",
  28: "PAYLOAD_USER_ID_MISMATCH", 30: "NOT_YET_VALID", 31: "ISSUED_IN_FUTURE", 32: "LIFETIME_TOO_LONG",
  33: "AUDIENCE_MISMATCH", 34: "ISSUER_MISMATCH", 35: "REVOKED",
};

export const everyCode = Object.keys(reasons).map(Number);

export function reason(code) {
  return reasons[code] ?? "UNKNOWN";
}
