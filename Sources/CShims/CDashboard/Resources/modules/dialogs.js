// Dialogs: forms, confirmations, and one-time secrets.

import { h, freshID } from "./dom.js";
import { button, copyable, field, iconButton, notice } from "./ui.js";
import { attempt } from "./views.js";

/**
 * A modal dialog. `build(close)` returns the body. Resolves with the argument of `close`, or null. With
 * `leaving`, Esc and the close button call `leaving(body, close)` instead of closing it.
 */
export function dialog(title, build, { wide = false, look = wide ? "wide" : undefined, leaving = null } = {}) {
  return new Promise((resolve) => {
    const heading = freshID("dialog");
    const element = h("dialog", { class: look, "aria-labelledby": heading });
    let result = null;
    const close = (value = null) => { result = value; element.close(); };
    const body = h("div", { class: "dialog-body" }, build(close));
    const away = () => (leaving ? leaving(body, close) : close());
    element.append(h("div", { class: "dialog-head" }, h("h2", { id: heading }, title), iconButton("Close", "close", away)), body);
    // Not the event `cancel`: browsers send it only for the first Esc and close the dialog at the second.
    const escape = (event) => {
      if (event.key !== "Escape" || !leaving) return;
      event.preventDefault();
      away();
    };
    document.addEventListener("keydown", escape);
    element.addEventListener("close", () => document.removeEventListener("keydown", escape));
    element.addEventListener("close", () => {
      // The browser restores the focus before this event, so the dialog is removed only now.
      element.remove();
      resolve(result);
    });
    const leave = () => {
      if (!element.querySelector("form[data-dirty]")) close();
    };
    window.addEventListener("hashchange", leave);
    element.addEventListener("close", () => window.removeEventListener("hashchange", leave), { once: true });
    document.body.append(element);
    element.showModal();
    element.querySelector("[autofocus]")?.focus();
  });
}

/** Asks for confirmation of an action. With `phrase`, the user must type that text. */
export function confirm(title, { text, action, dismiss = "Cancel", phrase, kind = "danger", focused = false } = {}) {
  return dialog(title, (close) => {
    const go = button(action, { kind, autofocus: focused, onclick: () => close(true) });
    const input = phrase && h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true });
    if (input) {
      go.disabled = true;
      input.addEventListener("input", () => { go.disabled = input.value !== phrase; });
      input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !go.disabled) close(true); });
    }
    return [[text].flat().map((part) => (part instanceof Node ? part : h("p", {}, part))),
      input && field(`Type ${phrase} to confirm`, input),
      h("div", { class: "actions end" }, button(dismiss, { onclick: () => close() }), go)];
  });
}

/** Shows a value to copy. Unlike with showOnce, the value can be shown again later. */
export function showValue(title, text, value) {
  return dialog(title, (close) => [h("p", {}, text), copyable(value), h("div", { class: "actions end" }, button("Done", { kind: "primary", onclick: () => close(true) }))]);
}

export function showOnce(title, text, secret) {
  return dialog(title, (close) => [
    notice("amber", "You won't see this again.", h("p", {}, text)), copyable(secret),
    h("div", { class: "actions end" }, button("I have stored it", { kind: "primary", onclick: () => close(true) })),
  ], { leaving: (body, close) => {
    if (body.querySelector(".notice.bad")) return;
    const question = notice("bad", "Close without storing it?", h("p", {}, "It cannot be shown again. If you lose it, you must create a new one."),
      h("div", { class: "actions" }, button("Close without storing", { kind: "danger", onclick: () => close() }), button("Go back", { onclick: () => question.remove() })));
    body.prepend(question);
    question.querySelectorAll("button")[1].focus();
  } });
}

/**
 * A form dialog with `fields`. `send` runs at submit; resolves with its result, or null. `more(close,
 * trouble)` returns another button.
 */
export function formDialog(title, action, fields, send, { wide, more } = {}) {
  const trouble = h("div", { "aria-live": "polite" });
  return dialog(title, (close) => h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const submit = event.submitter;
    if (submit) submit.disabled = true;
    let answer = true;
    if (await attempt(async () => { answer = (await send()) ?? true; }, trouble)) close(answer);
    if (submit) submit.disabled = false;
  } }, fields, trouble, h("div", { class: "actions end" }, more?.(close, trouble), button("Cancel", { onclick: () => close() }),
  action && h("button", { type: "submit", class: "button primary" }, action))), { wide });
}

/**
 * A form within a screen. `save` runs at submit, then `done` with its result. Without an action the form is
 * read-only. With `ask`, it is only saved if `ask` returns true.
 */
export function settingsForm(fields, action, save, done, { kind = "primary", ask = () => true } = {}) {
  const trouble = h("div", {});
  return h("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    if (!await ask()) return;
    let answer;
    if (await attempt(async () => { answer = await save(); }, trouble)) await done(answer);
  } }, fields, trouble, action && h("div", { class: "actions" }, h("button", { type: "submit", class: `button ${kind}` }, action)));
}

/** A small button that deletes the row of `name` after a confirmation. */
export function removable(label, name, question, remove, done) {
  return button(label, { kind: "small", "aria-label": `${label} ${name}`, onclick: async () => {
    if (await confirm(`${label} ${name}`, { action: label, ...question }) && await attempt(remove)) done();
  } });
}

/** Marks forms with unsaved input, until `attempt` has saved it. Forms of the classes toolbar and loose have nothing to lose. */
export function watchForms() {
  document.addEventListener("input", (event) => event.target.closest("main:not(.gate) form:not(.toolbar, .loose), dialog form:not(.loose)")?.setAttribute("data-dirty", ""));
  window.addEventListener("beforeunload", (event) => { if (isUnsaved()) event.preventDefault(); });
}

export function isUnsaved() {
  return document.querySelector("form[data-dirty]") !== null;
}

/** Whether the screen may be replaced: asks if that loses unsaved input. */
export async function mayLeave() {
  if (!isUnsaved()) return true;
  const title = "Leave without saving?";
  if ([...document.querySelectorAll("dialog[open] h2")].some((heading) => heading.textContent === title)) return false;
  if (!await confirm(title, { text: "What you changed here is not saved yet.", action: "Leave" })) return false;
  for (const form of document.querySelectorAll("form[data-dirty]")) form.removeAttribute("data-dirty");
  return true;
}
