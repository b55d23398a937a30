// The audit log and the verification of its hash chain.

import { h, replace } from "./dom.js";
import { address, api } from "./api.js";
import { dateTime, plural } from "./format.js";
import { dialog } from "./dialogs.js";
import { appNames, button, emptyState, exportLink, field, notice, problemNotice, select, table } from "./ui.js";
import { pagedView } from "./views.js";
import { remember } from "./address.js";
import { facts } from "./sample.js";

export function audit(context) {
  const { body, apps, query } = context;
  const app = select([["", "every app"], ...appNames(apps)], query.get("app") ?? "");
  const actor = h("input", { type: "search", spellcheck: "false", autocomplete: "off", "data-search": true, value: query.get("actor") ?? "" });
  const place = h("div", {});
  const csv = exportLink("audit", "csv");
  const ndjson = exportLink("audit", "ndjson");
  const result = h("div", { "aria-live": "polite" });
  const state = (value) => h("pre", { class: "json", tabindex: 0 }, h("code", {}, value === null || value === undefined ? "–" : JSON.stringify(value, null, 2)));
  const show = (item) => dialog(item.action, () => [
    facts([["When", dateTime(item.at_ms)], ["Who", `${item.actor} (${item.role})`], ["Target", item.target], ["App", item.app]]),
    h("div", { class: "split tight" }, h("div", {}, h("h3", {}, "Before"), state(item.before)), h("div", {}, h("h3", {}, "After"), state(item.after))),
    item.hash && h("p", { class: "mono muted wrap" }, item.hash)], { wide: true });
  function search() {
    const asked = { app: app.value, actor: actor.value.trim() };
    remember("/audit", { app: app.value, actor: actor.value.trim() });
    csv.href = address("/audit/export", { ...asked, format: "csv" });
    ndjson.href = address("/audit/export", { ...asked, format: "ndjson" });
    replace(place, pagedView(context, (cursor, signal) => api.get("/audit", { ...asked, cursor }, signal), (items) => table("Changes, newest first", [
      { title: "When", heading: true, cell: (item) => h("button", { type: "button", class: "link", onclick: () => show(item) }, dateTime(item.at_ms)) },
      { title: "Who", class: "wrap-cell", cell: (item) => item.actor }, { title: "What", class: "wrap-cell", cell: (item) => item.action },
      { title: "Target", cell: (item) => h("span", { class: "mono clip" }, item.target ?? "–") }, { title: "App", cell: (item) => item.app ?? "–" },
    ], items, { onrow: show }), emptyState("audit", "Nothing has been changed yet", "Every change of keys, rules, members and settings is written here.")).element);
  }
  app.addEventListener("change", search);
  const verify = button("Verify the chain", { symbol: "shield", onclick: async () => {
    try {
      const answer = await api.get("/audit/verify", {}, context.signal);
      replace(result, answer.ok ? notice("good", `Intact: ${plural(answer.entries, "entry", "entries")}, each with the right hash.`)
        : notice("bad", `Broken at entry ${answer.broken_at}.`, h("p", {}, "Something other than this gateway changed the database; compare it with a backup.")));
    } catch (error) {
      if (error.name !== "AbortError") replace(result, problemNotice(error));
    }
  } });
  replace(body, h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); search(); } }, field("App", app), field("Who", actor),
    h("button", { type: "submit", class: "button plain" }, "Search"), h("div", { class: "push" }, verify, csv, ndjson)), result, h("section", { class: "card" }, place));
  search();
}
