// The overview: is the gateway well, how are the apps, and what to do next.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { preferences, prefer } from "./preferences.js";
import { ago, bytes, duration, number, percent, DAY } from "./format.js";
import { dialog, showOnce } from "./dialogs.js";
import { badge, button, card, copyable, emptyState, field, notice, stateBadge } from "./ui.js";
import { attempt, view } from "./views.js";
import { icon } from "./icons.js";
import { spark } from "./spark.js";

// Each drawn app is a request.
const SPARKS = 12;

export function home(context) {
  const { body, can } = context;
  const part = view(context, async (signal) => {
    const [overview, apps, deletions] = await Promise.all([api.get("/overview", {}, signal), api.get("/apps", { limit: 500 }, signal), api.get("/app-deletions", {}, signal)]);
    const now = Date.now();
    const days = await Promise.all(apps.items.slice(0, SPARKS).map((app) =>
      api.get(`${path("apps", app.id)}/analytics`, { from_ms: now - DAY, to_ms: now, bucket: "hour" }, signal)));
    return { overview, apps: apps.items, days, deleting: deletions.items.filter((deletion) => deletion.erased_ms === null) };
  }, draw, { every: 10_000, bones: 6 });

  function draw({ overview, apps, days, deleting }) {
    const { ready, storage, last_minute: minute, warnings } = overview;
    const total = minute.accepted + minute.rejected;
    const stat = (name, value, note, tone) => h("div", { class: `stat ${tone ?? ""}` }, h("dt", {}, name),
      h("dd", {}, h("span", { class: "stat-value" }, value)), h("dd", { class: "stat-note" }, note));
    return h("div", { class: "stack" },
      h("div", { class: "stats" }, h("dl", {},
        stat("Gateway", ready.ok ? "Ready" : "Not ready", `${overview.version}, up ${duration(Date.now() - overview.started_ms)}`, ready.ok ? "good" : "bad"),
        stat("Requests, last minute", number(total), `${number(minute.events)} events stored`),
        stat("Rejected, last minute", total ? percent(minute.rejected / total) : "–", `${number(minute.rejected)} of ${number(total)}`),
        stat("Events on disk", number(storage.events), `${bytes(storage.file_bytes)} used, ${bytes(storage.free_bytes)} free`))),
      ready.checks.filter((check) => !check.ok).map((check) => notice("bad", `${check.name}: ${check.detail ?? "failed"}`, h("p", {}, "The gateway takes no traffic while this lasts."))),
      warnings.map((warning) => notice("amber", warning.text, warning.app && h("p", {}, h("a", { href: `#${path("apps", warning.app, "failures")}` }, `Look at ${warning.app}`)))),
      deleting.map((deletion) => notice("amber", `${deletion.app} is being deleted`, h("p", {}, `Since ${ago(deletion.requested_ms)}. Nothing is accepted for it; its data is being removed.`))),
      apps.length === 0 ? firstApp() : [
        beginner(apps),
        h("div", { class: "lead-row" }, h("h2", { class: "section-title" }, "Apps"), can("operator") && button("New app", { symbol: "plus", onclick: newApp })),
        h("div", { class: "apps" }, apps.map((app, index) => appCard(app, days[index])))]);
  }

  function firstApp() {
    return emptyState("app", "No app yet", "An app is one product that sends events: it has its own keys, its own rules and its own numbers.",
      can("operator") ? button("Make the first app", { kind: "primary", symbol: "plus", onclick: newApp }) : null);
  }

  function appCard(app, counts) {
    const day = app.last_24h;
    const failed = day.rejected + day.warned;
    const base = `#${path("apps", app.id)}`;
    return h("section", { class: "card app-card", "aria-label": `${app.name || app.id} (${app.id})` },
      h("div", { class: "card-head" }, h("h3", {}, h("a", { href: `${base}/failures` }, app.name || app.id)), h("a", { class: "quiet-link", href: `${base}/enforcement`, "aria-label": `Enforcement of ${app.name || app.id}: ${app.enforcement}` }, stateBadge(app.enforcement))),
      h("dl", { class: "pairs" },
        h("div", {}, h("dt", {}, "Requests, 24 h"), h("dd", {}, number(day.requests))),
        h("div", {}, h("dt", {}, "Failures, 24 h"), h("dd", { class: failed ? "bad" : "" }, number(failed))),
        h("div", {}, h("dt", {}, "Rate"), h("dd", {}, day.requests ? percent(failed / day.requests) : "–"))),
      counts && spark(counts.buckets),
      h("p", { class: "muted" }, app.name && app.name !== app.id && [h("span", { class: "mono" }, app.id), " · "], app.last_request_ms ? `Last request ${ago(app.last_request_ms)}` : "No request yet", ` · ${app.keys === 1 ? "1 key" : `${app.keys} keys`}`));
  }

  function done(app) {
    const steps = { key: app.keys > 0, sent: app.last_request_ms !== null && app.last_request_ms !== undefined, measured: app.enforcement !== "disabled" };
    return { ...steps, all: steps.key && steps.sent && steps.measured };
  }

  /** The first steps of the chosen app, or else of the newest that is not done with them. */
  function beginner(apps) {
    const open = apps.filter((app) => !done(app).all).sort((one, two) => two.created_ms - one.created_ms);
    return open.length > 0 && firstSteps(open.find((app) => app.id === preferences.app) ?? open[0]);
  }

  function firstSteps(app) {
    const steps = done(app);
    const base = `#${path("apps", app.id)}`;
    const step = (ok, title, ...rest) => h("li", { class: ok ? "done" : "later open" }, h("span", { class: "step-mark" }, ok ? icon("check", 14) : null),
      h("div", {}, h("h3", {}, title, h("span", { class: "visually-hidden" }, ok ? " (done)" : " (to do)")), !ok && rest));
    const count = (steps.key ? 1 : 0) + (steps.sent ? 3 : 0) + (steps.measured ? 1 : 0);
    return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, `First steps for ${app.name || app.id}`), badge(`${count} of 5 done`)), h("ol", { class: "steps" },
      step(steps.key, "Add a public key", h("p", {}, "Make a pair; the private half stays with your backend."), copyable("countersign key generate --out ."),
        h("a", { class: "button primary", href: `${base}/keys` }, "Add the public key")),
      step(steps.sent, "Mint a token", h("p", {}, "For a trial by hand; in production your backend signs."),
        copyable('TOKEN="$(countersign token create --key private.pem --user user-1)"')),
      step(steps.sent, "Send an event", h("p", {}, "The app sends with its write key. A write key is shown once, when it is made: if you did not copy it then, ",
        can("operator") ? [h("a", { href: `${base}/settings` }, "make a new one in the app settings"), " and copy it from the dialog."] : "ask an operator for a new one."),
        copyable(`curl -s ${location.origin}/v1/batch -H "X-Write-Key: $WRITE_KEY" -H "Authorization: Bearer $TOKEN" \\\n  -d '{"batch":[{"type":"track","messageId":"1","userId":"user-1","event":"Order Completed"}]}'`)),
      step(steps.sent, "See it live", h("p", {}, "Each request appears as it is checked."), h("a", { class: "button plain", href: `${base}/live` }, "Open the live tail")),
      step(steps.measured, "Choose Optional", h("p", {}, "Requests are verified and failures are shown, but nothing is rejected. When the numbers are good, choose Required."),
        h("a", { class: "button plain", href: `${base}/enforcement` }, "Enforcement"))));
  }

  async function newApp() {
    const id = h("input", { type: "text", required: true, pattern: "[a-z0-9][a-z0-9_\\-]*", maxlength: 64, spellcheck: "false", autocomplete: "off", autofocus: true });
    const name = h("input", { type: "text", maxlength: 100 });
    const trouble = h("div", {});
    const made = await dialog("New app", (close) => h("form", { onsubmit: async (event) => {
      event.preventDefault();
      await attempt(async () => close(await api.post("/apps", { id: id.value.trim(), name: name.value.trim() || id.value.trim() })), trouble);
    } }, field("Id", id, "Small letters, digits, - and _; it can not be changed."), field("Name", name), trouble,
    h("div", { class: "actions end" }, button("Cancel", { onclick: () => close() }), h("button", { type: "submit", class: "button primary" }, "Make it"))));
    if (!made) return;
    prefer("app", made.app.id);
    await showOnce(`The write key of ${made.app.name}`, "The app sends it with every request. Only its hash is stored; you can make more in the app settings.", made.write_key);
    context.route();
  }

  replace(body, part.element);
}
