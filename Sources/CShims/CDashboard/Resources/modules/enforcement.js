// The enforcement of an app, and the effects of a change before it is made.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { preferences } from "./preferences.js";
import { ago, dateTime, number, percent, plural, toInput, fromInput, zoneName, HOUR } from "./format.js";
import { confirm, dialog } from "./dialogs.js";
import { button, card, field, notice, segmented, select, shareInput, skeleton, stateBadge, toast, problemNotice } from "./ui.js";
import { attempt, view } from "./views.js";
import { icon } from "./icons.js";
import { autoReturn, impact, returnsAtOnce } from "./impact.js";
import { remember } from "./address.js";
import { restrictions } from "./restrictions.js";

const states = [
  ["disabled", "Disabled", "Tokens are not checked, and every event is stored. This is the default."],
  ["optional", "Optional", "Requests of logged-in users are verified, but invalid ones are stored too. Failures are counted and shown."],
  ["required", "Required", "Requests of logged-in users are verified, and those with an invalid token are rejected; apps keep the events, get a new token and retry."],
];
const nameOf = Object.fromEntries(states.map(([state, name]) => [state, name]));
const strictness = { disabled: 0, optional: 1, required: 2 };
const usualReturn = { rejected_percent: 5, window_minutes: 5, minimum_requests: 100 };
/** The suggested share of users at the start of a roll-out, in percent. */
const FIRST_SHARE = 10;
/** The share of failing users above which the failures should be examined before requiring tokens. */
const FEW = 0.01;

/** The protection of a state as a number, for comparisons. */
function protection({ state, ramp_percent: ramp }) {
  return state === "required" ? strictness.required + (ramp ?? 100) / 100 : strictness[state];
}

/** The percentage of users with required tokens. */
function rejected({ state, ramp_percent: ramp }) {
  return state === "required" ? ramp ?? 100 : 0;
}

/** A note that a scheduled switch is cancelled, if the change removes it. */
function cancelled({ scheduled }, next) {
  return scheduled && !next.scheduled ? [`The switch to ${nameOf[scheduled.state]}, scheduled for ${dateTime(scheduled.at_ms)}, is cancelled.`] : [];
}

/** The consequences of a change to a weaker state. */
function consequence(app, to) {
  const name = app.name || app.id;
  if (to.state === "disabled") {
    return [`From now on nothing checks who sends events to ${name}. Anyone who has the write key, which is in every copy of the app, can store events in the name of any user.`,
      "Those events stay: they are marked “Not checked” forever. Failures are no longer counted, so you will not see what happens."];
  }
  if (to.state === "optional") {
    return [`From now on events with a forged, expired or missing token are stored for ${name} like all others. They are marked “Warned”, and readers of the events must check that mark.`];
  }
  return [`From now on only ${to.ramp_percent} % of the users of ${name} are protected. Events in the name of the others are stored even with a forged, expired or missing token.`];
}

