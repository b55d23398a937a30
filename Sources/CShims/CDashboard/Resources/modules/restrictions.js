// The blocked, limited and revoked users and devices of an app.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { dateTime, plural } from "./format.js";
import { formDialog, removable } from "./dialogs.js";
import { button, card, emptyState, field, table, toast } from "./ui.js";
import { pagedView } from "./views.js";

const actions = [["block", "Block"], ["limit", "Limit"], ["revoke", "Revoke tokens"]];
const spans = [["", "Until lifted"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]];

export function restrictions(context) {
  const base = path("apps", context.app.id, "restrictions");
  const operator = context.can("operator");
  const place = h("div", {});
  const select = (name, options) => h("select", { name }, options.map(([value, text]) => h("option", { value }, text)));

  function show() {
    const part = pagedView(context, (cursor, signal) => api.get(base, { cursor }, signal), (items) => table("Blocked, limited and revoked", [
      { title: "User or device", heading: true, cell: (item) => h("span", { class: "mono wrap" }, `${item.target}${item.subject === "device" ? " (device)" : ""}`) },
      { title: "Restriction", cell: (item) => (item.action === "limit" ? `${plural(item.requests_per_minute, "request")} per minute` : item.action === "block" ? "blocked" : "tokens revoked") },
      { title: "Since", cell: (item) => dateTime(item.since_ms) }, { title: "Until", cell: (item) => (item.until_ms ? dateTime(item.until_ms) : "–") },
      { title: "Reason", cell: (item) => item.reason || "–" },
      operator && { title: "", cell: (item) => removable("Lift", `the restriction of ${item.target}`, { text: item.action === "revoke" ? "Tokens issued before become valid again, unless they have expired." : "Its requests are accepted again." },
        () => api.remove(`${base}${path(item.id)}`), () => { toast("The restriction is removed."); show(); }) },
    ].filter(Boolean), items), emptyState("sessions", "No user is blocked", "Blocked, limited and revoked users and devices appear here."));
    replace(place, part.element);
  }

  async function add() {
    const target = h("input", { type: "text", name: "target", required: true, maxlength: 512, autocomplete: "off", spellcheck: "false", autofocus: true });
    const subject = select("subject", [["user", "User"], ["device", "Device (anonymousId)"]]);
    const action = select("action", actions);
    const rate = h("input", { type: "number", name: "requests_per_minute", min: 1, max: 60000, disabled: true });
    const span = select("seconds", spans);
    const reason = h("input", { type: "text", name: "reason", maxlength: 200 });
    action.addEventListener("change", () => {
      rate.disabled = action.value !== "limit";
      rate.required = !rate.disabled;
      span.disabled = action.value === "revoke";
    });
    const made = await formDialog("Block, limit or revoke", "Apply", [field("User or device", target), field("Kind", subject), field("Restriction", action),
      field("Requests per minute", rate), field("How long", span, "A revocation lasts until no older token is valid."), field("Reason", reason)],
    () => api.post(base, { target: target.value, subject: subject.value, action: action.value, reason: reason.value.trim() || null,
      requests_per_minute: rate.disabled ? null : Number(rate.value), seconds: span.disabled || !span.value ? null : Number(span.value) }));
    if (made) { show(); toast("In force on all gateways within a second."); }
  }

  show();
  return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Blocked users"),
    operator && h("div", { class: "push" }, button("Block a user", { onclick: add }))), place);
}
