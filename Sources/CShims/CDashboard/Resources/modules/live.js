// Live verification results, by server-sent events. After a disconnect, the browser resumes from the last
// event id.

import { h, replace, announce } from "./dom.js";
import { address, api, path } from "./api.js";
import { everyCode, reason, swatch } from "./codes.js";
import { clock, dateTime, number, plural } from "./format.js";
import { dialog } from "./dialogs.js";
import { icon } from "./icons.js";
import { carry, remember, shareable } from "./address.js";
import { facts } from "./sample.js";
import { badge, button, copy, countdown, emptyState, field, notice, problemNotice, select, stacked, stateBadge, verdictBadge } from "./ui.js";

const LIMIT = 300;
/** The number of earlier requests that are shown at first. */
const EARLIER = 50;
/** The result of a request, by the verification result of its events. */
const ofEvent = { verified: "accepted", server: "accepted", warned: "warned", anonymous: "anonymous", not_judged: "not_judged" };

export function live(context) {
  const { app, body, query, signal } = context;
  let source = null;
  let paused = false;
  let held = [];
  let seen = 0;
  let tries = 0;
  let oneIn = 1;
  const filter = { code: query.get("code") ?? "", user: query.get("user") ?? "", verdict: query.get("verdict") ?? "" };

  const status = h("p", { class: "live-status", role: "status" });
  const hints = h("div", {});
  const before = h("div", {});
  const rows = h("tbody", {});
  const empty = emptyState("live", "Waiting for requests", "Each request of this app appears here as it is checked. Send one to see it.", h("a", { class: "button plain", href: `#${path("apps", app.id, "start")}` }, "How to send the first event"));
  const head = ["Time", "Verdict", "Code", "User", "App version", "Endpoint"];
  const list = h("div", { class: "table-scroll tall", tabindex: 0, role: "region", "aria-label": "Requests, newest first", hidden: true },
    h("table", { class: "live-table" }, h("caption", { class: "visually-hidden" }, "Requests, newest first"),
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))), rows));

  function say(tone, text) {
    replace(status, h("span", { class: `pulse ${tone}`, "aria-hidden": "true" }), text);
  }

  function sayHow() {
    if (paused) say("wait", "Paused; new requests are kept");
    else say("on", oneIn > 1 ? `Live: sampled, one request in ${number(oneIn)} is shown` : "Live: complete, every request is shown");
  }

  function connect() {
    source?.close();
    say("wait", "Connecting");
    source = new EventSource(address("/live", { app: app.id, code: filter.code, user: filter.user }));
    source.addEventListener("open", () => { tries = 0; sayHow(); context.asOf(Date.now()); });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        say("off", "The gateway closed the stream.");
        const again = () => { replace(hints); take({ kind: "gap", item: { missed: null } }); connect(); };
        const wait = Math.min(30_000, 1000 * 2 ** tries);
        tries += 1;
        replace(hints, notice("bad", "The live tail stopped.", h("p", {}, countdown("Connecting again in", Date.now() + wait, again), " ", button("Connect now", { kind: "small", onclick: again }))));
      } else {
        say("wait", "The connection was lost; reconnecting, without a gap if the gateway still has the missed requests.");
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

  /**
   * The last requests before this page was opened, newest first: stored ones by their events, failed ones by
   * their samples.
   */
  async function earlier() {
    const asked = { user: filter.user, limit: EARLIER };
    const base = path("apps", app.id);
    const [events, samples] = await Promise.all([api.get(`${base}/events`, asked, signal), filter.user ? { items: [] } : api.get(`${base}/samples`, { limit: EARLIER, code: filter.code }, signal)]);
    const found = new Map();
    for (const event of events.items) {
      const verdict = ofEvent[event.verdict];
      if (!verdict || found.has(event.request_id ?? event.seq)) continue;
      found.set(event.request_id ?? event.seq, {
        at_ms: event.received_ms, verdict, code: event.code, user: event.user_id ?? event.anonymous_id, request_id: event.request_id, enforcement: event.enforcement,
        app_version: [event.body?.context?.app?.version].find((text) => typeof text === "string")?.slice(0, 64), sdk: null, client: null, endpoint: null, sample_id: null,
      });
    }
    for (const sample of samples.items) found.set(sample.request_id ?? sample.id, { ...found.get(sample.request_id), ...sample, sample_id: sample.id });
    return [...found.values()].filter((item) => (!filter.verdict || item.verdict === filter.verdict) && (!filter.code || String(item.code ?? "") === filter.code))
      .sort((one, two) => two.at_ms - one.at_ms).slice(0, EARLIER);
  }

  async function prefill() {
    replace(before);
    try {
      const items = await earlier();
      if (signal.aborted) return;
      const known = new Set([...rows.children].map((row) => row.dataset.request).concat(held.map((entry) => entry.item?.request_id)));
      const fresh = items.filter((item) => !item.request_id || !known.has(item.request_id));
      if (fresh.length === 0) return;
      list.hidden = false;
      empty.hidden = true;
      rows.append(h("tr", { class: "earlier" }, h("td", { colspan: head.length }, "Before you opened this page")), ...fresh.map((item) => row(item)));
    } catch (error) {
      // The live results work without the earlier ones.
      if (error.name !== "AbortError") replace(before, problemNotice(error, prefill));
    }
  }

  function row(item) {
    const known = item.code !== null && item.code !== undefined;
    const time = clock(item.at_ms);
    const where = item.sample_id && `#${path("apps", app.id, "samples", item.sample_id)}`;
    const open = () => (where ? context.go(where) : detail(item));
    return h("tr", { class: "openable", "data-request": item.request_id, onclick: (event) => { if (!event.target.closest("a, button")) open(); } },
      h("th", { scope: "row", class: "mono" }, where ? h("a", { href: where }, time) : h("button", { type: "button", class: "link", onclick: open }, time)),
      h("td", {}, verdictBadge(item.verdict)),
      h("td", {}, known ? h("span", { class: "code-cell" }, swatch(item.code), `${item.code} ${item.reason ?? reason(item.code)}`) : "–"),
      h("td", {}, stacked(h("span", { class: "mono clip tight", title: item.user }, item.user ?? "–"), item.client)), h("td", {}, stacked(item.app_version ?? "–", item.sdk)),
      h("td", { class: "mono", title: item.endpoint ? undefined : "Not stored with an event" }, item.endpoint ?? "–"));
  }

  /** Shows a request for which no sample is stored. */
  function detail(item) {
    dialog("Request", () => h("div", { class: "stack" },
      facts([
        ["Verdict", verdictBadge(item.verdict)], ["Time", dateTime(item.at_ms)], ["User", item.user && h("span", { class: "mono wrap" }, item.user)],
        ["Code", item.code && `${item.code} ${reason(item.code)}`], ["Enforcement at that time", item.enforcement && stateBadge(item.enforcement)],
        ["Endpoint", item.endpoint], ["App version", item.app_version], ["SDK", item.sdk], ["Address (truncated)", item.client],
        ["Request id", item.request_id && h("span", { class: "mono wrap" }, item.request_id)],
      ].filter(([, value]) => value)),
      h("div", { class: "actions" },
        item.user && item.verdict !== "anonymous" && h("a", { class: "button plain", href: `#${path("apps", app.id, "events")}${shareable(item.user) ? `?user=${item.user}` : ""}`, onclick: () => carry(path("apps", app.id, "events"), { user: item.user }) }, "Events of this user"),
        item.request_id && button("Copy the request id", { symbol: "copy", onclick: () => copy(item.request_id) }))));
  }

  function show({ kind, item }) {
    list.hidden = false;
    empty.hidden = true;
    if (kind === "gap") {
      rows.prepend(h("tr", { class: "gap" }, h("td", { colspan: head.length }, Number.isFinite(item.missed)
        ? `${plural(item.missed, "request")} missed here: the gateway no longer had ${item.missed === 1 ? "it" : "them"}.`
        : "The connection was lost here: it is unknown how many requests were missed.")));
      announce("There is a gap in the live tail.");
    } else {
      // The request may already be shown as an earlier one.
      if (item.request_id && rows.querySelector(`[data-request="${CSS.escape(item.request_id)}"]`)) return;
      seen += 1;
      const fresh = row(item);
      fresh.classList.add("fresh");
      rows.prepend(fresh);
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
  const user = h("input", { type: "search", value: filter.user, placeholder: context.can("operator") ? "user id or pseudonym" : "pseudonym", spellcheck: "false", autocomplete: "off", "data-search": true });
  const code = select([["", "every code"], ...everyCode().map((value) => [value, `${value} ${reason(value)}`])], filter.code);
  const verdict = select([["", "every verdict"], ["accepted", "Accepted"], ["warned", "Accepted, warned"], ["rejected", "Rejected"], ["anonymous", "Anonymous"]], filter.verdict);
  function apply() {
    Object.assign(filter, { code: code.value, user: user.value.trim(), verdict: verdict.value });
    remember(path("apps", app.id, "live"), { ...filter, user: shareable(filter.user) });
    rows.replaceChildren();
    list.hidden = true;
    empty.hidden = false;
    connect();
    prefill();
  }
  code.addEventListener("change", apply);
  verdict.addEventListener("change", apply);

  replace(body,
    h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); apply(); } },
      field("Verdict", verdict), field("Code", code), field("User", user), h("button", { type: "submit", class: "button plain" }, "Filter"),
      h("div", { class: "push" }, pause, button("Clear", { onclick: () => { rows.replaceChildren(); list.hidden = true; empty.hidden = false; } }))),
    h("div", { class: "live-head" }, status, badge(app.name || app.id), count), hints, before,
    h("section", { class: "card flush", "aria-label": "Live tail" }, empty, list));
  context.refresh = connect;
  connect();
  prefill();
  signal.addEventListener("abort", () => source?.close());
}
