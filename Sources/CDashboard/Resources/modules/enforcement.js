// How strict the app is, and what a stricter state would do before it does it.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { preferences } from "./preferences.js";
import { ago, dateTime, number, percent, plural, toInput, fromInput, zoneName, HOUR } from "./format.js";
import { confirm, dialog } from "./dialogs.js";
import { button, card, field, notice, segmented, select, shareInput, skeleton, stateBadge, table, toast, toggle, problemNotice } from "./ui.js";
import { attempt, view } from "./views.js";
import { swatch } from "./codes.js";
import { icon } from "./icons.js";

const states = [
  ["disabled", "Disabled", "Countersign will not verify the JWT supplied for a user. (Default Setting)"],
  ["optional", "Optional", "Countersign will verify requests for logged-in users, but will not reject invalid requests. Failures are counted and shown."],
  ["required", "Required", "Countersign will verify requests for logged-in users and will reject invalid JWTs; apps retry and request new signatures."],
];
const nameOf = Object.fromEntries(states.map(([state, name]) => [state, name]));

export function enforcement(context) {
  const { app, body, can, signal } = context;
  const base = path("apps", app.id, "enforcement");
  let etag = null;
  let hours = 24;

  const part = view(context, async (abort) => {
    const answer = await api.read(base, {}, abort);
    etag = answer.etag;
    return answer.data;
  }, draw, { every: 5_000, bones: 6 });

  const shown = h("div", {});
  async function drawPreview() {
    const asked = hours;
    replace(shown, skeleton(3));
    try {
      const preview = await api.get(`${base}/preview`, { hours }, signal);
      if (asked === hours) replace(shown, impact(preview));
    } catch (error) {
      if (error.name !== "AbortError") replace(shown, problemNotice(error, drawPreview));
    }
  }

  /** Sends a changed rule; the undo puts back what was there. */
  async function change(rule, said, place) {
    const { data: before, etag: tag } = await api.read(base).catch(() => ({ data: null, etag }));
    const done = await attempt(async () => { await api.put(base, clean(rule), tag); }, place);
    await part.reload();
    if (!done) return false;
    toast(said, { tone: "good", action: before && before.state !== rule.state ? "Undo" : undefined, onaction: async () => {
      if (await attempt(async () => { const now = await api.read(base); await api.put(base, clean(before), now.etag); })) { part.reload(); toast(`Back to ${nameOf[before.state]}.`); }
    } });
    return true;
  }

  async function toRequired(rule) {
    const ramp = shareInput(rule.state === "required" ? rule.ramp_percent ?? 100 : 100);
    const back = autoReturn(rule.auto_return ?? { rejected_percent: 5, window_minutes: 5, minimum_requests: 100 }, rule.auto_return !== null);
    const phrase = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const place = h("div", {});
    const trouble = h("div", {});
    const go = h("button", { type: "submit", class: "button primary", disabled: true }, "Switch to Required");
    phrase.addEventListener("input", () => { go.disabled = phrase.value !== app.id; });
    api.get(`${base}/preview`, { hours: 24 }, signal).then((preview) => replace(place, impact(preview)),
      (error) => { if (error.name !== "AbortError") replace(place, problemNotice(error)); });
    replace(place, skeleton(2));
    await dialog(`Require valid tokens for ${app.name || app.id}`, (close) => h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const next = { ...rule, state: "required", ramp_percent: Number(ramp.input.value), auto_return: back.read(), scheduled: null };
      if (await change(next, "Required is on.", trouble)) close(true);
    } }, place, h("div", {}, field("Begin with", ramp.input, "Users already included stay included when you raise the share later."), ramp.text),
    back.element, field(`Type ${app.id} to confirm`, phrase), trouble,
    h("div", { class: "actions end" }, button("Cancel", { onclick: () => close() }), go)), { wide: true });
  }

  function draw(rule) {
    const operator = can("operator");
    const choice = (state, name, text) => {
      const active = rule.state === state;
      return h("div", { class: `state-card ${state} ${active ? "active" : ""}` },
        h("div", { class: "state-head" }, h("h2", {}, name), active && h("span", { class: "badge good" }, icon("check", 12), "now")),
        h("p", {}, text),
        active ? h("p", { class: "muted" }, state === "required" && rule.ramp_percent < 100 ? `For ${rule.ramp_percent} % of users.` : "This is the current state.")
          : operator && button(`Switch to ${name}`, {
            kind: state === "required" ? "primary" : "plain", "data-focus": `state-${state}`,
            onclick: () => (state === "required" ? toRequired(rule) : change({ ...rule, state, scheduled: null }, `${name} is on.`)),
          }));
    };
    return h("div", { class: "stack" },
      rule.returned && notice("amber", `Returned to Optional automatically ${ago(rule.returned.at_ms)}.`,
        h("p", {}, `${rule.returned.rejected_percent} % of users had a working token stop working (${dateTime(rule.returned.at_ms)}). `, h("a", { href: `#${path("apps", app.id, "failures")}` }, "See which failures"))),
      operator && rule.state !== "disabled" && h("div", { class: "panic" },
        h("div", {}, h("p", {}, h("strong", {}, "Trouble with tokens?")), h("p", {}, "Disabled lets all data through at once, without verification. One click, and you can undo it.")),
        button("Disable now", { kind: "danger", symbol: "stop", "data-focus": "panic", onclick: () => change({ ...rule, state: "disabled", scheduled: null }, "Disabled: data flows without verification.") })),
      h("div", { class: "states" }, states.map((entry) => choice(...entry))),
      card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, rule.state === "required" ? "What Required rejects" : "What Required would do"),
        segmented("Look back", [[1, "1 h"], [24, "24 h"], [168, "7 d"]], hours, (value) => { hours = value; drawPreview(); })), shown),
      h("div", { class: "split" }, scheduleCard(rule, operator), safetyCard(rule, operator)),
      rule.state === "required" && rampCard(rule, operator));
  }

  function scheduleCard(rule, operator) {
    if (rule.scheduled) {
      return card("Scheduled switch", h("p", {}, stateBadge(rule.scheduled.state), ` ${forUsers(rule.scheduled)}on ${dateTime(rule.scheduled.at_ms)} (${zoneName()}, ${ago(rule.scheduled.at_ms)})`),
        operator && button("Cancel the switch", { onclick: () => change({ ...rule, scheduled: null }, "The scheduled switch is cancelled.") }));
    }
    const state = select(states.filter(([key]) => key !== rule.state).map(([key, name]) => [key, name]), rule.state === "optional" ? "required" : "optional");
    const at = h("input", { type: "datetime-local", required: true, min: toInput(Date.now()), value: toInput(Math.ceil((Date.now() + HOUR) / HOUR) * HOUR) });
    const ramp = h("input", { type: "number", name: "ramp_percent", min: 1, max: 100, required: true, value: 100 });
    const rampField = field("Share of users, %", ramp);
    const follow = () => { rampField.hidden = ramp.disabled = state.value !== "required"; };
    state.addEventListener("change", follow);
    follow();
    const trouble = h("div", {});
    return card("Scheduled switch", !operator ? h("p", { class: "muted" }, "None.") : h("form", { class: "inline-form", onsubmit: async (event) => {
      event.preventDefault();
      const moment = fromInput(at.value);
      if (!moment || moment <= Date.now()) return replace(trouble, notice("bad", "Choose a time in the future."));
      const next = { state: state.value, at_ms: moment, ramp_percent: ramp.disabled ? null : Number(ramp.value) };
      if (state.value === "required" && !(await confirm("Schedule Required", {
        text: [`Requests with an invalid token will be rejected ${forUsers(next)}from ${dateTime(moment)} (${zoneName()}).`], action: "Schedule it", phrase: app.id, kind: "primary" }))) return;
      change({ ...rule, scheduled: next }, `${nameOf[next.state]} ${forUsers(next)}is scheduled for ${dateTime(moment)}.`, trouble);
    } }, field("Switch to", state), rampField, field(`At (${preferences.zone === "utc" ? "UTC" : zoneName()})`, at), h("button", { type: "submit", class: "button plain" }, "Schedule"), trouble));
  }

  function safetyCard(rule, operator) {
    const form = autoReturn(rule.auto_return ?? { rejected_percent: 5, window_minutes: 5, minimum_requests: 100 }, rule.auto_return !== null);
    const trouble = h("div", {});
    if (!operator) {
      return card("Automatic return", h("p", {}, rule.auto_return
        ? `Back to Optional when ${rule.auto_return.rejected_percent} % of users have a working token stop working within ${rule.auto_return.window_minutes} minutes.` : "Off."));
    }
    return card("Automatic return", h("form", { onsubmit: (event) => { event.preventDefault(); change({ ...rule, auto_return: form.read() }, "Saved.", trouble); } },
      form.element, trouble, h("button", { type: "submit", class: "button plain" }, "Save")));
  }

  function rampCard(rule, operator) {
    const ramp = shareInput(rule.ramp_percent ?? 100, { disabled: !operator });
    return card("Ramp", h("form", { class: "inline-form", onsubmit: (event) => {
      event.preventDefault();
      change({ ...rule, ramp_percent: Number(ramp.input.value) }, `Required for ${ramp.input.value} % of users.`);
    } }, field("Enforced for", ramp.input, "Users are chosen by their id, so raising the share never drops anyone already included."), ramp.text, operator && h("button", { type: "submit", class: "button plain" }, "Apply")));
  }

  replace(body, part.element);
  drawPreview();
}

