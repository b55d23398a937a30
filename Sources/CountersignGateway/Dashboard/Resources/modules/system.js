// Settings with their origin, and backups.

import { h, replace } from "./dom.js";
import { api } from "./api.js";
import { bytes, dateTime, number } from "./format.js";
import { attempt, badge, button, card, emptyState, table, toast, view } from "./ui.js";

export function system(context) {
  const owner = context.can("owner");
  const part = view(context, async (signal) => {
    const [settings, backups] = await Promise.all([api.get("/settings", {}, signal).catch((error) => {
      if (error.status === 404) return { items: [] };
      throw error;
    }), owner ? api.get("/backups", { limit: 100 }, signal) : { items: [] }]);
    return { settings: settings.items, backups: backups.items };
  }, ({ settings, backups }) => h("div", { class: "stack" },
    owner && card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Backups"), button("Make a backup now", { kind: "primary", symbol: "down", onclick: async (event) => {
      const go = event.currentTarget;
      go.disabled = true;
      if (await attempt(() => api.post("/backups"))) { await part.reload(); toast("The backup is made.", { tone: "good" }); }
      go.disabled = false;
    } })), backups.length === 0 ? emptyState("down", "No backup yet", "A backup is made while the gateway runs; `countersign backup restore` puts it back.")
      : table("Backups", [{ title: "Name", heading: true, cell: (item) => h("span", { class: "mono" }, item.name) }, { title: "Made", cell: (item) => dateTime(item.created_ms) },
        { title: "Size", class: "num", cell: (item) => bytes(item.bytes) }, { title: "Events", class: "num", cell: (item) => number(item.events) }], backups)),
    card("Settings", h("p", { class: "muted" }, "Set by flags, COUNTERSIGN_… variables or the configuration file, in this order; secrets are not shown."),
      settings.length === 0 ? emptyState("settings", "Not told by this gateway", "`countersign config print` lists them.") : table("Settings", [{ title: "Name", heading: true, cell: (item) => h("span", { class: "mono" }, item.name) }, { title: "Value", cell: (item) => h("span", { class: "mono wrap" }, item.value === null ? "–" : item.value) },
        { title: "From", cell: (item) => badge(item.origin) }, { title: "What it does", class: "wide-text", cell: (item) => item.help }], settings))));
  replace(context.body, part.element);
}
