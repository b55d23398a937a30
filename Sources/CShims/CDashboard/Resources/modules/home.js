// The overview: the state of the gateway and its apps, and next steps.

import { h, replace } from "./dom.js";
import { api, path, Problem } from "./api.js";
import { remember } from "./address.js";
import { prefer } from "./preferences.js";
import { ago, bytes, duration, number, percent, plural } from "./format.js";
import { formDialog } from "./dialogs.js";
import { button, card, emptyState, field, notice, select, stacked, stateBadge, table } from "./ui.js";
import { view } from "./views.js";
import { firstSteps, newcomer } from "./firststeps.js";
import { spark } from "./spark.js";

/** The number of apps on a page. The search is hidden if all apps fit on one page. */
const PAGE = 25;
/** The number of warnings that are shown at first. */
const WARNINGS = 3;

// Failures are rejected requests and those with a warning. Only verified requests can fail.
const failed = (app) => (app.last_24h?.rejected ?? 0) + (app.last_24h?.warned ?? 0);
const name = (app) => app.name || app.id;
const byName = (one, two) => name(one).localeCompare(name(two));
const orders = {
  failures: ["Most failures", (one, two) => failed(two) - failed(one) || (two.last_24h?.requests ?? 0) - (one.last_24h?.requests ?? 0)],
  requests: ["Most requests", (one, two) => (two.last_24h?.requests ?? 0) - (one.last_24h?.requests ?? 0)],
  recent: ["Last request", (one, two) => (two.last_request_ms ?? 0) - (one.last_request_ms ?? 0)],
  name: ["Name", byName],
};

