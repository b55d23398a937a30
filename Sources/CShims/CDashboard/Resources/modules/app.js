// The frame of all screens: session, routes, navigation, shortcuts.

import { h, replace, announce } from "./dom.js";
import { icon, mark } from "./icons.js";
import { api, useSession, whenUnauthenticated, path } from "./api.js";
import { preferences, prefer, applyTheme } from "./preferences.js";
import { carriedTo } from "./address.js";
import { loadCodes, paints } from "./codes.js";
import { clock, ago } from "./format.js";
import { dialog, isUnsaved, mayLeave, watchForms } from "./dialogs.js";
import { docs, docsLink, pages } from "./docs.js";
import { appNames, iconButton, problemNotice, problemText, select, toast } from "./ui.js";
import { accountMenu, enrol, signIn, setUp } from "./signin.js";
import { palette } from "./palette.js";
import { savedViews } from "./saved.js";
import { standing } from "./standing.js";
import { home } from "./home.js";
import { failures } from "./failures.js";
import { sample } from "./sample.js";
import { live } from "./live.js";
import { keys } from "./keys.js";
import { enforcement } from "./enforcement.js";
import { policy } from "./policy.js";
import { events } from "./events.js";
import { webhooks } from "./webhooks.js";
import { customers } from "./customers.js";
import { sessions } from "./sessions.js";
import { appSettings } from "./appsettings.js";
import { project } from "./project.js";
import { audit } from "./audit.js";
import { members } from "./members.js";
import { gateways } from "./gateways.js";
import { start } from "./start.js";
import { system } from "./system.js";

const appScreens = [
  ["start", "Get started", "play", start, "b"],
  ["failures", "Failures", "chart", failures, "f"],
  ["live", "Live tail", "live", live, "l"],
  ["keys", "Public keys", "key", keys, "k"],
  ["enforcement", "Enforcement", "shield", enforcement, "e"],
  ["policy", "Claims policy", "policy", policy, "p"],
  ["events", "Events", "events", events, "v"],
  ["webhooks", "Webhooks", "out", webhooks, "w"],
  ["customers", "Customers", "members", customers, "c"],
  ["sessions", "Token service", "sessions", sessions, "s"],
  ["project", "Bloomreach", "message", project, "m"],
  ["settings", "App settings", "app", appSettings, "a"],
];
const houseScreens = [
  ["home", "Overview", "home", home, "h"],
  ["audit", "Audit log", "audit", audit, "u"],
  ["members", "Members", "members", members, "t"],
  ["gateways", "Gateways", "gateways", gateways, "g"],
  ["system", "System", "settings", system, "y"],
  ["docs", "Documentation", "policy", docs, "d"],
];
/** The screens of features that most apps do not use, with the feature. */
const optional = { customers: "customers", sessions: "token_service", project: "bloomreach" };

const COMMAND = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘K" : "Ctrl K";
const root = document.getElementById("root");
let session = null;
let apps = [];
let leave = null;
let wanted = null;
let age = null;

/** Whether the signed-in user has this role or a higher one. */
function can(role) {
  const order = ["viewer", "operator", "owner"];
  return order.indexOf(session?.user.role) >= order.indexOf(role);
}

