// Users are named by pseudonyms, until somebody who may asks for their ids; the gateway writes that down.

import { toggle } from "./ui.js";

/** The switch, null for whoever may not, and what it adds to a request. */
export function userIDs(context, onchange) {
  let shown = false;
  const control = context.can("operator") ? toggle("Show ids", false, (on) => { shown = on; onchange(); }) : null;
  if (control) control.title = "Written to the audit log";
  return { control, get parameters() { return shown ? { unmask: 1 } : {}; } };
}
