// The public keys of an app: three slots, a preview before adding, and rotation without an outage.

import { h, replace } from "./dom.js";
import { api, path, Problem } from "./api.js";
import { ago, dateTime, number, plural, duration, DAY, MINUTE } from "./format.js";
import { confirm, dialog, formDialog } from "./dialogs.js";
import { badge, button, card, copy, copyable, field, menu, notice, problemNotice, toast } from "./ui.js";
import { attempt, view } from "./views.js";
import { remember } from "./address.js";
import { icon } from "./icons.js";
import { facts } from "./sample.js";
import { withoutKeys } from "./impact.js";
import { keySource } from "./keysource.js";

const slots = ["primary", "secondary", "tertiary"];
const slotName = { primary: "Primary", secondary: "Secondary", tertiary: "Tertiary" };

export function keys(context) {
  const { app, body, can } = context;
  const base = path("apps", app.id, "keys");

  const part = view(context, async (signal) => {
    const now = Date.now();
    const [list, policy, top] = await Promise.all([
      api.get(base, { limit: 50 }, signal), api.get(path("apps", app.id, "policy"), {}, signal).catch(() => null),
      api.get(path("apps", app.id, "analytics", "top"), { from_ms: now - DAY, to_ms: now, by: "key" }, signal).catch(() => ({ items: [] })),
    ]);
    return { items: list.items, policy, today: Object.fromEntries(top.items.map((item) => [item.value, item.requests - item.failures])) };
  }, draw, { every: 10_000, bones: 6 });

  function draw({ items, policy, today }) {
    const bySlot = Object.fromEntries(items.map((key) => [key.slot, key]));
    const room = items.length < slots.length;
    return h("div", { class: "stack" },
      h("div", { class: "lead-row" }, h("p", { class: "lead" }, "Your backend signs with the private key; the gateway verifies with these public keys. Up to three for each app, and the same key may serve several apps."),
        can("operator") && (room
          ? button("Add public key", { kind: "primary", symbol: "plus", onclick: () => addKey(bySlot), "data-focus": "add" })
          : h("p", { class: "muted" }, "All three slots are used; delete one to add another."))),
      h("div", { class: "slots" }, slots.map((slot) => (bySlot[slot] ? keyCard(bySlot[slot], bySlot, today) : emptySlot(slot, bySlot)))),
      rotation(bySlot, policy));
  }

  function emptySlot(slot, bySlot) {
    return h("section", { class: "card slot vacant", "aria-label": `${slotName[slot]} key` }, h("p", { class: "slot-name" }, slotName[slot]),
      h("p", { class: "muted" }, slot === "primary" ? "Without a key every signed request fails with code 27." : "Free. Use it to change keys without an outage."),
      slot === slots.find((name) => !bySlot[name]) && can("operator") && button("Add public key", { symbol: "plus", onclick: () => addKey(bySlot) }));
  }

  function keyCard(key, bySlot, today) {
    const primary = key.slot === "primary";
    return h("section", { class: `card slot ${key.slot}`, "aria-label": `${slotName[key.slot]} key`, "data-key": key.id },
      h("div", { class: "card-head" }, h("p", { class: "slot-name" }, slotName[key.slot]),
        can("operator") && menu("Manage", [
          { label: "Make primary key", symbol: "key", disabled: primary, why: "It is the primary key.", onclick: () => makePrimary(key, bySlot.primary) },
          { label: "Edit description", symbol: "policy", onclick: () => describe(key) },
          { label: "Show the key", symbol: "eye", onclick: () => showKey(key) },
          { label: "Delete public key", symbol: "trash", danger: true, disabled: key.can_delete === false,
            why: key.delete_blocked_reason ?? "First assign a new primary key, then delete this one.", onclick: () => remove(key) },
        ])),
      h("p", { class: "key-description" }, key.description || "No description"),
      h("p", { class: "mono thumbprint" }, key.id, h("button", { type: "button", class: "icon-button small", "aria-label": "Copy the key id", title: "Copy the key id", onclick: () => copy(key.id) }, icon("copy", 14))),
      h("p", { class: "badges" }, badge(kindOf(key)), badge(key.alg)),
      facts([["Last verified", key.last_verified_ms ? h("span", { title: dateTime(key.last_verified_ms) }, ago(key.last_verified_ms)) : "never"],
        ["Verified in 24 h", number(today[key.id] ?? 0)], ["Verified in total", number(key.verified_total)], ["Added", h("span", { title: dateTime(key.added_ms) }, ago(key.added_ms))]]),
      key.can_delete === false && h("p", { class: "blocked" }, icon("info", 14), key.delete_blocked_reason ?? "The primary key cannot be deleted: first assign a new primary key."),
      (key.warnings ?? []).map((text) => notice("amber", text)));
  }

  async function makePrimary(key, old) {
    const done = await attempt(() => api.patch(`${base}${path(key.id)}`, { slot: "primary" }));
    if (!done) return;
    await part.reload();
    toast(`${key.description || short(key.id)} is the primary key now.`, old ? { tone: "good", action: "Undo", onaction: async () => {
      if (await attempt(() => api.patch(`${base}${path(old.id)}`, { slot: "primary" }))) { part.reload(); toast(`${old.description || short(old.id)} is the primary key again.`); }
    } } : {});
  }

  async function describe(key) {
    const input = h("input", { type: "text", value: key.description ?? "", maxlength: 200, autofocus: true });
    const saved = await formDialog("Edit description", "Save", [field("Description", input)], () => api.patch(`${base}${path(key.id)}`, { description: input.value.trim() }));
    if (saved) part.reload();
  }

  function showKey(key) {
    dialog("Public key", () => [facts([["Key id (RFC 7638 thumbprint)", h("span", { class: "mono" }, key.id)], ["Kind", `${kindOf(key)}, ${key.alg}`]]), key.pem && copyable(key.pem, "Copy the key")]);
  }

  /**
   * The consequence of deleting the last key, based on current data; null if other keys remain, keys of a key source
   * are loaded, or tokens are not verified.
   */
  async function lastKey() {
    const [now, source] = await Promise.all([api.get(path("apps", app.id)), api.get(path("apps", app.id, "key-source"))]).catch(() => [app, null]);
    return now.keys > 1 || source?.sources.some(({ keys }) => keys.length > 0) ? null : withoutKeys(now);
  }

  async function remove(key) {
    const recent = key.last_verified_ms && Date.now() - key.last_verified_ms < DAY;
    const last = await lastKey();
    const sure = await confirm("Delete public key", {
      text: [last && notice("bad", "This is the last key of the app.", h("p", {}, last)), `Tokens signed with ${key.description || short(key.id)} will no longer be verified: they fail with code 27.`,
        recent ? notice("amber", `It verified a token ${ago(key.last_verified_ms)}.`, h("p", {}, "Devices may still have tokens of this key, which then fail. Wait until they have expired.")) : "It has verified nothing in the last 24 hours."].filter(Boolean),
      action: "Delete public key", phrase: recent || last ? "delete" : undefined,
    });
    if (sure && await attempt(() => api.remove(`${base}${path(key.id)}`))) { await part.reload(); toast("The key is deleted."); }
  }

  async function addKey(bySlot) {
    const slot = slots.find((name) => !bySlot[name]);
    const text = h("textarea", { rows: 7, spellcheck: "false", autocomplete: "off", class: "mono", placeholder: "-----BEGIN PUBLIC KEY-----", autofocus: true });
    const description = h("input", { type: "text", maxlength: 200, placeholder: "for example: token service, November 2026" });
    const token = h("input", { type: "text", class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "eyJ…" });
    const file = h("input", { type: "file", class: "visually-hidden", accept: ".pem,.pub,.crt,.cer,.json,.jwk,.jwks", tabindex: -1, "aria-label": "Key file" });
    const preview = h("div", { class: "preview", "aria-live": "polite" });
    const save = h("button", { type: "submit", class: "button primary", disabled: true }, "Add public key");
    let found = [];
    let timer;
    let turn = 0;
    const look = async () => {
      turn += 1;
      const mine = turn;
      save.disabled = true;
      if (text.value.trim() === "") return replace(preview);
      try {
        const answer = await api.post(`${base}/preview`, { text: text.value, ...(token.value.trim() ? { token: token.value.trim() } : {}) });
        if (mine !== turn) return;
        found = answer.keys;
        replace(preview, found.length === 0 ? notice("amber", "This text contains no key. Paste a PEM, JWK, JWK Set or certificate.") : found.map((key) => candidate(key, found.length > 1)),
          (answer.problems ?? []).map((text) => notice("amber", text)));
        save.disabled = !found.some((key) => !key.already_here);
        choose();
      } catch (error) {
        if (mine !== turn) return;
        found = [];
        replace(preview, error instanceof Problem && error.code === "private_key" ? refused(error) : problemNotice(error));
      }
    };
    const choose = () => {
      const picked = preview.querySelector("input[name=candidate]:checked");
      if (found.length > 1) save.disabled = !picked;
    };
    const candidate = (key, several) => h("div", { class: `candidate ${key.already_here ? "known" : ""}` },
      several && h("input", { type: "radio", name: "candidate", value: key.id, disabled: key.already_here, "aria-label": `Add the key ${key.id}`, onchange: choose }),
      h("div", {}, h("p", { class: "mono thumbprint" }, key.id),
        h("p", { class: "badges" }, badge(kindOf(key)), badge(key.alg ?? "–"), badge({ pem: "PEM", jwk: "JWK", jwks: "JWK Set", certificate: "Certificate" }[key.source] ?? key.source),
          key.verifies_token === true && badge("verifies your token", "good"), key.verifies_token === false && badge("does not verify your token", "bad")),
        key.kid && h("p", { class: "muted" }, `kid in the text: ${key.kid}`),
        key.expires_ms && h("p", { class: "muted" }, `The certificate ends ${dateTime(key.expires_ms)}; the key itself keeps working here.`),
        key.already_here && notice("amber", "This app has this key already."),
        (key.in_apps ?? []).filter((other) => other !== app.id).length > 0 && h("p", { class: "muted" }, `Also used by: ${key.in_apps.filter((other) => other !== app.id).join(", ")}`),
        (key.warnings ?? []).map((warning) => notice("amber", warning))));
    const refused = (error) => {
      text.value = "";
      return notice("bad", "This is a private key. It was not saved, and the field was emptied.",
        h("p", {}, error.message), h("p", {}, "It has now been in a clipboard and in a browser: treat it as leaked. Make a new pair, and paste only the public half here."),
        copyable("countersign key generate --out ."));
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(look, 300); };
    text.addEventListener("input", soon);
    token.addEventListener("input", soon);
    const read = async (chosen) => {
      if (!chosen) return;
      if (chosen.size > 100_000) return replace(preview, notice("bad", "This file is too large to be a key."));
      const bytes = new Uint8Array(await chosen.arrayBuffer());
      // A DER certificate is converted to PEM for the API.
      text.value = bytes[0] === 0x30 ? der(bytes) : new TextDecoder().decode(bytes);
      look();
    };
    file.addEventListener("change", () => read(file.files[0]));
    const drop = h("div", { class: "drop" }, field("Public key", text, "PEM, JWK, JWK Set or certificate. Paste it, or drop a file here."),
      file, button("Choose a file", { symbol: "down", onclick: () => file.click() }));
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); read(event.dataTransfer.files[0]); });
    const trouble = h("div", {});
    const added = await dialog("Add public key", (close) => h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const picked = found.find((key) => key.id === preview.querySelector("input[name=candidate]:checked")?.value);
      save.disabled = true;
      const done = await attempt(async () => {
        await api.post(base, { text: picked?.pem ?? text.value, description: description.value.trim() });
      }, trouble);
      save.disabled = false;
      if (done) close(true);
    } }, h("p", { class: "muted" }, `It becomes the ${slot} key.`), drop, preview, field("Description (optional)", description),
    h("details", {}, h("summary", {}, "Test with a token"), field("A token that your backend signed", token, "It is used for this test only and is not kept.")),
    trouble, h("div", { class: "actions end" }, button("Cancel", { onclick: () => close() }), save)), { wide: true });
    if (added) { await part.reload(); toast("The key is added.", { tone: "good" }); }
  }

  // Derives the step from the keys, so that it survives reloads and is the same for all users.
  function rotation(bySlot, policy) {
    const { primary } = bySlot;
    if (!primary) return null;
    const others = slots.slice(1).map((slot) => bySlot[slot]).filter(Boolean);
    const incoming = others.filter((key) => key.added_ms > primary.added_ms).sort((one, two) => two.added_ms - one.added_ms)[0];
    const outgoing = incoming ? null : others.filter((key) => key.added_ms < primary.added_ms).sort((one, two) => one.added_ms - two.added_ms)[0];
    const life = policy?.maximum_lifetime_seconds ? (policy.maximum_lifetime_seconds + (policy.leeway_seconds ?? 0)) * 1000 : DAY;
    const quiet = outgoing ? Date.now() - (outgoing.last_verified_ms ?? outgoing.added_ms) : 0;
    const safe = outgoing && (!outgoing.last_verified_ms || quiet > life);
    const step = incoming ? (incoming.verified_total > 0 ? 3 : 2) : outgoing ? (safe ? 5 : 4) : 1;
    const item = (index, title, text, ...action) => h("li", { class: index < step ? "done" : index === step ? "now" : "later", "aria-current": index === step ? "step" : undefined },
      h("span", { class: "step-mark", "aria-hidden": "true" }, index < step ? icon("check", 14) : index),
      h("div", {}, h("h3", {}, title, index < step && h("span", { class: "visually-hidden" }, " (done)")), index <= step && [h("p", {}, text), index === step && can("operator") && action]));
    const progress = Math.min(1, quiet / life);
    return card("Change the key without an outage", h("ol", { class: "steps" },
      item(1, "Add the new public key", "It takes the next free slot; nothing changes for devices yet.", others.length < 2 && button("Add public key", { symbol: "plus", onclick: () => addKey(bySlot) })),
      item(2, "Let your backend sign with the new private key", step === 2
        ? h("span", { class: "waiting" }, h("span", { class: "pulse wait", "aria-hidden": "true" }), "Waiting for the first token that it verifies. This page checks every 10 seconds.")
        : "Live traffic has verified with it.",
      incoming && button("Make it primary without waiting", { kind: "quiet", onclick: async () => {
        if (await confirm("Not seen yet", { text: "No live token was verified with this key. If the backend does not use it, nothing breaks now, but deleting the old key later would.", action: "Make primary key", kind: "primary" })) makePrimary(incoming, primary);
      } })),
      item(3, "Make it the primary key", incoming ? `It has verified ${plural(incoming.verified_total, "token")}, the last ${ago(incoming.last_verified_ms)}. Both keys keep working.` : "Both keys keep working.",
        incoming && button("Make primary key", { kind: "primary", onclick: () => makePrimary(incoming, primary) })),
      item(4, "Wait until the old tokens have expired", outgoing && !safe
        ? [`The old key verified a token ${ago(outgoing.last_verified_ms)}. It can be deleted after ${duration(Math.max(MINUTE, life - quiet))} without another token `,
          policy?.maximum_lifetime_seconds ? "(the longest life of a token, plus the leeway)." : "(this app sets no longest life of a token, so a day is assumed).",
          h("progress", { max: 1, value: progress, "aria-label": "Quiet time of the old key" })]
        : "The old key has verified no token for longer than a token lives."),
      item(5, "Delete the old key", outgoing ? `${outgoing.description || short(outgoing.id)} is no longer needed.` : "It is no longer needed.",
        outgoing && button("Delete public key", { kind: "danger", onclick: () => remove(outgoing) }))));
  }

  replace(body, part.element, keySource(context));
  // `add` is in the links of the first steps, and of failures that a new key would fix.
  if (context.query.get("add") && can("operator")) {
    remember(base, {});
    api.get(base, { limit: 50 }, context.signal).then(({ items }) => items.length < slots.length && addKey(Object.fromEntries(items.map((key) => [key.slot, key]))), () => {});
  }
}

function short(id) {
  return id.length > 12 ? `${id.slice(0, 10)}…` : id;
}

function kindOf(key) {
  if (key.bits) return `${key.kty} ${key.bits} bit`;
  return key.crv ? `${key.kty} ${key.crv}` : key.kty;
}

function der(bytes) {
  const lines = btoa(String.fromCharCode(...bytes)).replace(/(.{64})/g, "$1\n").trim();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
