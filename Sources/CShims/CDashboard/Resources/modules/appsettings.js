// The settings of one app: name, write keys, retention, origins, alert webhook.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, bytes, DAY, dateTime, number, plural } from "./format.js";
import { confirm, formDialog, removable, settingsForm, showOnce, showValue } from "./dialogs.js";
import { button, card, copy, copyable, emptyState, field, iconButton, privateAddress, stacked, table, toast } from "./ui.js";
import { attempt, view } from "./views.js";
import { bulk } from "./bulk.js";
import { sizeInput } from "./units.js";

export function appSettings(context) {
  const { app, can } = context;
  const base = path("apps", app.id);
  const readonly = !can("operator");
  const part = view(context, async (signal) => {
    // The last path begins with `/../..`, because the file is outside the admin API.
    const [about, writeKeys, webhook, script] = await Promise.all([api.read(base, {}, signal), api.get(`${base}/write-keys`, {}, signal), api.read(`${base}/webhook`, {}, signal),
      api.get("/../../sdk/countersign.json", {}, signal)]);
    return { about: about.data, etag: about.etag, writeKeys: writeKeys.items, webhook: webhook.data, webhookTag: webhook.etag, script };
  }, ({ about, etag, writeKeys, webhook, webhookTag, script }) => h("div", { class: "stack" }, general(about, etag), writeKeyCard(writeKeys), scriptCard(script), webhookCard(webhook, webhookTag), can("owner") && deletionCard()));

  function general(about, etag) {
    const name = h("input", { type: "text", name: "name", maxlength: 100, value: about.name ?? "", disabled: readonly });
    const days = h("input", { type: "number", name: "retention_days", min: 1, value: about.retention_days ?? "", placeholder: "no limit", disabled: readonly });
    const size = sizeInput(about.retention_bytes, { label: "Keep events, at most", name: "retention_bytes", placeholder: "no limit", disabled: readonly });
    const origins = h("textarea", { rows: 3, name: "origins", spellcheck: "false", class: "mono", value: (about.origins ?? []).join("\n"), placeholder: "https://shop.example", disabled: readonly });
    const limit = (input) => (input.value === "" ? null : Number(input.value));
    const kept = () => ({ days: limit(days), bytes: size.read() });
    return card("General", settingsForm([
      h("div", { class: "grid-form" }, field("Name", name), field("Keep events, days", days), field("Keep events, at most", size.input, null, size.unit)),
      field("Origins", origins, "Web pages that may send events, one per line (CORS)."),
    ], !readonly && "Save", () => api.patch(base, { name: name.value.trim(), retention_days: kept().days, retention_bytes: kept().bytes, origins: origins.value.split(/\s+/).filter(Boolean) }, etag),
    async () => { await part.reload(); toast("Saved.", { tone: "good" }); }, { ask: () => mayKeepLess(about, kept()) }));
  }

  /** Asks for confirmation if a lower retention deletes events. */
  async function mayKeepLess(before, { days, bytes: most }) {
    const fewer = (now, old) => now !== null && (old === null || now < old);
    const byAge = fewer(days, before.retention_days);
    const bySize = fewer(most, before.retention_bytes);
    if (!byAge && !bySize) return true;
    const cutoff = Date.now() - days * DAY;
    // Asks even if the affected events cannot be counted.
    const [old, overview] = await Promise.all([
      byAge ? api.get(`${base}/events`, { to_ms: Math.max(1, cutoff), limit: 500 }).catch(() => null) : null, api.get("/overview").catch(() => null)]);
    const count = old && (old.next ? "500 events or more are" : old.items.length === 0 ? "None is" : old.items.length === 1 ? "One event is" : `${number(old.items.length)} events are`);
    const losesNone = !bySize && old?.items.length === 0;
    return await confirm("Delete older events?", {
      text: [
        byAge && `Events of ${app.name || app.id} that were received before ${dateTime(cutoff)} are deleted within minutes, and later ones as soon as they are ${plural(days, "day")} old.${count ? ` ${count} older than that now.` : ""}`,
        bySize && `The oldest events of ${app.name || app.id} are deleted until the others have at most ${bytes(most)}.${overview ? ` All apps together have ${plural(overview.storage.events, "event")} now, in ${bytes(overview.storage.file_bytes)}.` : ""}`,
        "They cannot be brought back. Backups are not changed.",
      ].filter(Boolean), action: losesNone ? "Save" : "Save and delete", phrase: losesNone ? undefined : "delete",
    });
  }

  /** The consequence of deleting a write key, for the confirmation dialog. */
  function lossOf(key, items) {
    const isUsed = Date.now() - (key.last_used_ms ?? -Infinity) < 30 * DAY;
    return [items.length === 1 && "It is the app's last write key: without it no app can send.", isUsed && `It was used ${ago(key.last_used_ms)}.`,
      "Apps that send with it are rejected at once, and keep their events."].filter(Boolean);
  }

  /** Deletes a write key after the dialog. For a key in use, the gateway requires its id again. */
  function removeKey(key) {
    return api.remove(`${base}/write-keys${path(key.id)}?confirm=${encodeURIComponent(key.id)}`);
  }

  function writeKeyCard(items) {
    const picked = bulk({
      noun: "write key", action: "Delete", past: "deleted", text: "Apps that send with them are rejected at once, and keep their events. Check when each was last used, and keep one for sending.", phrase: "delete",
      name: (key) => `the write key ${key.description || key.id}`, remove: removeKey, done: part.reload,
    });
    const shownKey = (key) => (key.write_key ? h("span", { class: "mono" }, key.write_key, iconButton(`Copy the write key ${key.description || key.id}`, "copy", () => copy(key.write_key)))
      : h("span", { class: "mono" }, key.prefix ? `${key.prefix}…` : key.id));
    return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Write keys"), !readonly && button("Create a write key", { symbol: "plus", onclick: addWriteKey })),
      items.length === 0 ? emptyState("key", "No write key", "The app needs a write key to send.") : [picked.bar, table("Write keys", [
        !readonly && items.length > 1 && picked.column,
        { title: "Key", heading: true, cell: (key) => stacked(shownKey(key), key.prefix && h("span", { class: "mono" }, key.id)) }, { title: "Description", cell: (key) => key.description || "–" },
        { title: "Created", cell: (key) => dateTime(key.created_ms) }, { title: "Last used", cell: (key) => ago(key.last_used_ms ?? NaN) },
        { title: "", cell: (key) => !readonly && removable("Delete", `the write key ${key.description || key.id}`, { text: lossOf(key, items), phrase: "delete" },
          () => removeKey(key), part.reload) },
      ].filter(Boolean), items), !readonly && items.some((key) => !key.write_key) && h("p", { class: "muted" }, "A key that ends in … was created by a version that stored only its hash, so it cannot be shown whole.")]);
  }

  function scriptCard({ path: place, integrity }) {
    const address = `${location.origin}${place}`;
    return card("Client for web pages", h("p", { class: "muted" }, "A copy of the client on this gateway, which pages of the origins above may load. Its address changes with the gateway's version."),
      copyable(`<script type="module" src="${address}" integrity="${integrity}" crossorigin></script>\n<script type="module">\n  import { Countersign } from "${address}";\n</script>`));
  }

  async function addWriteKey() {
    const description = h("input", { type: "text", maxlength: 200, autofocus: true });
    const made = await formDialog("Create a write key", "Create write key", [field("Description", description)], () => api.post(`${base}/write-keys`, { description: description.value.trim() }));
    if (!made) return;
    await showValue("The new write key", "Apps send it with every request. You can see it here again later.", made.write_key);
    part.reload();
  }

  function webhookCard(webhook, etag) {
    const url = h("input", { type: "url", name: "url", value: webhook.url ?? "", placeholder: "https://example.com/hooks/countersign", disabled: readonly });
    const inside = privateAddress(context, webhook);
    const test = () => attempt(async () => {
      await api.post(`${base}/webhooks/alerts/test`);
      toast("The test is being sent.", { action: "See its result", onaction: () => { location.hash = `#${base}/webhooks?deliveries=alerts`; } });
    });
    return card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Alert webhook"), !readonly && webhook.url && button("Send a test", { onclick: test })), h("p", { class: "muted" }, "Receives a signed request (Standard Webhooks) when many requests are rejected (at most once an hour), when enforcement returns to Optional automatically, when a webhook is paused, when a stream is too far behind, and when events that a consumer had not confirmed were deleted."),
      settingsForm([field("Address", url, webhook.secret_set ? "A secret is set." : "A secret is created when you save."), !readonly && inside.control], !readonly && "Save",
        () => api.put(`${base}/webhook`, { url: url.value.trim() || null, allow_private: inside.read(url.value.trim()) }, etag), async ({ data }) => {
          if (data?.secret) await showOnce("The webhook's secret", "Your receiver checks the signature with it.", data.secret);
          await part.reload();
          toast("Saved.", { tone: "good" });
        }, { kind: "plain" }));
  }

  function deletionCard() {
    return card("Delete this app", h("p", { class: "muted" }, "Its keys, settings, clients and sessions stop working at once. Its events, customers and counts are removed in the background."),
      h("div", { class: "actions" }, button("Delete this app", { kind: "danger", onclick: removeApp })));
  }

  async function removeApp() {
    const text = [`The gateway rejects all requests of ${app.name || app.id}, and removes its events, customers, keys and counts. This cannot be undone. Backups and the audit log are not changed.`];
    if (!await confirm(`Delete ${app.name || app.id}`, { text, action: "Delete the app", phrase: app.id })) return;
    await attempt(async () => {
      await api.remove(base, undefined, { confirm: app.id });
      toast(`${app.id} is deleted; its data is being removed.`, { tone: "good" });
      location.hash = "#/";
    });
  }

  replace(context.body, part.element);
}
