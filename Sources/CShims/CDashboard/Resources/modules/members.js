// Users and API tokens.

import { h, replace } from "./dom.js";
import { api, path } from "./api.js";
import { ago, dateTime, DAY } from "./format.js";
import { confirm, formDialog, removable, showOnce } from "./dialogs.js";
import { badge, button, card, emptyState, field, select, table, toast, toggle } from "./ui.js";
import { attempt, view } from "./views.js";

const roles = [["viewer", "Viewer: reads"], ["operator", "Operator: keys, enforcement, rules"], ["owner", "Owner: everything"]];

export function members(context) {
  const { body, session, can } = context;
  if (!can("owner")) {
    return replace(body, emptyState("members", "Only an owner sees members and tokens", "Ask an owner if you need another role or an API token."));
  }
  const part = view(context, async (signal) => {
    const [users, tokens, rules] = await Promise.all([api.get("/users", { limit: 500 }, signal), api.get("/tokens", { limit: 500 }, signal), api.get("/sign-in-rules", {}, signal)]);
    return { users: users.items, tokens: tokens.items, rules };
  }, ({ users, tokens, rules }) => h("div", { class: "stack" },
    card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "Members"), button("Add a member", { symbol: "plus", onclick: addUser })),
      table("Members", [
        { title: "Name", heading: true, cell: (user) => user.name },
        { title: "Role", cell: (user) => select(roles, user.role, (event) => setRole(user, event.target.value), { "aria-label": `Role of ${user.name}`, disabled: user.name === session.user.name }) },
        { title: "Since", cell: (user) => dateTime(user.created_ms) }, { title: "Last sign-in", cell: (user) => ago(user.last_sign_in_ms ?? NaN) },
        { title: "Second factor", cell: (user) => (user.second_factor ? h("span", { class: "actions" }, badge("on", "good"), user.name !== session.user.name
          && button("Reset", { kind: "small", "aria-label": `Reset the second factor of ${user.name}`, onclick: () => resetFactor(user) })) : badge("off")) },
        { title: "", cell: (user) => (user.name === session.user.name ? badge("you") : removable("Remove", user.name, { text: "This member's sessions end at once.", phrase: user.name },
          () => api.remove(`/users${path(user.name)}`), part.reload)) },
      ], users),
      toggle("Require a second factor from every member", rules.second_factor_required, (on) => require(on))),
    card(null, h("div", { class: "card-head" }, h("h2", { class: "card-title" }, "API tokens"), button("Create a token", { symbol: "plus", onclick: addToken })),
      tokens.length === 0 ? emptyState("key", "No API token", "The command line and your scripts use them instead of a password.") : table("API tokens", [
        { title: "Name", heading: true, cell: (token) => token.name }, { title: "Scopes", cell: (token) => [token.scopes.map((scope) => badge(scope)), token.app] },
        { title: "Created", cell: (token) => dateTime(token.created_ms) }, { title: "Last used", cell: (token) => ago(token.last_used_ms ?? NaN) },
        { title: "Expires", cell: (token) => (token.expires_ms ? dateTime(token.expires_ms) : "never") },
        { title: "", cell: (token) => removable("Revoke", token.name, { text: "Anything that uses it stops working at once." }, () => api.remove(`/tokens${path(token.id)}`), part.reload) },
      ], tokens))));

  async function setRole(user, role) {
    if (await confirm(`Change the role of ${user.name}?`, { text: `${roles.find(([name]) => name === role)[1]}. It takes effect at once.`, action: `Make ${role}`, focused: true })
      && await attempt(() => api.patch(`/users${path(user.name)}`, { role }))) toast(`${user.name} is ${role} now.`);
    part.reload();
  }

  async function resetFactor(user) {
    if (await confirm(`Reset the second factor of ${user.name}`, { text: "For members who have lost both their phone and their recovery codes. They can then sign in with the password alone, and their sessions end.", action: "Reset" })
      && await attempt(() => api.remove(`/users${path(user.name)}/second-factor`))) part.reload();
  }

  async function require(on) {
    const text = on ? "Members without one, including those signed in now, must set one up before they can do anything else. API tokens are not affected."
      : "Members who already have a second factor keep it.";
    if (await confirm(on ? "Require a second factor" : "Stop requiring a second factor", { text, action: on ? "Require it" : "Stop requiring it", kind: on ? "primary" : "danger" })
      && await attempt(() => api.put("/sign-in-rules", { second_factor_required: on }))) toast(on ? "Every member now needs a second factor." : "A second factor is now optional.");
    part.reload();
  }

  async function addUser() {
    const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autofocus: true });
    const role = select(roles, "viewer");
    const password = h("input", { type: "password", required: true, maxlength: 1024, autocomplete: "new-password" });
    const added = await formDialog("Add a member", "Add", [field("Name", name), field("Role", role), field("Initial password", password, "At least 12 characters.")],
      () => api.post("/users", { name: name.value.trim(), role: role.value, password: password.value }));
    if (added) part.reload();
  }

  async function addToken() {
    const name = h("input", { type: "text", required: true, maxlength: 100, autocomplete: "off", autofocus: true });
    const scope = select([["read", "Read"], ["write", "Read and write"], ["admin", "Everything"], ["reader", "Follow the events of one app"]], "read");
    const app = h("input", { type: "text", maxlength: 64, autocomplete: "off" });
    const life = select([[30, "30 days"], [90, "90 days"], [365, "1 year"], [0, "never"]], 90);
    const scopes = { read: ["read"], write: ["read", "write"], admin: ["read", "write", "admin"], reader: ["reader"] };
    const made = await formDialog("Create an API token", "Create token", [field("Name", name, "What the token is for."), field("Access", scope), field("App", app, "The app's id. Only for tokens that follow events; such a token gives access to nothing else."), field("Expires after", life)], () => {
      const days = Number(life.value);
      return api.post("/tokens", { name: name.value.trim(), scopes: scopes[scope.value], app: (scope.value === "reader" && app.value.trim()) || null, expires_ms: days ? Date.now() + days * DAY : null });
    });
    if (!made) return;
    await showOnce(`API token ${made.name}`, "Only its hash is stored.", made.token);
    part.reload();
  }

  replace(body, part.element);
}
