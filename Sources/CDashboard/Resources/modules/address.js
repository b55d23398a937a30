// What a screen shows, in its address: so that it can be reloaded, kept and sent to a colleague.

/** Writes these values into the address of the screen at `where`; empty ones are left out. Makes no step in the history. */
export function remember(where, values) {
  // Somebody is on the way to another screen, whose address must stay.
  if (location.hash.split("?")[0] !== `#${where}`) return;
  const pairs = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  history.replaceState(null, "", `#${where}${pairs.size > 0 ? `?${pairs}` : ""}`);
}

const PSEUDONYM = /^u-[a-z2-7]{8}$/;
let carried = null;

/**
 * What of somebody's id may stand in an address: its pseudonym. Anything else would stay in the browser's history and go to
 * whoever gets the link.
 */
export function shareable(id) {
  return PSEUDONYM.test(id ?? "") ? id : null;
}

/** Gives the screen at `where`, if that is the next one, values that stay out of its address. */
export function carry(where, values) {
  carried = { where, values };
}

/** What was carried to the screen at `where`, once. */
export function carriedTo(where) {
  const values = carried?.where === where ? carried.values : {};
  carried = null;
  return values;
}
