// Sessions of users that the token service keeps (refresh families).

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime } from "./format.js";
import { attempt, badge, button, confirm, emptyState, field, pagedView, table, toast } from "./ui.js";

export function sessions(context) {
  const { app, body, can } = context;
  const base = path("apps", app.id, "sessions");
  const user = h("input", { type: "search", spellcheck: "false", autocomplete: "off", "data-search": true });
  const place = h("div", {});
  function search() {
    const part = pagedView(context, (cursor, signal) => api.get(base, { user: user.value.trim(), cursor }, signal), (items) => table("Sessions", [
      { title: "User", heading: true, cell: (item) => h("span", { class: "mono" }, item.user) }, { title: "Client", cell: (item) => item.client ?? "–" },
      { title: "Opened", cell: (item) => dateTime(item.created_ms) }, { title: "Last used", cell: (item) => ago(item.last_used_ms) },
      { title: "Expires", cell: (item) => dateTime(item.expires_ms) },
      { title: "State", cell: (item) => (item.revoked_ms ? badge(`revoked${item.reason ? `: ${item.reason}` : ""}`, "bad") : item.expires_ms < Date.now() ? badge("expired") : badge("open", "good")) },
      { title: "", cell: (item) => !item.revoked_ms && can("operator") && button("Revoke", { kind: "small", "aria-label": `Revoke the session of ${item.user}`, onclick: async () => {
        if (!await confirm("Revoke the session", { text: "The device can not refresh its tokens any more and must sign in again.", action: "Revoke" })) return;
        if (await attempt(() => api.remove(`${base}${path(item.id)}`))) { toast("The session is revoked."); search(); }
      } }) },
    ], items), emptyState("sessions", "No session", "Sessions appear when devices get refresh tokens from this gateway."));
    replace(place, part.element);
  }
  replace(body, h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); search(); } }, field("User", user), h("button", { type: "submit", class: "button plain" }, "Search")),
    h("section", { class: "card" }, place));
  search();
}
