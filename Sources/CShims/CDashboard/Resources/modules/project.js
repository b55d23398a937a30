// An app's project in the Bloomreach dialect: token, customer authentication, webhook and items.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { confirm, formDialog, removable, settingsForm, showOnce } from "./dialogs.js";
import { badge, button, card, emptyState, field, privateAddress, select, table, toast } from "./ui.js";
import { view } from "./views.js";
import { items } from "./items.js";

const modes = [["off", "The API key only"], ["allowed", "A customer token or the API key"], ["required", "A customer token only"]];

export function project(context) {
  const base = path("apps", context.app.id, "project");
  const disabled = !context.can("operator");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data, etag }) => h("div", { class: "split" }, settings(data, etag), privateKeys(data.private_keys)));

  function settings(about, etag) {
    const token = h("input", { type: "text", name: "token", class: "mono", required: true, maxlength: 64, spellcheck: "false", autocomplete: "off", value: about.token, disabled });
    const mode = select(modes, about.customer_tokens, null, { name: "customer_tokens", disabled });
    const url = h("input", { type: "url", name: "webhook/url", maxlength: 2048, value: about.webhook?.url ?? "", placeholder: "none", disabled });
    const inside = privateAddress(context, about.webhook ?? { url: null, allow_private: false });
    return card("Project", settingsForm([
      field("Project token", token, "The token compiled into released apps."), field("Access to the App Inbox", mode),
      field("Webhook for push notifications", url, "The URL that signed requests are sent to. If it is empty, none are sent."), !disabled && inside.control,
    ], !disabled && "Save the project", () => api.put(base, {
      token: token.value.trim(), customer_tokens: mode.value, webhook: url.value.trim() ? { url: url.value.trim(), allow_private: inside.read(url.value.trim()) } : null,
    }, etag), async ({ data }) => {
      if (data.webhook_secret) await showOnce("The webhook's secret", "Your receiver checks the signature with it (Standard Webhooks).", data.webhook_secret);
      await part.reload();
      toast("The project is saved.", { tone: "good" });
    }, {
      ask: () => about.customer_tokens !== "required" || mode.value === "required" || confirm("Open the App Inbox to the API key?", {
        text: "From now on anyone who has the API key, which is in every copy of the app, can read the messages of any customer.", action: "Save the project", focused: true }),
    }));
  }

  function privateKeys(keys) {
    return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Private keys"), !disabled && button("Add a private key", { symbol: "plus", onclick: addKey })),
      keys.length === 0 ? emptyState("key", "No private key", "Backends sign customer tokens with a private key (HS256).") : table("Private keys", [
        { title: "Id (kid)", heading: true, cell: (key) => h("span", { class: "mono wrap" }, key.id) },
        { title: "State", cell: () => badge("verifies", "good") },
        { title: "", cell: (key) => !disabled && removable("Delete", `the private key ${key.id}`, { text: "Customer tokens signed with it are rejected from now on.", phrase: "delete" },
          () => api.remove(`${base}/private-keys${path(key.id)}`), part.reload) },
      ], keys));
  }

  async function addKey() {
    const id = h("input", { type: "text", name: "id", required: true, maxlength: 128, spellcheck: "false", autocomplete: "off", autofocus: true });
    const made = await formDialog("Add a private key", "Add private key", [field("Id", id, "The value of kid. The secret is created here and shown once.")],
      () => api.post(`${base}/private-keys`, { id: id.value.trim() }));
    if (!made) return;
    if (made.secret) await showOnce(`The private key ${made.id}`, "Your backend signs customer tokens with it. It is not shown again.", made.secret);
    part.reload();
  }

  replace(context.body, part.element, items(context));
}
