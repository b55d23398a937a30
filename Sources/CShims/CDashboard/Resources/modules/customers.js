// The stored data of one person: search, view and delete.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime, number, plural } from "./format.js";
import { confirm } from "./dialogs.js";
import { button, card, emptyState, field, problemNotice, select, table, toast } from "./ui.js";
import { attempt } from "./views.js";
import { facts } from "./sample.js";
import { remember, shareable } from "./address.js";

const kinds = [["registered", "User id, or pseudonym"], ["cookie", "Anonymous or device id"]];

export function customers(context) {
  const { app, body, query, signal } = context;
  if (!context.can("operator")) {
    replace(body, card("Customers", emptyState("members", "Only operators and owners can look up customers", "Ask an owner if you need another role.")));
    return;
  }
  const id = h("input", { type: "search", name: "id", required: true, maxlength: 512, spellcheck: "false", autocomplete: "off", "data-search": true, value: query.get("id") ?? "" });
  const kind = select(kinds, kinds.some(([name]) => name === query.get("id_name")) ? query.get("id_name") : "registered");
  const place = h("div", {}, emptyState("members", "Look up a customer", "Profiles come from identify calls, Braze attributes and Bloomreach customers."));
  const where = () => path("apps", app.id, "customers", id.value.trim());

  async function search() {
    const asked = { id_name: kind.value };
    remember(path("apps", app.id, "customers"), { id: shareable(id.value.trim()), id_name: kind.value === "registered" ? null : kind.value });
    try {
      const found = await api.get(where(), asked, signal);
      replace(place, profile(found));
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(place, error.status === 404 ? emptyState("members", "Customer not found", "The app has no data about this customer. Check the id and its kind.") : problemNotice(error, search));
    }
  }

  function profile(found) {
    return h("div", { class: "stack" },
      h("div", { class: "card-head" }, facts([
        ...found.ids.map((entry) => [entry.name, h("span", { class: "mono wrap" }, entry.value)]),
        ["Events", found.events >= 100_000 ? "100,000 or more" : number(found.events)],
        ["First seen", found.created_ms ? dateTime(found.created_ms) : "–"], ["Last seen", found.seen_ms ? ago(found.seen_ms) : "–"],
      ]), h("div", { class: "push" }, button("Delete this customer", { kind: "danger", onclick: remove }))),
      found.properties.length === 0 ? h("p", { class: "muted" }, "No properties.") : table("Properties", [
        { title: "Property", heading: true, cell: (property) => h("span", { class: "mono wrap" }, property.name) },
        { title: "Value", cell: (property) => h("span", { class: "mono wrap" }, JSON.stringify(property.value)) },
        { title: "Changed", cell: (property) => dateTime(property.updated_ms) },
      ], found.properties),
      found.more_properties && h("p", { class: "muted" }, "There are more properties than can be shown here."));
  }

  async function remove() {
    if (!await confirm("Delete this customer", { text: "The person's profile, events and samples are deleted, and their sessions end. This cannot be undone. Backups are not changed.", action: "Delete", phrase: "delete" })) return;
    await attempt(async () => {
      const { data } = await api.remove(`${where()}?id_name=${encodeURIComponent(kind.value)}`);
      toast(`The customer and ${plural(data.events, "event")} are deleted.`, { tone: "good" });
      search();
    });
  }

  replace(body, card("Customers", h("form", { class: "toolbar spaced", onsubmit: (event) => { event.preventDefault(); search(); } },
    field("Customer", id), field("Which id", kind), h("button", { type: "submit", class: "button primary" }, "Search")), place));
  if (id.value) search();
}