/** The URL's fragment: path parts and query. */
function place() {
  const [where, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = where.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { parts, query: new URLSearchParams(query) };
}

function go(to) {
  if (location.hash === to) route();
  else location.hash = to;
}

async function begin() {
  applyTheme();
  document.body.append(paints());
  watchForms();
  window.addEventListener("hashchange", moved);
  document.addEventListener("keydown", shortcut);
  document.addEventListener("preference", (event) => { if (event.detail.name === "zone" && session) route(); });
  setInterval(showAge, 5_000);
  whenUnauthenticated(() => {
    if (!session) return;
    session = null;
    wanted = location.hash;
    toast("Your session has ended.", { tone: "bad" });
    showSignIn();
  });
  if (place().parts[0] === "setup") return route();
  await open();
}

async function open() {
  try {
    enter(await api.get("/session"));
    await route();
  } catch (error) {
    if (error.status === 401) return firstScreen();
    showProblem(error, open);
  }
}

async function firstScreen() {
  try {
    const setup = await api.get("/setup");
    wanted = location.hash;
    if (setup.needed) setUp(root, { token: null, done: entered });
    else showSignIn();
  } catch (error) {
    showProblem(error, firstScreen);
  }
}

/** Shows a problem instead of the whole page. */
function showProblem(error, retry) {
  replace(root, h("main", { class: "gate" }, h("div", { class: "gate-card" }, h("h1", {}, "Countersign"), problemNotice(error, retry))));
}

function enter(body) {
  session = body;
  useSession(body);
}

function entered(body) {
  enter(body);
  const to = wanted && !/^#\/?(setup|signin)/.test(wanted) ? wanted : "#/";
  wanted = null;
  go(to);
}

function showSignIn() {
  leave?.abort();
  closeDialogs();
  document.title = "Sign in · Countersign";
  signIn(root, { done: entered });
}

function showEnrolment() {
  wanted ??= location.hash;
  closeDialogs();
  document.title = "Set up a second factor · Countersign";
  enrol(root, { done: entered, signOut });
}

function closeDialogs() {
  for (const open of document.querySelectorAll("dialog[open]")) open.close();
}

async function signOut() {
  if (!await mayLeave()) return;
  try {
    await api.remove("/session");
  } catch (error) {
    if (error.status !== 401) return toast(problemText(error), { tone: "bad" });
  }
  session = null;
  useSession(null);
  wanted = null;
  history.replaceState(null, "", "#/");
  showSignIn();
}

/** Shows the screen of the new URL. With unsaved input, goes back to the previous URL and asks. */
async function moved(event) {
  if (!session || !isUnsaved()) return route();
  history.pushState(null, "", new URL(event.oldURL).hash);
  if (!await mayLeave()) return;
  closeDialogs();
  history.back();
}

async function refresh(context) {
  if (await mayLeave()) context.refresh?.();
}

async function route() {
  const { parts, query } = place();
  if (parts[0] === "setup") {
    leave?.abort();
    document.title = "Set up · Countersign";
    return setUp(root, { token: parts[1] ?? null, done: (body) => { wanted = null; entered(body); } });
  }
  if (!session) return firstScreen();

  leave?.abort();
  if (session.second_factor?.setup_required) return showEnrolment();
  const controller = new AbortController();
  leave = controller;
  try {
    const [list] = await Promise.all([api.get("/apps", { limit: 500 }, controller.signal), loadCodes(controller.signal)]);
    apps = list.items;
  } catch (error) {
    if (controller.signal.aborted || error.name === "AbortError" || !session) return;
    if (error.code === "second_factor_setup_required") return showEnrolment();
    // The frame stays during an outage; the screen below shows what fails.
    if (!error.isTransient || apps.length === 0) return showProblem(error, route);
  }
  if (controller.signal.aborted) return;
  for (const [name, value] of Object.entries(carriedTo(location.hash.split("?")[0].slice(1)))) query.set(name, value);

  let app = null;
  let entry;
  let parameter = null;
  if (parts[0] === "apps" && parts[1] !== undefined) {
    app = apps.find((item) => item.id === parts[1]) ?? null;
    entry = parts[2] === "samples" ? ["failures", "Failed request", "chart", sample] : appScreens.find(([name]) => name === (parts[2] ?? "failures"));
    parameter = parts[3] ?? null;
    if (app) prefer("app", app.id);
  } else {
    entry = houseScreens.find(([name]) => name === (parts[0] ?? "home"));
  }
  const current = app ?? apps.find((item) => item.id === preferences.app) ?? apps[0] ?? null;
  // Only a failed request and the documentation have parts after the name of the screen.
  const known = app ? (entry?.[3] === sample ? 4 : 3) : entry?.[3] === docs ? 4 : 1;
  if (entry?.[3] === docs) parameter = parts.slice(1).join("/");
  const missing = !entry || (parts[0] === "apps" && !app) || parts.length > known;
  const title = missing ? "Not found" : entry[1];
  const focusBefore = document.activeElement?.closest?.(".sidebar, .topbar") !== null;
  const body = h("div", { class: "screen" });
  const name = missing ? "" : entry[0];
  const frame = shell(title, name, app, current, body);
  replace(root, frame);
  root.className = "";
  document.title = `${title}${app ? ` · ${app.name || app.id}` : ""} · Countersign`;
  age = null;
  showAge();
  if (missing) {
    body.append(h("p", {}, "This page does not exist. "), h("a", { href: "#/" }, "Go to the overview"));
  } else {
    const context = {
      body, app, apps, query, parameter, session, signal: controller.signal, can, go, route,
      asOf: (at) => { age = at; showAge(); },
      refresh: null,
    };
    frame.querySelector("#refresh").addEventListener("click", () => refresh(context));
    entry[3](context);
  }
  window.scrollTo(0, 0);
  if (focusBefore || document.activeElement === document.body) frame.querySelector("h1").focus({ preventScroll: true });
  announce(title);
}

function showAge() {
  const label = document.getElementById("age");
  if (!label) return;
  replace(label, age === null ? "" : `as of ${clock(age)}`);
  label.title = age === null ? "" : ago(age);
}

function link(href, name, symbol, active) {
  return h("a", { class: "nav-link", href, "aria-current": active ? "page" : undefined }, icon(symbol), h("span", {}, name));
}

function shell(title, name, app, current, body) {
  const base = current && `#/apps/${encodeURIComponent(current.id)}`;
  const [overview, ...house] = houseScreens;
  const sidebar = h("nav", { class: "sidebar", id: "sidebar", "aria-label": "Main" },
    h("a", { class: "brand", href: "#/" }, mark(), h("span", {}, "Countersign")),
    h("div", { class: "nav-scroll" }, link("#/", overview[1], overview[2], name === "home"),
    current && h("div", { class: "nav-group" },
      h("label", { class: "nav-title", for: "app-switch" }, "App"),
      select(appNames(apps), current.id,
        (event) => go(`#/apps/${encodeURIComponent(event.target.value)}/${app ? name : "failures"}`), { id: "app-switch", class: "app-switch" }),
      entries(appScreens, (key) => isUsed(key, current), ([key, label, symbol]) => link(`${base}/${key}`, label, symbol, app && name === key), app && name)),
    h("div", { class: "nav-group" }, h("p", { class: "nav-title" }, "Gateway"),
      entries(house, (key) => key !== "gateways" || preferences.cluster, ([key, label, symbol]) => link(`#/${key}`, label, symbol, name === key), !app && name))),
    h("div", { class: "nav-foot" },
      accountMenu(session, signOut), themeButton()));
  const opener = iconButton("Menu", "menu", () => {
    const open = sidebar.classList.toggle("open");
    opener.setAttribute("aria-expanded", String(open));
    if (open) sidebar.querySelector("a").focus();
  }, { class: "icon-button menu-opener", "aria-expanded": "false", "aria-controls": "sidebar" });
  sidebar.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && sidebar.classList.contains("open")) opener.click();
  });
  return h("div", { class: "frame" },
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, "Skip to the content"),
    sidebar,
    h("div", { class: "column" },
      h("header", { class: "topbar" }, opener,
        h("div", { class: "title" }, app && h("p", { class: "crumb", dir: "auto" }, app.name || app.id), h("h1", { tabindex: -1 }, title)),
        h("div", { class: "standing" },
          app && standing(app, leave.signal),
          h("span", { id: "age", class: "age" })),
        h("button", { type: "button", class: "button plain search-opener", "aria-label": "Go to", "aria-keyshortcuts": "Control+K Meta+K", onclick: openPalette }, icon("search", 16), h("span", {}, "Go to"), h("kbd", {}, COMMAND)),
        iconButton("Saved views", "star", () => savedViews(app ? `${app.name || app.id}: ${title}` : title), { class: "icon-button wide-only" }),
        iconButton("Refresh", "refresh", null, { id: "refresh" }),
        iconButton("Keyboard shortcuts", "keyboard", shortcuts, { class: "icon-button wide-only" })),
      h("main", { id: "main", tabindex: -1 }, body, docsLink(name))));
}

