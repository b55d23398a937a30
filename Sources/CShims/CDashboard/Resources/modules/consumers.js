// Named consumers of an app's events: shows their progress, moves and deletes them.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { number, plural } from "./format.js";
import { removable } from "./dialogs.js";
import { card, emptyState, toast } from "./ui.js";
import { view } from "./views.js";
import { move, ways } from "./ways.js";

export function consumers(context) {
  const base = path("apps", context.app.id, "consumers");
  const operator = context.can("operator");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Consumers")),
    items.length === 0 ? emptyState("events", "No consumers yet", "A consumer is a backend's named position in the events. The backend creates its own when it starts to read, or you create it with countersign consumer create.")
      : ways("Consumers", items, (item) => ({
        name: item.name, isFetched: true,
        after: [
          ["Leased", `${number(item.partitions.filter((each) => each.leased_until_ms !== null).length)} of ${number(item.partitions.length)}`],
          ["Retention", item.holds_retention ? `waits up to ${plural(item.hold_days, "day")}` : "does not wait"],
        ],
        actions: operator && [
          move(`${base}${path(item.name)}`, item.name, "Events after the new position are read again; events that are skipped are not read. Leases end.", () => part.reload()),
          removable("Delete", `the consumer ${item.name}`, { text: "Its position is deleted, and a backend that still uses it is rejected.", phrase: item.name },
            () => api.remove(`${base}${path(item.name)}`), () => { part.reload(); toast("The consumer is deleted."); })],
      }))), { every: 10_000 });

  return part.element;
}
