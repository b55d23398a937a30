// Backups, signing keys, and settings with their sources.

import { h, prose, replace } from "./dom.js";
import { api, path } from "./api.js";
import { bytes, dateTime, number } from "./format.js";
import { badge, button, card, emptyState, notice, table, toast } from "./ui.js";
import { attempt, view } from "./views.js";
import { signingKeys } from "./signingkeys.js";
import { settingText } from "./units.js";

export function system(context) {
  const owner = context.can("owner");
  replace(context.body, owner ? [backups(context), signingKeys(context), settings(context)]
    : emptyState("settings", "Only an owner sees backups, signing keys and settings", "Ask an owner when you need another role."));
}

function backups(context) {
  const result = h("div", { "aria-live": "polite" });
  const part = view(context, async (signal) => {
    const overview = await api.get("/overview", {}, signal);
    return { overview, ...(overview.database ? {} : await api.get("/backups", { limit: 100 }, signal)) };
  }, ({ overview, items }) => (overview.database ? elsewhere() : card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Backups"), button("Back up now", { kind: "primary", symbol: "down", onclick: make })),
    items.length === 0 ? emptyState("down", "No backup yet", "Backups are made while the gateway runs. Restore one with countersign backup restore.")
      : [table("Backups", [
        { title: "Name", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.name) }, { title: "Created", cell: (item) => dateTime(item.created_ms) },
        { title: "Size", class: "num", cell: (item) => bytes(item.bytes) }, { title: "Events", class: "num", cell: (item) => number(item.events) },
        { title: "", cell: (item) => button("Verify", { kind: "small", "aria-label": `Verify ${item.name}`, onclick: (event) => verify(item, event.currentTarget) }) },
      ], items), result])));

  function elsewhere() {
    return card("Backups", h("p", {}, "Everything is in a PostgreSQL database, which PostgreSQL's own tools back up, such as pg_basebackup and pg_dump. ", h("a", { href: "#/docs/operating/several-gateways" }, "Several gateways")));
  }

  async function make(event) {
    const go = event.currentTarget;
    go.disabled = true;
    if (await attempt(() => api.post("/backups"))) { await part.reload(); toast("The backup is done.", { tone: "good" }); }
    go.disabled = false;
  }

  async function verify(item, go) {
    go.disabled = true;
    await attempt(async () => {
      const answer = await api.post(`/backups${path(item.name)}/verify`);
      replace(result, answer.ok ? notice("good", `${item.name} is intact.`) : notice("bad", `${item.name} is damaged.`, h("p", {}, prose(answer.problem)), h("p", {}, "Make a new backup now.")));
    }, result);
    go.disabled = false;
  }
  return part.element;
}

function settings(context) {
  const wanted = context.query.get("setting");
  return view(context, (signal) => api.get("/settings", {}, signal), ({ items }) => found(card("Settings",
    h("p", { class: "muted" }, "Set by flags, COUNTERSIGN_… variables or the configuration file, in this order; secrets are not shown. Changes need a restart. ",
      "The API that this dashboard uses is documented in ", h("a", { href: "/admin/api/openapi.json" }, "openapi.json"), "."),
    table("Settings", [{ title: "Name", heading: true, cell: (item) => h("span", { class: "mono" }, item.name) },
      { title: "Value", cell: (item) => h("span", { class: "mono wrap", title: item.value ?? "" }, settingText(item.name, item.value) ?? "–") },
      { title: "From", cell: (item) => badge(item.origin, item.origin === "default" ? "neutral" : "good") },
      { title: "What it does", class: "wide-text", cell: (item) => prose(item.help) }], items)), wanted)).element;
}

/** Highlights the setting in the URL. */
function found(list, name) {
  const row = name && [...list.querySelectorAll("tbody tr")].find((each) => each.firstElementChild.textContent === name);
  if (row) {
    row.classList.add("wanted");
    requestAnimationFrame(() => row.scrollIntoView({ block: "center" }));
  }
  return list;
}
