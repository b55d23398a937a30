// The required claims of tokens.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { confirm, formDialog, settingsForm } from "./dialogs.js";
import { button, card, field, privateAddress, toast } from "./ui.js";
import { durationInput, seconds } from "./units.js";
import { attempt, view } from "./views.js";

const algorithms = [["RS256", "RSA, SHA-256; as the SDKs' documentation requires"], ["PS256", "RSA-PSS, SHA-256"], ["ES256", "P-256"], ["EdDSA", "Ed25519"]];

/** The tokens that would newly be accepted after a change, in words; empty without any. */
function weakened(before, after) {
  const news = (name) => after[name].filter((value) => !before[name].includes(value));
  const added = news("algorithms");
  const dropped = before.required.filter((name) => !after.required.includes(name));
  const longer = before.maximum_lifetime_seconds !== null && (after.maximum_lifetime_seconds === null || after.maximum_lifetime_seconds > before.maximum_lifetime_seconds);
  return [
    added.length > 0 && `Tokens signed with ${added.join(", ")} are accepted.`,
    ...["audience", "issuer"].map((name) => before[name].length > 0 && (after[name].length === 0 ? `Tokens of any ${name} are accepted, not only of ${before[name].join(", ")}.`
      : news(name).length > 0 && `Tokens of the ${name} ${news(name).join(", ")} are accepted.`)),
    news("typ").length > 0 && `Tokens of the type ${news("typ").join(", ")} are accepted.`,
    dropped.length > 0 && `Tokens without ${dropped.join(", ")} are accepted.`,
    longer && `A stolen token works for ${after.maximum_lifetime_seconds === null ? "as long as its own exp allows" : `up to ${seconds(after.maximum_lifetime_seconds)}`}.`,
    after.leeway_seconds > before.leeway_seconds && `An expired token works for another ${seconds(after.leeway_seconds)}.`,
  ].filter(Boolean);
}

