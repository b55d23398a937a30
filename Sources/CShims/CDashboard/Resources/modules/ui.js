// Shared user interface components.

import { h, announce, freshID, prose } from "./dom.js";
import { icon } from "./icons.js";
import { Problem } from "./api.js";

export function button(label, { kind = "plain", symbol, onclick, ...rest } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, ...rest }, symbol && icon(symbol, 16), h("span", {}, label));
}

/** A button with only an icon. The label is for screen readers and the tooltip. */
export function iconButton(label, symbol, onclick, rest = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...rest }, icon(symbol));
}

export function badge(text, tone = "neutral") {
  return h("span", { class: `badge ${tone}` }, text);
}

const stateTone = { disabled: "neutral", optional: "amber", required: "good" };

/** A badge for an enforcement state. `share` is a text with the share of users, or null if the state applies to all. */
export function stateBadge(state, share = null) {
  const name = String(state ?? "unknown");
  return h("span", { class: `badge state ${stateTone[name] ?? "neutral"}` },
    h("span", { class: "dot", "aria-hidden": "true" }), name.charAt(0).toUpperCase() + name.slice(1), share && ` · ${share}`);
}

export function verdictBadge(verdict) {
  const tone = { accepted: "good", rejected: "bad", warned: "amber" }[verdict] ?? "neutral";
  const name = { accepted: "Accepted", rejected: "Rejected", warned: "Accepted, warned", anonymous: "Anonymous", not_judged: "Not checked" }[verdict];
  return badge(name ?? String(verdict ?? "–"), tone);
}

/** A permanent message with advice. */
export function notice(tone, title, ...body) {
  const symbol = { bad: "stop", amber: "warn", good: "check" }[tone] ?? "info";
  return h("div", { class: `notice ${tone}`, role: tone === "bad" ? "alert" : undefined },
    icon(symbol), h("div", {}, h("p", { class: "notice-title" }, typeof title === "string" ? prose(title) : title), body.flat().filter(Boolean)));
}

/** The input of a form to which a problem's pointer refers. */
export function inputOf(form, { pointer }) {
  return pointer ? form?.querySelector(`[name="${CSS.escape(pointer.slice(1))}"]`) ?? null : null;
}

