// The webhooks of an app: progress and recent deliveries.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { dateTime, duration, number } from "./format.js";
import { dialog, formDialog, removable, showOnce } from "./dialogs.js";
import { badge, button, card, emptyState, field, notice, privateAddress, select, stacked, table, toast } from "./ui.js";
import { attempt, pagedView, view } from "./views.js";
import { remember } from "./address.js";
import { TYPES } from "./events.js";
import { pauses, ways } from "./ways.js";

const verdicts = [["verified", "Verified"], ["server", "Server"], ["unverified", "Unverified"], ["warned", "Warned"], ["not_judged", "Not checked"], ["anonymous", "Anonymous"], ["unknown", "Unknown"]];
const verdictName = Object.fromEntries(verdicts);
const filterName = { verdict: "Verdict", type: "Type", name: "Name", user: "User", claim: "Claim" };
const any = ["", "Any"];
const kindName = { events: "Events", test: "Test", alert: "Alert", replay: "Replay" };
const errorName = {
  timeout: "Timed out", unknown_host: "Unknown host", cannot_connect: "No connection", tls: "TLS failed", refused_address: "Address not allowed", long_answer: "Answer too long",
  cancelled: "Cancelled", connection: "Connection lost", redirect: "Redirect", gone: "Gone", status: "Not accepted",
};

