// Requests of a day at a glance: good below, failed on top.

import { s } from "./dom.js";

const HEIGHT = 48;

/** Small bars of analytics buckets. The numbers stand beside it, so that it is decoration. */
export function spark(buckets) {
  const parts = buckets.map((bucket) => ({
    good: bucket.accepted + bucket.anonymous + bucket.not_judged, failed: bucket.warned + bucket.rejected,
  }));
  const highest = Math.max(1, ...parts.map((part) => part.good + part.failed));
  const y = (count) => (count / highest) * (HEIGHT - 2);
  const bars = parts.flatMap(({ good, failed }, index) => [
    good > 0 && s("rect", { class: "good", x: index * 10 + 1, y: HEIGHT - y(good), width: 8, height: y(good) }),
    failed > 0 && s("rect", { class: "failed", x: index * 10 + 1, y: HEIGHT - y(good) - y(failed), width: 8, height: y(failed) }),
  ]);
  return s("svg", { class: "spark", viewBox: `0 0 ${parts.length * 10} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    bars, s("line", { class: "axis", x1: 0, x2: parts.length * 10, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }));
}
