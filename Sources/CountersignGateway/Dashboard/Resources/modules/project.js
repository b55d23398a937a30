// What clients of the Bloomreach dialect get: messages, consents, recommendations, the inbox.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { attempt, badge, button, card, confirm, dialog, emptyState, field, select, table, toast, view } from "./ui.js";
import { facts } from "./sample.js";

const kinds = [["in-app-message", "In-app messages"], ["consent-category", "Consent categories"], ["recommendation-engine", "Recommendation engines"], ["inbox-message", "Inbox messages"]];

export function project(context) {
  const { app, can } = context;
  const base = path("apps", app.id, "project");
  let kind = kinds[0][0];
  const part = view(context, async (signal) => {
    const about = await api.get(base, {}, signal).catch((error) => { if (error.status === 404) return null; throw error; });
    return { about, items: about ? (await api.get(`${base}/items${path(kind)}`, {}, signal)).items : [] };
  }, ({ about, items }) => (about === null
    ? emptyState("message", "This app is not a Bloomreach project", "`countersign project create` makes it one; then its messages are edited here.")
    : h("div", { class: "stack" }, card("Project", facts([["Project token", h("span", { class: "mono" }, about.token)], ["Customer tokens", String(about.customer_tokens ?? "–")], ["Webhook", about.webhook], ["Private API keys", String((about.private_keys ?? []).length)]])),
      card(null, h("div", { class: "card-head" }, field("Kind", select(kinds, kind, (event) => { kind = event.target.value; part.reload(); })),
        can("operator") && button("Add", { symbol: "plus", onclick: () => edit(null) })),
      items.length === 0 ? emptyState("message", "Nothing of this kind", "Clients get an empty list.") : table("Items", [
        { title: "Id", heading: true, cell: (item) => h("button", { type: "button", class: "link", onclick: () => edit(item) }, String(item.id)) },
        { title: "Name", cell: (item) => item.name ?? item.title ?? "–" }, { title: "", cell: (item) => item.enabled === false && badge("off") },
      ], items)))));

  async function edit(item) {
    const id = h("input", { type: "text", required: true, value: item ? String(item.id) : "", disabled: item !== null, spellcheck: "false" });
    const text = h("textarea", { rows: 16, class: "mono", spellcheck: "false", value: JSON.stringify(item ?? {}, null, 2), oninput: (event) => event.target.setCustomValidity(""), disabled: !can("operator") });
    const trouble = h("div", {});
    const where = () => `${base}/items${path(kind, id.value.trim())}`;
    const done = await dialog(item ? "Edit" : "Add", (close) => h("form", { onsubmit: async (event) => {
      event.preventDefault();
      let value;
      try { value = JSON.parse(text.value); } catch (error) { text.setCustomValidity(`This is not JSON: ${error.message}`); text.reportValidity(); return; }
      const current = item ? await api.read(where()).catch(() => null) : null;
      if (await attempt(async () => { await api.put(where(), value, current?.etag); }, trouble)) close(true);
    } }, field("Id", id), field("The object as clients get it", text), trouble, h("div", { class: "actions end" },
      item && can("operator") && button("Delete", { kind: "danger", onclick: async () => { if (await confirm("Delete it", { text: "Clients no longer get it.", action: "Delete" }) && await attempt(() => api.remove(where()), trouble)) close(true); } }),
      button("Cancel", { onclick: () => close() }), can("operator") && h("button", { type: "submit", class: "button primary" }, "Save"))), { wide: true });
    if (done) { part.reload(); toast("Saved."); }
  }
  replace(context.body, part.element);
}
