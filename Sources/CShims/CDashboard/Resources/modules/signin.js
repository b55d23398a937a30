// Authentication of users: first password by one-time link, sign-in, and the account menu.

import { h, freshID, prose, replace } from "./dom.js";
import { api, Problem } from "./api.js";
import { dialog } from "./dialogs.js";
import { mark } from "./icons.js";
import { button, countdown, field, menu, notice, problemNotice, toast } from "./ui.js";
import { attempt } from "./views.js";
import { codeField, ownSecondFactor, setUpFirst } from "./secondfactor.js";

const MINIMUM = 12;

function gate(root, title, lead, ...body) {
  root.className = "";
  replace(root, h("main", { class: "gate" }, h("div", { class: "gate-card" },
    h("div", { class: "gate-brand" }, mark(40), h("span", {}, "Countersign")),
    h("h1", { tabindex: -1 }, title), lead && h("p", { class: "lead" }, lead), body)));
}

/** A password field with a button to show the text, and its input. */
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

/** Shows faults of a new password and its repetition at their fields. Returns true if there are no faults. */
function isGood(password, again) {
  const bytes = new TextEncoder().encode(password.value).length;
  if (bytes < MINIMUM) complain(password, `The password needs at least ${MINIMUM} characters.`);
  else if (bytes > 1024) complain(password, "The password is longer than 1024 bytes.");
  else if (password.value !== again.value) complain(again, "The two passwords differ.");
  else return true;
  return false;
}

/** Shows a message at a field until the field is changed, and focuses the field. */
function complain(input, text) {
  input.dispatchEvent(new Event("complaint"));
  const said = h("p", { class: "hint bad", id: freshID("wrong") }, text);
  const before = input.getAttribute("aria-describedby");
  input.closest(".field").append(said);
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", before ? `${said.id} ${before}` : said.id);
  const done = new AbortController();
  const forget = () => {
    done.abort();
    said.remove();
    input.removeAttribute("aria-invalid");
    if (before) input.setAttribute("aria-describedby", before);
    else input.removeAttribute("aria-describedby");
  };
  for (const event of ["input", "complaint"]) input.addEventListener(event, forget, { signal: done.signal });
  input.focus();
}

/** Sets the first password with the token of the one-time link. */
export function setUp(root, { token, done }) {
  if (!token) {
    return gate(root, "Almost there", "This gateway has no users yet.",
      h("p", {}, "Open the one-time link that ", h("code", {}, "countersign serve"), " printed when it started. It is valid for 30 minutes."),
      h("p", {}, "Lost the link, or has it expired? ", h("code", {}, "countersign admin reset"), " on the gateway's machine makes a new one."));
  }
  const name = h("input", { type: "text", autocomplete: "username", required: true, maxlength: 64, autofocus: true, spellcheck: "false" });
  const [passwordBox, password] = passwordField("Password", "new-password", `At least ${MINIMUM} characters; a sentence is fine.`);
  const [againBox, again] = passwordField("Password again", "new-password");
  const trouble = h("div", {});
  const send = h("button", { type: "submit", class: "button primary large" }, "Create the owner and sign in");
  gate(root, "Welcome", "This gateway has no users yet. Choose a name and a password, and you become the owner.",
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      if (!isGood(password, again)) return;
      send.disabled = true;
      await attempt(async () => {
        const session = await api.post("/setup", { token, name: name.value.trim(), password: password.value });
        done(session);
      }, trouble);
      send.disabled = false;
    } }, field("Name", name), passwordBox, againBox, trouble, send));
  name.focus();
}

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
        if (error.code === "second_factor_required") {
          return secondStep(root, { name: name.value.trim(), password: password.value, done, back: () => signIn(root, { done }) });
        }
        if (error.status === 429) return locked(trouble, send, error);
        replace(trouble, notice("bad", error.status === 401 ? "The name or the password is wrong." : error.message,
          h("p", {}, error.status === 401 ? prose("Forgotten? An owner can set a new password; on the gateway's machine `countersign admin reset` makes a one-time link.")
            : error.advice)));
        send.disabled = false;
        password.select();
        return;
      }
      done(session);
    } }, field("Name", name), passwordBox, trouble, send),
    h("p", { class: "gate-foot" }, "There is no default password. The one-time link that the gateway prints creates the first owner."));
  name.focus();
}

