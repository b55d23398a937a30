// Failures: causes, frequency and history.

import { h, prose, replace, announce } from "./dom.js";
import { api, path, address } from "./api.js";
import { preferences, prefer } from "./preferences.js";
import { FailureChart } from "./chart.js";
import { codesIn, countOf, failuresOf, rateOf } from "./counts.js";
import { about, remedy, swatch, reason } from "./codes.js";
import { MINUTE, HOUR, DAY, number, percent, plural, dateTime, bucketName, toInput, fromInput, zoneName, ago, clock } from "./format.js";
import { button, card, emptyState, field, segmented, stateBadge, table, toggle, problemNotice } from "./ui.js";
import { pagedView, view } from "./views.js";
import { icon } from "./icons.js";
import { sampleTable } from "./sample.js";

const presets = { "15m": 15 * MINUTE, "1h": HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "90d": 90 * DAY };
const presetNames = [["15m", "15 m"], ["1h", "1 h"], ["24h", "24 h"], ["7d", "7 d"], ["30d", "30 d"], ["90d", "90 d"], ["custom", "Custom"]];
const CHANGES = 12;
const dimensions = [["app_version", "App version"], ["sdk", "SDK"], ["endpoint", "Endpoint"], ["mode", "Mode"], ["key", "Key"]];

