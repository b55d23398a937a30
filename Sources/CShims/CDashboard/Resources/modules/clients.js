// OAuth clients: programs that get their own tokens from the token service.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { dateTime } from "./format.js";
import { formDialog, removable, showOnce } from "./dialogs.js";
import { badge, button, card, emptyState, field, table, toast } from "./ui.js";
import { view } from "./views.js";

const grants = [["client_credentials", "Tokens for the whole app"], ["refresh_token", "New tokens for its users' sessions"]];

export function clients(context) {
  const base = path("apps", context.app.id, "clients");
  const operator = context.can("operator");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Clients"), operator && button("Create a client", { symbol: "plus", onclick: add })),
    items.length === 0 ? emptyState("app", "No client", "A client is a backend that asks for tokens with a secret or a key of its own (OAuth 2.0).")
      : table("Clients", [
        { title: "Client id", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.client_id) },
        { title: "Name", cell: (item) => item.name || "–" },
        { title: "Grant types", cell: (item) => h("span", { class: "badges" }, item.grants.map((grant) => badge(grant))) },
        { title: "Authentication", cell: (item) => (item.proof === "key" ? "Private key" : "Client secret") },
        { title: "Created", cell: (item) => dateTime(item.created_ms) },
        { title: "", cell: (item) => operator && removable("Delete", `the client ${item.name || item.client_id}`, { text: "Its tokens are rejected from now on.", phrase: "delete" },
          () => api.remove(`${base}${path(item.client_id)}`), () => { part.reload(); toast("The client is deleted."); }) },
      ], items)));

  async function add() {
    const name = h("input", { type: "text", name: "name", maxlength: 200, autocomplete: "off", autofocus: true });
    const key = h("textarea", { name: "public_key", rows: 5, class: "mono", spellcheck: "false", placeholder: "-----BEGIN PUBLIC KEY-----" });
    const boxes = grants.map(([grant, text]) => [grant, h("input", { type: "checkbox", checked: true, value: grant }), text]);
    const made = await formDialog("Create a client", "Create client", [
      field("Name", name, "A display name."),
      h("fieldset", {}, h("legend", {}, "Grant types"), boxes.map(([grant, box, text]) => h("label", { class: "tick" }, box, h("span", {}, h("code", {}, grant), ` ${text}`)))),
      h("details", {}, h("summary", {}, "Authenticate with a key"), field("Public key", key, "PEM or JWK. Without one, a secret is created and shown once.")),
    ], () => api.post(base, {
      name: name.value.trim(), public_key: key.value.trim() || null, grants: boxes.filter(([, box]) => box.checked).map(([grant]) => grant),
    }));
    if (!made) return;
    if (made.client_secret) await showOnce(`The secret of ${made.name || made.client_id}`, `It belongs to the client ${made.client_id}. Only its hash is stored.`, made.client_secret);
    part.reload();
  }

  return part.element;
}