/** Counts down until the next attempt is allowed. */
function locked(place, send, error) {
  const open = () => { replace(place); send.disabled = false; };
  replace(place, notice("bad", "Too many wrong attempts.", h("p", {}, countdown("Try again in", Date.now() + (Number(error.retryAfter) || 1) * 1000, open))));
}

/** Asks for the second factor's code after the password was accepted. */
function secondStep(root, { name, password, done, back }) {
  const [box, code] = codeField("Code", "Six digits from your authenticator app, or a recovery code.");
  const trouble = h("div", {});
  const send = h("button", { type: "submit", class: "button primary large" }, "Sign in");
  gate(root, "Two-step sign-in", `Signing in as ${name}.`, h("form", { onsubmit: async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      done(await api.post("/session", { name, password, code: code.value.trim() }));
    } catch (error) {
      if (error.status === 429) return locked(trouble, send, error);
      replace(trouble, notice("bad", error.status === 401 ? "The code is wrong or has already been used." : error.message,
        h("p", {}, error.status === 401 ? "Wait for the next code. Lost your phone? Use a recovery code, or ask an owner to reset your second factor." : error.advice)));
      send.disabled = false;
      code.select();
    }
  } }, box, trouble, send, button("Back", { kind: "quiet", onclick: back })));
  code.focus();
}

/** Requires the setup of a second factor before anything else is shown. */
export function enrol(root, { done, signOut }) {
  const place = h("div", {});
  gate(root, "Set up a second factor", "An owner of this gateway requires a second factor from everyone who signs in.", place,
    h("p", { class: "gate-foot" }, button("Sign out", { kind: "quiet", onclick: signOut })));
  setUpFirst(place, async () => done(await api.get("/session")));
}

export function accountMenu(session, signOut) {
  const { name, role } = session.user;
  return menu([h("span", { class: "visually-hidden" }, "Account: "), h("span", { class: "who-name" }, name), " ", h("span", { class: "who-role" }, role)], [
    // API tokens have no password and no CSRF token.
    session.csrf && { label: "Change password", symbol: "key", onclick: () => changePassword(name) },
    session.csrf && { label: "Second factor", symbol: "shield", onclick: () => attempt(() => ownSecondFactor(() => {})) },
    { label: "Sign out", symbol: "out", onclick: signOut },
  ].filter(Boolean), { place: "who", look: "who-opener" });
}

async function changePassword(name) {
  const [currentBox, current] = passwordField("Current password", "current-password");
  const [freshBox, fresh] = passwordField("New password", "new-password", `At least ${MINIMUM} characters; a sentence is fine.`);
  const [againBox, again] = passwordField("New password again", "new-password");
  current.setAttribute("autofocus", "");
  const fields = { "/current_password": [current, "This is not your current password."], "/password": [fresh, null] };
  const trouble = h("div", {});
  const send = h("button", { type: "submit", class: "button primary" }, "Change it");
  const changed = await dialog("Change your password", (close) => h("form", { onsubmit: async (event) => {
    event.preventDefault();
    replace(trouble);
    if (!isGood(fresh, again)) return;
    send.disabled = true;
    let wait = 0;
    try {
      await api.put("/session/password", { current_password: current.value, password: fresh.value }, null);
      close(true);
    } catch (error) {
      if (!(error instanceof Problem)) console.error(error);
      const known = (error.fields ?? []).filter(({ pointer }) => fields[pointer]);
      // Reversed, so that the first field gets the focus.
      for (const { pointer, detail } of known.reverse()) complain(fields[pointer][0], fields[pointer][1] ?? `The password ${detail}.`);
      if (known.length === 0) replace(trouble, problemNotice(error));
      if (error.status === 429) wait = Number(error.retryAfter) || 0;
    }
    setTimeout(() => { send.disabled = false; }, wait * 1000);
  } }, h("input", { type: "text", autocomplete: "username", value: name, readonly: true, hidden: true }),
  h("p", { class: "muted" }, "Your other sessions will end; this one stays signed in."), currentBox, freshBox, againBox, trouble,
  h("div", { class: "actions end" }, button("Cancel", { onclick: () => close() }), send)));
  if (changed) toast("Your password has been changed, and your other sessions have ended.", { tone: "good", stay: 8_000 });
}