export function failures(context) {
  const { app, query, body, signal } = context;
  const base = path("apps", app.id);
  const state = {
    range: presets[query.get("range")] || query.get("range") === "custom" ? query.get("range") : "24h",
    from: Number(query.get("from")) || null, to: Number(query.get("to")) || null,
    code: Number(query.get("code")) || null, at: Number(query.get("at")) || null, until: Number(query.get("until")) || null,
    filters: Object.fromEntries(dimensions.map(([name]) => [name, query.get(name) || ""])),
    compare: query.get("compare") === "1", mode: query.get("view") === "table" ? "table" : "chart",
    hidden: new Set((query.get("hide") ?? "").split(",").filter(Boolean).map(Number)),
    top: dimensions.some(([name]) => name === query.get("by")) ? query.get("by") : "app_version", allChanges: query.get("changes") === "all",
  };
  if (state.range === "custom" && !(state.from && state.to > state.from)) state.range = "24h";

  const chart = new FailureChart((bucket, code) => drill({ code: code ?? state.code, at: bucket.from, until: bucket.to }, true), zoom, signal);
  const content = h("div", { class: "stack" });
  const stats = h("div", { class: "stats" });
  const stage = h("div", { class: "stage" });
  const keys = h("div", { class: "chart-legend", "aria-hidden": "true" });
  const legend = h("div", {});
  const changes = h("div", {});
  const tops = h("div", {});
  const topsTitle = h("h2", { class: "card-title" }, "Where failures come from");
  const samples = h("section", { class: "card", id: "samples", "aria-labelledby": "samples-title" });
  let latest = null;
  let sampleList = null;

  function span() {
    if (state.range === "custom") return { from: state.from, to: state.to };
    const now = Date.now();
    return { from: now - presets[state.range], to: now };
  }

  function parameters() {
    const { from, to } = span();
    return { from_ms: from, to_ms: to, bucket: "auto", ...state.filters };
  }

  function remember(push = false) {
    // The user is navigating to another screen. Its URL must not change.
    if (location.hash !== `#${base}` && !location.hash.startsWith(`#${base}/failures`)) return;
    const pairs = new URLSearchParams({ range: state.range });
    if (state.range === "custom") { pairs.set("from", state.from); pairs.set("to", state.to); }
    for (const [name, value] of Object.entries(state.filters)) if (value) pairs.set(name, value);
    if (state.code) pairs.set("code", state.code);
    if (state.at) { pairs.set("at", state.at); pairs.set("until", state.until); }
    if (state.compare) pairs.set("compare", "1");
    if (state.mode === "table") pairs.set("view", "table");
    if (state.hidden.size > 0) pairs.set("hide", [...state.hidden].join(","));
    if (state.top !== "app_version") pairs.set("by", state.top);
    if (state.allChanges) pairs.set("changes", "all");
    history[push ? "pushState" : "replaceState"](null, "", `#${base}/failures?${pairs}`);
  }

  async function fetchAll(abort) {
    const asked = parameters();
    const [data, top] = await Promise.all([api.get(`${base}/analytics`, asked, abort), fetchTop(abort)]);
    let before = null;
    if (state.compare) {
      const length = data.to_ms - data.from_ms;
      before = (await api.get(`${base}/analytics`, { ...asked, from_ms: data.from_ms - length, to_ms: data.from_ms, bucket: data.bucket }, abort)).buckets;
    }
    return { data, top, before };
  }

  /** Loads the main sources of failures, for the selected code if there is one. */
  async function fetchTop(abort) {
    const { top: by, code } = state;
    const { items } = await api.get(`${base}/analytics/top`, { ...parameters(), by, code }, abort);
    return { by, code, items };
  }

  async function reloadTop() {
    try {
      const top = await fetchTop(signal);
      if (latest) latest.top = top;
      drawTop(top);
    } catch (error) {
      if (error.name !== "AbortError") replace(tops, problemNotice(error, reloadTop));
    }
  }

  /** The selected code, or all codes that are not hidden. */
  function shownCodes(data) {
    return codesIn(data).filter((code) => (state.code ? code === state.code : !state.hidden.has(code)));
  }

  function draw({ data, top, before }) {
    latest = { data, top, before };
    const codes = shownCodes(data);
    drawStats(data, codes);
    const traffic = data.totals.accepted + data.totals.anonymous + data.totals.not_judged + failuresOf(data.totals, codesIn(data));
    if (traffic === 0) {
      replace(stage, emptyState("chart", "No requests in this range", app.last_request_ms
        ? `The last request of this app came ${ago(app.last_request_ms)}.` : "This app has not sent anything yet.",
        app.last_request_ms ? button("Show 90 days", { onclick: () => setRange("90d") })
          : h("a", { class: "button primary", href: `#${base}/start` }, "How to send the first event")));
    } else if (state.mode === "table") {
      replace(stage, numbers(data, codes));
    } else {
      if (!stage.contains(chart.element)) replace(stage, chart.element);
      chart.show(data, before, codes);
    }
    if (traffic === 0) replace(legend);
    else drawLegend(data);
    drawKeys(data, before, traffic > 0 && state.mode === "chart");
    drawChanges(data);
    drawTop(top);
    if (sampleList) sampleList.reload(true);
    else drill({ code: state.code, at: state.at, until: state.until }, false, false);
    return content.isConnected ? undefined : content;
  }

  /** The change since the previous period. `text` formats it, by default as a percentage. */
  function difference(now, then, better, text = (share) => percent(share)) {
    if (!(then > 0)) return null;
    const share = (now - then) / then;
    if (Math.abs(share) < 0.005) return h("span", { class: "delta" }, "as before");
    const tone = (share > 0) === (better === "up") ? "good" : "bad";
    return h("span", { class: `delta ${tone}` }, `${share > 0 ? "▲" : "▼"} ${text(Math.abs(share), Math.abs(now - then))}`,
      h("span", { class: "visually-hidden" }, " against the period before"));
  }

  function drawStats(data, codes) {
    const { totals, previous } = data;
    const failed = failuresOf(totals, codes);
    const rejected = codes.reduce((sum, code) => sum + (totals.codes?.[code]?.rejected ?? 0), 0);
    const rate = rateOf(totals, codes);
    const stat = (name, value, note, delta, tone) => h("div", { class: `stat ${tone ?? ""}` },
      h("dt", {}, name), h("dd", {}, h("span", { class: "stat-value" }, value), delta), note && h("dd", { class: "stat-note" }, note));
    const isPart = codes.length < codesIn(data).length;
    replace(stats, h("dl", {},
      stat(state.code ? `Failures with ${state.code} ${reason(state.code)}` : isPart ? "Failures with the shown codes" : "Failures in total", number(failed),
        `${number(rejected)} rejected, ${number(failed - rejected)} accepted with a warning, since ${dateTime(data.from_ms)}`,
        previous && difference(failed, failuresOf(previous, codes), "down"), failed > 0 ? "bad" : ""),
      stat("Failure rate", percent(rate ?? NaN), isPart ? "against those with a good token" : "of verified requests",
        previous && rate !== null && difference(rate, rateOf(previous, codes), "down", (_, points) => `${(points * 100).toFixed(1)} points`)),
      stat("Accepted", number(totals.accepted), "good tokens", previous && difference(totals.accepted, previous.accepted, "up")),
      stat("Anonymous", number(totals.anonymous), "no user, not checked", previous && difference(totals.anonymous, previous.anonymous, "up")),
      totals.not_judged > 0 && stat("Not checked", number(totals.not_judged), "while disabled")));
  }

  function numbers(data, codes) {
    const columns = [
      { title: `Time (${zoneName()})`, heading: true, cell: (bucket) => bucketName(bucket.start_ms, data.bucket) },
      { title: "Failures", class: "num", cell: (bucket) => number(failuresOf(bucket, codes)) },
      { title: "Failure rate", class: "num", cell: (bucket) => percent(rateOf(bucket, codes) ?? NaN) },
      ...codes.map((code) => ({ title: `${code} ${reason(code)}`, class: "num", cell: (bucket) => number(countOf(bucket, code)) })),
      { title: "Accepted", class: "num", cell: (bucket) => number(bucket.accepted) },
      { title: "Anonymous", class: "num", cell: (bucket) => number(bucket.anonymous) },
      { title: "Not checked", class: "num", cell: (bucket) => number(bucket.not_judged) },
    ];
    const element = table("Failures per bucket, the numbers of the chart", columns, [...data.buckets].reverse());
    element.classList.add("tall");
    element.querySelector("table").append(h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Total"),
      columns.slice(1).map((column) => h("td", { class: "num" }, column.cell(data.totals))))));
    return element;
  }

  /** The legend of the chart, for the shapes and colours in it. */
  function drawKeys(data, before, charted) {
    keys.hidden = !charted;
    if (!charted) return;
    const codes = shownCodes(data);
    const kinds = new Set((data.markers ?? []).map(({ kind }) => (String(kind).startsWith("key") ? "key" : kind === "policy" ? "policy" : "enforcement")));
    const last = data.buckets.at(-1);
    const unfinished = last && last.start_ms + { minute: MINUTE, hour: HOUR, day: DAY }[data.bucket] > data.now_ms;
    const key = (name, text) => h("span", { class: `key-${name}` }, text);
    replace(keys,
      codes.map((code) => h("span", { class: "key-code" }, swatch(code), `${code} ${reason(code)}`)),
      codes.length > 0 && key("rate", "failure rate"), before && key("before", "period before"),
      data.totals.accepted > 0 && key("accepted", "accepted"), data.totals.anonymous > 0 && key("anonymous", "anonymous"), data.totals.not_judged > 0 && key("checked", "not checked"),
      kinds.has("enforcement") && key("marker", "enforcement changed"), kinds.has("key") && key("marker key", "key changed"), kinds.has("policy") && key("marker policy", "policy changed"),
      unfinished && key("unfinished", "incomplete"));
  }

  /** Advice for a code, with a link to the screen where the app can be fixed. */
  function fixOf(code) {
    const there = remedy(code);
    return [prose(about(code)?.fix), there && context.can("operator") && [" ", h("a", { class: "button small", href: `#${path("apps", app.id, there.screen)}${there.query}` }, there.text)]];
  }

  function drawLegend(data) {
    const codes = codesIn(data);
    const all = failuresOf(data.totals, codes);
    if (codes.length === 0) {
      replace(legend, h("p", { class: "none-failed" }, icon("check", 18), h("strong", {}, "No failures"), ` in this range: ${data.totals.accepted > 0 ? "every verified request carried a good token." : "no request was verified."}`));
      return;
    }
    const rows = codes.map((code) => ({ code, count: countOf(data.totals, code) }))
      .sort((left, right) => right.count - left.count);
    replace(legend, table("Failures by code", [
      { title: "Code", heading: true, cell: (row) => h("div", { class: "legend-code" }, h("button", {
        type: "button", class: "legend-key", "aria-pressed": String(!state.hidden.has(row.code)), "data-focus": `legend-${row.code}`, "data-code": row.code,
        "aria-label": `Show ${row.code} ${reason(row.code)} in the chart`, onclick: () => {
          if (!state.hidden.delete(row.code)) state.hidden.add(row.code);
          remember();
          draw(latest);
          legend.querySelector(`[data-focus="legend-${row.code}"]`)?.focus();
        } }, swatch(row.code)),
      h("button", { type: "button", class: "link", "aria-pressed": String(state.code === row.code), onclick: () => drill({ code: row.code, at: null, until: null }, true) },
        h("strong", {}, row.code), " ", reason(row.code))) },
      { title: "Failures", class: "num", cell: (row) => number(row.count) },
      { title: "Share", class: "num", cell: (row) => percent(row.count / all) },
      { title: "Change", class: "num", cell: (row) => (data.previous ? difference(row.count, countOf(data.previous, row.code), "down") ?? "–" : "–") },
      { title: "What to do", class: "wide-text", cell: (row) => fixOf(row.code) },
    ], rows));
  }

  function drawChanges(data) {
    const markers = [...(data.markers ?? [])].reverse();
    const shown = state.allChanges ? markers : markers.slice(0, CHANGES);
    replace(changes, markers.length === 0 ? h("p", { class: "muted" }, "No key, rule or enforcement state changed in this range.")
      : [h("ol", { class: "changes" }, shown.map((marker) => h("li", {},
        h("span", { class: "change-icon" }, icon(String(marker.kind).startsWith("key") ? "key" : marker.kind === "policy" ? "policy" : "shield", 16)),
        h("div", {}, h("p", {}, marker.text), h("p", { class: "muted" }, dateTime(marker.at_ms), marker.by && ` · ${marker.by}`))))),
      h("div", { class: "pager" }, h("span", { class: "muted" }, shown.length < markers.length ? `${shown.length} of ${number(markers.length)}, newest first. ` : `${plural(markers.length, "change")}. `,
        h("a", { href: `#/audit?${new URLSearchParams({ app: app.id })}` }, "All in the audit log")),
      markers.length > CHANGES && button(state.allChanges ? "Show fewer" : `Show all ${number(markers.length)}`, { "data-focus": "changes", "aria-expanded": String(state.allChanges), onclick: () => {
        state.allChanges = !state.allChanges;
        remember();
        drawChanges(data);
        changes.querySelector("[data-focus=changes]").focus();
      } }))]);
  }

  function drawTop(top) {
    // Ignores an outdated result. The user has made another selection since the request.
    if (top.by !== state.top || top.code !== state.code) return;
    replace(topsTitle, top.code ? ["Where failures with ", swatch(top.code), ` ${top.code} ${reason(top.code)} come from`] : "Where failures come from");
    // With a code, only requests that failed with it are counted, so the table shows shares and not rates.
    const all = top.items.reduce((sum, item) => sum + item.failures, 0);
    const share = (item) => (top.code ? item.failures / all : item.verified ? item.failures / item.verified : NaN);
    replace(tops, top.items.length === 0 ? h("p", { class: "muted" }, "Nothing was sent in this range.")
      : table("Requests and failures", [
        { title: dimensions.find(([name]) => name === state.top)[1], heading: true, cell: (item) => h("button", {
          type: "button", class: "link", title: "Filter by this", onclick: () => setFilter(state.top, item.value) }, item.value || "(unknown)") },
        !top.code && { title: "Verified requests", class: "num", cell: (item) => number(item.verified) },
        { title: "Failures", class: "num", cell: (item) => number(item.failures) },
        { title: top.code ? "Share" : "Failure rate", class: "num", cell: (item) => percent(share(item)) },
        { title: "", class: "meter-cell", cell: (item) => h("meter", { min: 0, max: 1, value: share(item) || 0, "aria-label": `${top.code ? "Share" : "Failure rate"} of ${item.value || "unknown"}` }) },
      ].filter(Boolean), top.items));
  }

  /** Shows the stored requests with a code, in a bucket, or both. */
  function drill({ code, at, until }, jump, push = jump) {
    const other = state.code !== code;
    state.code = code;
    state.at = at;
    state.until = until;
    remember(push);
    const title = h("h2", { class: "card-title", id: "samples-title", tabindex: -1 }, "Failed requests");
    const chips = h("div", { class: "chips" },
      code ? chip(`${code} ${reason(code)}`, () => drill({ code: null, at, until }, true)) : h("span", { class: "muted" }, "every code"),
      at ? chip(`${dateTime(at)} to ${clock(until)}`, () => drill({ code, at: null, until: null }, true)) : h("span", { class: "muted" }, "whole range"));
    const explain = about(code);
    let isNew = jump;
    let range;
    sampleList = pagedView(context, (cursor, abort) => {
      if (!cursor) range = at ? { from: at, to: until } : span();
      return api.get(`${base}/samples`, { code, from_ms: range.from, to_ms: range.to, cursor, limit: 25 }, abort);
    }, (items) => {
      if (isNew) announce(`${plural(items.length, "failed request")} listed`);
      isNew = false;
      return sampleTable(app, items, context);
    }, emptyState("check", "No failed requests", "Only the latest requests of each code are stored."));
    replace(samples, h("div", { class: "card-head" }, title, chips),
      explain && h("div", { class: "fix" }, swatch(code), h("div", {}, h("p", {}, h("strong", {}, explain.title)), h("p", {}, fixOf(code)))), sampleList.element);
    if (jump) {
      title.focus({ preventScroll: true });
      samples.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    }
    samples.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      drill({ code: null, at: null, until: null }, false, true);
      if (stage.contains(chart.element)) {
        chart.element.scrollIntoView({ block: "center" });
        chart.focus();
      }
    };
    if (other) {
      filterBar();
      if (latest) draw(latest);
      reloadTop();
    }
  }

  function chip(text, remove) {
    return h("span", { class: "chip" }, text, h("button", { type: "button", "aria-label": `Remove the filter ${text}`, onclick: remove }, icon("close", 12)));
  }

  /** Shows a part of the time range, with a chip for returning. */
  function zoom(from, to) {
    remember(true);
    state.zoomedFrom ??= state.range === "custom" ? null : state.range;
    Object.assign(state, { from, to: Math.min(to, Date.now()) });
    setRange("custom");
    filterBar();
  }

  function setRange(range) {
    if (range !== "custom") state.zoomedFrom = null;
    state.range = range;
    state.at = null;
    rangeBar();
    remember();
    if (range !== "custom" || state.from) { main.reload(); drill({ code: state.code, at: null, until: null }, false); }
  }

  function setFilter(name, value) {
    state.filters[name] = value;
    remember();
    main.reload();
    filterBar();
  }

  const ranges = h("div", { class: "toolbar" });
  const custom = h("div", {});
  function rangeBar() {
    const zone = segmented("Time zone", [["local", "Local", zoneName()], ["utc", "UTC"]], preferences.zone, (value) => prefer("zone", value));
    replace(ranges, segmented("Range", presetNames, state.range, (value) => {
      if (value === "custom") { const { from, to } = span(); state.from = from; state.to = to; }
      setRange(value);
    }), zone, toggle("Compare with the period before", state.compare, (on) => { state.compare = on; remember(); main.reload(); }));
    if (state.range !== "custom") return replace(custom);
    const from = h("input", { type: "datetime-local", value: toInput(state.from), max: toInput(Date.now()) });
    const to = h("input", { type: "datetime-local", value: toInput(state.to) });
    const trouble = h("p", { class: "hint bad", role: "alert" });
    replace(custom, h("form", { class: "inline-form loose", onsubmit: (event) => {
      event.preventDefault();
      const start = fromInput(from.value);
      const end = fromInput(to.value);
      if (!start || !end || end <= start) return replace(trouble, "The end must come after the start.");
      if (end - start > 731 * DAY) return replace(trouble, "At most two years can be shown at once.");
      replace(trouble);
      state.from = start;
      state.to = end;
      setRange("custom");
    } }, field(`From (${zoneName()})`, from), field(`To (${zoneName()})`, to), h("button", { class: "button primary", type: "submit" }, "Apply"), trouble));
  }

  const filters = h("div", { class: "chips" });
  function filterBar() {
    const active = dimensions.filter(([name]) => state.filters[name]);
    replace(filters, state.code && chip(`${state.code} ${reason(state.code)}`, () => drill({ code: null, at: state.at, until: state.until }, false, true)),
      state.zoomedFrom && chip(`Part of the ${presetNames.find(([name]) => name === state.zoomedFrom)[1]}`, () => { setRange(state.zoomedFrom); filterBar(); }),
      active.map(([name, label]) => chip(`${label}: ${state.filters[name]}`, () => setFilter(name, ""))));
  }

  rangeBar();
  filterBar();
  const every = state.range === "15m" ? 5_000 : 10_000;
  const main = view(context, fetchAll, draw, { every, bones: 8 });
  replace(content,
    stats,
    h("section", { class: "card chart-card", "aria-label": "Chart" },
      h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Failures over time"), filters,
        segmented("View", [["chart", "Chart"], ["table", "Table"]], state.mode, (mode) => { state.mode = mode; remember(); if (latest) draw(latest); }),
        exportMenu()),
      keys, stage, legend),
    h("div", { class: "split" },
      card(null, topsTitle, h("div", { class: "card-tabs" }, segmented("Break down by", dimensions, state.top, (value) => { state.top = value; remember(); reloadTop(); })), tops),
      card("Changes", changes)),
    samples);

  function exportMenu() {
    const csv = h("a", { class: "button plain", download: `failures-${app.id}.csv`, href: "#" }, icon("down", 16), h("span", {}, "CSV"));
    csv.addEventListener("click", () => { csv.href = address(`${base}/analytics/export`, { ...parameters(), format: "csv" }); });
    csv.href = address(`${base}/analytics/export`, { ...parameters(), format: "csv" });
    return csv;
  }

  replace(body, app.enforcement === "disabled" && h("p", { class: "strip" }, stateBadge("disabled"),
    " Tokens of this app are not checked, so no failure is counted. ", h("a", { href: `#${base}/enforcement` }, "Choose Optional to measure without rejecting")),
  ranges, custom, main.element);
}
