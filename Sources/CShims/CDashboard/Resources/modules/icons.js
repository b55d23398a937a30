// Line icons on a 20 by 20 grid.

import { s } from "./dom.js";

const paths = {
  home: "M3.5 9.2 10 3.8l6.5 5.4v6.6a.9.9 0 0 1-.9.9H12v-4.6H8v4.6H4.4a.9.9 0 0 1-.9-.9z",
  chart: "M3.5 16.5h13M5.5 13.5v-4M8.5 13.5v-7M11.5 13.5V9M14.5 13.5V4",
  live: "M3 10h3l2-5.5 4 11 2-5.5h3",
  key: "M12.7 7.3h.01M8.9 9.6 3.5 15v1.8h2.4v-1.7h1.7v-1.7h1.6l1.2-1.2a4.3 4.3 0 1 0-1.5-2.6z",
  shield: "M10 3 4.2 5.2v4.3c0 3.6 2.4 6.2 5.8 7.5 3.4-1.3 5.8-3.9 5.8-7.5V5.2zM7.5 10l1.8 1.8 3.3-3.4",
  policy: "M5 3.5h7l3 3v10H5zM12 3.5v3h3M7.5 10h5M7.5 13h3.5",
  events: "M3.5 5.5h13M3.5 10h13M3.5 14.5h8",
  sessions: "M4 4.5h12v8H4zM7.5 16h5M10 12.5V16",
  audit: "M10 5.5V10l3 1.8M16.5 10a6.5 6.5 0 1 1-2-4.7M16.5 3v3h-3",
  members: "M10 9.5a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM4.2 16.3a5.9 5.9 0 0 1 11.6 0",
  settings: "M3.5 6.5h6M13.5 6.5h3M3.5 13.5h3M10.5 13.5h6M11.5 4.5v4M8.5 11.5v4",
  gateways: "M3.5 4h13v4.5h-13zM3.5 11.5h13V16h-13zM6.5 6.2h.01M6.5 13.7h.01",
  app: "M5.5 2.8h9v14.4h-9zM9 14.7h2",
  message: "M3.5 4.5h13v9h-7l-3.2 2.7v-2.7H3.5z",
  menu: "M3.5 5.5h13M3.5 10h13M3.5 14.5h13",
  close: "m5 5 10 10M15 5 5 15",
  check: "m4.5 10.5 3.6 3.6 7.4-8",
  warn: "M10 3.5 17.5 16.4h-15zM10 8.3v3.6M10 14.2h.01",
  stop: "M6.6 3h6.8L17 6.6v6.8L13.4 17H6.6L3 13.4V6.6zM10 6.7v4M10 13.3h.01",
  info: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 9.3v4M10 6.7h.01",
  copy: "M7 7h9.5v9.5H7zM13 4H3.5v9.5",
  down: "M10 3.5v9M6.2 9 10 12.8 13.8 9M4 16.5h12",
  plus: "M10 4v12M4 10h12",
  pause: "M7 4.5v11M13 4.5v11",
  play: "M6.5 4.2v11.6l9-5.8z",
  refresh: "M16 10a6 6 0 1 1-1.9-4.4M16 3.4v3.1h-3.1",
  back: "M16 10H4.5M9 5l-5 5 5 5",
  chevron: "m5.5 8 4.5 4.5L14.5 8",
  sun: "M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4zM10 2.5v1.7M10 15.8v1.7M2.5 10h1.7M15.8 10h1.7M4.7 4.7l1.2 1.2M14.1 14.1l1.2 1.2M15.3 4.7l-1.2 1.2M5.9 14.1l-1.2 1.2",
  moon: "M16 11.6A6.6 6.6 0 0 1 8.4 4a6.6 6.6 0 1 0 7.6 7.6z",
  out: "M11.5 4H4.5v12h7M8.5 10H17M14 7l3 3-3 3",
  keyboard: "M2.8 5.5h14.4v9H2.8zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01M7 11.7h6",
  eye: "M2.5 10S5.2 5 10 5s7.5 5 7.5 5-2.7 5-7.5 5-7.5-5-7.5-5zM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM13 13l4 4",
  star: "m10 3.2 2.1 4.4 4.8.6-3.5 3.3.9 4.8-4.3-2.4-4.3 2.4.9-4.8-3.5-3.3 4.8-.6z",
  trash: "M4 5.8h12M8 5.8V4h4v1.8M5.5 5.8l.7 10.7h7.6l.7-10.7",
};

/** A decorative icon, hidden from screen readers. */
export function icon(name, size = 18) {
  return s("svg", {
    class: `icon icon-${name}`, viewBox: "0 0 20 20", width: size, height: size, "aria-hidden": "true", focusable: "false",
  }, s("path", { d: paths[name] ?? paths.info }));
}

export function mark(size = 28) {
  return s("svg", { class: "mark", viewBox: "0 0 32 32", width: size, height: size, "aria-hidden": "true", focusable: "false" },
    s("rect", { class: "mark-ground", width: 32, height: 32, rx: 8 }),
    s("path", { class: "mark-ring", d: "M22 11.5a7.5 7.5 0 1 0 0 9" }),
    s("path", { class: "mark-tick", d: "m15 16 2.6 2.6L24 12.4" }));
}
