// The command palette: finds screens, apps, saved views, codes, keys, settings, users and events.

import { h, replace, freshID } from "./dom.js";
import { carry } from "./address.js";
import { api, firstFilled, path } from "./api.js";
import { everyCode, reason } from "./codes.js";
import { dateTime } from "./format.js";
import { dialog } from "./dialogs.js";
import { icon } from "./icons.js";
import { preferences } from "./preferences.js";

const MOST = 12;
const PAUSE = 200;
/** The form of the request ids that the gateway generates. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** `screens` are {name, symbol, href}. `app` is the current app. With `owner`, settings can be found. */
export function palette({ screens, apps, app, owner, go }) {
  const abort = new AbortController();
  const fixed = [
    ...screens.map((screen) => ({ kind: "Screen", more: "", ...screen, text: screen.name })),
    ...preferences.views.map((view) => ({ kind: "View", text: view.name, symbol: "eye", href: view.hash, more: "" })),
    ...apps.map((item) => ({ kind: "App", text: item.name || item.id, symbol: "app", href: `#${path("apps", item.id, "failures")}`, more: item.id })),
  ];
  let keys = [];
  let settings = [];
  let found = [];
  let shown = [];
  let at = 0;
  let timer;

  const within = (screen, query) => `#${path("apps", app.id, screen)}${query ? `?${new URLSearchParams(query)}` : ""}`;
  const codes = !app ? [] : everyCode().map((code) => ({ kind: "Code", text: `${code} ${reason(code)}`, symbol: "chart", href: within("failures", { range: "7d", code }), more: "failures" }));

  const listID = freshID("palette");
  const list = h("ul", { class: "palette-list", id: listID, role: "listbox", "aria-label": "Results" });
  const input = h("input", {
    type: "search", class: "palette-input", role: "combobox", "aria-expanded": "true", "aria-controls": listID, "aria-autocomplete": "list", "aria-label": "Go to",
    placeholder: "Screen, app, user, event, request id, key or setting", spellcheck: "false", autocomplete: "off", autofocus: true,
  });

  const ofUser = (text, symbol, screen, values) => ({ kind: "Search", text, symbol, href: within(screen), carries: [path("apps", app.id, screen), values] });

  /** The searches for a text, which are offered after the matching names. */
  function searches(text) {
    if (!app || text.length < 2) return [];
    return [
      ofUser(`Events of user ${text}`, "events", "events", { user: text }),
      ofUser(`Customer ${text}`, "members", "customers", { id: text }),
      ofUser(`Sessions of ${text}`, "sessions", "sessions", { user: text }),
      { kind: "Search", text: `Events of request ${text}`, symbol: "events", href: within("events", { request_id: text }) },
      { kind: "Search", text: `Events named ${text}`, symbol: "events", href: within("events", { name: text }) },
      ofUser(`Live requests of ${text}`, "live", "live", { user: text }),
      { kind: "Search", text: `Changes by ${text}`, symbol: "audit", href: `#/audit?${new URLSearchParams({ actor: text })}` },
    ];
  }

  function draw() {
    const text = input.value.trim();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = (entry) => {
      const name = entry.text.toLowerCase();
      if (!words.every((word) => `${name} ${entry.more}`.toLowerCase().includes(word))) return -1;
      return name.startsWith(words[0] ?? "") ? 0 : name.includes(` ${words[0]}`) ? 1 : 2;
    };
    const matching = [...fixed, ...codes, ...keys, ...settings].map((entry) => [rank(entry), entry]).filter(([place]) => place >= 0)
      .sort(([one], [two]) => one - two).map(([, entry]) => entry);
    const others = text ? [...found, ...searches(text)] : [];
    shown = [...matching.slice(0, Math.max(MOST - others.length, 5)), ...others];
    at = Math.min(at, Math.max(0, shown.length - 1));
    replace(list, shown.map((entry, index) => h("li", {
      role: "option", id: `${listID}-${index}`, "aria-selected": String(index === at), onclick: () => open(entry), onpointermove: () => { if (index !== at) choose(index); },
    }, icon(entry.symbol, 16), h("span", { class: "palette-text" }, entry.text, entry.more && h("small", {}, entry.more)), h("span", { class: "palette-kind" }, entry.kind))));
    choose(at);
  }

  function choose(index) {
    list.children[at]?.setAttribute("aria-selected", "false");
    at = index;
    const option = list.children[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  let leave = () => {};
  function open(entry) {
    leave();
    if (entry.carries) carry(...entry.carries);
    go(entry.href);
  }

  /** Finds the newest events of a user, events with a message id, and events and samples with a request id. */
  async function look(text) {
    const ask = (screen, query) => firstFilled((cursor) => api.get(path("apps", app.id, screen), { ...query, limit: 2, cursor }, abort.signal)).then(({ items }) => items, () => []);
    const isID = UUID.test(text);
    const [samples, ...events] = await Promise.all([
      isID ? ask("samples", { request_id: text }) : [], isID ? ask("events", { request_id: text }) : [], ask("events", { message_id: text }), ask("events", { user: text }),
    ]);
    if (input.value.trim() !== text) return;
    found = [
      ...samples.map((sample) => ({
        kind: "Failed request", text: `${sample.code} ${sample.reason}`, symbol: "chart", more: `${sample.verdict}, ${dateTime(sample.at_ms)}`, href: `#${path("apps", app.id, "samples", sample.id)}`,
      })),
      ...events.flat().map((event) => ({
        kind: "Event", text: event.name || event.type, symbol: "events", more: `${event.verdict.replace("_", " ")}, ${dateTime(event.received_ms)}`, href: within("events", { event: event.position }),
      })),
    ];
    draw();
  }

  input.addEventListener("input", () => {
    at = 0;
    found = [];
    draw();
    clearTimeout(timer);
    const text = input.value.trim();
    if (app && text.length >= 2) timer = setTimeout(() => look(text), PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(shown.length - 1, at + 6), PageUp: Math.max(0, at - 6) }[event.key];
    if (to !== undefined && shown.length > 0) choose((to + shown.length) % shown.length);
    else if (event.key === "Enter" && shown[at]) open(shown[at]);
    else return;
    event.preventDefault();
  });

  if (app) {
    api.get(path("apps", app.id, "keys"), { limit: 50 }, abort.signal).then(({ items }) => {
      keys = items.map((key) => ({ kind: "Key", text: key.description || key.id, symbol: "key", href: within("keys"), more: `${key.slot} ${key.id}` }));
      draw();
    }, () => {});
  }
  if (owner) {
    api.get("/settings", {}, abort.signal).then(({ items }) => {
      settings = items.map((item) => ({ kind: "Setting", text: item.name, symbol: "settings", href: `#/system?${new URLSearchParams({ setting: item.name })}`, more: item.help }));
      draw();
    }, () => {});
  }
  draw();
  return dialog("Go to", (close) => { leave = close; return [input, list]; }, { look: "palette" }).finally(() => { clearTimeout(timer); abort.abort(); });
}