/** The part of the users that a scheduled switch is for, with a space behind it; nothing when it is for all. */
function forUsers({ state, ramp_percent: ramp }) {
  return state === "required" && (ramp ?? 100) < 100 ? `for ${ramp} % of users ` : "";
}

/** A scheduled switch as it is written: a part of the users belongs to Required only. */
function scheduledAs({ state, at_ms, ramp_percent: ramp }) {
  return { state, at_ms, ...(state === "required" && (ramp ?? 100) < 100 ? { ramp_percent: ramp } : {}) };
}

/** The members that may be written; what is left out is off. */
function clean(rule) {
  return {
    state: rule.state, ramp_percent: rule.ramp_percent ?? 100,
    ...(rule.scheduled ? { scheduled: scheduledAs(rule.scheduled) } : {}), ...(rule.auto_return ? { auto_return: rule.auto_return } : {}),
  };
}

function autoReturn(rule, on) {
  const share = h("input", { type: "number", min: 1, max: 100, value: rule.rejected_percent });
  const minutes = h("input", { type: "number", min: 1, max: 60, value: rule.window_minutes });
  const least = h("input", { type: "number", min: 1, max: 1_000_000, value: rule.minimum_requests });
  const fields = h("div", { class: "inline-form" }, field("Share of users with a lost token, %", share), field("Window, minutes", minutes), field("Minimum number of users", least));
  const trade = h("p", { class: "muted" }, "This trades protection for delivery: once enforcement has returned to Optional, forged events are stored as well. It only counts users whose own token used to be accepted and is now rejected (22, 27); "
    + "requests without a token cannot trigger it, but somebody who owns enough accounts can. On or off, the alert webhook is told when many requests are rejected, so that you can decide for yourself.");
  let enabled = on;
  const show = () => { fields.hidden = !enabled; };
  show();
  return {
    element: h("div", { class: "auto-return" }, toggle("Return to Optional when tokens stop working", enabled, (value) => { enabled = value; show(); }), trade, fields),
    read: () => (enabled ? { rejected_percent: Number(share.value), window_minutes: Number(minutes.value), minimum_requests: Number(least.value) } : null),
  };
}

