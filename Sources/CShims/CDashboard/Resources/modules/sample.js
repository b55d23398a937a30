// A failed request: its checks, its token's claims, and advice.

import { h, prose, replace } from "./dom.js";
import { api, path } from "./api.js";
import { docsOf, remedy, swatch } from "./codes.js";
import { dateTime, ago } from "./format.js";
import { button, card, copyable, notice, problemNotice, stacked, stateBadge, table, verdictBadge } from "./ui.js";
import { view } from "./views.js";
import { icon } from "./icons.js";

export function sample(context) {
  const { app, parameter: id, body } = context;
  const base = path("apps", app.id, "samples", id);
  const operator = context.can("operator");
  const hidden = () => h("p", { class: "muted" }, "Only operators and owners see this.");
  const part = view(context, (signal) => api.get(base, {}, signal), (item) => ((there) => [
    h("section", { class: "card verdict-card" },
      h("div", { class: "verdict-head" }, swatch(item.code), h("div", {},
        h("h2", {}, `${item.code} ${item.reason}`), h("p", { class: "muted" }, `${dateTime(item.at_ms)} · ${ago(item.at_ms)}`)),
      verdictBadge(item.verdict)),
      item.fix && h("div", { class: "fix" }, icon("info"), h("div", {}, h("p", {}, h("strong", {}, "What to do")), h("p", {}, prose(item.fix), " ", h("a", { href: docsOf(item.code) }, "More about this code"), there && context.can("operator")
        && [" ", h("a", { class: "button small", href: `#${path("apps", app.id, there.screen)}${there.query}` }, there.text)])))),
    h("div", { class: "split" },
      card("Verdict, check by check", checks(item.checks), recheck(context, base)),
      card("Request", facts([
        ["User", h("span", { class: "mono", id: "sample-user" }, item.user ?? "–")],
        ["Endpoint", item.endpoint], ["SDK", item.sdk], ["App version", item.app_version],
        ["Address (truncated)", item.client], ["Enforcement at that time", item.enforcement && stateBadge(item.enforcement)], ["Request id", item.request_id && h("span", {}, h("span", { class: "mono wrap" }, item.request_id), " ",
          h("a", { href: `#${path("apps", app.id, "events")}?${new URLSearchParams({ request_id: item.request_id })}` }, "Its events"))],
      ]))),
    h("div", { class: "split" },
      card("Header", !operator ? hidden() : item.header ? json(item.header) : h("p", { class: "muted" }, "The header could not be read.")),
      card("Claims", !operator ? hidden() : item.claims ? [json(item.claims), times(item.claims, item.at_ms)] : h("p", { class: "muted" }, "The claims could not be read."))),
    card("Token, signature removed", !operator ? hidden() : item.token_without_signature
      ? [h("p", { class: "muted" }, "Without its signature, the token can be read but not used."), copyable(item.token_without_signature, "Copy the token without its signature")]
      : h("p", { class: "muted" }, "The request carried no token.")),
  ])(remedy(item.code)), { bones: 6 });
  body.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) history.back();
  });
  replace(body, h("p", {}, h("a", { class: "back", href: `#${path("apps", app.id, "failures")}`, onclick: (event) => {
    if (history.length > 1) { event.preventDefault(); history.back(); }
  } }, icon("back", 16), "Back to the failures")), part.element);
}

function checks(items) {
  if (!items?.length) return h("p", { class: "muted" }, "No check was recorded.");
  return h("ol", { class: "checks" }, items.map((check) => {
    const [kind, symbol, word] = check.ok === true ? ["good", "check", "passed"] : check.ok === false ? ["bad", "close", "failed"] : ["open", "info", "not checked"];
    return h("li", { class: kind }, h("span", { class: "check-icon" }, icon(symbol, 14)),
      h("div", {}, h("p", {}, check.name, h("span", { class: "visually-hidden" }, ` (${word})`)), check.detail && h("p", { class: "muted" }, prose(check.detail))));
  }));
}

function recheck(context, base) {
  const result = h("div", { "aria-live": "polite" });
  const go = button("Check again with today's keys", { symbol: "refresh", onclick: async () => {
    go.disabled = true;
    try {
      const answer = await api.post(`${base}/recheck`);
      replace(result, notice(answer.code ? "amber" : "good", answer.code ? `It would still fail, with code ${answer.code}.` : "It would pass today.",
        answer.note && h("p", {}, prose(answer.note))), checks(answer.checks));
    } catch (error) {
      if (error.name !== "AbortError") replace(result, problemNotice(error));
    }
    go.disabled = false;
  } });
  return h("div", { class: "recheck" }, go, result);
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));
}

function json(value) {
  return h("pre", { class: "json", tabindex: 0 }, h("code", {}, JSON.stringify(value, null, 2)));
}

function times(claims, at) {
  const rows = ["exp", "nbf", "iat"].filter((name) => Number.isFinite(claims[name])).map((name) => {
    const moment = claims[name] * 1000;
    return [name, `${dateTime(moment)}, ${ago(moment, at).replace(" ago", " before the request").replace(/^in (.*)$/, "$1 after the request")}`];
  });
  return rows.length > 0 && facts(rows);
}

/** A list of failed requests with links to their details. */
export function sampleTable(app, items, context) {
  const where = (item) => `#${path("apps", app.id, "samples", item.id)}`;
  return table("Failed requests, newest first", [
    { title: "Time", heading: true, cell: (item) => h("a", { href: where(item) }, dateTime(item.at_ms)) },
    { title: "Verdict", cell: (item) => verdictBadge(item.verdict) },
    { title: "Code", cell: (item) => h("span", { class: "code-cell" }, swatch(item.code), `${item.code} ${item.reason}`) },
    { title: "User", cell: (item) => stacked(h("span", { class: "mono clip tight", title: item.user }, item.user ?? "–"), item.client) },
    { title: "Endpoint", class: "extra", cell: (item) => h("span", { class: "mono clip", title: item.endpoint }, item.endpoint ?? "–") },
    { title: "App version", class: "spare", cell: (item) => stacked(item.app_version ?? "–", item.sdk) },
  ], items, { onrow: (item) => context.go(where(item)), lines: true });
}
