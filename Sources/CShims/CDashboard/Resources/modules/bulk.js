// Selection of several table rows, to delete them together.

import { h, replace } from "./dom.js";
import { Problem } from "./api.js";
import { plural } from "./format.js";
import { confirm } from "./dialogs.js";
import { button, toast } from "./ui.js";

/**
 * The column of checkboxes and the action bar. `can(item)` returns whether a row has a checkbox, `name(item)`
 * labels it, `remove(item)` deletes an item, and `done()` is called after the last one.
 */
export function bulk({ noun, action, past, text, phrase, can = () => true, name, key = (item) => item.id, remove, done }) {
  const chosen = new Map();
  const bar = h("div", { class: "bulk", role: "status", hidden: true });
  function show() {
    bar.hidden = chosen.size === 0;
    replace(bar, h("span", {}, `${plural(chosen.size, noun)} selected`),
      button(`${action} ${plural(chosen.size, noun)}`, { kind: "danger", onclick: act }), button("Select none", { onclick: clear }));
  }
  function clear() {
    chosen.clear();
    for (const box of document.querySelectorAll("input.pick:checked")) box.checked = false;
    show();
  }
  async function act() {
    const all = [...chosen.values()];
    if (!await confirm(`${action} ${plural(all.length, noun)}`, { text, action, phrase })) return;
    let failed = null;
    let count = 0;
    for (const item of all) {
      try {
        await remove(item);
        count += 1;
        chosen.delete(key(item));
      } catch (error) {
        // Another client has already deleted the item.
        if (error instanceof Problem && error.status === 404) chosen.delete(key(item));
        else if (error.name === "AbortError") return;
        else failed ??= error;
      }
    }
    show();
    done();
    if (failed) toast(`${plural(count, noun)} ${past}, ${all.length - count} not: ${failed.message}`, { tone: "bad", stay: 10_000 });
    else toast(`${plural(count, noun)} ${past}.`, { tone: "good" });
  }
  return {
    bar,
    column: {
      title: "", class: "pick-cell", cell: (item) => can(item) && h("input", {
        type: "checkbox", class: "pick", "aria-label": `Select ${name(item)}`, checked: chosen.has(key(item)), onchange: (event) => {
          if (event.target.checked) chosen.set(key(item), item);
          else chosen.delete(key(item));
          show();
        } }),
    },
  };
}
