// The state that webhooks, streams, hourly files and consumers have in common. The cards of streams
// and files are hidden if the app has none.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { ago, number, plural } from "./format.js";
import { badge, button, card, table, toast } from "./ui.js";
import { attempt, view } from "./views.js";

const reasons = { requested: "Paused", gone: "Paused: it answered 410 Gone", failing: "Paused: it failed for five days" };

export function stateOf(item) {
  if (item.state === "paused") return badge(reasons[item.paused?.reason] ?? "Paused", item.paused?.reason === "requested" ? "amber" : "bad");
  if (item.state !== "failing") return badge("Active", "good");
  const next = item.next_attempt_ms === null ? "" : `, next attempt ${item.next_attempt_ms > Date.now() ? ago(item.next_attempt_ms) : "now"}`;
  return h("span", { class: "badges" }, badge("Failing", "bad"),
    h("span", { class: "muted" }, `${item.reason ?? item.error}: ${plural(item.failures, "failed attempt")}, first ${ago(item.failing_since_ms)}${next}`));
}

export function behind(item) {
  if (item.lag_events === null) return "Not begun";
  return item.lag_events === 0 ? badge("Up to date", "good") : `${plural(item.lag_events, "event")}, since ${ago(item.oldest_unread_ms ?? NaN)}`;
}

export function lastSuccess(item) {
  return [item.last_success_ms === null ? "never" : ago(item.last_success_ms), item.events_missed && badge("events missed", "amber")];
}

// Buttons to pause and resume a webhook, stream or file export, and to end its wait after failures.
export function pauses(where, item, name, reload) {
  const act = (action, text) => attempt(async () => {
    await api.post(`${where}${path(action)}`);
    toast(text);
    reload();
  });
  const paused = item.state === "paused";
  return [
    item.state === "failing" && button("Retry now", { kind: "small", "aria-label": `Retry ${name} now`, onclick: () => act("resume", "The next attempt starts within a second.") }),
    button(paused ? "Resume" : "Pause", { kind: "small", "aria-label": `${paused ? "Resume" : "Pause"} ${name}`, onclick: () => (paused ? act("resume", "It continues where it stopped.") : act("pause", "It is paused; events wait.")) }),
  ];
}

export function streams(context) {
  const base = path("apps", context.app.id, "streams");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => (items.length === 0 ? h("div", {}) : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Streams")),
    table("Streams", [
      { title: "Name", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.name) },
      { title: "Stream", cell: (item) => h("span", { class: "wrap" }, `${item.stream} at ${item.servers}`) },
      { title: "State", cell: stateOf },
      { title: "Behind", cell: behind },
      { title: "Last success", cell: lastSuccess },
      { title: "Messages", cell: (item) => number(item.stream_seq ?? 0) },
      { title: "", cell: (item) => context.can("operator") && h("span", { class: "actions" }, pauses(`${base}${path(item.name)}`, item, item.name, () => part.reload())) },
    ], items))), { every: 10_000 });
  return part.element;
}

export function files(context) {
  const where = path("apps", context.app.id, "files");
  const part = view(context, (signal) => api.get(where, {}, signal), (item) => (!item.enabled ? h("div", {}) : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Hourly files")),
    table("Hourly files", [
      { title: "State", heading: true, cell: stateOf },
      { title: "Behind", cell: behind },
      { title: "Last success", cell: lastSuccess },
      { title: "", cell: () => context.can("operator") && h("span", { class: "actions" }, pauses(where, item, "the hourly files", () => part.reload())) },
    ], [item]))), { every: 10_000 });
  return part.element;
}
