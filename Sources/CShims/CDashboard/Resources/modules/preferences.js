// Settings stored in this browser: theme, time zone, last app, dismissed first steps, saved views,
// and whether several gateways share a database. No secrets.

const KEY = "countersign";
const defaults = { theme: "system", zone: "local", app: null, dismissed: [], views: [], cluster: false };

function read() {
  try {
    return { ...defaults, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return { ...defaults };
  }
}

export const preferences = read();

/** Stores a preference and notifies the screens. */
export function prefer(name, value) {
  preferences[name] = value;
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // Without storage, as in some private windows, the choice is kept until the page is closed.
  }
  if (name === "theme") applyTheme();
  document.dispatchEvent(new CustomEvent("preference", { detail: { name, value } }));
}

export function applyTheme() {
  const root = document.documentElement;
  if (preferences.theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", preferences.theme);
}
