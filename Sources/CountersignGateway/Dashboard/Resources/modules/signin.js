// Before the session: the first password by the one-time link, and signing in.

import { h, prose, replace } from "./dom.js";
import { api } from "./api.js";
import { mark } from "./icons.js";
import { field, notice } from "./ui.js";
import { attempt } from "./views.js";

const MINIMUM = 12;

function gate(root, title, lead, ...body) {
  root.className = "";
  replace(root, h("main", { class: "gate" }, h("div", { class: "gate-card" },
    h("div", { class: "gate-brand" }, mark(40), h("span", {}, "Countersign")),
    h("h1", { tabindex: -1 }, title), lead && h("p", { class: "lead" }, lead), body)));
}

function passwordField(label, autocomplete, hint) {
  const input = h("input", { type: "password", autocomplete, required: true, maxlength: 1024 });
  const show = h("button", { type: "button", class: "reveal", "aria-pressed": "false", onclick: () => {
    const shown = input.type === "text";
    input.type = shown ? "password" : "text";
    show.setAttribute("aria-pressed", String(!shown));
    replace(show, shown ? "Show" : "Hide");
  } }, "Show");
  show.setAttribute("aria-label", `Show ${label.toLowerCase()}`);
  const box = field(label, input, hint);
  box.classList.add("with-reveal");
  input.after(show);
  return [box, input];
}

/** Sets the first password with the token of the printed link. */
export function setUp(root, { token, done }) {
  if (!token) {
    return gate(root, "Almost there", "This gateway has no operator yet.",
      h("p", {}, "Open the one-time link that ", h("code", {}, "countersign serve"), " printed when it started. It is valid for 30 minutes."),
      h("p", {}, "The link is gone or too old? ", h("code", {}, "countersign admin reset"), " on the gateway's machine makes a new one."));
  }
  const name = h("input", { type: "text", autocomplete: "username", required: true, maxlength: 64, autofocus: true, spellcheck: "false" });
  const [passwordBox, password] = passwordField("Password", "new-password", `At least ${MINIMUM} characters; a sentence is fine.`);
  const [againBox, again] = passwordField("Password again", "new-password");
  const trouble = h("div", {});
  const send = h("button", { type: "submit", class: "button primary large" }, "Create the owner and sign in");
  gate(root, "Welcome", "You are the first one here. Choose a name and a password: you become the owner.",
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const bytes = new TextEncoder().encode(password.value).length;
      if (bytes < MINIMUM) return complain(trouble, password, `The password needs at least ${MINIMUM} characters.`);
      if (bytes > 1024) return complain(trouble, password, "The password is longer than 1024 bytes.");
      if (password.value !== again.value) return complain(trouble, again, "The two passwords differ.");
      send.disabled = true;
      await attempt(async () => {
        const session = await api.post("/setup", { token, name: name.value.trim(), password: password.value });
        done(session);
      }, trouble);
      send.disabled = false;
    } }, field("Name", name), passwordBox, againBox, trouble, send));
  name.focus();
}

function complain(place, input, text) {
  replace(place, notice("bad", text));
  input.setAttribute("aria-invalid", "true");
  input.addEventListener("input", () => input.removeAttribute("aria-invalid"), { once: true });
  input.focus();
}

/** Asks for name and password. */
export function signIn(root, { done }) {
  const name = h("input", { type: "text", autocomplete: "username", required: true, spellcheck: "false" });
  const [passwordBox, password] = passwordField("Password", "current-password");
  const trouble = h("div", {});
  const send = h("button", { type: "submit", class: "button primary large" }, "Sign in");
  gate(root, "Sign in", null,
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      send.disabled = true;
      let session;
      try {
        session = await api.post("/session", { name: name.value.trim(), password: password.value });
      } catch (error) {
        const wait = error.status === 429 && Number(error.retryAfter);
        replace(trouble, notice("bad", error.status === 401 ? "The name or the password is wrong." : error.message,
          h("p", {}, error.status === 401 ? prose("Forgotten? An owner can set a new password; on the gateway's machine `countersign admin reset` makes a one-time link.")
            : error.advice)));
        if (wait) setTimeout(() => { send.disabled = false; }, wait * 1000);
        else send.disabled = false;
        password.select();
        return;
      }
      done(session);
    } }, field("Name", name), passwordBox, trouble, send),
    h("p", { class: "gate-foot" }, "There is no default password. The first owner is made with the one-time link that the gateway prints."));
  name.focus();
}
