// The streams to which an app's events are published: progress and errors. The card is hidden without
// streams.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { ago, number, plural } from "./format.js";
import { badge, button, card, table, toast } from "./ui.js";
import { attempt, view } from "./views.js";

export function sinks(context) {
  const base = path("apps", context.app.id, "streams");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => (items.length === 0 ? h("div", {}) : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Streams")),
    table("Streams", [
      { title: "Name", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.name) },
      { title: "Stream", cell: (item) => h("span", { class: "wrap" }, `${item.stream} at ${item.servers}`) },
      { title: "State", cell: (item) => state(item) },
      { title: "Behind", cell: (item) => (item.lag_events === 0 ? "Nothing" : item.lag_events === null ? "Not begun" : `${plural(item.lag_events, "event")}, since ${ago(item.oldest_unread_ms ?? NaN)}`) },
      { title: "Messages", cell: (item) => number(item.stream_seq ?? 0) },
      { title: "", cell: (item) => context.can("operator") && button(item.paused ? "Resume" : "Pause", {
        kind: "small", "aria-label": `${item.paused ? "Resume" : "Pause"} ${item.name}`, onclick: () => act(item, item.paused ? "resume" : "pause") }) },
    ], items))), { every: 10_000 });

  function state(item) {
    if (item.state === "paused") return badge("Paused", "amber");
    if (item.state === "active") return badge("Active", "good");
    return h("span", {}, badge("Failing", "bad"), h("span", { class: "muted" }, ` ${item.reason}, first ${ago(item.failing_since_ms)}`));
  }

  async function act(item, action) {
    await attempt(async () => {
      await api.post(`${base}${path(item.name, action)}`);
      toast(action === "pause" ? "Publishing is paused; events wait." : "Publishing resumes where it stopped.");
      part.reload();
    });
  }

  return part.element;
}
