// The rules for issuing an app's tokens.

import { h } from "./dom.js";
import { api, path } from "./api.js";
import { confirm, settingsForm } from "./dialogs.js";
import { card, field, toast, toggle } from "./ui.js";
import { view } from "./views.js";
import { durationInput } from "./units.js";

export function tokenRules(context) {
  const base = path("apps", context.app.id, "token-rules");
  const disabled = !context.can("operator");
  const part = view(context, (signal) => api.read(base, {}, signal), ({ data: rules, etag }) => {
    const duration = (label, name) => durationInput(rules[name], { label, name, required: true, disabled });
    const access = duration("Access token lifetime", "access_seconds");
    const refresh = duration("Idle session lifetime", "refresh_seconds");
    const reuse = duration("Reuse window for a refresh token", "reuse_seconds");
    const absolute = duration("Maximum session lifetime", "absolute_seconds");
    let open = rules.registration === "open";
    return card("Rules", settingsForm([
      disabled ? h("p", {}, open ? "Devices may register themselves." : "Devices may not register themselves.")
        : toggle("Let devices register themselves at /api/register, without proof of who they are", open, (on) => { open = on; }),
      h("div", { class: "grid-form" },
        field("Access token lifetime", access.input, "Up to a day.", access.unit),
        field("Idle session lifetime", refresh.input, "Up to a year.", refresh.unit),
        field("Maximum session lifetime", absolute.input, "After that the user must log in again. Applies to open sessions too.", absolute.unit),
        field("Reuse window for a refresh token", reuse.input, "Up to a minute, for devices that lost the response. Using a replaced token later ends the session.", reuse.unit)),
    ], !disabled && "Save the rules", () => api.put(base, {
      registration: open ? "open" : "closed", access_seconds: access.read(), refresh_seconds: refresh.read(), reuse_seconds: reuse.read(),
      absolute_seconds: absolute.read(),
    }, etag), async () => { await part.reload(); toast("The rules are saved and in force.", { tone: "good" }); }, {
      ask: () => open !== true || rules.registration === "open" || confirm("Let devices register themselves?", {
        text: "From now on anyone who has the write key can register a device and get tokens for it, without proof of who they are.", action: "Save the rules", focused: true }),
    }));
  });
  return part.element;
}