export function home(context) {
  const { body, can, query } = context;
  let first = true;
  let from = Math.max(0, Number(query.get("from")) || 0);
  let allWarnings = false;
  const search = h("input", { type: "search", value: query.get("q") ?? "", placeholder: "name or id", spellcheck: "false", autocomplete: "off", "data-search": true });
  const order = select(Object.entries(orders).map(([key, [label]]) => [key, label]), orders[query.get("sort")] ? query.get("sort") : "failures");
  const list = h("div", {});
  let apps = [];
  const part = view(context, async (signal) => {
    // The first load uses the apps that app.js has just loaded.
    const known = first && context.apps;
    first = false;
    const [overview, all] = await Promise.all([api.get("/overview", {}, signal), known || api.get("/apps", { limit: 500 }, signal).then(({ items }) => items)]);
    prefer("cluster", overview.database);
    return { overview, all };
  }, draw, { every: 10_000, bones: 6 });

  function draw({ overview, all }) {
    apps = all;
    const { ready, storage, last_minute: minute } = overview;
    const total = minute.accepted + minute.rejected;
    const stat = (title, value, note, tone) => h("div", { class: `stat ${tone ?? ""}` }, h("dt", {}, title),
      h("dd", {}, h("span", { class: "stat-value" }, value)), h("dd", { class: "stat-note" }, note));
    drawApps();
    return h("div", { class: "stack" },
      h("div", { class: "stats" }, h("dl", {},
        stat("Gateway", ready.ok ? "Ready" : "Not ready", `Version ${overview.version}, up ${duration(Date.now() - overview.started_ms)}`, ready.ok ? "good" : "bad"),
        stat("Requests, last minute", number(total), `${plural(minute.events, "event")} stored`),
        stat("Rejected, last minute", total ? percent(minute.rejected / total) : "–", `${number(minute.rejected)} of ${plural(total, "request")}`),
        stat(overview.database ? "Events in the database" : "Events on disk", number(storage.events), [`${bytes(storage.file_bytes)} used`, storage.free_bytes !== null && `${bytes(storage.free_bytes)} free`].filter(Boolean).join(", ")))),
      ready.checks.filter((check) => !check.ok).map((check) => notice("bad", `${check.name}: ${check.detail ?? "failed"}`, h("p", {}, "The gateway is not ready until this is resolved."))),
      warningsOf(overview),
      apps.length === 0 ? firstApp() : [
        newcomer(apps) && firstSteps(context, newcomer(apps), () => part.redraw()),
        card(null,
          h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Apps"), can("operator") && button("New app", { symbol: "plus", onclick: newApp })),
          h("p", { class: "muted" }, "Counts are of the last 24 h. The failure rate is the share of verified requests, so anonymous ones do not count."),
          apps.length > PAGE && h("form", { class: "toolbar spaced", onsubmit: (event) => event.preventDefault() }, field("Find an app", search), field("Order", order)),
          list)]);
  }

  function warningsOf({ warnings }) {
    const shown = allWarnings ? warnings : warnings.slice(0, WARNINGS);
    return [shown.map((warning) => notice("amber", warning.text, warning.app && h("p", {}, h("a", { href: `#${path("apps", warning.app, "failures")}` }, `Look at ${warning.app}`)))),
      shown.length < warnings.length && h("div", {}, button(`Show all ${number(warnings.length)} warnings`, { onclick: () => { allWarnings = true; part.redraw(); } }))];
  }

  function drawApps() {
    const words = search.value.trim().toLowerCase().split(/\s+/);
    const found = apps.filter((app) => words.every((word) => `${app.id} ${app.name}`.toLowerCase().includes(word)))
      .sort((one, two) => orders[order.value][1](one, two) || byName(one, two));
    if (from >= found.length) from = 0;
    remember("/", { q: search.value.trim(), sort: order.value === "failures" ? null : order.value, from: from || null });
    const turn = (to) => { from = to; drawApps(); list.querySelector("button:enabled")?.focus(); };
    replace(list, found.length === 0 ? emptyState("search", "No app matches", "Search by a part of the name or the id.")
      : table("Apps", [
        { title: "App", heading: true, cell: (app) => stacked(h("a", { href: `#${path("apps", app.id, "failures")}`, dir: "auto" }, name(app)), app.name && app.name !== app.id && h("span", { class: "mono" }, app.id)) },
        { title: "Enforcement", cell: (app) => h("a", { class: "quiet-link", href: `#${path("apps", app.id, "enforcement")}`, "aria-label": `Enforcement of ${name(app)}: ${app.enforcement}` }, stateBadge(app.enforcement)) },
        { title: "Failures", class: "num", cell: (app) => h("span", { class: failed(app) > 0 ? "bad" : "" }, app.last_24h ? number(failed(app)) : "–") },
        { title: "Failure rate", class: "num", cell: (app) => (app.last_24h?.verified ? percent(failed(app) / app.last_24h.verified) : "–") },
        { title: "Requests", class: "num", cell: (app) => (app.last_24h ? number(app.last_24h.requests) : "–") },
        { title: "24 h", class: "extra spark-cell", cell: (app) => app.last_24h && spark(app.last_24h.hours) },
        { title: "Last request", cell: (app) => (app.last_request_ms ? ago(app.last_request_ms) : app.last_24h ? "none yet" : "not known") },
        { title: "Keys", class: "num extra", cell: (app) => number(app.keys) },
      ], found.slice(from, from + PAGE)),
    found.length > PAGE && h("div", { class: "pager" },
      h("span", { class: "muted", role: "status" }, `${number(from + 1)} to ${number(Math.min(found.length, from + PAGE))} of ${plural(found.length, "app")}`),
      h("div", { class: "actions" }, button("Previous", { disabled: from === 0, onclick: () => turn(from - PAGE) }), button("Next", { disabled: from + PAGE >= found.length, onclick: () => turn(from + PAGE) }))));
  }

  for (const input of [search, order]) input.addEventListener("input", () => { from = 0; drawApps(); });

  function firstApp() {
    return emptyState("app", "No app yet", "An app is one product that sends events: it has its own keys, its own rules and its own numbers.",
      can("operator") ? button("Create the first app", { kind: "primary", symbol: "plus", onclick: newApp }) : null);
  }

  async function newApp() {
    const title = h("input", { type: "text", maxlength: 100, autocomplete: "off", autofocus: true });
    const id = h("input", { type: "text", name: "id", maxlength: 64, spellcheck: "false", autocomplete: "off" });
    let own = false;
    id.addEventListener("input", () => { own = id.value !== ""; });
    title.addEventListener("input", () => { if (!own) id.value = idOf(title.value); });
    const made = await formDialog("New app", "Create app", [
      field("Name", title), field("Id", id, "Lower-case letters, digits, - and _; it cannot be changed.")], () => {
      const text = id.value.trim();
      const problem = problemOf(text);
      if (problem) throw new Problem(422, { detail: problem, errors: [{ pointer: "/id" }] });
      return api.post("/apps", { id: text, name: title.value.trim() || text });
    });
    if (!made) return;
    prefer("app", made.app.id);
    context.go(`#${path("apps", made.app.id, "start")}`);
  }

  replace(body, part.element);
}

function idOf(text) {
  return text.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 64);
}

/** The reason why an app's id is invalid; null if it is valid. */
function problemOf(id) {
  if (id === "") return "An app needs an id.";
  const found = /[^a-z0-9_-]/.exec(id)?.[0];
  if (found === " ") return "An id has no spaces: use - instead.";
  if (found) return `“${found}” cannot be in an id: use lower-case letters, digits, - and _.`;
  return /^[a-z0-9]/.test(id) ? null : "An id begins with a letter or a digit.";
}
