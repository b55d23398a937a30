// What this browser remembers: theme, time zone, the last app, dismissed first steps, saved views. Nothing secret.

const KEY = "countersign";
const defaults = { theme: "system", zone: "local", app: null, dismissed: [], views: [] };

function read() {
  try {
    return { ...defaults, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return { ...defaults };
  }
}

export const preferences = read();

/** Remembers a preference and tells everyone who draws by it. */
export function prefer(name, value) {
  preferences[name] = value;
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // A private window without storage: the choice holds until the page is closed.
  }
  if (name === "theme") applyTheme();
  document.dispatchEvent(new CustomEvent("preference", { detail: { name, value } }));
}

/** Puts the chosen theme on the document. */
export function applyTheme() {
  const root = document.documentElement;
  if (preferences.theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", preferences.theme);
}
