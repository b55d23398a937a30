// Published keys that are used in addition to the app's own.

import { h, prose } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime, plural } from "./format.js";
import { confirm, formDialog } from "./dialogs.js";
import { button, card, field, notice, privateAddress, toast } from "./ui.js";
import { attempt, view } from "./views.js";
import { facts } from "./sample.js";
import { withoutKeys } from "./impact.js";

export function keySource(context) {
  const base = path("apps", context.app.id, "key-source");
  const operator = context.can("operator");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: { sources }, etag }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Published keys"),
      operator && h("div", { class: "push" }, button("Follow published keys", { onclick: () => follow(sources, etag) }))),
    sources.length === 0 ? h("p", { class: "muted" }, "Does an identity provider sign your tokens? Follow its keys: they verify tokens in addition to the keys above, and are updated automatically.")
      : sources.map((source) => [facts([["Address", h("span", { class: "mono wrap" }, source.url)],
        ["Keys", plural(source.keys.length, "key")],
        ["Last fetched", source.fetched_ms ? h("span", { title: dateTime(source.fetched_ms) }, ago(source.fetched_ms)) : "not yet"]]),
      source.problem && notice("amber", "The last fetch failed.", h("p", {}, prose(source.problem))),
      operator && button("Unfollow", { "aria-label": `Unfollow ${source.url}`, onclick: () => unfollow(sources, source, etag) })])), { every: 10_000, bones: 2 });

  async function follow(sources, etag) {
    const url = h("input", { type: "url", name: "url", required: true, maxlength: 2048, placeholder: "https://login.example.com/.well-known/openid-configuration", autofocus: true });
    const inside = privateAddress(context, {});
    const done = await formDialog("Follow published keys", "Follow", [field("Address", url, "A JWK Set, or an OpenID provider's /.well-known/openid-configuration; https, without a user name."),
      inside.control],
    () => api.put(base, { sources: [...sources, { url: url.value.trim(), allow_private: inside.read(url.value.trim()) }] }, etag));
    if (done) { await part.reload(); toast("The keys are fetched now.", { tone: "good" }); }
  }

  async function unfollow(sources, source, etag) {
    const app = await api.get(path("apps", context.app.id)).catch(() => context.app);
    const last = app.keys > 0 || sources.length > 1 ? null : withoutKeys(app);
    if (!await confirm("Stop following these keys", { text: [last && notice("bad", "The app has no other key.", h("p", {}, last)),
      "Tokens signed with its keys fail with code 27 from now on, unless the key is in a slot as well."].filter(Boolean), action: "Unfollow", phrase: last ? "delete" : undefined })) return;
    if (await attempt(() => api.put(base, { sources: sources.filter((other) => other !== source) }, etag))) { await part.reload(); toast("The keys are no longer followed."); }
  }

  return part.element;
}