/** Whether a screen is in the menu. The others are behind “More”. */
function isUsed(key, app) {
  if (key === "start") return !app.last_request_ms;
  return !optional[key] || app.features.includes(optional[key]);
}

/** The links of a menu; links of unused features are folded, except the current screen's. */
function entries(screens, isShown, make, name) {
  const allowed = screens.filter(([key]) => (key !== "customers" || can("operator")) && (key !== "members" || can("owner")));
  const folded = allowed.filter(([key]) => !isShown(key));
  return [allowed.filter((entry) => !folded.includes(entry)).map(make),
    folded.length > 0 && h("details", { class: "nav-more", open: folded.some(([key]) => key === name) }, h("summary", { class: "nav-link" }, icon("chevron"), "More"), folded.map(make))];
}

function themeButton() {
  const dark = preferences.theme === "dark" || (preferences.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const element = iconButton(dark ? "Use the light theme" : "Use the dark theme", dark ? "sun" : "moon", () => {
    prefer("theme", dark ? "light" : "dark");
    const fresh = themeButton();
    element.replaceWith(fresh);
    fresh.focus();
  });
  element.classList.add("theme-switch");
  return element;
}

// Keyboard shortcuts: "g" and a letter opens a screen, "/" the search, "?" the list of shortcuts.
let pending = 0;

function openPalette() {
  const { parts } = place();
  const id = parts[0] === "apps" ? parts[1] : preferences.app ?? apps[0]?.id;
  const app = apps.find((item) => item.id === id) ?? apps[0] ?? null;
  const screens = [
    ...(app ? appScreens.filter(([key]) => key !== "customers" || can("operator")).map(([key, name, symbol]) => ({ name, symbol, more: app.name || app.id, href: `#${path("apps", app.id, key)}` })) : []),
    ...houseScreens.filter(([key]) => key !== "members" || can("owner")).map(([key, name, symbol]) => ({ name, symbol, href: key === "home" ? "#/" : `#/${key}` })),
    ...Object.entries(pages).map(([page, name]) => ({ name, symbol: "policy", kind: "Page", more: "documentation help", href: `#/docs/${page}` })),
  ];
  palette({ screens, apps, app, owner: can("owner"), go });
}

function shortcut(event) {
  if (session && event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && !session.second_factor?.setup_required) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) openPalette();
    return;
  }
  if (!session || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
  if (pending > Date.now()) {
    pending = 0;
    const { parts } = place();
    const app = parts[0] === "apps" ? parts[1] : preferences.app ?? apps[0]?.id;
    const inApp = appScreens.find((screen) => screen[4] === event.key);
    const inHouse = houseScreens.find((screen) => screen[4] === event.key);
    if (inApp && app) go(`#${path("apps", app, inApp[0])}`);
    else if (inHouse) go(inHouse[0] === "home" ? "#/" : `#/${inHouse[0]}`);
    else return;
    event.preventDefault();
    return;
  }
  if (event.key === "g") pending = Date.now() + 1500;
  else if (event.key === "?") shortcuts();
  else if (event.key === "r") document.getElementById("refresh")?.click();
  else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    (search ?? document.getElementById("app-switch"))?.focus();
  } else return;
  event.preventDefault();
}

function shortcuts() {
  const row = (combination, text) => h("div", { class: "shortcut" },
    h("dt", {}, combination.map((key) => h("kbd", {}, key))), h("dd", {}, text));
  dialog("Keyboard shortcuts", () => h("div", { class: "shortcuts" },
    h("div", {}, h("h3", {}, "Anywhere"), h("dl", {},
      row([COMMAND], "Go anywhere"), row(["?"], "This list"), row(["/"], "Search, or choose an app"), row(["r"], "Refresh"), row(["Esc"], "Close, or back"))),
    h("div", {}, h("h3", {}, "Go to"), h("dl", {}, [...houseScreens, ...appScreens].map((screen) => row(["g", screen[4]], screen[1])))),
    h("div", {}, h("h3", {}, "In the chart"), h("dl", {},
      row(["←", "→"], "Bucket by bucket"), row(["↑", "↓"], "Code by code"), row(["Home", "End"], "First and last bucket"),
      row(["Enter"], "Show the requests"), row(["Esc"], "Back to the chart")))), { wide: true });
}

begin();
