// Named consumers of an app's events: shows their lag, moves and deletes them.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { fromInput, number, plural, zoneName } from "./format.js";
import { formDialog, removable } from "./dialogs.js";
import { button, card, emptyState, field, select, table, toast } from "./ui.js";
import { view } from "./views.js";
import { behind, lastSuccess } from "./ways.js";

export function consumers(context) {
  const base = path("apps", context.app.id, "consumers");
  const operator = context.can("operator");
  const part = view(context, (signal) => api.get(base, { limit: 500 }, signal), ({ items }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Consumers")),
    items.length === 0 ? emptyState("events", "No consumers yet", "A consumer is a backend's named position in the events. The backend creates its own when it starts to read, or you create it with countersign consumer create.")
      : table("Consumers", [
        { title: "Name", heading: true, cell: (item) => h("span", { class: "mono wrap" }, item.name) },
        { title: "Behind", cell: behind },
        { title: "Last confirmation", cell: lastSuccess },
        { title: "Leased", cell: (item) => `${number(item.partitions.filter((each) => each.leased_until_ms !== null).length)} of ${number(item.partitions.length)}` },
        { title: "Retention", cell: (item) => (item.holds_retention ? `waits up to ${plural(item.hold_days, "day")}` : "does not wait") },
        { title: "", cell: (item) => operator && h("span", { class: "actions" },
          button("Move", { kind: "small", "aria-label": `Move ${item.name}`, onclick: () => move(item) }),
          removable("Delete", `the consumer ${item.name}`, { text: "Its position is deleted, and a backend that still uses it is rejected.", phrase: item.name },
            () => api.remove(`${base}${path(item.name)}`), () => { part.reload(); toast("The consumer is deleted."); })) },
      ], items)), { every: 10_000 });

  async function move(item) {
    const place = select([["time", "A time"], ["start", "The oldest event"], ["end", "After the newest event"]], "time");
    const time = h("input", { type: "datetime-local", autofocus: true });
    const moved = await formDialog(`Move ${item.name}`, "Move", [
      h("p", {}, "Events after the new position are read again; events that are skipped are not read. Leases end."),
      field("Move to", place), field(`Time (${zoneName()})`, time, "When events were received."),
    ], () => api.post(`${base}${path(item.name)}/seek`, place.value === "time" ? { time_ms: fromInput(time.value) || null } : { from: place.value }));
    if (!moved) return;
    toast(`${item.name} is ${plural(moved.lag_events, "event")} behind now.`);
    part.reload();
  }

  return part.element;
}
