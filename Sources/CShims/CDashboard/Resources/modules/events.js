// Stored events: search, view, export.

import { h, replace } from "./dom.js";
import { address, api, path } from "./api.js";
import { remember, shareable } from "./address.js";
import { reason } from "./codes.js";
import { dateTime, fromInput, toInput, zoneName } from "./format.js";
import { dialog } from "./dialogs.js";
import { badge, button, copy, emptyState, exportLink, field, notice, select, stateBadge, table } from "./ui.js";
import { pagedView } from "./views.js";
import { facts } from "./sample.js";
import { consumers } from "./consumers.js";
import { files, streams } from "./ways.js";

/** The name, colour and meaning of each verification result. */
const VERDICTS = {
  verified: ["Verified", "good", "A valid token proves that this user's device sent it."],
  server: ["Server", "good", "Your own backend sent it, with the token of an OAuth client."],
  warned: ["Warned", "amber", "Its token was missing or invalid: anybody may have sent it in this user's name."],
  not_judged: ["Not checked", "neutral", "Tokens were not checked when it arrived: anybody may have sent it in this user's name."],
  anonymous: ["Anonymous", "neutral", "It names no user, so there was nothing to verify."],
  unknown: ["Unknown", "neutral", "It was stored by a version that did not record verdicts."],
};
export const TYPES = ["track", "identify", "page", "screen", "group", "alias", "location"];
const NAMES = ["user", "message_id", "request_id", "name", "type", "verdict", "claim"];