export function enforcement(context) {
  const { app, body, can, query, signal } = context;
  const base = path("apps", app.id, "enforcement");
  const spans = [1, 24, 168];
  let hours = spans.includes(Number(query.get("hours"))) ? Number(query.get("hours")) : 24;
  let preview = null;

  const part = view(context, async (abort) => {
    const answer = await api.read(base, {}, abort);
    // Keeps the entity tag, so that changes by other clients since this read are not overwritten.
    return { ...answer.data, etag: answer.etag };
  }, draw, { bones: 6 });

  const advice = h("div", {});
  const effects = view(context, (abort) => api.get(`${base}/preview`, { hours }, abort), (found) => {
    preview = found;
    part.redraw();
    return impact(found);
  }, { every: 30_000, bones: 3 });

  /** Saves a changed rule. After a change of the state, offers to restore the previous rule. */
  async function change(rule, said, place) {
    const { data: before } = await api.read(base).catch(() => ({ data: null }));
    const done = await attempt(async () => { await api.put(base, clean(rule), rule.etag); }, place);
    await part.reload();
    if (!done) return false;
    toast(said, { tone: "good", action: before && before.state !== rule.state ? "Undo" : undefined, onaction: async () => {
      if (await attempt(async () => { const now = await api.read(base); await api.put(base, clean(before), now.etag); })) {
        part.reload();
        toast(`Back to ${nameOf[before.state]}.`);
      }
    } });
    return true;
  }

  /** Saves `next`. Asks first if the change lowers the protection or rejects requests of more users. */
  async function changeTo(rule, next, said) {
    if (rejected(next) > rejected(rule) && !await confirm(`Require tokens from ${next.ramp_percent} % of users?`, {
      text: [`Requests of ${app.name || app.id} with an invalid token are now rejected for ${rejected(rule)} % of users. After the change they are rejected for ${next.ramp_percent} %.`, ...cancelled(rule, next)], action: "Raise the share", kind: "primary", focused: true })) return;
    if (protection(next) < protection(rule) && !await confirm(next.state === "required" ? `Protect ${next.ramp_percent} % of users only?` : `Switch ${app.name || app.id} to ${nameOf[next.state]}?`, {
      text: [...consequence(app, next), ...cancelled(rule, next)], action: next.state === "required" ? "Protect fewer users" : `Switch to ${nameOf[next.state]}`, focused: true })) return;
    await change(next, [said, ...cancelled(rule, next)].join(" "));
  }

  async function toRequired(rule) {
    const ramp = shareInput(FIRST_SHARE);
    const back = autoReturn(rule.auto_return ?? usualReturn, rule.auto_return !== null, () => warn());
    const phrase = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const place = h("div", {});
    const risk = h("div", { "aria-live": "polite" });
    const trouble = h("div", {});
    const go = h("button", { type: "submit", class: "button primary", disabled: true }, "Switch to Required");
    let found = null;
    const warn = () => {
      const text = found && returnsAtOnce(found, back.read());
      replace(risk, text && notice("amber", "It would return to Optional at once.", h("p", {}, text)));
    };
    phrase.addEventListener("input", () => { go.disabled = phrase.value !== app.id; });
    api.get(`${base}/preview`, { hours: 24 }, signal).then((answer) => { found = answer; replace(place, impact(answer)); warn(); },
      (error) => { if (error.name !== "AbortError") replace(place, problemNotice(error)); });
    replace(place, skeleton(2));
    await dialog(`Require valid tokens for ${app.name || app.id}`, (close) => h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const next = { ...rule, state: "required", ramp_percent: Number(ramp.input.value), auto_return: back.read(), scheduled: null };
      if (await change(next, "Required is on.", trouble)) close(true);
    } }, place, cancelled(rule, {}).map((text) => h("p", {}, text)), h("div", {}, field("Begin with", ramp.input, "Raise the share when all failures are as expected. Users already included stay included."), ramp.text),
    back.element, risk, field(`Type ${app.id} to confirm`, phrase), trouble,
    h("div", { class: "actions end" }, button("Cancel", { onclick: () => close() }), go)), { wide: true });
  }

  /** The next step of the roll-out guide; null without one. */
  function nextStep(rule) {
    if (rule.state === "disabled") return { to: "optional", text: "Choose Optional: nothing is rejected, and you see what Required would reject." };
    if (rule.state === "required") return rule.ramp_percent < 100 ? { to: "ramp", text: `Raise the share of users from ${rule.ramp_percent} % once the failures are what you expect.` } : null;
    if (preview === null) return { to: null, text: "" };
    if (preview.requests === preview.not_judged) return { to: "wait", text: "Wait for requests of logged-in users whose tokens are checked: there is not enough data yet." };
    const { requests, users } = preview.would_reject;
    return preview.users > 0 && users / preview.users >= FEW
      ? { to: "failures", text: `Look at the failures first: Required would reject requests of ${number(users)} of ${plural(preview.users, "user")} (${percent(requests / (preview.requests - preview.not_judged))} of requests).` }
      : { to: "required", text: `Choose Required, for ${FIRST_SHARE} % of the users at first.` };
  }

  function draw(rule) {
    const operator = can("operator");
    const next = nextStep(rule);
    const choice = (state, name, text) => {
      const active = rule.state === state;
      return h("div", { class: `state-card ${state} ${active ? "active" : ""}` },
        h("div", { class: "state-head" }, h("h2", {}, name), active && h("span", { class: "badge good" }, icon("check", 12), "now")),
        h("p", {}, text),
        active ? h("p", { class: "muted" }, state === "required" && rule.ramp_percent < 100 ? `For ${rule.ramp_percent} % of users.` : "This is the current state.")
          : operator && button(`Switch to ${name}`, {
            kind: next?.to === state ? "primary" : "plain", "data-focus": `state-${state}`,
            onclick: () => (state === "required" ? toRequired(rule) : changeTo(rule, { ...rule, state, scheduled: null }, `${name} is on.`)),
          }));
    };
    replace(advice, next?.text && h("p", { class: "strip next-step" }, h("strong", {}, "Next step"), " ", next.text, " ",
      next.to === "failures" && h("a", { class: "button primary", href: `#${path("apps", app.id, "failures")}` }, "Look at the failures")));
    return h("div", { class: "stack" },
      rule.returned && notice("amber", `Returned to Optional automatically ${ago(rule.returned.at_ms)}.`,
        h("p", {}, `The tokens of ${rule.returned.rejected_percent} % of users stopped working (${dateTime(rule.returned.at_ms)}). `, h("a", { href: `#${path("apps", app.id, "failures")}` }, "See which failures"))),
      operator && rule.state !== "disabled" && h("div", { class: "panic" },
        h("div", {}, h("p", {}, h("strong", {}, "Trouble with tokens?")), h("p", {}, "Disabled lets all data through at once, without verification. You can undo it.")),
        button("Disable now", { kind: "danger", symbol: "stop", "data-focus": "panic", onclick: () => changeTo(rule, { ...rule, state: "disabled", scheduled: null }, "Disabled: data flows without verification.") })),
      advice,
      h("div", { class: "states" }, states.map((entry) => choice(...entry))),
      card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, rule.state === "required" ? "What Required rejects" : "What Required would do"),
        segmented("Look back", [[1, "1 h"], [24, "24 h"], [168, "7 d"]], hours, (value) => { hours = value; remember(base, { hours: hours === 24 ? null : hours }); effects.reload(); })), effects.element),
      rule.state === "required" && rampCard(rule, operator, next),
      h("div", { class: "split" }, scheduleCard(rule, operator), safetyCard(rule, operator)));
  }

  function scheduleCard(rule, operator) {
    if (rule.scheduled) {
      return card("Scheduled switch", h("p", {}, stateBadge(rule.scheduled.state), ` ${forUsers(rule.scheduled)}on ${dateTime(rule.scheduled.at_ms)} (${zoneName()}, ${ago(rule.scheduled.at_ms)})`),
        operator && button("Cancel the switch", { onclick: async () => {
          if (await confirm("Cancel the scheduled switch?", { text: cancelled(rule, {}), action: "Cancel the switch", dismiss: "Keep it" })) change({ ...rule, scheduled: null }, "The scheduled switch is cancelled.");
        } }));
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
      const when = `${dateTime(moment)} (${zoneName()})`;
      if (next.state === "required" && !(await confirm("Schedule Required", {
        text: [`Requests with an invalid token will be rejected ${forUsers(next)}from ${when}.`], action: "Schedule it", phrase: app.id, kind: "primary" }))) return;
      if (next.state !== "required" && protection(next) < protection(rule) && !(await confirm(`Schedule ${nameOf[next.state]}`, {
        text: [`The gateway makes the change at ${when}, even if no dashboard is open.`, ...consequence(app, next)], action: "Schedule it", focused: true }))) return;
      change({ ...rule, scheduled: next }, `${nameOf[next.state]} ${forUsers(next)}is scheduled for ${dateTime(moment)}.`, trouble);
    } }, field("Switch to", state), rampField, field(`At (${preferences.zone === "utc" ? "UTC" : zoneName()})`, at), h("button", { type: "submit", class: "button plain" }, "Schedule"), trouble));
  }

  function safetyCard(rule, operator) {
    const form = autoReturn(rule.auto_return ?? usualReturn, rule.auto_return !== null);
    const trouble = h("div", {});
    if (!operator) {
      return card("Automatic return", h("p", {}, rule.auto_return
        ? `Returns to Optional when the tokens of ${rule.auto_return.rejected_percent} % of users stop working within ${plural(rule.auto_return.window_minutes, "minute")}.` : "Off."));
    }
    return card("Automatic return", h("form", { onsubmit: (event) => { event.preventDefault(); change({ ...rule, auto_return: form.read() }, "Saved.", trouble); } },
      form.element, trouble, h("button", { type: "submit", class: "button plain" }, "Save")));
  }

  function rampCard(rule, operator, next) {
    const ramp = shareInput(rule.ramp_percent ?? 100, { disabled: !operator });
    return card("Ramp", h("form", { class: "inline-form", onsubmit: (event) => {
      event.preventDefault();
      changeTo(rule, { ...rule, ramp_percent: Number(ramp.input.value) }, `Required for ${ramp.input.value} % of users.`);
    } }, field("Enforced for", ramp.input, "Users are chosen by their id, so raising the share never drops anyone already included."), ramp.text, operator && h("button", { type: "submit", class: `button ${next?.to === "ramp" ? "primary" : "plain"}` }, "Apply")));
  }

  document.addEventListener("enforcement", () => part.reload(true), { signal });
  replace(body, part.element, restrictions(context));
}

/** The share of users of a scheduled switch, followed by a space; empty for all users. */
function forUsers({ state, ramp_percent: ramp }) {
  return state === "required" && (ramp ?? 100) < 100 ? `for ${ramp} % of users ` : "";
}

/** A scheduled switch as sent to the API. Only Required has a share of users. */
function scheduledAs({ state, at_ms, ramp_percent: ramp }) {
  return { state, at_ms, ...(state === "required" && (ramp ?? 100) < 100 ? { ramp_percent: ramp } : {}) };
}

/** The writable members of a rule. A rule without `scheduled` or `auto_return` has that feature off. */
function clean(rule) {
  return {
    state: rule.state, ramp_percent: rule.ramp_percent ?? 100,
    ...(rule.scheduled ? { scheduled: scheduledAs(rule.scheduled) } : {}), ...(rule.auto_return ? { auto_return: rule.auto_return } : {}),
  };
}
