// The state that webhooks, streams, hourly files and consumers have in common. The cards of streams
// and files are hidden if the app has none.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { formDialog } from "./dialogs.js";
import { ago, fromInput, number, plural, zoneName } from "./format.js";
import { badge, button, card, field, select, stacked, toast } from "./ui.js";
import { attempt, view } from "./views.js";
import { facts } from "./sample.js";

const reasons = { requested: "Paused", gone: "Paused: it answered 410 Gone", failing: "Paused: it failed for five days" };

function stateOf(item) {
  if (item.state === "paused") return badge(reasons[item.paused?.reason] ?? "Paused", item.paused?.reason === "requested" ? "amber" : "bad");
  if (item.state !== "failing") return badge("Active", "good");
  const next = item.next_attempt_ms === null ? "" : `, next attempt ${item.next_attempt_ms > Date.now() ? ago(item.next_attempt_ms) : "now"}`;
  return h("span", { class: "badges" }, badge("Failing", "bad"),
    h("span", { class: "muted" }, `${plural(item.failures, "failed attempt")}, first ${ago(item.failing_since_ms)}${next}`));
}

function behind(item) {
  if (item.lag_events == null) return "Not started";
  return item.lag_events === 0 ? badge("Up to date", "good") : `${plural(item.lag_events, "event")}, since ${ago(item.oldest_unread_ms ?? NaN)}`;
}

function lastSuccess(item) {
  return [ago(item.last_success_ms), " ", item.events_missed && badge("events missed", "amber")];
}

// Viewers get the error's code instead of the reason, and only while deliveries fail.
function lastFailure(item) {
  return stacked(ago(item.last_failure_ms), item.reason ?? item.error);
}

/** A list of `items`, each with its state and progress. `describe` returns an item's name, other facts before and after the progress, buttons, and
 * whether a backend fetches the events, so that the gateway knows no state and no failures. */
export function ways(label, items, describe) {
  return h("ul", { class: "ways", "aria-label": label }, items.map((item) => {
    const { name, before = [], after = [], actions, isFetched = false } = describe(item);
    return h("li", { "aria-label": name },
      h("div", { class: "card-head" }, h("h3", { class: "wrap" }, name), !isFetched && stateOf(item)),
      facts([...before, ["Position", item.position && h("span", { class: "mono" }, item.position)], ["Behind", behind(item)], ["Last success", lastSuccess(item)],
        ...(isFetched ? [] : [["Last failure", lastFailure(item)]]), ...after]),
      h("div", { class: "actions" }, actions));
  }));
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
    item.state === "failing" && button("Retry now", { kind: "small", "data-focus": `retry ${name}`, "aria-label": `Retry ${name} now`, onclick: () => act("resume", "The next attempt starts within a second.") }),
    button(paused ? "Resume" : "Pause", { kind: "small", "data-focus": `pause ${name}`, "aria-label": `${paused ? "Resume" : "Pause"} ${name}`, onclick: () => (paused ? act("resume", "It continues where it stopped.") : act("pause", "It is paused; events wait.")) }),
  ];
}

/** A button that moves a consumer or stream to another position. `effect` is the explanation in the dialog. */
export function move(where, name, effect, reload) {
  return button("Move", { kind: "small", "data-focus": `move ${name}`, "aria-label": `Move ${name}`, onclick: async () => {
    const place = select([["time", "A time"], ["start", "The oldest event"], ["end", "After the newest event"]], "time");
    const time = h("input", { type: "datetime-local", autofocus: true });
    const moved = await formDialog(`Move ${name}`, "Move", [
      h("p", {}, effect), field("Move to", place), field(`Time (${zoneName()})`, time, "When events were received."),
    ], () => api.post(`${where}/seek`, place.value === "time" ? { time_ms: fromInput(time.value) || null } : { from: place.value }));
    if (!moved) return;
    toast(`${name} is ${plural(moved.lag_events, "event")} behind now.`);
    reload();
  } });
}

export function streams(context) {
  const base = path("apps", context.app.id, "streams");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => (items.length === 0 ? h("div", {}) : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Streams")),
    ways("Streams", items, (item) => ({
      name: item.name, before: [["Stream", `${item.stream} at ${item.servers}`]], after: [["Messages", number(item.stream_seq ?? 0)]],
      actions: context.can("operator") && [pauses(`${base}${path(item.name)}`, item, item.name, () => part.reload()), move(`${base}${path(item.name)}`, item.name,
        "Events after the new position are published again, at the end of the stream; events that are skipped are not published.", () => part.reload())],
    })))), { every: 10_000 });
  return part.element;
}

export function files(context) {
  const where = path("apps", context.app.id, "files");
  const part = view(context, (signal) => api.get(where, {}, signal), (item) => (!item.enabled ? h("div", {}) : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Files")),
    ways("Files", [item], () => ({ name: "Hourly files", actions: context.can("operator") && pauses(where, item, "the hourly files", () => part.reload()) })))), { every: 10_000 });
  return part.element;
}
