// A small chart of a day's requests: successful ones below, failed ones on top.

import { s } from "./dom.js";

const HEIGHT = 48;
const HOURS = 24;

/** Bars for {requests, failures} of each hour. Hidden from screen readers, because text shows the numbers. */
export function spark(hours) {
  const highest = Math.max(1, ...hours.map((hour) => hour.requests));
  const y = (count) => (count / highest) * (HEIGHT - 2);
  const bars = hours.flatMap(({ requests, failures }, index) => [
    requests > failures && s("rect", { class: "good", x: index * 10 + 1, y: HEIGHT - y(requests - failures), width: 8, height: y(requests - failures) }),
    failures > 0 && s("rect", { class: "failed", x: index * 10 + 1, y: HEIGHT - y(requests), width: 8, height: y(failures) }),
  ]);
  return s("svg", { class: "spark", viewBox: `0 0 ${HOURS * 10} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    bars, s("line", { class: "axis", x1: 0, x2: HOURS * 10, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }));
}
