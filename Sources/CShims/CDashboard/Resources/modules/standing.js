// Shows the app's enforcement in the header, kept current by server-sent events, or that it is unknown.

import { h, replace } from "./dom.js";
import { address, api, path } from "./api.js";
import { clock } from "./format.js";
import { badge, stateBadge } from "./ui.js";

/** The time without an event after which the state is unknown. The gateway sends one at least every 15 seconds. */
const SILENCE = 40_000;

/** The badge with its link. Dispatches the event `enforcement` on the document when the state changes. */
export function standing(app, signal) {
  const where = path("apps", app.id, "enforcement");
  const link = h("a", { class: "state-link", href: `#${where}` });
  let known = { state: app.enforcement, ramp_percent: 100 };
  let at = Date.now();
  let source = null;
  let timer;

  function show(element, text, title = "") {
    replace(link, element);
    link.setAttribute("aria-label", `Enforcement: ${text}`);
    link.title = title;
  }

  function say(rule) {
    const { state, ramp_percent: ramp } = rule;
    const share = state === "required" && ramp < 100 ? `${ramp} % of users` : null;
    show(stateBadge(state, share), share ? `${state} for ${share}` : state);
    const changed = JSON.stringify(rule) !== JSON.stringify(known);
    known = rule;
    if (changed) document.dispatchEvent(new CustomEvent("enforcement", { detail: { app: app.id } }));
  }

  function wait(milliseconds, next) {
    clearTimeout(timer);
    timer = setTimeout(next, milliseconds);
  }

  function heard() {
    at = Date.now();
    wait(SILENCE, lost);
  }

  function connect() {
    disconnect();
    source = new EventSource(address("/live", { app: app.id, enforcement: "only" }));
    for (const name of ["open", "ping"]) source.addEventListener(name, heard);
    source.addEventListener("enforcement", (event) => { heard(); say(JSON.parse(event.data)); });
    source.addEventListener("error", lost);
    wait(SILENCE, lost);
  }

  function disconnect() {
    clearTimeout(timer);
    source?.close();
  }

  function lost() {
    disconnect();
    show(badge("Unknown"), "unknown", `It was ${known.state} at ${clock(at)}; the gateway does not answer now.`);
    wait(1000, again);
  }

  /** The stream gives no reason for its end; this request does. A 401 leads to the sign-in. */
  async function again() {
    try {
      await api.get(where, {}, signal);
      connect();
    } catch (error) {
      if (error.name === "AbortError" || error.status === 401) return;
      if (error.status === 404) show(badge("Unknown"), "unknown", "The app was deleted.");
      else wait(error.delay, again);
    }
  }

  say(known);
  // A browser has few connections to one server, so hidden pages have none.
  const look = () => (document.hidden ? disconnect() : connect());
  look();
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", disconnect);
  return link;
}
