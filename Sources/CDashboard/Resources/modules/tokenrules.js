// How the gateway issues an app's tokens.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { settingsForm } from "./dialogs.js";
import { card, field, toast, toggle } from "./ui.js";
import { view } from "./views.js";

export function tokenRules(context) {
  const base = path("apps", context.app.id, "token-rules");
  const disabled = !context.can("operator");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: rules, etag }) => {
    const seconds = (name, least, most) => h("input", { type: "number", name, min: least, max: most, required: true, value: rules[name], disabled });
    const access = seconds("access_seconds", 1, 86_400);
    const refresh = seconds("refresh_seconds", 1, 31_536_000);
    const reuse = seconds("reuse_seconds", 0, 60);
    const absolute = seconds("absolute_seconds", 1, 315_360_000);
    let open = rules.registration === "open";
    return card("Rules", settingsForm([
      disabled ? h("p", {}, open ? "Devices may register themselves." : "Devices may not register themselves.")
        : toggle("Let devices register themselves at /api/register, without proof of who they are", open, (on) => { open = on; }),
      h("div", { class: "grid-form" },
        field("Access token lifetime, seconds", access, "Up to a day."),
        field("Idle session lifetime, seconds", refresh, "Up to a year."),
        field("Maximum session lifetime, seconds", absolute, "After that the user must log in again. Applies to open sessions too."),
        field("Reuse window for a refresh token, seconds", reuse, "Up to a minute, for devices that lost the response. Using a replaced token later ends the session.")),
    ], !disabled && "Save the rules", () => api.put(base, {
      registration: open ? "open" : "closed", access_seconds: Number(access.value), refresh_seconds: Number(refresh.value), reuse_seconds: Number(reuse.value),
      absolute_seconds: Number(absolute.value),
    }, etag), async () => { await part.reload(); toast("The rules are saved and in force.", { tone: "good" }); }));
  });
  return part.element;
}