export function webhooks(context) {
  const base = path("apps", context.app.id, "webhooks");
  const operator = context.can("operator");
  const place = h("div", {});
  let linked = context.query.get("deliveries");
  const load = async (signal) => {
    const [{ items }, alerts] = await Promise.all([api.get(base, { limit: 500 }, signal), api.get(path("apps", context.app.id, "webhook"), {}, signal)]);
    openLinked(items);
    return { items, alerts };
  };
  const part = view(context, load, ({ items, alerts }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Webhooks"), h("div", { class: "actions" },
      alerts.url === null ? operator && h("a", { class: "button plain", href: `#${path("apps", context.app.id, "settings")}` }, "Set up the alert webhook")
        : operator && button("Test the alert webhook", { onclick: () => test("alerts") }), button("Alerts sent", { onclick: () => deliveries({ id: "alerts", url: "The alert webhook" }) }),
      operator && button("Add a webhook", { symbol: "plus", onclick: () => edit(null) }))),
    items.length === 0 ? emptyState("out", "No webhooks yet", "A webhook is an address of yours that the gateway sends events to, in signed requests (Standard Webhooks): each event at least once, and in order.")
      : ways("Webhooks", items, (item) => ({
        name: item.url, before: [["Events", filters(item)]], after: [["Id", h("span", { class: "mono wrap" }, item.id)]],
        actions: [button("Deliveries", { kind: "small", "aria-label": `Deliveries to ${item.url}`, onclick: () => deliveries(item) }), operator && actions(item)],
      }))), { every: 10_000 });

  /** Shows the deliveries to the webhook that the page's address names. Only the first call does so. */
  function openLinked(items) {
    const item = linked === "alerts" ? { id: "alerts", url: "The alert webhook" } : items.find((each) => each.id === linked);
    if (item) deliveries(item);
    else if (linked) replace(place, notice("amber", "This webhook does not exist.", h("p", {}, "It may have been deleted.")));
    linked = null;
  }

  function filters(item) {
    const found = Object.keys(filterName).filter((name) => item[name] !== null).map((name) => badge(`${filterName[name]}: ${name === "verdict" ? verdictName[item[name]] ?? item[name] : item[name]}`));
    return found.length === 0 ? "All events" : h("span", { class: "badges" }, found);
  }

  function actions(item) {
    return [
      button("Test", { kind: "small", "aria-label": `Test ${item.url}`, onclick: () => test(item.id) }),
      button("Edit", { kind: "small", "aria-label": `Edit ${item.url}`, onclick: () => edit(item) }),
      pauses(`${base}${path(item.id)}`, item, item.url, () => part.reload()),
      removable("Delete", `the webhook ${item.url}`, { text: "Nothing is delivered to it any more, and its position in the events is deleted.", phrase: "delete" },
        () => api.remove(`${base}${path(item.id)}`), () => { replace(place); part.reload(); toast("The webhook is deleted."); }),
    ];
  }

  async function test(id) {
    await attempt(async () => {
      await api.post(`${base}${path(id, "test")}`);
      toast("The test is being sent. Its result is listed under Deliveries.");
    });
  }

  async function edit(item) {
    const { data, etag } = item ? await api.read(`${base}${path(item.id)}`) : { data: {}, etag: null };
    const url = h("input", { type: "url", name: "url", required: true, maxlength: 2048, value: data.url ?? "", placeholder: "https://example.com/events", autofocus: true });
    const verdict = select([any, ...verdicts], data.verdict ?? "", null, { name: "verdict" });
    const kind = select([any, ...TYPES.map((word) => [word, word])], data.type ?? "", null, { name: "type" });
    const name = h("input", { type: "text", name: "name", maxlength: 512, value: data.name ?? "", placeholder: "any" });
    const user = h("input", { type: "text", name: "user", maxlength: 512, value: data.user ?? "", placeholder: "any", spellcheck: "false", autocomplete: "off" });
    const claim = h("input", { type: "text", name: "claim", maxlength: 512, value: data.claim ?? "", placeholder: "name=value", spellcheck: "false", autocomplete: "off" });
    const size = h("input", { type: "number", name: "batch_size", min: 1, max: 500, required: true, value: data.batch_size ?? 100 });
    const from = select([["end", "New events only"], ["start", "The oldest event that is kept"]], "end", null, { name: "from" });
    const inside = privateAddress(context, { url: data.url ?? null, allow_private: data.allow_private ?? false });
    const body = () => ({
      url: url.value.trim(), verdict: verdict.value || null, type: kind.value || null, name: name.value.trim() || null, user: user.value.trim() || null,
      claim: claim.value.trim() || null, batch_size: Number(size.value), allow_private: inside.read(url.value.trim()) || false,
    });
    const made = await formDialog(item ? "Edit the webhook" : "Add a webhook", item ? "Save" : "Add webhook", [
      field("Address", url, "It receives signed POST requests."), inside.control,
      h("div", { class: "grid-form" }, field("Verdict", verdict), field("Type", kind), field("Name", name), field("User", user), field("Claim", claim), field("Events per delivery, at most", size)),
      !item && field("Start with", from),
    ], () => (item ? api.patch(`${base}${path(item.id)}`, body(), etag) : api.post(base, { ...body(), from: from.value })), {
      wide: true, more: (close) => item && button("Rotate secret", { onclick: () => { close(); rotate(item); } }) });
    if (!made) return;
    if (made.secret) await showOnce("The webhook's secret", "Your receiver checks signatures with it (Standard Webhooks).", made.secret);
    part.reload();
  }

  async function rotate(item) {
    const hours = h("input", { type: "number", name: "hours", min: 0, max: 168, required: true, value: 24, autofocus: true });
    const made = await formDialog("Rotate the secret", "Rotate", [field("Hours for which the old secret also signs", hours, "With 0, the old secret ends at once.")],
      () => api.post(`${base}${path(item.id, "rotate")}`, { hours: Number(hours.value) }));
    if (!made) return;
    await showOnce("The new secret", "Deliveries carry both signatures until the old one ends.", made.secret);
    part.reload();
  }

  function deliveries(item) {
    remember(base, { deliveries: item.id });
    const where = `${base}${path(item.id, "deliveries")}`;
    const list = pagedView(context, (cursor, signal) => api.get(where, { cursor }, signal), (items) => table("Deliveries", [
      { title: "At", heading: true, cell: (row) => dateTime(row.at_ms) },
      { title: "Kind", cell: (row) => stacked(kindName[row.kind] ?? row.kind, h("span", { class: "mono wrap" }, row.message_id)) },
      { title: "Events", class: "number", cell: (row) => stacked(number(row.events), row.first_seq !== null && `${row.first_seq} to ${row.last_seq}`) },
      { title: "Attempt", class: "number", cell: (row) => number(row.attempt) },
      { title: "Duration", class: "number", cell: (row) => (row.duration_ms < 1 ? "< 1 ms" : duration(row.duration_ms)) },
      { title: "Result", cell: (row) => badge([row.status, row.error && (errorName[row.error] ?? row.error)].filter((word) => word !== null).join(": "), row.error === null ? "good" : "bad") },
      { title: "", cell: (row) => h("div", { class: "actions end" },
        row.answer !== "" && button("Answer", { kind: "small", onclick: () => dialog("What the receiver answered", () => h("pre", { class: "wrap" }, row.answer)) }),
        operator && item.id !== "alerts" && row.first_seq !== null && button("Replay", { kind: "small", onclick: () => replay(item, row) })) },
    ], items), emptyState("out", "No deliveries yet", "Attempts are kept for 14 days, at most 200 of them."), { every: 10_000 });
    replace(place, card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, `Deliveries: ${item.url}`),
      button("Close", { onclick: () => { replace(place); remember(base, {}); } })), list.element));
    place.scrollIntoView({ block: "nearest" });
  }

  async function replay(item, row) {
    await attempt(async () => {
      await api.post(`${base}${path(item.id, "replay")}`, { delivery: row.message_id });
      toast("These events are being delivered again; new ones are not held up.");
    });
  }

  replace(context.body, h("div", { class: "stack" }, part.element, place));
}
