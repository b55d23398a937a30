// Where an app's events are delivered to: how far each webhook is, and what became of its last deliveries.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime, duration, number, plural } from "./format.js";
import { dialog, formDialog, removable, showOnce } from "./dialogs.js";
import { badge, button, card, emptyState, field, privateAddress, select, stacked, table, toast } from "./ui.js";
import { attempt, pagedView, view } from "./views.js";

const verdicts = ["verified", "warned", "not_judged", "anonymous", "unknown", "unverified"];
const kinds = ["track", "identify", "page", "screen", "group", "alias"];
const any = ["", "Any"];
const reasons = { requested: "paused", gone: "paused: it answered 410", failing: "paused: it failed for five days" };

export function webhooks(context) {
  const base = path("apps", context.app.id, "webhooks");
  const operator = context.can("operator");
  const place = h("div", {});
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Webhooks"), h("div", { class: "actions" },
      operator && button("Test the alert webhook", { onclick: () => test("alerts") }), button("Alerts sent", { onclick: () => deliveries({ id: "alerts", url: "The alert webhook" }) }),
      operator && button("Add a webhook", { symbol: "plus", onclick: () => edit(null) }))),
    items.length === 0 ? emptyState("message", "No webhook", "The gateway sends events on to a webhook in signed requests (Standard Webhooks), each at least once and in order.")
      : table("Webhooks", [
        { title: "Address", heading: true, cell: (item) => stacked(h("span", { class: "wrap" }, item.url), h("span", { class: "mono" }, item.id)) },
        { title: "Events", cell: (item) => filters(item) },
        { title: "State", cell: state },
        { title: "Oldest undelivered", cell: (item) => (item.oldest_unread_ms === null ? "–" : ago(item.oldest_unread_ms)) },
        { title: "", cell: (item) => h("div", { class: "actions end" }, button("Deliveries", { kind: "small", onclick: () => deliveries(item) }), operator && actions(item)) },
      ], items)), { every: 10_000 });

  function state(item) {
    if (item.paused) return badge(reasons[item.paused.reason] ?? "paused", item.paused.reason === "requested" ? "amber" : "bad");
    if (item.failures === 0) return badge("active", "good");
    return stacked(badge(`${plural(item.failures, "failure")} since ${ago(item.failing_since_ms)}`, "amber"), item.next_attempt_ms !== null && `Next attempt ${dateTime(item.next_attempt_ms)}`);
  }

  function filters(item) {
    const found = ["verdict", "type", "name", "user"].filter((name) => item[name] !== null).map((name) => badge(`${name}: ${item[name]}`));
    return found.length === 0 ? "All" : h("span", { class: "badges" }, found);
  }

  function actions(item) {
    return [
      button("Test", { kind: "small", onclick: () => test(item.id) }),
      button("Change", { kind: "small", onclick: () => edit(item) }),
      button(item.paused ? "Resume" : "Pause", { kind: "small", onclick: () => act(item, item.paused ? "resume" : "pause", item.paused ? "Deliveries go on." : "Deliveries are paused.") }),
      button("Rotate secret", { kind: "small", onclick: () => rotate(item) }),
      removable("Delete", `the webhook ${item.url}`, { text: "Nothing is delivered to it any more, and its place among the events is forgotten.", phrase: "delete" },
        () => api.remove(`${base}${path(item.id)}`), () => { replace(place); part.reload(); toast("The webhook is deleted."); }),
    ];
  }

  async function act(item, action, text) {
    await attempt(async () => {
      await api.post(`${base}${path(item.id, action)}`);
      toast(text);
      part.reload();
    });
  }

  async function test(id) {
    await attempt(async () => {
      await api.post(`${base}${path(id, "test")}`);
      toast("A test is on its way; its delivery shows what became of it.");
    });
  }

  async function edit(item) {
    const { data, etag } = item ? await api.read(`${base}${path(item.id)}`) : { data: {}, etag: null };
    const url = h("input", { type: "url", name: "url", required: true, maxlength: 2048, value: data.url ?? "", placeholder: "https://example.com/events", autofocus: true });
    const verdict = select([any, ...verdicts.map((word) => [word, word])], data.verdict ?? "", null, { name: "verdict" });
    const kind = select([any, ...kinds.map((word) => [word, word])], data.type ?? "", null, { name: "type" });
    const name = h("input", { type: "text", name: "name", maxlength: 512, value: data.name ?? "", placeholder: "any" });
    const user = h("input", { type: "text", name: "user", maxlength: 512, value: data.user ?? "", placeholder: "any", spellcheck: "false", autocomplete: "off" });
    const size = h("input", { type: "number", name: "batch_size", min: 1, max: 500, required: true, value: data.batch_size ?? 100 });
    const from = select([["end", "What comes from now on"], ["start", "The oldest event that is kept"]], "end", null, { name: "from" });
    const inside = privateAddress(context, { url: data.url ?? null, allow_private: data.allow_private ?? false });
    const body = () => ({
      url: url.value.trim(), verdict: verdict.value || null, type: kind.value || null, name: name.value.trim() || null, user: user.value.trim() || null,
      batch_size: Number(size.value), allow_private: inside.read(url.value.trim()) || false,
    });
    const made = await formDialog(item ? "Change the webhook" : "Add a webhook", item ? "Save" : "Add it", [
      field("Address", url, "Signed POST requests go there."), inside.control,
      h("div", { class: "grid-form" }, field("Verdict", verdict), field("Type", kind), field("Name", name), field("User", user), field("Events of one delivery, at most", size)),
      !item && field("Begin with", from),
    ], () => (item ? api.patch(`${base}${path(item.id)}`, body(), etag) : api.post(base, { ...body(), from: from.value })), { wide: true });
    if (!made) return;
    if (made.secret) await showOnce("The webhook's secret", "Your receiver checks signatures with it (Standard Webhooks).", made.secret);
    part.reload();
  }

  async function rotate(item) {
    const hours = h("input", { type: "number", name: "hours", min: 0, max: 168, required: true, value: 24, autofocus: true });
    const made = await formDialog("Rotate the secret", "Make a new one", [field("Hours in which the old one signs too", hours, "0 ends it at once.")],
      () => api.post(`${base}${path(item.id, "rotate")}`, { hours: Number(hours.value) }));
    if (!made) return;
    await showOnce("The new secret", "Deliveries have both signatures until the old one ends.", made.secret);
    part.reload();
  }

  function deliveries(item) {
    const where = `${base}${path(item.id, "deliveries")}`;
    const list = pagedView(context, (cursor, signal) => api.get(where, { cursor }, signal), (items) => table("Deliveries", [
      { title: "At", heading: true, cell: (row) => dateTime(row.at_ms) },
      { title: "What", cell: (row) => stacked(row.kind, h("span", { class: "mono wrap" }, row.message_id)) },
      { title: "Events", class: "number", cell: (row) => stacked(number(row.events), row.first_seq !== null && `${row.first_seq} to ${row.last_seq}`) },
      { title: "Attempt", class: "number", cell: (row) => number(row.attempt) },
      { title: "Took", class: "number", cell: (row) => duration(row.duration_ms) },
      { title: "Result", cell: (row) => badge([row.status, row.error].filter((word) => word !== null).join(" "), row.error === null ? "good" : "bad") },
      { title: "", cell: (row) => h("div", { class: "actions end" },
        row.answer !== "" && button("Answer", { kind: "small", onclick: () => dialog("What it answered", () => h("pre", { class: "wrap" }, row.answer)) }),
        operator && item.id !== "alerts" && row.first_seq !== null && button("Replay", { kind: "small", onclick: () => replay(item, row) })) },
    ], items), emptyState("message", "Nothing was delivered yet", "Attempts of the last 14 days are kept, at most 200."));
    replace(place, card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, `Deliveries: ${item.url}`),
      button("Close", { onclick: () => replace(place) })), list.element));
    place.scrollIntoView?.({ block: "nearest" });
  }

  async function replay(item, row) {
    await attempt(async () => {
      await api.post(`${base}${path(item.id, "replay")}`, { delivery: row.message_id });
      toast("Its events are delivered once more, beside what comes next.");
    });
  }

  replace(context.body, h("div", { class: "stack" }, part.element, place));
}
