// The required claims of tokens.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { confirm, settingsForm } from "./dialogs.js";
import { card, field, toast } from "./ui.js";
import { durationInput, seconds } from "./units.js";
import { view } from "./views.js";

const algorithms = [["RS256", "RSA, SHA-256; what the SDKs' documentation asks for"], ["PS256", "RSA-PSS, SHA-256"], ["ES256", "P-256"], ["EdDSA", "Ed25519"]];

/** The tokens that would newly be accepted after a change, in words; empty without any. */
function weakened(before, after) {
  const added = after.algorithms.filter((name) => !before.algorithms.includes(name));
  const dropped = before.required.filter((name) => !after.required.includes(name));
  const longer = before.maximum_lifetime_seconds !== null && (after.maximum_lifetime_seconds === null || after.maximum_lifetime_seconds > before.maximum_lifetime_seconds);
  return [
    added.length > 0 && `Tokens signed with ${added.join(", ")} are accepted.`,
    before.audience && !after.audience && `Tokens that were made for another service than ${before.audience} are accepted.`,
    before.issuer && !after.issuer && `Tokens of any issuer are accepted, not only those of ${before.issuer}.`,
    dropped.length > 0 && `Tokens without ${dropped.join(", ")} are accepted.`,
    longer && `A stolen token works for ${after.maximum_lifetime_seconds === null ? "as long as it says itself" : `up to ${seconds(after.maximum_lifetime_seconds)}`}.`,
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
    const audience = h("input", { type: "text", name: "audience", value: rules.audience ?? "", placeholder: "not checked", disabled: readonly, spellcheck: "false" });
    const issuer = h("input", { type: "text", name: "issuer", value: rules.issuer ?? "", placeholder: "not checked", disabled: readonly, spellcheck: "false" });
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
      card("Audience and issuer", h("div", { class: "grid-form" }, field("Audience (aud)", audience), field("Issuer (iss)", issuer)),
        h("fieldset", { class: "spaced" }, h("legend", {}, "Must be present"), boxes, why)),
    ], !readonly && "Save the policy", () => api.put(base, read(), etag), async () => { await part.reload(); toast("The policy is saved and in force.", { tone: "good" }); }, {
      ask: () => {
        const weaker = weakened(rules, read());
        return weaker.length === 0 || confirm("Accept more tokens than before?", { text: ["From now on:", h("ul", { class: "consequences" }, weaker.map((text) => h("li", {}, text)))], action: "Save the policy", focused: true });
      } });
    const read = () => ({
      algorithms: chosen("algorithms"), leeway_seconds: leeway.read(), required: chosen("required"),
      maximum_lifetime_seconds: life.read(), audience: audience.value || null, issuer: issuer.value || null,
    });
    const chosen = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
    return form;
  });
  replace(context.body, part.element);
}
