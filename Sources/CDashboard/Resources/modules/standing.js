// The app's enforcement in the header. A person decides by it, so it is looked at more often than once a second, and says
// so when nobody can know.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { clock } from "./format.js";
import { badge, stateBadge } from "./ui.js";

const EVERY = 700;

/** The badge with its link. Tells the document with the event `enforcement` when the state is another than before. */
export function standing(app, signal) {
  const where = path("apps", app.id, "enforcement");
  const link = h("a", { class: "state-link", href: `#${where}` });
  let known = { state: app.enforcement, ramp_percent: 100 };
  let at = Date.now();
  let asking = false;

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
    asking = true;
    try {
      const rule = await api.get(where, {}, signal);
      const changed = rule.state !== known.state || rule.ramp_percent !== known.ramp_percent;
      known = rule;
      at = Date.now();
      say(rule);
      if (changed) document.dispatchEvent(new CustomEvent("enforcement", { detail: { app: app.id } }));
    } catch (error) {
      if (error.name === "AbortError") return;
      show(badge("Unknown"), "unknown", error.status === 404 ? "The app is gone." : `It was ${known.state} at ${clock(at)}; the gateway does not say now.`);
    } finally {
      asking = false;
    }
  }

  say(known);
  const timer = setInterval(look, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  document.addEventListener("visibilitychange", look, { signal });
  document.addEventListener("enforcement-set", look, { signal });
  return link;
}
