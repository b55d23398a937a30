// The effects of Required, and the rule for returning automatically.

import { h } from "./dom.js";
import { dateTime, number, percent, plural } from "./format.js";
import { field, notice, table, toggle } from "./ui.js";
import { swatch } from "./codes.js";

/** The form for the automatic return. `onchange` is called after each change. */
export function autoReturn(rule, on, onchange = () => {}) {
  const share = h("input", { type: "number", min: 1, max: 100, value: rule.rejected_percent });
  const minutes = h("input", { type: "number", min: 1, max: 60, value: rule.window_minutes });
  const least = h("input", { type: "number", min: 1, max: 1_000_000, value: rule.minimum_requests });
  const fields = h("div", { class: "inline-form" }, field("Users whose token stopped working, %", share), field("Window, minutes", minutes), field("Minimum number of users", least));
  const trade = h("p", { class: "muted" }, "This trades protection for delivery: once enforcement has returned to Optional, forged events are stored as well. It only counts users whose own token used to be accepted and is now rejected (22, 27); "
    + "requests without a token cannot trigger it, but someone who owns enough accounts can. On or off, the alert webhook is notified when many requests are rejected, so that you can decide for yourself.");
  let enabled = on;
  const show = () => { fields.hidden = !enabled; };
  show();
  fields.addEventListener("input", () => onchange());
  return {
    element: h("div", { class: "auto-return" }, toggle("Return to Optional when tokens stop working", enabled, (value) => { enabled = value; show(); onchange(); }), trade, fields),
    read: () => (enabled ? { rejected_percent: Number(share.value), window_minutes: Number(minutes.value), minimum_requests: Number(least.value) } : null),
  };
}

/** The consequence for an app's users if its last key is deleted; null without token verification. */
export function withoutKeys(app) {
  const name = app.name || app.id;
  if (app.enforcement === "required") return `From now on every signed-in user of ${name} is rejected: it requires tokens, and nothing is left to verify those that your backend signs.`;
  if (app.enforcement === "optional") return `From now on every token that your backend signs fails, and every signed-in user of ${name} gets a warning: events are stored, and marked “Warned”.`;
  return null;
}

/** Why the automatic return would act immediately; null if it would not. */
export function returnsAtOnce(preview, rule) {
  if (!rule || preview.users === 0) return null;
  // Users with both codes count twice, which can only cause an unnecessary warning.
  const lost = (preview.by_code ?? []).filter((row) => row.code === 22 || row.code === 27).reduce((sum, row) => sum + row.users, 0);
  const share = lost / preview.users;
  if (share * 100 < rule.rejected_percent || preview.users < rule.minimum_requests) return null;
  return `In the last ${preview.hours} h the tokens of ${percent(Math.min(1, share))} of users were expired (22) or matched no key (27), and the automatic return acts at ${rule.rejected_percent} %. Look at these failures first, or raise its limit.`;
}

/** The requests that Required would have rejected. */
export function impact(preview) {
  const { users, would_reject: bad } = preview;
  const requests = preview.requests - preview.not_judged;
  const share = requests ? bad.requests / requests : 0;
  const since = `Since ${dateTime(preview.from_ms)}`;
  // The total number of users may be an estimate; failing users are counted exactly.
  const everybody = `${preview.users_estimated && users > 0 ? "about " : ""}${plural(users, "user")}`;
  const usersColumn = { title: "Users", class: "num", cell: (row) => number(row.users) };
  const bar = (count) => h("meter", { min: 0, max: Math.max(1, bad.requests), value: count, "aria-hidden": "true" });
  return h("div", { class: "impact" },
    preview.unknown && notice("amber", preview.unknown),
    requests === 0 ? h("p", {}, `${since} there were no requests from logged-in users whose tokens were checked, so there is nothing to predict from.`)
      : h("p", { class: `impact-lead ${bad.requests === 0 ? "good" : "bad"}` }, h("strong", {}, bad.requests === 0 ? "Nothing" : percent(share)), h("span", {},
        `${since}, ${plural(bad.requests, "request")} from ${plural(bad.users, "user")} would have been rejected, out of ${plural(requests, "verified request")} from ${everybody}.`)),
    bad.requests > 0 && h("div", { class: "split tight" },
      table("By code", [
        { title: "Code", heading: true, cell: (row) => h("span", { class: "code-cell" }, swatch(row.code), `${row.code} ${row.reason}`) },
        { title: "Requests", class: "num", cell: (row) => number(row.requests) }, usersColumn,
        { title: "", class: "meter-cell", cell: (row) => bar(row.requests) },
      ], preview.by_code ?? [], { visibleCaption: true }),
      table("By app version", [
        { title: "App version", heading: true, cell: (row) => row.app_version || "(not given)" },
        { title: "Requests", class: "num", cell: (row) => number(row.requests) }, usersColumn,
        { title: "", class: "meter-cell", cell: (row) => bar(row.requests) },
      ], preview.by_app_version ?? [], { visibleCaption: true })));
}
