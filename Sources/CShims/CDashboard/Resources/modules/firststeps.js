// The steps to a new app's first verified event. A step is done once the gateway has seen its effect.

import { h } from "./dom.js";
import { path } from "./api.js";
import { preferences, prefer } from "./preferences.js";
import { badge, button, card, copyable } from "./ui.js";
import { icon } from "./icons.js";

/** Apps created by `countersign trigger`. */
const INTERNAL = /^trigger(-|$)/;

const backend = `# Python, with PyJWT
import time, jwt

def countersign_token(user_id):
    now = int(time.time())
    return jwt.encode({"sub": user_id, "iat": now, "exp": now + 3600},
                      open("private.pem").read(), algorithm="RS256")`;

function stateOf(app) {
  // Hides the steps while the counts cannot be read.
  if (!app.last_24h) return { all: true };
  const { verified, rejected, warned } = app.last_24h;
  const steps = {
    sent: app.last_request_ms !== null && app.last_request_ms !== undefined, key: app.keys > 0 || app.features.includes("key_sources"), measured: app.enforcement !== "disabled",
    good: verified > rejected + warned,
  };
  return { ...steps, all: Object.values(steps).every(Boolean) };
}

/** The only app that is not internal, if its steps are unfinished and not dismissed; else undefined. */
export function newcomer(apps) {
  const made = apps.filter((app) => !INTERNAL.test(app.id));
  return made.length === 1 ? made.find((app) => !preferences.dismissed.includes(app.id) && !stateOf(app).all) : undefined;
}

/** The card. `dismissed`, if any, is called when the user closes it. */
export function firstSteps(context, app, dismissed) {
  const steps = stateOf(app);
  const base = `#${path("apps", app.id)}`;
  const step = (ok, title, ...rest) => h("li", { class: ok ? "done" : "later open" }, h("span", { class: "step-mark" }, ok ? icon("check", 14) : null),
    h("div", {}, h("h3", {}, title, h("span", { class: "visually-hidden" }, ok ? " (done)" : " (to do)")), !ok && rest));
  const count = Object.entries(steps).filter(([name, ok]) => name !== "all" && ok).length;
  return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, `First steps for ${app.name || app.id}`), badge(`${count} of 4 done`),
    dismissed && button("Dismiss", { kind: "small", onclick: () => { prefer("dismissed", [...preferences.dismissed, app.id]); dismissed(); } })),
  h("ol", { class: "steps" },
    step(steps.sent, "Send an event", dismissed ? h("a", { class: "button primary", href: `${base}/start` }, "How to send the first event") : h("p", {}, "With the code above.")),
    step(steps.key, "Let your backend sign, and add its public key", h("p", {}, "Generate a key pair. The private key stays with your backend, which signs a token for each user that has logged in."),
      copyable("countersign key generate --out ."), copyable(backend),
      h("a", { class: "button plain", href: `${base}/keys?add=1` }, "Add the public key")),
    step(steps.measured, "Choose Optional", h("p", {}, "Tokens are then verified and failures are shown, but nothing is rejected."),
      h("a", { class: "button plain", href: `${base}/enforcement` }, "Enforcement")),
    step(steps.good, "See the first verified request", h("p", {}, "Done when a request with a good token has arrived in the last 24 hours. If it fails, the failures show the reason and what to do."),
      h("a", { class: "button plain", href: `${base}/failures` }, "Failures"))));
}
