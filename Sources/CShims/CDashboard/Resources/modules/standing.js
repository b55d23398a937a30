// The enforcement of the app in the header. It is refreshed more than once a second, because users base
// decisions on it, and it shows when the state is unknown.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { clock } from "./format.js";
import { badge, stateBadge } from "./ui.js";

const EVERY = 700;
/** After this time without pointer or key events, it is refreshed less often until the next event. */
const IDLE = 120_000;
const EVERY_IDLE = 5_000;
const LONGEST = 4_000;

/** The badge with its link. Dispatches the event `enforcement` on the document when the state changes. */
export function standing(app, signal) {
  const where = path("apps", app.id, "enforcement");
  const link = h("a", { class: "state-link", href: `#${where}` });
  let known = { state: app.enforcement, ramp_percent: 100, at: Date.now() };
  let unknown = false;
  let at = Date.now();
  let asking = false;
  let moved = Date.now();

  function show(element, text, title) {
    replace(link, element);
    link.setAttribute("aria-label", `Enforcement: ${text}`);
    link.title = title ?? "";
  }

  function say({ state, ramp_percent: ramp }) {
    const share = state === "required" && ramp < 100 ? `${ramp} % of users` : null;
    show(stateBadge(state, share), share ? `${state} for ${share}` : state);
  }

  async function look() {
    if (asking || document.hidden) return;
    if (Date.now() - moved > IDLE && Date.now() - at < EVERY_IDLE) return;
    asking = true;
    try {
      // After a time-out, the state is unknown.
      const rule = await api.get(where, {}, AbortSignal.any([signal, AbortSignal.timeout(LONGEST)]));
      const changed = rule.state !== known.state || rule.ramp_percent !== known.ramp_percent;
      known = { ...rule, at: Date.now() };
      at = Date.now();
      if (changed || unknown) say(rule);
      unknown = false;
      if (changed) document.dispatchEvent(new CustomEvent("enforcement", { detail: { app: app.id } }));
    } catch (error) {
      if (error.name === "AbortError") return;
      unknown = true;
      at = Date.now();
      show(badge("Unknown"), "unknown", error.status === 404 ? "The app is gone." : `It was ${known.state} at ${clock(known.at)}; the gateway does not answer now.`);
    } finally {
      asking = false;
    }
  }

  say(known);
  // The list of apps does not have the share of users.
  if (known.state === "required") look();
  const timer = setInterval(look, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  const move = () => {
    const wasIdle = Date.now() - moved > IDLE;
    moved = Date.now();
    if (wasIdle) look();
  };
  for (const name of ["pointermove", "keydown", "focusin"]) document.addEventListener(name, move, { signal, passive: true });
  document.addEventListener("visibilitychange", () => { moved = Date.now(); look(); }, { signal });
  document.addEventListener("enforcement-set", look, { signal });
  return link;
}
