// The JSON items that clients of the Bloomreach dialect receive.

import { h, replace } from "./dom.js";
import { api, path, Problem } from "./api.js";
import { confirm, formDialog } from "./dialogs.js";
import { badge, button, emptyState, field, segmented, table, toast } from "./ui.js";
import { attempt, pagedView } from "./views.js";
import { remember } from "./address.js";

const kinds = [["in-app-message", "In-app messages"], ["consent-category", "Consent categories"], ["inbox-message", "Inbox messages"]];

export function items(context) {
  const base = path("apps", context.app.id, "project", "items");
  const operator = context.can("operator");
  // Viewers do not see App Inbox messages, because a message may name a user.
  const shown = kinds.filter(([name]) => operator || name !== "inbox-message");
  const place = h("div", {});
  let kind = shown.some(([name]) => name === context.query.get("kind")) ? context.query.get("kind") : shown[0][0];

  function show() {
    replace(place, pagedView(context, (cursor, signal) => api.get(`${base}${path(kind)}`, { cursor }, signal), (found) => table("Items", [
      { title: "Id", heading: true, cell: (item) => h("button", { type: "button", class: "link", onclick: () => edit(item) }, String(item.id)) },
      { title: "Name", cell: (item) => item.name ?? item.title ?? item.content?.title ?? "–" },
      { title: "", cell: (item) => item.enabled === false && badge("off") },
    ], found, { onrow: edit }), emptyState("message", "No items", "Clients get an empty list.")).element);
  }

  async function edit(item) {
    const where = () => `${base}${path(kind, id.value.trim())}`;
    let etag = null;
    if (item && !await attempt(async () => { const now = await api.read(`${base}${path(kind, String(item.id))}`, {}); item = now.data; etag = now.etag; })) return;
    const id = h("input", { type: "text", required: true, value: item ? String(item.id) : "", disabled: item !== null, spellcheck: "false", autocomplete: "off", autofocus: item === null });
    const text = h("textarea", { name: "object", rows: 16, class: "mono", spellcheck: "false", value: JSON.stringify(item ?? {}, null, 2), readonly: !operator });
    const send = () => {
      let value;
      try {
        value = JSON.parse(text.value);
      } catch (error) {
        const at = Number(/position (\d+)/.exec(error.message)?.[1] ?? text.value.length);
        text.setSelectionRange(at, at + 1);
        throw new Problem(422, { detail: `Line ${text.value.slice(0, at).split("\n").length} is not JSON. ${error.message}.`, errors: [{ pointer: "/object" }] });
      }
      return api.put(where(), value, etag);
    };
    const saved = await formDialog(item ? `Edit ${item.id}` : "Add an item", operator && "Save", [field("Id", id), field("The object as clients get it", text)], send,
      { wide: true, more: (close, trouble) => item && operator && button("Delete", { kind: "danger", onclick: () => remove(close, trouble) }) });
    if (saved) { show(); toast(saved === "deleted" ? "The item is deleted." : "The item is saved, and clients get it with their next request.", { tone: "good" }); }

    async function remove(close, trouble) {
      if (await confirm(`Delete ${item.id}`, { text: "Clients no longer get it.", action: "Delete" }) && await attempt(() => api.remove(where(), etag), trouble)) close("deleted");
    }
  }

  show();
  return h("section", { class: "card" }, h("div", { class: "card-head" },
    segmented("Kind", shown, kind, (value) => { kind = value; remember(path("apps", context.app.id, "project"), { kind }); show(); }), operator && button("Add", { symbol: "plus", onclick: () => edit(null) })), place);
}
