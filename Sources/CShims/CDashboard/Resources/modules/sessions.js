// An app's token service: user sessions, clients and rules.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime, plural } from "./format.js";
import { confirm, formDialog, removable, showOnce } from "./dialogs.js";
import { badge, button, emptyState, field, table, toast } from "./ui.js";
import { attempt, pagedView } from "./views.js";
import { clients } from "./clients.js";
import { tokenRules } from "./tokenrules.js";
import { remember, shareable } from "./address.js";
import { bulk } from "./bulk.js";

const tones = { active: "good", revoked: "bad", expired: "neutral" };

export function sessions(context) {
  const { app, body, can } = context;
  const base = path("apps", app.id, "sessions");
  const operator = can("operator");
  const user = h("input", { type: "search", spellcheck: "false", autocomplete: "off", "data-search": true, placeholder: operator ? "id or pseudonym" : "pseudonym", value: context.query.get("user") ?? "" });
  const place = h("div", {});
  const all = h("div", {});
  const picked = bulk({
    noun: "session", action: "Revoke", past: "revoked", text: "These devices can no longer refresh their tokens, and their users must sign in again.",
    can: (item) => item.state === "active", name: (item) => `the session of ${item.user}, opened ${dateTime(item.created_ms)}`,
    remove: (item) => api.remove(`${base}${path(item.id)}`), done: () => search(),
  });
  function search() {
    const asked = user.value.trim();
    remember(base, { user: shareable(asked) });
    replace(all, asked && operator && button("End all sessions of this user", { onclick: () => endAll(asked) }));
    const part = pagedView(context, (cursor, signal) => api.get(base, { user: asked, cursor }, signal), (items) => table("Sessions", [
      operator && picked.column, { title: "User", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.user) }, { title: "Client", cell: (item) => item.client ?? "–" },
      { title: "Opened", cell: (item) => dateTime(item.created_ms) }, { title: "Last used", cell: (item) => ago(item.last_used_ms) },
      { title: "Expires", cell: (item) => dateTime(item.expires_ms) },
      { title: "State", cell: (item) => badge(item.reason ? `${item.state}: ${item.reason}` : item.state, tones[item.state]) },
      { title: "", cell: (item) => item.state === "active" && operator && removable("Revoke", `the session of ${item.user}`, { text: "The device can no longer refresh its tokens, and its user must sign in again." },
        () => api.remove(`${base}${path(item.id)}`), () => { toast("The session is revoked."); search(); }) },
    ].filter(Boolean), items), emptyState("sessions", "No session", asked ? "This user has no sessions. Check the id." : "Sessions appear when devices get refresh tokens from this gateway."));
    replace(place, part.element);
  }

  async function open() {
    const name = h("input", { type: "text", required: true, maxlength: 512, autocomplete: "off", spellcheck: "false", name: "user", autofocus: true });
    const client = h("input", { type: "text", maxlength: 128, autocomplete: "off", spellcheck: "false", name: "client" });
    const opened = await formDialog("Open a session", "Open session", [field("User", name, "The id that the app identifies the user by."),
      field("Client id (optional)", client, "If set, only this client may refresh the session.")],
    () => api.post(base, { user: name.value.trim(), client: client.value.trim() || null }));
    if (!opened) return;
    await showOnce(`The refresh token of ${opened.user}`, "Hand it to the device. It works once, for the next pair of tokens.", opened.refresh_token);
    search();
  }

  async function endAll(name) {
    if (!await confirm(`End all sessions of ${name}`, { text: "Each of the user's devices must sign in again.", action: "End all" })) return;
    await attempt(async () => {
      const { data } = await api.remove(`${base}?user=${encodeURIComponent(name)}`);
      toast(`${plural(data.ended, "session")} ended.`);
      search();
    });
  }

  replace(body, h("section", { class: "card" },
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Sessions"), operator && button("Open a session", { symbol: "plus", onclick: open })),
    h("form", { class: "toolbar spaced", onsubmit: (event) => { event.preventDefault(); search(); } }, field("User", user),
      h("button", { type: "submit", class: "button plain" }, "Search"), all), picked.bar, place),
  clients(context), tokenRules(context));
  search();
}