/** The name of a problem's field: its label in the form, or the pointer in words. */
function nameOf(form, field) {
  const input = inputOf(form, field);
  const label = input?.id && form.querySelector(`label[for="${CSS.escape(input.id)}"]`)?.textContent;
  if (label) return label;
  const words = (field.pointer?.slice(1) ?? field.parameter ?? "").replace(/_ms$/, "").replace(/[/_]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The messages of a problem. Each message about a field starts with the field's name. */
function sentences(error, form = null) {
  const said = error.fields.filter((field) => field.detail).map((field) => [nameOf(form, field), field.detail].filter(Boolean).join(": "));
  return said.length > 0 ? said : [error.message.charAt(0).toUpperCase() + error.message.slice(1)];
}

export function problemText(error) {
  return error instanceof Problem ? `${sentences(error).join("; ").replace(/\.?$/, ".")} ${error.advice}`.trim() : error.message;
}

/**
 * An element with `words` and the seconds until `at`, in milliseconds since 1970. Calls `done` at that time if the
 * element is still in the page. The call waits while the page is hidden or the element is not in the page yet.
 */
export function countdown(words, at, done) {
  // Screen readers would announce each second.
  const text = h("span", { class: "retry", "aria-live": "off" });
  let wasShown = false;
  const tick = () => {
    wasShown ||= text.isConnected;
    const left = Math.ceil((at - Date.now()) / 1000);
    text.textContent = `${words} ${Math.max(0, left)} s.`;
    if (left > 0 || document.hidden || !wasShown) return;
    clearInterval(timer);
    if (text.isConnected) done();
  };
  const timer = setInterval(tick, 500);
  tick();
  return text;
}

/** Repeats a request after a transient problem, and shows the time left. Null for other problems. */
export function retrying(error, retry) {
  if (!(error instanceof Problem) || !error.isTransient) return null;
  const element = h("p", {}, countdown("Trying again in", Date.now() + error.delay, retry), " ", button("Try now", { kind: "small", onclick: () => { element.remove(); retry(); } }));
  return element;
}

/** A problem with its advice. `form` is the submitted form. With `retry`, a transient problem is retried automatically. */
export function problemNotice(error, retry, form = null) {
  const known = error instanceof Problem;
  const [title, ...more] = known ? sentences(error, form) : ["This page has an error."];
  const marked = known && error.fields.some((field) => inputOf(form, field));
  const advice = marked ? "Fix the highlighted fields, then send again." : known ? error.advice : "Reload the page; if it happens again, please report it.";
  return notice("bad", title,
    more.length > 0 && h("ul", {}, more.map((text) => h("li", {}, prose(text)))),
    advice && h("p", {}, advice),
    retry && (retrying(error, retry) ?? h("p", {}, button("Try again", { symbol: "refresh", onclick: retry }))));
}

/** The options of a list of apps. Equal names are distinguished by ids. */
export function appNames(apps) {
  return apps.map((item) => [item.id, apps.some((other) => other !== item && other.name === item.name) ? `${item.name} (${item.id})` : item.name || item.id]);
}

export function emptyState(symbol, title, text, ...actions) {
  return h("div", { class: "empty" }, h("div", { class: "empty-icon" }, icon(symbol, 26)), h("p", { class: "empty-title" }, title),
    text && h("p", {}, text), actions.length > 0 && h("div", { class: "actions" }, actions));
}

export function skeleton(lines = 4) {
  return h("div", { class: "skeleton", role: "status" }, h("span", { class: "visually-hidden" }, "Loading"),
    Array.from({ length: lines }, (_, index) => h("div", { class: `bone bone-${index % 4}` })));
}

export function card(title, ...body) {
  return h("section", { class: "card" }, title && h("h2", { class: "card-title" }, title), body);
}

/** A labelled control: an input, select or textarea. `unit` is shown after it. */
export function field(label, control, hint, unit = null) {
  const id = control.id || freshID("field");
  control.id = id;
  const hintID = hint ? `${id}-hint` : undefined;
  if (hintID) control.setAttribute("aria-describedby", hintID);
  return h("div", { class: "field" }, h("label", { for: id }, label), unit ? h("div", { class: "with-unit" }, control, unit) : control, hint && h("p", { class: "hint", id: hintID }, hint));
}

export function select(options, chosen, onchange, rest = {}) {
  return h("select", { onchange, ...rest }, options.map(([value, label]) =>
    h("option", { value, selected: String(value) === String(chosen) }, label)));
}

/** A choice between a few options, as a row of buttons. */
export function segmented(label, options, chosen, onchange) {
  const group = h("div", { class: "segmented", role: "group", "aria-label": label });
  for (const [value, text, title] of options) {
    group.append(h("button", {
      type: "button", "aria-pressed": String(value === chosen), title, "data-value": value,
      onclick: (event) => {
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        onchange(value);
      },
    }, text));
  }
  return group;
}

export function toggle(label, on, onchange) {
  return h("label", { class: "toggle" },
    h("input", { type: "checkbox", role: "switch", checked: on, onchange: (event) => onchange(event.target.checked) }),
    h("span", { class: "toggle-track", "aria-hidden": "true" }), h("span", {}, label));
}

/**
 * A table with `columns` of {title, cell, class?} that scrolls by pointer and keyboard. With `lines`, a row has
 * two lines on a phone: the first two cells, and below them the other cells except the classes `extra` and `spare`.
 */
export function table(caption, columns, rows, { onrow, visibleCaption = false, lines = false } = {}) {
  return h("div", { class: `table-scroll ${lines ? "lines" : ""}`, tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: visibleCaption ? "" : "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class },
        column.title || h("span", { class: "visually-hidden" }, column.class === "meter-cell" ? "Share as a bar" : "Actions"))))),
      h("tbody", {}, rows.map((row) => h("tr", { class: onrow ? "openable" : undefined, onclick: onrow && ((event) => {
        if (!event.target.closest("a, button, input")) onrow(row);
      }) }, columns.map((column, index) => index === 0 && column.heading
        ? h("th", { scope: "row", class: column.class }, column.cell(row))
        : h("td", { class: column.class, "data-label": column.title || undefined }, column.cell(row))))))));
}

