// Getting started with an app: code with its write key, and the first request as it arrives.

import { h, prose, replace } from "./dom.js";
import { address, api, path } from "./api.js";
import { about, docsOf, remedy, swatch } from "./codes.js";
import { clock, dateTime } from "./format.js";
import { card, copyable, notice, segmented } from "./ui.js";
import { view } from "./views.js";
import { firstSteps } from "./firststeps.js";

const snippets = {
  swift: ["Swift", (url, key) => `import Countersign

let client = try CountersignClient(configuration: CountersignConfiguration(
    endpoint: URL(string: "${url}")!, writeKey: "${key}"))
client.track("First Event")`],
  browser: ["Browser", (url, key) => `<script type="module">
  import { Countersign } from "${url}/sdk/countersign.js";
  const client = new Countersign({ endpoint: "${url}", writeKey: "${key}" });
  await client.track("First Event");
  await client.flush();
</script>`],
  python: ["Python", (url, key) => `import json, urllib.request, uuid

event = {"type": "track", "event": "First Event", "messageId": str(uuid.uuid4()), "anonymousId": "device-1"}
request = urllib.request.Request("${url}/v1/batch", json.dumps({"batch": [event]}).encode(),
                                 {"X-Write-Key": "${key}", "Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())`],
  curl: ["curl", (url, key) => `curl ${url}/v1/batch -H "X-Write-Key: ${key}" -H "Content-Type: application/json" \\
  -d '{"batch":[{"type":"track","event":"First Event","messageId":"first-${Date.now()}","anonymousId":"device-1"}]}'`],
};
const notes = {
  swift: ["Add the package Countersign to your app first.", "guides/record-events"],
  browser: ["The page's origin must be among the origins in the app settings.", "guides/web"],
  python: ["Needs no package. The package countersign also keeps events until they are sent.", "guides/record-events"],
  curl: ["For a first test.", "guides/record-events"],
};

export function start(context) {
  const { app, body, signal } = context;
  const base = path("apps", app.id);
  const state = h("div", { role: "status" });
  let source = null;
  let kind = "swift";

  const part = view(context, async (abort) => {
    const [now, keys, stored] = await Promise.all([api.get(base, {}, abort), api.get(`${base}/write-keys`, {}, abort), hasEvents(abort)]);
    return { now, stored, key: keys.items.find((item) => item.write_key)?.write_key };
  }, ({ now, stored, key }) => {
    const code = h("div", { class: "stack" });
    const show = (chosen) => {
      kind = chosen;
      const [text, page] = notes[kind];
      replace(code, copyable(snippets[kind][1](location.origin, key ?? "WRITE_KEY")), h("p", { class: "muted" }, text, " ", h("a", { href: `#/docs/${page}` }, "Documentation")));
    };
    show(kind);
    const seen = state.firstChild?.dataset.seen;
    if (now.last_request_ms && (!seen || (seen === "nothing" && stored))) arrived({ at_ms: now.last_request_ms, stored });
    return h("div", { class: "stack" },
      card(`Send the first event to ${app.name || app.id}`,
        !key && notice("", context.can("operator") ? "The app has no write key that can be shown." : "Ask an operator for the write key.", context.can("operator") && h("p", {}, h("a", { href: `#${base}/settings` }, "Create one in the app settings"))),
        segmented("Send with", Object.entries(snippets).map(([name, [label]]) => [name, label]), kind, show), code),
      state, firstSteps(context, now));
  });

  /** Whether the app has a stored event. An accepted request may have no valid event. */
  async function hasEvents(abort) {
    return (await api.get(`${base}/events`, { limit: 1 }, abort)).items.length > 0;
  }

  function wait() {
    replace(state, h("section", { class: "card", "aria-label": "The first event" }, h("p", { class: "waiting" }, h("span", { class: "pulse wait", "aria-hidden": "true" }), h("strong", {}, "Waiting for the first event…")),
      h("p", { class: "muted" }, "Nothing arrives? The gateway's response to the request states the reason. For a wrong write key it is 401, and the request is not counted for this app. ",
        h("a", { href: "#/docs/guides/troubleshooting" }, "Troubleshooting"))));
  }

  /** Shows the result of a request: the first one, or the last failure. */
  function arrived(item) {
    const code = item.code && about(item.code);
    const there = code && remedy(item.code);
    const links = h("p", {}, item.sample_id ? h("a", { href: `#${path("apps", app.id, "samples", item.sample_id)}` }, "The request, check by check") : h("a", { href: `#${base}/events` }, "The app's events"),
      there && context.can("operator") && [" · ", h("a", { href: `#${path("apps", app.id, there.screen)}${there.query}` }, there.text)]);
    const element = item.verdict === "rejected" || item.verdict === "warned"
      ? notice(item.verdict === "rejected" ? "bad" : "amber", [swatch(item.code), ` ${item.verdict === "rejected" ? "A request was rejected" : "An event was stored with a warning"}: ${item.code} ${item.reason}`], h("p", {}, prose(code?.fix), " ", h("a", { href: docsOf(item.code) }, "More about this code")), links)
      : !item.stored ? notice("amber", "A request arrived, but no event was stored.", h("p", {}, "The answer to the request says why, such as an event without a type."))
      : notice("good", item.verdict ? `The first event arrived at ${clock(item.at_ms)}.` : `Events have arrived, the last in the minute of ${dateTime(item.at_ms)}.`, links);
    element.dataset.seen = item.stored ? "event" : "nothing";
    replace(state, element);
  }

  function connect() {
    source?.close();
    source = new EventSource(address("/live", { app: app.id }));
    // A request may have arrived while the stream was interrupted.
    source.addEventListener("open", () => part.reload(true));
    source.addEventListener("verdict", async (event) => {
      const item = JSON.parse(event.data);
      const failed = item.verdict === "rejected" || item.verdict === "warned";
      // Keeps a success until a request fails.
      if (!failed && state.querySelector(".notice.good")) return;
      try {
        arrived({ ...item, stored: failed || await hasEvents(signal) });
      } catch {
        // The reload below shows the problem.
      }
      // Counts are updated a moment after the request.
      if (!failed) setTimeout(() => { if (!signal.aborted) part.reload(true); }, 1500);
    });
    // Only reconnects. The stream of the header shows an outage or the sign-in form.
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (!signal.aborted) connect(); }, 5000); });
  }

  wait();
  replace(body, part.element);
  connect();
  signal.addEventListener("abort", () => source?.close());
}