function impact(preview) {
  const { requests, users, would_reject: bad } = preview;
  const share = requests ? bad.requests / requests : 0;
  const hours = preview.hours === 1 ? "last hour" : `last ${preview.hours} h`;
  // All users are estimated, those who failed are counted.
  const everybody = `${preview.users_estimated && users > 0 ? "about " : ""}${plural(users, "user")}`;
  const usersColumn = { title: "Users", class: "num", cell: (row) => number(row.users) };
  const bar = (count) => h("meter", { min: 0, max: Math.max(1, bad.requests), value: count, "aria-hidden": "true" });
  return h("div", { class: "impact" },
    preview.unknown && notice("amber", preview.unknown),
    requests === 0 ? h("p", {}, `No requests from logged-in users in the ${hours}, so there is nothing to predict from.`)
      : h("p", { class: `impact-lead ${bad.requests === 0 ? "good" : "bad"}` }, h("strong", {}, bad.requests === 0 ? "Nothing" : percent(share)), h("span", {},
        `In the ${hours}, ${plural(bad.requests, "request")} from ${plural(bad.users, "user")} would have been rejected, out of ${plural(requests, "request")} from ${everybody}.`)),
    bad.requests > 0 && h("div", { class: "split tight" },
      table("By code", [
        { title: "Code", heading: true, cell: (row) => h("span", { class: "code-cell" }, swatch(row.code), `${row.code} ${row.reason}`) },
        { title: "Requests", class: "num", cell: (row) => number(row.requests) }, usersColumn,
        { title: "", class: "meter-cell", cell: (row) => bar(row.requests) },
      ], preview.by_code ?? [], { visibleCaption: true }),
      table("By app version", [
        { title: "App version", heading: true, cell: (row) => row.app_version || "(not given)" },
        { title: "Requests", class: "num", cell: (row) => number(row.requests) }, usersColumn,
        { title: "", class: "meter-cell", cell: (row) => bar(row.requests) },
      ], preview.by_app_version ?? [], { visibleCaption: true })));
}
