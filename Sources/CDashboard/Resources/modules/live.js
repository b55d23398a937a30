// Every verdict as it is made, by server-sent events. The browser resumes on its own with the last id that it saw.

import { h, replace, announce } from "./dom.js";
import { address, api, path } from "./api.js";
import { everyCode, reason, swatch } from "./codes.js";
import { clock, number, plural } from "./format.js";
import { icon } from "./icons.js";
import { userIDs } from "./userids.js";
import { badge, button, emptyState, field, notice, select, stacked, verdictBadge } from "./ui.js";

const LIMIT = 300;

export function live(context) {
  const { app, body, query, signal } = context;
  let source = null;
  let paused = false;
  let held = [];
  let seen = 0;
  let oneIn = 1;
  const filter = { code: query.get("code") ?? "", user: query.get("user") ?? "", verdict: query.get("verdict") ?? "" };

  const ids = userIDs(context, () => apply());
  const status = h("p", { class: "live-status", role: "status" });
  const hints = h("div", {});
  const rows = h("tbody", {});
  const empty = emptyState("live", "Waiting for requests", "Each request of this app appears here as it is checked. Send one to see it.");
  const head = ["Time", "Verdict", "Code", "User", "App version", "Endpoint"];
  const list = h("div", { class: "table-scroll tall", tabindex: 0, role: "region", "aria-label": "Requests, the newest first", hidden: true },
    h("table", { class: "live-table" }, h("caption", { class: "visually-hidden" }, "Requests, the newest first"),
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))), rows));

  function say(tone, text) {
    replace(status, h("span", { class: `pulse ${tone}`, "aria-hidden": "true" }), text);
  }

  function sayHow() {
    if (paused) say("wait", "Paused; what comes in is kept");
    else say("on", oneIn > 1 ? `Live: sampled, one request in ${number(oneIn)} is shown` : "Live: complete, every request is shown");
  }

  function connect() {
    source?.close();
    say("wait", "Connecting");
    source = new EventSource(address("/live", { app: app.id, code: filter.code, user: filter.user, ...ids.parameters }));
    source.addEventListener("open", () => { sayHow(); context.asOf(Date.now()); });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        say("off", "The gateway closed the stream.");
        replace(hints, notice("bad", "The live tail stopped.", h("p", {}, button("Connect again", { symbol: "refresh", onclick: () => { replace(hints); connect(); } }))));
        api.get("/session").catch(() => {});
      } else {
        say("wait", "The connection was lost; connecting again, without a gap if the gateway still has what was missed.");
      }
    });
    source.addEventListener("verdict", (event) => { context.asOf(Date.now()); take({ kind: "verdict", item: parse(event.data) }); });
    source.addEventListener("gap", (event) => take({ kind: "gap", item: parse(event.data) }));
    source.addEventListener("sampling", (event) => {
      oneIn = Number(parse(event.data)?.one_in) || 1;
      sayHow();
    });
    source.addEventListener("ping", () => context.asOf(Date.now()));
  }

  function parse(text) {
    try { return JSON.parse(text); } catch { return null; }
  }

  function take(entry) {
    if (!entry.item) return;
    if (entry.kind === "verdict" && filter.verdict && entry.item.verdict !== filter.verdict) return;
    if (paused) {
      held.push(entry);
      if (held.length > LIMIT) held.shift();
      replace(pause, icon("play", 16), h("span", {}, `Continue (${number(held.length)}${held.length === LIMIT ? "+" : ""} new)`));
      return;
    }
    show(entry);
  }

  function show({ kind, item }) {
    list.hidden = false;
    empty.hidden = true;
    if (kind === "gap") {
      rows.prepend(h("tr", { class: "gap" }, h("td", { colspan: head.length }, Number.isFinite(item.missed)
        ? `${plural(item.missed, "request")} missed here: the gateway no longer had ${item.missed === 1 ? "it" : "them"}.`
        : "The gateway was started again here: nobody knows how many requests were missed.")));
      announce("There is a gap in the live tail.");
    } else {
      seen += 1;
      const known = item.code !== null && item.code !== undefined;
      const time = clock(item.at_ms);
      rows.prepend(h("tr", { class: "fresh" },
        h("th", { scope: "row", class: "mono" }, item.sample_id ? h("a", { href: `#${path("apps", app.id, "samples", item.sample_id)}` }, time) : time),
        h("td", {}, verdictBadge(item.verdict)),
        h("td", {}, known ? h("span", { class: "code-cell" }, swatch(item.code), `${item.code} ${item.reason ?? reason(item.code)}`) : "–"),
        h("td", {}, stacked(h("span", { class: "mono" }, item.user ?? "–"), item.client)), h("td", {}, stacked(item.app_version ?? "–", item.sdk)),
        h("td", { class: "mono" }, item.endpoint ?? "–")));
    }
    while (rows.children.length > LIMIT) rows.lastElementChild.remove();
    replace(count, `${plural(seen, "request")} since you opened this page`, seen > LIMIT && `, the newest ${LIMIT} are shown`);
  }

  const count = h("span", { class: "muted" });
  const pause = button("Pause", { symbol: "pause", onclick: () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) {
      replace(pause, icon("play", 16), h("span", {}, "Continue"));
    } else {
      replace(pause, icon("pause", 16), h("span", {}, "Pause"));
      for (const entry of held) show(entry);
      held = [];
    }
    sayHow();
  } });
  const user = h("input", { type: "search", value: filter.user, placeholder: "user id or pseudonym", spellcheck: "false", autocomplete: "off", "data-search": true });
  const code = select([["", "every code"], ...everyCode().map((value) => [value, `${value} ${reason(value)}`])], filter.code);
  const verdict = select([["", "every verdict"], ["accepted", "Accepted"], ["warned", "Accepted, warned"], ["rejected", "Rejected"], ["anonymous", "Anonymous"]], filter.verdict);
  function apply() {
    Object.assign(filter, { code: code.value, user: user.value.trim(), verdict: verdict.value });
    const pairs = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    history.replaceState(null, "", `#${path("apps", app.id, "live")}${pairs.size ? `?${pairs}` : ""}`);
    rows.replaceChildren();
    list.hidden = true;
    empty.hidden = false;
    connect();
  }
  code.addEventListener("change", apply);
  verdict.addEventListener("change", apply);

  replace(body,
    h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); apply(); } },
      field("Verdict", verdict), field("Code", code), field("User", user), h("button", { type: "submit", class: "button plain" }, "Filter"),
      h("div", { class: "push" }, ids.control, pause, button("Clear", { onclick: () => { rows.replaceChildren(); list.hidden = true; empty.hidden = false; } }))),
    h("div", { class: "live-head" }, status, badge(app.name || app.id), count), hints,
    h("section", { class: "card flush", "aria-label": "Live tail" }, empty, list));
  context.refresh = connect;
  connect();
  signal.addEventListener("abort", () => source?.close());
}
