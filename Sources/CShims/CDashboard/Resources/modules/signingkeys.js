// The gateway's signing keys for access tokens.

import { h } from "./dom.js";
import { api } from "./api.js";
import { ago, dateTime } from "./format.js";
import { formDialog } from "./dialogs.js";
import { badge, button, card, emptyState, notice, table, toast, toggle } from "./ui.js";
import { view } from "./views.js";

export function signingKeys(context) {
  const part = view(context, (signal) => api.get("/signing-keys", { limit: 100 }, signal), ({ items }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Signing keys"), button("Create a key", { symbol: "plus", onclick: rotate })),
    h("p", { class: "muted" }, "The token service signs access tokens with them. A new key is published before it signs, so that all verifiers have it in time."),
    items.length === 0 ? emptyState("key", "No signing key yet", "The first is created with the first access token.")
      : table("Signing keys", [
        { title: "Key", heading: true, cell: (key) => h("span", { class: "mono wrap" }, key.id) },
        { title: "State", cell: (key) => (key.signs ? badge("signs", "good") : key.signs_from_ms > Date.now() ? badge("signs soon", "amber") : badge("verifies only")) },
        { title: "Signs from", cell: (key) => h("span", { title: ago(key.signs_from_ms) }, dateTime(key.signs_from_ms)) },
      ], items)), { bones: 3 });

  async function rotate() {
    let compromised = false;
    const made = await formDialog("Create a signing key", "Create key", [
      h("p", {}, "Tokens of the older keys keep working until they expire."),
      toggle("An older key is compromised: reject tokens of all older keys now", false, (on) => { compromised = on; }),
      notice("amber", "With this, every access token issued so far is rejected.", h("p", {}, "Devices get new ones with their refresh tokens.")),
    ], () => api.post("/signing-keys", { compromised }));
    if (made) { await part.reload(); toast("The key is created.", { tone: "good" }); }
  }

  return part.element;
}
