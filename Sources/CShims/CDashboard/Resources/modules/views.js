// Views of data: loading, refreshing, paging, changing, and showing errors.

import { h, replace } from "./dom.js";
import { Problem, firstFilled } from "./api.js";
import { clock, ago } from "./format.js";
import { button, inputOf, notice, problemNotice, problemText, retrying, skeleton, toast } from "./ui.js";

/** The age of data in milliseconds from which it is loaded again, after an outage and when the page is shown again. */
const AGE = { recovered: 1_000, visibilitychange: 30_000 };

/**
 * Loads data into a box and refreshes it. If a refresh fails, the old data stays, with the problem and its
 * age. Polls while the page is visible and the user is not typing in the box. A poll does not overwrite unsaved input.
 */
export function view(context, fetchData, draw, { every = 0, bones = 4 } = {}) {
  const body = h("div", { class: "view-body" }, skeleton(bones));
  const trouble = h("div", {});
  const element = h("div", { class: "view" }, trouble, body);
  let seen = null;
  let drawnWith = null;
  let last = null;
  let running = null;
  let failed = false;
  const isBusy = () => body.querySelector("form[data-dirty], .menu-list:not([hidden]), .pick:checked, [data-further]")
    || (body.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));
  function show() {
    const focusKey = document.activeElement?.closest?.("[data-focus]")?.dataset.focus;
    const drawn = draw(drawnWith);
    if (drawn !== undefined) replace(body, drawn);
    if (focusKey) body.querySelector(`[data-focus="${CSS.escape(focusKey)}"]`)?.focus({ preventScroll: true });
  }
  async function load(quiet = false) {
    // The running request may have old parameters, so another request follows unless `quiet` is set.
    if (running) return quiet ? running : running.then(() => load());
    running = (async () => {
      try {
        const data = await fetchData(context.signal);
        if (context.signal.aborted) return;
        replace(trouble);
        failed = false;
        last = Date.now();
        context.asOf(last);
        const shape = JSON.stringify(data, (name, value) => (name === "now_ms" ? undefined : value));
        if (quiet && (shape === seen || isBusy())) return;
        seen = shape;
        drawnWith = data;
        show();
      } catch (error) {
        if (context.signal.aborted || error.name === "AbortError") return;
        if (!(error instanceof Problem)) console.error(error);
        failed = true;
        if (last === null) replace(body, problemNotice(error, () => load()));
        else replace(trouble, notice("amber", problemText(error), h("p", {}, `What you see is from ${clock(last)} (${ago(last)}).`), retrying(error, () => load(true))));
      } finally {
        running = null;
      }
    })();
    return running;
  }
  if (every > 0) {
    const timer = setInterval(() => {
      // After a failure, the notice retries instead of this timer.
      if (!document.hidden && !failed && element.isConnected && !isBusy()) load(true);
    }, every);
    context.signal.addEventListener("abort", () => clearInterval(timer));
  }
  for (const [name, age] of Object.entries(AGE)) {
    document.addEventListener(name, () => {
      if (!document.hidden && last !== null && Date.now() - last > age && element.isConnected && !isBusy()) load(true);
    }, { signal: context.signal });
  }
  // A screen may have several views. Replaced views are no longer connected.
  context.views = [...(context.views ?? []), { element, load }];
  context.refresh = () => {
    context.views = context.views.filter((other) => other.element.isConnected);
    for (const shown of context.views) shown.load();
  };
  load();
  /** Draws the loaded data again, because other displayed data has changed. */
  const redraw = () => { if (last !== null) show(); };
  return { element, reload: load, redraw };
}

/** A list with pagination: the first page, and more on demand. */
export function pagedView(context, fetchPage, drawItems, empty, options) {
  let items = [];
  let next = null;
  let further = false;
  const fetchItems = (from, signal) => firstFilled((cursor) => fetchPage(cursor, signal), from);
  const part = view(context, (signal) => fetchItems(null, signal), (page) => {
    items = page.items;
    next = page.next;
    further = false;
    return render();
  }, options);
  function render() {
    if (items.length === 0 && !next) return empty;
    const more = next && button(items.length === 0 ? "Search further" : "Show more", { onclick: async () => {
      more.disabled = true;
      try {
        const page = await fetchItems(next, context.signal);
        items = items.concat(page.items);
        next = page.next;
        further = true;
        replace(part.element.querySelector(".view-body"), render());
      } catch (error) {
        more.disabled = false;
        toast(problemText(error), { tone: "bad" });
      }
    } });
    const shown = h("span", { class: "muted" }, items.length === 0 ? "Nothing found so far: there is more to search." : `${items.length} shown`);
    return [items.length > 0 && drawItems(items), h("div", { class: "pager", "data-further": further || undefined }, shown, more)];
  }
  return part;
}

/** Runs a change and shows errors in `place` or in a toast. Returns true on success. */
export async function attempt(work, place) {
  try {
    if (place) replace(place);
    await work();
    place?.closest("form")?.removeAttribute("data-dirty");
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    if (!(error instanceof Problem)) console.error(error);
    if (place) {
      const form = place.closest("form");
      replace(place, problemNotice(error, null, form));
      mark(form, error.fields ?? []);
    } else toast(problemText(error), { tone: "bad", stay: 10_000 });
    return false;
  }
}

/** Marks the fields with problems and focuses the first one. */
function mark(form, problems) {
  const found = problems.map((problem) => inputOf(form, problem)).filter(Boolean);
  for (const input of found) {
    input.setAttribute("aria-invalid", "true");
    input.addEventListener("input", () => input.removeAttribute("aria-invalid"), { once: true });
  }
  found[0]?.focus();
}
