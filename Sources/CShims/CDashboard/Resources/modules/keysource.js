// An external JWK Set whose keys are used in addition to the app's own.

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
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: source, etag }) => card(null,
    h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Published keys"),
      operator && h("div", { class: "push" }, source.url && button("Unfollow", { onclick: () => unfollow(etag) }),
        button(source.url ? "Change" : "Follow a JWK Set", { onclick: () => follow(source, etag) }))),
    source.url === null ? h("p", { class: "muted" }, "Does an identity provider sign your tokens? Follow its JWK Set: its keys verify beside these, and change when it changes them.")
      : [facts([["Address", h("span", { class: "mono wrap" }, source.url)],
        ["Keys", plural(source.keys.length, "key")],
        ["Last fetched", source.fetched_ms ? h("span", { title: dateTime(source.fetched_ms) }, ago(source.fetched_ms)) : "not yet"]]),
      source.problem && notice("amber", "The last fetch failed.", h("p", {}, prose(source.problem)))]), { every: 10_000, bones: 2 });

  async function follow(source, etag) {
    const url = h("input", { type: "url", name: "url", required: true, maxlength: 2048, value: source.url ?? "", placeholder: "https://login.example.com/.well-known/jwks.json", autofocus: true });
    const inside = privateAddress(context, source);
    const done = await formDialog("Follow a JWK Set", "Follow", [field("Address", url, "https, without a user name."),
      inside.control],
    () => api.put(base, { url: url.value.trim(), allow_private: inside.read(url.value.trim()) }, etag));
    if (done) { await part.reload(); toast("The keys are fetched now.", { tone: "good" }); }
  }

  async function unfollow(etag) {
    const app = await api.get(path("apps", context.app.id)).catch(() => context.app);
    const last = app.keys > 0 ? null : withoutKeys(app);
    if (!await confirm("Stop following this JWK Set", { text: [last && notice("bad", "The app has no other key.", h("p", {}, last)),
      "Tokens signed with its keys fail with code 27 from now on, unless the key is in a slot as well."].filter(Boolean), action: "Unfollow", phrase: last ? "delete" : undefined })) return;
    if (await attempt(() => api.remove(base, etag))) { await part.reload(); toast("Its keys no longer verify."); }
  }

  return part.element;
}