export function policy(context) {
  const base = path("apps", context.app.id, "policy");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: rules, etag }) => {
    const readonly = !context.can("operator");
    const known = [...algorithms, ...rules.algorithms.filter((name) => !algorithms.some(([other]) => other === name)).map((name) => [name, ""])];
    const tick = (list, value, label) => h("label", { class: "tick" }, h("input", { type: "checkbox", name: list, value, checked: rules[list].includes(value), disabled: readonly }), h("span", {}, label));
    const leeway = durationInput(rules.leeway_seconds, { label: "Leeway", name: "leeway_seconds", required: true, disabled: readonly });
    const life = durationInput(rules.maximum_lifetime_seconds, { label: "Maximum token lifetime", name: "maximum_lifetime_seconds", placeholder: "no limit", disabled: readonly });
    const lines = (name) => h("textarea", { name, rows: Math.max(2, rules[name].length), placeholder: "not checked", disabled: readonly, spellcheck: "false" }, rules[name].join("\n"));
    const listed = (input) => input.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const [audience, issuer, kept] = [lines("audience"), lines("issuer"), lines("kept_claims")];
    kept.placeholder = "none";
    const uid = h("input", { type: "text", name: "user_claim", value: rules.user_claim, required: true, maxlength: 256, disabled: readonly, spellcheck: "false" });
    const why = h("p", { class: "hint", id: "required-why" }, "A claim can be required once there is something to compare it with: set an audience or an issuer first.");
    const boxes = ["aud", "iss", "typ"].map((name) => tick("required", name, h("code", {}, name)));
    // The gateway rejects a required claim without an expected value.
    const follow = (input, name) => {
      const box = boxes.map((label) => label.querySelector("input")).find((other) => other.value === name);
      let wanted = box.checked;
      box.addEventListener("change", () => { wanted = box.checked; });
      const show = () => {
        box.disabled = readonly || input.value === "";
        box.checked = wanted && input.value !== "";
        if (input.value === "") box.setAttribute("aria-describedby", why.id);
        else box.removeAttribute("aria-describedby");
        why.hidden = audience.value !== "" && issuer.value !== "";
      };
      input.addEventListener("input", show);
      show();
    };
    follow(audience, "aud");
    follow(issuer, "iss");
    const form = settingsForm([
      card("Algorithms", h("fieldset", {}, h("legend", {}, "Signatures that this app accepts"), known.map(([name, text]) => tick("algorithms", name, [h("strong", {}, name), text && ` ${text}`])))),
      card("Time", h("div", { class: "grid-form" }, field("Leeway", leeway.input, "How far clocks may differ; at most 5 minutes.", leeway.unit), field("Maximum token lifetime", life.input, "exp minus iat; a token that lives longer fails with code 32.", life.unit))),
      card("Audience and issuer", h("div", { class: "grid-form" }, field("Audience (aud)", audience, "One per line; a token must have one of them."), field("Issuer (iss)", issuer, "One per line."), field("User id", uid, "The claim that names the user, such as sub.")),
        h("fieldset", { class: "spaced" }, h("legend", {}, "Types (typ)"), ["JWT", "at+jwt"].map((name) => tick("typ", name, h("code", {}, name)))),
        h("fieldset", { class: "spaced" }, h("legend", {}, "Must be present"), boxes, why)),
      card("Claims kept with events", field("Names", kept, "One per line, at most 8, such as tenant or plan. Texts up to 256 bytes, numbers and booleans of a verified token are stored with each event.")),
    ], !readonly && "Save the policy", () => api.put(base, read(), etag), async () => { await part.reload(); toast("The policy is saved and in force.", { tone: "good" }); }, {
      ask: () => {
        const weaker = weakened(rules, read());
        return weaker.length === 0 || confirm("Accept more tokens than before?", { text: ["From now on:", h("ul", { class: "consequences" }, weaker.map((text) => h("li", {}, text)))], action: "Save the policy", focused: true });
      } });
    const read = () => ({
      algorithms: chosen("algorithms"), leeway_seconds: leeway.read(), required: chosen("required"),
      maximum_lifetime_seconds: life.read(), audience: listed(audience), issuer: listed(issuer), typ: chosen("typ"), user_claim: uid.value.trim(), kept_claims: listed(kept),
    });
    const chosen = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
    // Saves the values of Braze's documentation. The issuer stays, because the SDK API key is not known here.
    const asBraze = () => {
      for (const [name, values] of [["algorithms", ["RS256"]], ["typ", ["JWT"]], ["required", ["typ", ...chosen("required")]]]) {
        for (const box of form.querySelectorAll(`input[name=${name}]`)) box.checked = values.includes(box.value);
      }
      [audience.value, uid.value] = ["braze", "sub"];
      audience.dispatchEvent(new Event("input"));
      form.requestSubmit();
    };
    const braze = card("Tokens as Braze documents them", h("p", { class: "muted" }, "“SDK Authentication” requires RS256 and typ JWT. aud (braze) and iss (the SDK API key) may be absent; a token that has them must have these values. Without this policy, the gateway accepts tokens without typ and ignores aud and iss."),
      h("p", { class: "hint" }, "Tokens without typ or for another audience are then rejected. If your tokens have iss, add the SDK API key as issuer."),
      button("Require this", { onclick: asBraze }));
    return [!readonly && [presets(), braze], form];
  });
  const presets = () => card("Identity provider", h("p", { class: "muted" }, "Take the policy and the keys of the provider that signs your tokens, in place of other published keys."),
    button("Choose a provider", { onclick: choose }));

  async function choose() {
    let providers;
    if (!await attempt(async () => { providers = (await api.get(path("identity-providers"))).items; })) return;
    const which = h("select", { name: "provider" }, providers.map(({ id, name }) => h("option", { value: id }, name)));
    const tenant = h("input", { type: "text", name: "tenant", required: true, maxlength: 200, spellcheck: "false", autofocus: true });
    const audience = h("input", { type: "text", name: "audience", maxlength: 512, spellcheck: "false" });
    const inside = privateAddress(context, {});
    const page = h("p", { class: "hint" });
    const show = () => {
      const found = providers.find(({ id }) => id === which.value);
      tenant.placeholder = found.tenant_example;
      audience.disabled = found.audience === null;
      audience.required = found.audience_required;
      replace(page, found.audience ? `Audience: ${found.audience}. ` : "", h("a", { href: found.documentation, rel: "noreferrer", target: "_blank" }, `${found.name}'s documentation`));
    };
    which.addEventListener("change", show);
    show();
    const done = await formDialog("Tokens of an identity provider", "Set the policy", [field("Provider", which), field("Tenant", tenant), field("Audience", audience), page, inside.control], async () => {
      const query = { tenant: tenant.value.trim(), audience: audience.disabled ? "" : audience.value.trim(), allow_private: inside.read() && "true" };
      const found = await api.get(path("identity-providers", which.value), Object.fromEntries(Object.entries(query).filter(([, value]) => value)));
      const [now, source] = [await api.read(base), await api.read(path("apps", context.app.id, "key-source"))];
      const { leeway_seconds, maximum_lifetime_seconds, kept_claims } = now.data;
      await api.put(base, { ...found.policy, leeway_seconds, maximum_lifetime_seconds, kept_claims }, now.etag);
      // Sets the keys after the policy, because the old policy could accept tokens of the provider's other customers.
      try {
        await api.put(path("apps", context.app.id, "key-source"), { sources: [{ url: found.key_source, allow_private: inside.read() }] }, source.etag);
      } catch (error) {
        error.fields = [];
        error.message = `The policy is set, but its keys are not followed yet. Press “Set the policy” again to finish. ${error.message}`;
        throw error;
      }
    });
    if (!done) part.reload(true);
    else { await part.reload(); toast("The policy is saved and in force; the keys are fetched now.", { tone: "good" }); }
  }

  replace(context.body, part.element);
}
