// The steps to a new app's first verified event. A step is done once the gateway has seen its effect.

import { h } from "./dom.js";
import { path } from "./api.js";
import { preferences, prefer } from "./preferences.js";
import { badge, button, card, copyable, segmented } from "./ui.js";
import { icon } from "./icons.js";

/** Apps created by `countersign trigger`. */
const INTERNAL = /^trigger(-|$)/;

const swift = (address) => `var configuration = CountersignConfiguration(
    endpoint: URL(string: "${address}")!, writeKey: writeKey)
configuration.tokenProvider = { request in
    try await backend.countersignToken(for: request.userID)
}
let client = try CountersignClient(configuration: configuration)
client.identify(userID: "user-1")
client.track("Order Completed")`;

function curl(address) {
  return `TOKEN="$(countersign token create --key private.pem --user user-1)"
curl -s ${address}/v1/batch -H "X-Write-Key: $WRITE_KEY" -H "Authorization: Bearer $TOKEN" \\
  -d '{"batch":[{"type":"track","messageId":"1","userId":"user-1","event":"Order Completed"}]}'`;
}

const backend = `# Python, with PyJWT
import time, jwt

def countersign_token(user_id):
    now = int(time.time())
    return jwt.encode({"sub": user_id, "iat": now, "exp": now + 3600},
                      open("private.pem").read(), algorithm="RS256")`;

function stateOf(app) {
  // Hides the steps while the counts cannot be read.
  if (!app.last_24h) return { all: true };
  const { requests, rejected, warned } = app.last_24h;
  const steps = {
    key: app.keys > 0, sent: app.last_request_ms !== null && app.last_request_ms !== undefined, measured: app.enforcement !== "disabled",
    // Without verification, it is unknown whether tokens are valid.
    good: app.enforcement !== "disabled" && requests > rejected + warned,
  };
  return { ...steps, all: Object.values(steps).every(Boolean) };
}

/**
 * The app whose first steps are shown: the selected one, or else the newest unfinished one; undefined without
 * one.
 */
export function newcomer(apps) {
  const open = apps.filter((app) => !INTERNAL.test(app.id) && !preferences.dismissed.includes(app.id) && !stateOf(app).all)
    .sort((one, two) => two.created_ms - one.created_ms);
  return open.find((app) => app.id === preferences.app) ?? open[0];
}

/** The card. `dismissed` is called when the user closes it. */
export function firstSteps(context, app, dismissed) {
  const steps = stateOf(app);
  const base = `#${path("apps", app.id)}`;
  const step = (ok, title, ...rest) => h("li", { class: ok ? "done" : "later open" }, h("span", { class: "step-mark" }, ok ? icon("check", 14) : null),
    h("div", {}, h("h3", {}, title, h("span", { class: "visually-hidden" }, ok ? " (done)" : " (to do)")), !ok && rest));
  const count = Object.entries(steps).filter(([name, ok]) => name !== "all" && ok).length;
  const snippet = h("div", { class: "snippet" });
  const snippets = { swift: () => copyable(swift(location.origin)), curl: () => copyable(curl(location.origin)) };
  const show = (kind) => snippet.replaceChildren(snippets[kind]());
  show("swift");
  return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, `First steps for ${app.name || app.id}`), badge(`${count} of 4 done`),
    button("Dismiss", { kind: "small", onclick: () => { prefer("dismissed", [...preferences.dismissed, app.id]); dismissed(); } })),
  h("ol", { class: "steps" },
    step(steps.key, "Let your backend sign, and add its public key", h("p", {}, "Generate a key pair. The private key stays with your backend, which signs a token for each user that has logged in."),
      copyable("countersign key generate --out ."), copyable(backend),
      h("a", { class: "button primary", href: `${base}/keys?add=1` }, "Add the public key")),
    step(steps.sent, "Send an event", h("p", {}, "The app sends with its write key. ",
      context.can("operator") ? ["It is in ", h("a", { href: `${base}/settings` }, "the app settings"), "."] : "Ask an operator for it."),
    segmented("Send with", [["swift", "Swift"], ["curl", "curl"]], "swift", show), snippet,
    h("p", {}, h("a", { href: `${base}/live` }, "Watch it arrive in the live tail"))),
    step(steps.measured, "Choose Optional", h("p", {}, "Tokens are then verified and failures are shown, but nothing is rejected."),
      h("a", { class: "button plain", href: `${base}/enforcement` }, "Enforcement")),
    step(steps.good, "See the first verified request", h("p", {}, "Done when a request with a good token has arrived in the last 24 hours. If it fails, the failures say why and what to do."),
      h("a", { class: "button plain", href: `${base}/failures` }, "Failures"))));
}
