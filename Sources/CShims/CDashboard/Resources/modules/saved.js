// Saved views: named URLs of screens with their state. Stored in this browser.

import { h, replace } from "./dom.js";
import { dialog } from "./dialogs.js";
import { preferences, prefer } from "./preferences.js";
import { button, emptyState, field, toast } from "./ui.js";

/** The dialog with saved views and a field to name the current one. */
export function savedViews(title) {
  const here = location.hash || "#/";
  return dialog("Saved views", (close) => {
    const list = h("div", {});
    const name = h("input", { type: "text", required: true, maxlength: 80, autocomplete: "off", value: title, autofocus: true });
    const show = () => replace(list, preferences.views.length === 0
      ? emptyState("eye", "No saved view", "A view is a screen with its range, filters and search. It is kept in this browser, and found by Ctrl K too.")
      : h("ul", { class: "views" }, preferences.views.map((view) => h("li", {}, h("a", { href: view.hash, onclick: () => { if (view.hash === location.hash) close(); } }, view.name),
        button("Remove", { kind: "small", "aria-label": `Remove the view ${view.name}`, onclick: () => { prefer("views", preferences.views.filter((other) => other !== view)); show(); } })))));
    show();
    return [list, h("form", { class: "inline-form loose", onsubmit: (event) => {
      event.preventDefault();
      const text = name.value.trim();
      prefer("views", [...preferences.views.filter((view) => view.name !== text), { name: text, hash: here }]);
      close();
      toast(`Saved as ${text}.`, { tone: "good" });
    } }, field("Save this view as", name), h("button", { type: "submit", class: "button primary" }, "Save"))];
  });
}
