// Stores a screen's state in its URL, so that it can be reloaded, bookmarked and shared.

/** Writes these values into the URL of the screen at `where`, without a history entry. Omits empty values. */
export function remember(where, values) {
  // The user is navigating to another screen. Its URL must not change.
  if (location.hash.split("?")[0] !== `#${where}`) return;
  const pairs = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  history.replaceState(null, "", `#${where}${pairs.size > 0 ? `?${pairs}` : ""}`);
}

const PSEUDONYM = /^u-[a-z2-7]{8}$/;
let carried = null;

/**
 * The id if it is a pseudonym, else null. Other ids must not appear in the URL, because it is stored in the
 * browser's history and may be shared.
 */
export function shareable(id) {
  return PSEUDONYM.test(id ?? "") ? id : null;
}

/** Passes values to the screen at `where` without putting them into its URL, if it is the next screen. */
export function carry(where, values) {
  carried = { where, values };
}

/** Returns the values passed to the screen at `where`, once. */
export function carriedTo(where) {
  const values = carried?.where === where ? carried.values : {};
  carried = null;
  return values;
}