export function events(context) {
  const { app, body, query, signal } = context;
  const base = path("apps", app.id, "events");
  const operator = context.can("operator");
  const text = (name, rest = {}) => h("input", { type: "search", value: query.get(name) ?? "", spellcheck: "false", autocomplete: "off", ...rest });
  const time = (name) => h("input", { type: "datetime-local", value: Number(query.get(name)) ? toInput(Number(query.get(name))) : "" });
  const inputs = {
    user: text("user", { "data-search": true, placeholder: operator ? "id or pseudonym" : "pseudonym" }), name: text("name"),
    type: select([["", "Any"], ...TYPES.map((word) => [word, word])], query.get("type") ?? ""),
    verdict: select([["", "Any"], ["unverified", "Unverified"], ...Object.entries(VERDICTS).map(([value, [label]]) => [value, label])], query.get("verdict") ?? ""),
    message_id: text("message_id"), request_id: text("request_id"), claim: text("claim", { placeholder: "name=value" }),
  };
  const from = time("from_ms");
  const to = time("to_ms");
  const filter = () => ({
    ...Object.fromEntries(NAMES.map((name) => [name, inputs[name].value.trim()])), from_ms: fromInput(from.value), to_ms: fromInput(to.value),
  });
  const place = h("div", {});
  const trouble = h("p", { class: "hint bad", role: "alert", hidden: true });
  const csv = exportLink(`events-${app.id}`, "csv");
  const ndjson = exportLink(`events-${app.id}`, "ndjson");
  let opened = query.get("event");

  function search() {
    const chosen = filter();
    const backwards = chosen.from_ms && chosen.to_ms && chosen.to_ms <= chosen.from_ms;
    replace(trouble, backwards && "The end must come after the start.");
    trouble.hidden = !backwards;
    if (backwards) return;
    remember(base, { ...chosen, user: shareable(chosen.user), event: opened });
    csv.href = address(`${base}/export`, { ...chosen, format: "csv" });
    ndjson.href = address(`${base}/export`, { ...chosen, format: "ndjson" });
    const filtered = Object.values(chosen).some(Boolean);
    const part = pagedView(context, (cursor, abort) => api.get(base, { ...chosen, cursor, limit: 50 }, abort),
      (items) => table("Events, newest first", [
        { title: "Received", heading: true, cell: (item) => h("button", { type: "button", class: "link", onclick: () => show(item) }, dateTime(item.received_ms)) },
        { title: "Verdict", cell: (item) => verdictOf(item) },
        { title: "Name", cell: (item) => h("span", { class: "clip short", title: item.name }, item.name ?? "–") }, { title: "Type", class: "spare", cell: (item) => item.type },
        { title: "User", cell: (item) => h("span", { class: "mono clip tight", title: item.user_id ?? item.anonymous_id }, item.user_id ?? item.anonymous_id ?? "–") },
        { title: "Message id", class: "extra", cell: (item) => h("span", { class: "mono clip", title: item.message_id }, item.message_id) },
      ], items, { onrow: show, lines: true }),
      filtered ? emptyState("events", "No event matches", "Change the search, or show all events.", button("Show all events", { onclick: clear }))
        : emptyState("events", "No events yet", "Events appear here as soon as they are stored.", h("a", { class: "button plain", href: `#${path("apps", app.id, "start")}` }, "How to send the first event")));
    replace(place, part.element);
  }

  function clear() {
    for (const input of [...Object.values(inputs), from, to]) input.value = "";
    search();
  }

  function verdictOf(item) {
    const [label, tone, meaning] = VERDICTS[item.verdict] ?? [item.verdict];
    const element = badge(label, tone);
    element.title = meaning ?? "";
    return element;
  }

  /** Opens an event and puts its position into the URL, so that it can be shared. */
  async function show(item) {
    opened = item.position;
    remember(base, { ...filter(), user: shareable(user.value.trim()), event: opened });
    const { body: event, ...rest } = item;
    const json = event !== null && JSON.stringify(event, null, 2);
    const [, tone, meaning] = VERDICTS[item.verdict] ?? [];
    const mono = (value) => value && h("span", { class: "mono wrap" }, value);
    await dialog(item.name || item.type || "Event", (close) => h("div", { class: "stack" },
      meaning && notice(tone === "neutral" ? "" : tone, meaning),
      facts([
        ["Verdict", verdictOf(item)], ["Received", dateTime(item.received_ms)], ["Sent by the device", dateTime(item.timestamp_ms)],
        ["Type", item.type], ["User", mono(item.user_id)], ["Anonymous id", mono(item.anonymous_id)],
        ["Code", item.code && `${item.code} ${reason(item.code)}`], ["Enforcement at that time", item.enforcement && stateBadge(item.enforcement)],
        ["Key", mono(item.key_id)], ["Token id", mono(item.token_id)], ["Request id", mono(item.request_id)], ["Message id", mono(item.message_id)],
        ...Object.entries(item.claims ?? {}).map(([name, value]) => [`Claim ${name}`, mono(String(value))]),
        ["Number", String(item.seq)], ["Position", mono(item.position)], ["Dialect", item.dialect],
      ].filter(([, value]) => value)),
      h("div", { class: "actions" },
        item.user_id && button("All events of this user", { onclick: () => { close(); clearAll({ user: item.user_id }); } }),
        item.code && h("a", { class: "button plain", href: `#${path("apps", app.id, "failures")}?range=7d&code=${item.code}` }, "Failures with this code"),
        json && button("Copy the event", { symbol: "copy", onclick: () => copy(JSON.stringify({ ...rest, body: event }, null, 2)) }),
        button("Copy the link", { symbol: "copy", onclick: () => copy(`${location.origin}${location.pathname}#${base}?${new URLSearchParams({ event: item.position })}`) })),
      json && h("pre", { class: "json", tabindex: 0 }, h("code", {}, json))), { wide: true });
    opened = null;
    if (!signal.aborted) remember(base, { ...filter(), user: shareable(user.value.trim()) });
  }

  function clearAll(values) {
    for (const [name, input] of Object.entries(inputs)) input.value = values[name] ?? "";
    from.value = to.value = "";
    search();
  }

  /** Opens the event at the position in the page's address. */
  async function open(position) {
    let event;
    try {
      event = await api.get(`${base}${path(position)}`, {}, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      opened = null;
      if (error.code === "position_malformed") {
        // A link of an earlier version has a message id, which events of several users may share.
        clearAll({ message_id: position });
      } else if (error.status === 404 || error.code.startsWith("position_")) {
        search();
        await dialog("Event not found", () => h("p", {}, error.status === 404 ? "The event was deleted, by retention or at a customer's request." : error.message));
      } else {
        search();
      }
      return;
    }
    await show(event);
  }

  for (const input of [inputs.type, inputs.verdict, from, to]) input.addEventListener("change", () => search());
  const { user, name, type, verdict, message_id: message, request_id: request } = inputs;
  replace(body, h("form", { class: "toolbar", onsubmit: (event) => { event.preventDefault(); search(); } },
    field("User", user), operator && field("Name", name), field("Type", type), field("Verdict", verdict),
    operator && [field("Message id", message), field("Request id", request), field("Claim", inputs.claim)],
    field(`From (${zoneName()})`, from), field(`To (${zoneName()})`, to),
    h("button", { type: "submit", class: "button primary" }, "Search"), trouble, operator && h("div", { class: "push" }, csv, ndjson)), h("section", { class: "card" }, place), consumers(context), streams(context), files(context));
  search();
  if (opened) open(opened);
}
