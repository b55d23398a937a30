// What was stored: search, look, export.

import { h, replace } from "./dom.js";
import { address, api, path } from "./api.js";
import { dateTime, fromInput, zoneName } from "./format.js";
import { dialog } from "./dialogs.js";
import { badge, emptyState, exportLink, field, table } from "./ui.js";
import { pagedView } from "./views.js";
import { userIDs } from "./userids.js";
import { consumers } from "./consumers.js";

/** How each verdict is called, and its colour. */
const VERDICTS = {
  verified: ["Verified", "good"], warned: ["Warned", "amber"], not_judged: ["Not judged", "neutral"],
  anonymous: ["Anonymous", "neutral"], unknown: ["Unknown", "neutral"],
};

export function events(context) {
  const { app, body, query } = context;
  const base = path("apps", app.id, "events");
  const text = (name, rest = {}) => h("input", { type: "search", value: query.get(name) ?? "", spellcheck: "false", autocomplete: "off", ...rest });
  const user = text("user", { "data-search": true });
  const message = text("message_id");
  const name = text("name");
  const type = text("type");
  const verdict = h("select", {}, [["", "Any"], ["unverified", "All but verified"], ...Object.entries(VERDICTS).map(([value, [label]]) => [value, label])].map(([value, label]) => h("option", { value, selected: query.get("verdict") === value }, label)));
  const from = h("input", { type: "datetime-local" });
  const to = h("input", { type: "datetime-local" });
  const filter = () => ({ user: user.value.trim(), message_id: message.value.trim(), name: name.value.trim(), type: type.value.trim(), verdict: verdict.value, from_ms: fromInput(from.value), to_ms: fromInput(to.value) });
  const place = h("div", {});
  const ids = userIDs(context, () => search());
  const csv = exportLink(`events-${app.id}`, "csv");
  const ndjson = exportLink(`events-${app.id}`, "ndjson");
  function search() {
    const asked = { ...filter(), ...ids.parameters };
    csv.href = address(`${base}/export`, { ...asked, format: "csv" });
    ndjson.href = address(`${base}/export`, { ...asked, format: "ndjson" });
    const part = pagedView(context, (cursor, signal) => api.get(base, { ...asked, cursor, limit: 50 }, signal),
      (items) => table("Events, the newest first", [
        { title: "Received", heading: true, cell: (item) => h("button", { type: "button", class: "link", onclick: () => show(item) }, dateTime(item.received_ms)) },
        { title: "Verdict", cell: (item) => badge(...(VERDICTS[item.verdict] ?? [item.verdict])) },
        { title: "Type", cell: (item) => item.type }, { title: "Name", cell: (item) => h("span", { class: "clip short", title: item.name }, item.name ?? "–") },
        { title: "User", cell: (item) => h("span", { class: "mono clip short", title: item.user_id ?? item.anonymous_id }, item.user_id ?? item.anonymous_id ?? "–") },
        { title: "Message id", class: "extra", cell: (item) => h("span", { class: "mono clip" }, item.message_id) },
      ], items, { onrow: show }),
      emptyState("events", "No event matches", "Events appear here when they are on disk."));
    replace(place, part.element);
  }
  function show(item) {
    const { body: event, ...rest } = item;
    dialog(item.name || item.type || "Event", () => h("div", {}, table("What is known of it", [
      { title: "Member", heading: true, cell: ([name]) => name }, { title: "Value", cell: ([, value]) => h("span", { class: "mono" }, String(value)) },
    ], Object.entries(rest).filter(([, value]) => value !== null)), h("pre", { class: "json", tabindex: 0 }, h("code", {}, JSON.stringify(event, null, 2)))), { wide: true });
  }
  replace(body, h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); search(); } },
    field("User", user), field("Message id", message), field("Name", name), field("Type", type), field("Verdict", verdict),
    field(`From (${zoneName()})`, from), field(`To (${zoneName()})`, to),
    h("button", { type: "submit", class: "button primary" }, "Search"), h("div", { class: "push" }, ids.control, csv, ndjson)), h("section", { class: "card" }, place), consumers(context));
  search();
}
