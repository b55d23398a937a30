// The overview: the state of the gateway and its apps, and next steps.

import { h, replace } from "./dom.js";
import { api, path, Problem } from "./api.js";
import { prefer } from "./preferences.js";
import { ago, bytes, duration, number, percent, plural } from "./format.js";
import { formDialog, showValue } from "./dialogs.js";
import { button, emptyState, field, notice, stateBadge } from "./ui.js";
import { view } from "./views.js";
import { firstSteps, newcomer } from "./firststeps.js";
import { spark } from "./spark.js";

export function home(context) {
  const { body, can } = context;
  let first = true;
  const part = view(context, async (signal) => {
    // The frame has just loaded the apps.
    const known = first && context.apps;
    first = false;
    const [overview, apps] = await Promise.all([api.get("/overview", {}, signal), known || api.get("/apps", { limit: 500 }, signal).then(({ items }) => items)]);
    return { overview, apps };
  }, draw, { every: 10_000, bones: 6 });

  function draw({ overview, apps }) {
    const { ready, storage, last_minute: minute, warnings } = overview;
    const total = minute.accepted + minute.rejected;
    const stat = (name, value, note, tone) => h("div", { class: `stat ${tone ?? ""}` }, h("dt", {}, name),
      h("dd", {}, h("span", { class: "stat-value" }, value)), h("dd", { class: "stat-note" }, note));
    return h("div", { class: "stack" },
      h("div", { class: "stats" }, h("dl", {},
        stat("Gateway", ready.ok ? "Ready" : "Not ready", `Version ${overview.version}, up ${duration(Date.now() - overview.started_ms)}`, ready.ok ? "good" : "bad"),
        stat("Requests, last minute", number(total), `${number(minute.events)} events stored`),
        stat("Rejected, last minute", total ? percent(minute.rejected / total) : "–", `${number(minute.rejected)} of ${number(total)}`),
        stat(overview.database ? "Events in the database" : "Events on disk", number(storage.events), [`${bytes(storage.file_bytes)} used`, storage.free_bytes !== null && `${bytes(storage.free_bytes)} free`].filter(Boolean).join(", ")))),
      ready.checks.filter((check) => !check.ok).map((check) => notice("bad", `${check.name}: ${check.detail ?? "failed"}`, h("p", {}, "The gateway accepts no traffic until then."))),
      warnings.map((warning) => notice("amber", warning.text, warning.app && h("p", {}, h("a", { href: `#${path("apps", warning.app, "failures")}` }, `Look at ${warning.app}`)))),
      apps.length === 0 ? firstApp() : [
        newcomer(apps) && firstSteps(context, newcomer(apps), () => part.redraw()),
        h("div", { class: "lead-row" }, h("h2", { class: "section-title" }, "Apps"), can("operator") && button("New app", { symbol: "plus", onclick: newApp })),
        h("div", { class: "apps" }, apps.map(appCard))]);
  }

  function firstApp() {
    return emptyState("app", "No app yet", "An app is one product that sends events: it has its own keys, its own rules and its own numbers.",
      can("operator") ? button("Create the first app", { kind: "primary", symbol: "plus", onclick: newApp }) : null);
  }

  function appCard(app) {
    const day = app.last_24h;
    const failed = day && day.rejected + day.warned;
    const base = `#${path("apps", app.id)}`;
    return h("section", { class: "card app-card", "aria-label": `${app.name || app.id} (${app.id})` },
      h("div", { class: "card-head" }, h("h3", {}, h("a", { href: `${base}/failures` }, app.name || app.id)), h("a", { class: "quiet-link", href: `${base}/enforcement`, "aria-label": `Enforcement of ${app.name || app.id}: ${app.enforcement}` }, stateBadge(app.enforcement))),
      h("dl", { class: "pairs" },
        h("div", {}, h("dt", {}, "Requests, 24 h"), h("dd", {}, day ? number(day.requests) : "–")),
        h("div", {}, h("dt", {}, "Failures, 24 h"), h("dd", { class: failed ? "bad" : "" }, day ? number(failed) : "–")),
        h("div", {}, h("dt", {}, "Rate"), h("dd", {}, day?.requests ? percent(failed / day.requests) : "–"))),
      day ? spark(day.hours) : h("p", { class: "muted" }, "The counts can't be read at the moment."),
      h("p", { class: "muted" }, app.name && app.name !== app.id && [h("span", { class: "mono" }, app.id), " · "], app.last_request_ms ? `Last request ${ago(app.last_request_ms)}` : day ? "No request yet" : "Last request not known", ` · ${plural(app.keys, "key")}`));
  }

  async function newApp() {
    const id = h("input", { type: "text", name: "id", maxlength: 64, spellcheck: "false", autocomplete: "off", autofocus: true });
    const name = h("input", { type: "text", maxlength: 100 });
    const made = await formDialog("New app", "Create app", [
      field("Id", id, "Lower-case letters, digits, - and _; it cannot be changed."), field("Name", name)], () => {
      const text = id.value.trim();
      const problem = problemOf(text);
      if (problem) throw new Problem(422, { detail: problem, errors: [{ pointer: "/id" }] });
      return api.post("/apps", { id: text, name: name.value.trim() || text });
    });
    if (!made) return;
    prefer("app", made.app.id);
    await showValue(`The write key of ${made.app.name}`, "The app sends it with every request. The app settings show it again; you can create more there.", made.write_key);
    context.route();
  }

  replace(body, part.element);
}

/** Why an app's id is invalid; null if it is valid. */
function problemOf(id) {
  if (id === "") return "An app needs an id.";
  const found = /[^a-z0-9_-]/.exec(id)?.[0];
  if (found === " ") return "An id has no spaces: use - instead.";
  if (found) return `“${found}” cannot be in an id: use lower-case letters, digits, - and _.`;
  return /^[a-z0-9]/.test(id) ? null : "An id begins with a letter or a digit.";
}
