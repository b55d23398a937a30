// The gateways that share a database, and the state of the database.

import { h, replace } from "./dom.js";
import { api } from "./api.js";
import { bytes, compact, dateTime, duration, number, plural } from "./format.js";
import { badge, card, emptyState, notice, stacked, table } from "./ui.js";
import { view } from "./views.js";
import { facts } from "./sample.js";

/** The maximum number of days that are listed separately. */
const LISTED = 31;
/** The clock difference in milliseconds above which a warning is shown. */
const CLOCK = 1_000;

const alone = { webhooks: "webhooks", event_files: "event files", deleted_apps: "erasing deleted apps", enforcement_alerts: "alerts" };
const utcDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export function gateways(context) {
  let overview = null;
  replace(context.body, view(context, async (signal) => {
    overview ??= await api.get("/overview", {}, signal);
    return overview.database ? api.get("/cluster", {}, signal) : null;
  }, (cluster) => (cluster ? shared(cluster)
    : emptyState("gateways", "One gateway runs, with a data directory of its own", "Several gateways share a PostgreSQL database: start each with --database.")), { every: 5_000 }).element);
}

function shared(cluster) {
  const live = cluster.gateways.filter((gateway) => gateway.live).length;
  return h("div", { class: "stack" },
    cluster.warnings.map((warning) => notice("amber", warning.text)),
    card(`${plural(live, "gateway")} live`, table("Gateways", [
      { title: "Name", heading: true, cell: (gateway) => stacked(h("span", { class: "mono wrap" }, gateway.name), gateway.url && h("span", { class: "wrap" }, gateway.url)) },
      { title: "State", cell: (gateway) => state(gateway, cluster) },
      { title: "Version", cell: (gateway) => gateway.version },
      { title: "Last heartbeat", cell: (gateway) => `${duration(cluster.now_ms - gateway.seen_ms)} ago` },
      { title: "Last minute", class: "num", cell: ({ last_minute: minute }) => stacked(minute.accepted + minute.rejected === 1 ? "1 request" : `${compact(minute.accepted + minute.rejected)} requests`, minute.rejected > 0 && `${compact(minute.rejected)} rejected`) },
      { title: "Clock", cell: (gateway) => clock(gateway.clock_offset_ms) },
      { title: "Readers wait", cell: (gateway) => duration(gateway.reader_lag_ms) },
      { title: "Duties", cell: (gateway) => h("span", { class: "wrap" }, gateway.duties.map((duty) => alone[duty] ?? duty).join(", ") || "–") },
    ], cluster.gateways)),
    card("Database", facts([
      ["PostgreSQL", cluster.server_version], ["Schema", `version ${number(cluster.schema_version)}`], ["Last change", number(cluster.generation)],
      ["Readers of events wait for a transaction open for", duration(cluster.reader_lag_ms)], ["Time of the database", dateTime(cluster.now_ms)],
    ])),
    days(cluster.partitions));
}

function state(gateway, cluster) {
  if (!gateway.live) return badge("Stopped, or cut off", "bad");
  return gateway.generation < cluster.generation ? badge("Loads a change", "amber") : badge("Live", "good");
}

function clock(offset) {
  const text = offset === 0 ? "right" : `${duration(Math.abs(offset))} ${offset > 0 ? "ahead" : "behind"}`;
  return Math.abs(offset) > CLOCK ? badge(text, "bad") : text;
}

function days(partitions) {
  const newest = [...partitions].sort((one, other) => (other.day_ms ?? -1) - (one.day_ms ?? -1));
  const older = newest.slice(LISTED);
  const size = (list) => bytes(list.reduce((sum, each) => sum + each.bytes, 0));
  return card("Events by day", h("p", { class: "muted" }, `${plural(partitions.length, "partition")}, ${size(partitions)} with indexes. Counts of events are the database's estimates.`),
    table("Partitions", [
      { title: "Day", heading: true, cell: (each) => (each.day_ms === null ? "no day yet" : `${utcDay.format(each.day_ms)} (UTC)`) },
      { title: "Events", class: "num", cell: (each) => (each.rows === null ? "not counted yet" : compact(each.rows)) },
      { title: "Size", class: "num", cell: (each) => bytes(each.bytes) },
    ], newest.slice(0, LISTED)),
    older.length > 0 && h("p", { class: "muted" }, `${plural(older.length, "older partition")} with ${size(older)}.`));
}