export function stacked(first, second) {
  return h("div", { class: "stacked" }, first, second && h("small", {}, second));
}

/** Text with a copy button. */
export function copyable(text, label = "Copy") {
  return h("div", { class: "copyable" }, h("pre", { tabindex: 0 }, h("code", {}, text)),
    iconButton(label, "copy", () => copy(text)));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("This browser does not let the page copy; select the text and copy it.", { tone: "bad" });
  }
}

/** A short message at the edge of the screen. With an action it stays longer. */
export function toast(text, { tone = "neutral", action, onaction, stay = action ? 10_000 : 4_000 } = {}) {
  let tray = document.getElementById("toasts");
  if (!tray) {
    tray = h("section", { id: "toasts", "aria-label": "Messages" });
    document.body.append(tray);
  }
  const item = h("div", { class: `toast ${tone}` }, h("span", {}, prose(text)));
  let timer;
  const leave = () => { clearTimeout(timer); item.remove(); };
  if (action) item.append(button(action, { kind: "quiet", onclick: () => { leave(); onaction(); } }));
  item.append(iconButton("Dismiss", "close", leave));
  const start = () => { clearTimeout(timer); timer = setTimeout(leave, stay); };
  item.addEventListener("pointerenter", () => clearTimeout(timer));
  item.addEventListener("focusin", () => clearTimeout(timer));
  item.addEventListener("pointerleave", start);
  item.addEventListener("focusout", start);
  // Replaces the previous message, because its undo would also revert this change.
  tray.replaceChildren(item);
  announce(text);
  start();
}

/** A link that downloads the listed items as a file. The caller sets its URL when the search changes. */
export function exportLink(name, format) {
  return h("a", { class: "button plain", href: "#", download: `${name}.${format}` }, icon("down", 16), format.toUpperCase());
}

/** A slider for a share of users, and an output that shows the share. */
export function shareInput(share, rest = {}) {
  const input = h("input", { type: "range", min: 1, max: 100, value: share, ...rest });
  const text = h("output", {}, `${input.value} % of users`);
  input.addEventListener("input", () => { text.textContent = `${input.value} % of users`; });
  return { input, text };
}

/** A menu button with items of {label, symbol, onclick, disabled, why, danger}. A disabled item shows `why`. */
export function menu(label, items, { place = "", look = "button plain" } = {}) {
  const id = freshID("menu");
  const list = h("div", { class: "menu-list", id, role: "menu", hidden: true });
  const opener = h("button", { type: "button", class: look, "aria-haspopup": "menu", "aria-expanded": "false", "aria-controls": id },
    h("span", {}, label), icon("chevron", 14));
  const box = h("div", { class: `menu ${place}` }, opener, list);
  const close = (refocus) => {
    list.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    if (refocus) opener.focus();
  };
  for (const item of items) {
    list.append(h("button", {
      type: "button", role: "menuitem", class: item.danger ? "danger" : undefined, tabindex: -1,
      "aria-disabled": item.disabled ? "true" : undefined,
      onclick: () => { if (!item.disabled) { close(true); item.onclick(); } },
    }, icon(item.symbol, 16), h("span", {}, item.label, item.disabled && item.why && h("small", {}, item.why))));
  }
  opener.addEventListener("click", () => {
    if (!list.hidden) return close(false);
    list.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    list.firstElementChild?.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const entries = [...list.children];
    const at = entries.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) entries[(to + entries.length) % entries.length].focus();
    else if (event.key === "Escape") close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("focusout", (event) => { if (!box.contains(event.relatedTarget)) close(false); });
  return box;
}

/**
 * The switch with which an owner allows private addresses, and the value to send. For other users, an
 * existing permission applies only to the unchanged address.
 */
export function privateAddress(context, before) {
  let allowed = before.allow_private;
  return {
    control: context.can("owner") ? toggle("It may be on a private network or on this machine", allowed, (on) => { allowed = on; })
      : allowed && h("p", { class: "hint" }, "An owner has let this address be on a private network. Another address must be a public one."),
    read: (url) => allowed && (context.can("owner") || url === before.url),
  };
}
