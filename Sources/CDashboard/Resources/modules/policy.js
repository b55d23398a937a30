// Which claims a token must carry.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { settingsForm } from "./dialogs.js";
import { card, field, toast } from "./ui.js";
import { view } from "./views.js";

const algorithms = [["RS256", "RSA, SHA-256; what the SDKs' documentation asks for"], ["PS256", "RSA-PSS, SHA-256"], ["ES256", "P-256"], ["EdDSA", "Ed25519"]];

export function policy(context) {
  const base = path("apps", context.app.id, "policy");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: rules, etag }) => {
    const readonly = !context.can("operator");
    const known = [...algorithms, ...rules.algorithms.filter((name) => !algorithms.some(([other]) => other === name)).map((name) => [name, ""])];
    const tick = (list, value, label) => h("label", { class: "tick" }, h("input", { type: "checkbox", name: list, value, checked: rules[list].includes(value), disabled: readonly }), h("span", {}, label));
    const leeway = h("input", { type: "number", name: "leeway_seconds", min: 0, max: 300, required: true, value: rules.leeway_seconds, disabled: readonly });
    const life = h("input", { type: "number", name: "maximum_lifetime_seconds", min: 1, value: rules.maximum_lifetime_seconds ?? "", placeholder: "no limit", disabled: readonly });
    const audience = h("input", { type: "text", name: "audience", value: rules.audience ?? "", placeholder: "not checked", disabled: readonly, spellcheck: "false" });
    const issuer = h("input", { type: "text", name: "issuer", value: rules.issuer ?? "", placeholder: "not checked", disabled: readonly, spellcheck: "false" });
    const why = h("p", { class: "hint", id: "required-why" }, "A claim that is compared can be demanded: say an audience or an issuer first.");
    const boxes = ["aud", "iss", "typ"].map((name) => tick("required", name, h("code", {}, name)));
    // The gateway refuses to demand what it would compare with nothing.
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
      card("Time", h("div", { class: "grid-form" }, field("Leeway, seconds", leeway, "How far clocks may differ; at most 300."), field("Longest life of a token, seconds", life, "exp minus iat; a longer one fails with code 32."))),
      card("Audience and issuer", h("div", { class: "grid-form" }, field("Audience (aud)", audience), field("Issuer (iss)", issuer)),
        h("fieldset", {}, h("legend", {}, "Must be present"), boxes, why)),
    ], !readonly && "Save the policy", () => api.put(base, {
      algorithms: chosen("algorithms"), leeway_seconds: Number(leeway.value), required: chosen("required"),
      maximum_lifetime_seconds: life.value === "" ? null : Number(life.value), audience: audience.value || null, issuer: issuer.value || null,
    }, etag), async () => { await part.reload(); toast("The policy is saved and in force.", { tone: "good" }); });
    const chosen = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
    return form;
  });
  replace(context.body, part.element);
}
