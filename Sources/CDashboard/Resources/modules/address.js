// What a screen shows, in its address: so that it can be reloaded, kept and sent to a colleague.

/** Writes these values into the address of the screen at `where`; empty ones are left out. Makes no step in the history. */
export function remember(where, values) {
  // Somebody is on the way to another screen, whose address must stay.
  if (location.hash.split("?")[0] !== `#${where}`) return;
  const pairs = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  history.replaceState(null, "", `#${where}${pairs.size > 0 ? `?${pairs}` : ""}`);
}
