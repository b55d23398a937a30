// The second factor: setup with an authenticator app, recovery codes, and removal.

import { h, replace, s } from "./dom.js";
import { api } from "./api.js";
import { dialog } from "./dialogs.js";
import { button, copyable, field, notice, problemNotice, toast } from "./ui.js";
import { plural } from "./format.js";

const QUIET = 4;

/** A field for a six-digit code or a recovery code. */
export function codeField(label, hint) {
  const input = h("input", { type: "text", autocomplete: "one-time-code", required: true, maxlength: 64, spellcheck: "false", autocapitalize: "none", class: "mono", name: "code" });
  return [field(label, input, hint), input];
}

function passwordField() {
  const input = h("input", { type: "password", autocomplete: "current-password", required: true, maxlength: 1024, name: "password" });
  return [field("Your password", input), input];
}

/** A QR code. It is dark on light in all themes, as cameras require. */
function qrCode(rows) {
  const dark = rows.flatMap((row, y) => [...row].map((module, x) => (module === "1" ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  const side = rows.length + 2 * QUIET;
  return s("svg", { viewBox: `${-QUIET} ${-QUIET} ${side} ${side}`, class: "qr", role: "img", "aria-label": "QR code for the authenticator app; the same secret is shown below as text" },
    s("rect", { x: -QUIET, y: -QUIET, width: side, height: side, fill: "#fff" }), s("path", { d: dark, fill: "#000", "shape-rendering": "crispEdges" }));
}

function problemOf(error) {
  return error.fields?.length ? notice("bad", error.fields.map(({ pointer, detail }) => `${pointer === "/password" ? "The password" : "The code"} ${detail}.`).join(" ")) : problemNotice(error);
}

/** A form whose button is disabled while sending. Errors of `send` are shown in it. */
function form(action, parts, send, cancel) {
  const trouble = h("div", {});
  const submit = h("button", { type: "submit", class: "button primary" }, action);
  return h("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    submit.disabled = true;
    replace(trouble);
    try {
      await send();
    } catch (error) {
      if (error.name !== "Problem" && error.status === undefined) console.error(error);
      replace(trouble, problemOf(error));
    }
    submit.disabled = false;
  } }, parts, trouble, h("div", { class: "actions end" }, cancel && button("Cancel", { onclick: cancel }), submit));
}

/** Shows the recovery codes once. `done` is called after the user has confirmed storing them. */
function recoveryCodes(place, codes, done) {
  const text = `Recovery codes for Countersign at ${location.host}\nEach works once.\n\n${codes.join("\n")}\n`;
  const file = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  replace(place, notice("amber", "Keep these recovery codes. They are shown only once.",
    h("p", {}, "Each one signs you in once when you do not have your phone. Print them, or store them in your password manager.")),
  copyable(codes.join("\n"), "Copy the recovery codes"),
  h("div", { class: "actions end" }, h("a", { class: "button plain", href: file, download: "countersign-recovery-codes.txt" }, "Download"),
    button("I have stored them", { kind: "primary", onclick: () => { URL.revokeObjectURL(file); done(); } })));
  place.querySelector(".button.primary")?.focus();
}

/** Guides from the password to the recovery codes. `done` is called at the end. */
function setUp(place, done, cancel) {
  const [box, password] = passwordField();
  const put = (...parts) => {
    replace(place, parts);
    place.querySelector("input")?.focus();
  };
  put(form("Continue", [h("p", {}, "From then on you sign in with your password and a six-digit code from an authenticator app."), box], async () => {
    const begun = await api.post("/session/second-factor", { password: password.value });
    const [codeBox, code] = codeField("Code from the app", "Six digits; the app shows a new code every 30 seconds.");
    put(form("Turn it on", [
      h("p", {}, "Scan this with an authenticator app, then enter the code it shows."),
      begun.qr.length > 0 && qrCode(begun.qr), h("p", { class: "muted" }, "No camera? Type this secret into the app:"), copyable(begun.secret, "Copy the secret"), codeBox,
    ], async () => {
      const { recovery_codes: codes } = await api.post("/session/second-factor/confirm", { code: code.value });
      recoveryCodes(place, codes, done);
    }, cancel));
  }, cancel));
}

/** The setup of a required second factor, without a way to cancel. */
export function setUpFirst(place, done) {
  setUp(place, done, null);
}

/** The user's own second factor, in a dialog. */
export async function ownSecondFactor(reload) {
  const session = await api.get("/session");
  const factor = session.second_factor;
  const changed = await dialog("Second factor", (close) => {
    const place = h("div", {});
    if (!factor.on) {
      setUp(place, () => close("The second factor is on, and your other sessions have ended."), () => close());
      return place;
    }
    const again = (action, path, then) => {
      const [box, password] = passwordField();
      replace(place, form(action, [box], async () => then(await api.post(path, { password: password.value })), () => close()));
      password.focus();
    };
    replace(place, h("p", {}, `It is on. ${plural(factor.recovery_codes, "recovery code")} left.`), h("div", { class: "actions end" },
      button("New recovery codes", { onclick: () => again("Make new ones", "/session/second-factor/recovery-codes",
        ({ recovery_codes: codes }) => recoveryCodes(place, codes, () => close("Your earlier recovery codes no longer work."))) }),
      button("Turn it off", { kind: "danger", onclick: () => again("Turn it off", "/session/second-factor/disable", () => close("The second factor is off.")) })));
    return place;
  });
  if (!changed) return;
  toast(changed, { tone: "good", stay: 8_000 });
  reload();
}
