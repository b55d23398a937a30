#include "dashboard_files.h"

// Embeds the dashboard's files (C23, 6.10.4), so that the program needs no other files. They are in
// Sources/CShims/CDashboard/Resources, and pages that the dashboard links in docs (modules/docs.js). A new
// file needs an entry here.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char file_icons_favicon_svg[] = {
#embed "Resources/icons/favicon.svg"
};
static const unsigned char file_index_html[] = {
#embed "Resources/index.html"
};
static const unsigned char file_modules_address_js[] = {
#embed "Resources/modules/address.js"
};
static const unsigned char file_modules_api_js[] = {
#embed "Resources/modules/api.js"
};
static const unsigned char file_modules_app_js[] = {
#embed "Resources/modules/app.js"
};
static const unsigned char file_modules_appsettings_js[] = {
#embed "Resources/modules/appsettings.js"
};
static const unsigned char file_modules_audit_js[] = {
#embed "Resources/modules/audit.js"
};
static const unsigned char file_modules_bulk_js[] = {
#embed "Resources/modules/bulk.js"
};
static const unsigned char file_modules_chart_js[] = {
#embed "Resources/modules/chart.js"
};
static const unsigned char file_modules_clients_js[] = {
#embed "Resources/modules/clients.js"
};
static const unsigned char file_modules_codes_js[] = {
#embed "Resources/modules/codes.js"
};
static const unsigned char file_modules_consumers_js[] = {
#embed "Resources/modules/consumers.js"
};
static const unsigned char file_modules_counts_js[] = {
#embed "Resources/modules/counts.js"
};
static const unsigned char file_modules_customers_js[] = {
#embed "Resources/modules/customers.js"
};
static const unsigned char file_modules_dialogs_js[] = {
#embed "Resources/modules/dialogs.js"
};
static const unsigned char file_modules_docs_js[] = {
#embed "Resources/modules/docs.js"
};
static const unsigned char file_modules_dom_js[] = {
#embed "Resources/modules/dom.js"
};
static const unsigned char file_modules_enforcement_js[] = {
#embed "Resources/modules/enforcement.js"
};
static const unsigned char file_modules_events_js[] = {
#embed "Resources/modules/events.js"
};
static const unsigned char file_modules_failures_js[] = {
#embed "Resources/modules/failures.js"
};
static const unsigned char file_modules_firststeps_js[] = {
#embed "Resources/modules/firststeps.js"
};
static const unsigned char file_modules_format_js[] = {
#embed "Resources/modules/format.js"
};
static const unsigned char file_modules_gateways_js[] = {
#embed "Resources/modules/gateways.js"
};
static const unsigned char file_modules_home_js[] = {
#embed "Resources/modules/home.js"
};
static const unsigned char file_modules_icons_js[] = {
#embed "Resources/modules/icons.js"
};
static const unsigned char file_modules_impact_js[] = {
#embed "Resources/modules/impact.js"
};
static const unsigned char file_modules_items_js[] = {
#embed "Resources/modules/items.js"
};
static const unsigned char file_modules_keys_js[] = {
#embed "Resources/modules/keys.js"
};
static const unsigned char file_modules_keysource_js[] = {
#embed "Resources/modules/keysource.js"
};
static const unsigned char file_modules_live_js[] = {
#embed "Resources/modules/live.js"
};
static const unsigned char file_modules_members_js[] = {
#embed "Resources/modules/members.js"
};
static const unsigned char file_modules_palette_js[] = {
#embed "Resources/modules/palette.js"
};
static const unsigned char file_modules_policy_js[] = {
#embed "Resources/modules/policy.js"
};
static const unsigned char file_modules_preferences_js[] = {
#embed "Resources/modules/preferences.js"
};
static const unsigned char file_modules_project_js[] = {
#embed "Resources/modules/project.js"
};
static const unsigned char file_modules_restrictions_js[] = {
#embed "Resources/modules/restrictions.js"
};
static const unsigned char file_modules_sample_js[] = {
#embed "Resources/modules/sample.js"
};
static const unsigned char file_modules_saved_js[] = {
#embed "Resources/modules/saved.js"
};
static const unsigned char file_modules_secondfactor_js[] = {
#embed "Resources/modules/secondfactor.js"
};
static const unsigned char file_modules_sessions_js[] = {
#embed "Resources/modules/sessions.js"
};
static const unsigned char file_modules_signin_js[] = {
#embed "Resources/modules/signin.js"
};
static const unsigned char file_modules_signingkeys_js[] = {
#embed "Resources/modules/signingkeys.js"
};
static const unsigned char file_modules_spark_js[] = {
#embed "Resources/modules/spark.js"
};
static const unsigned char file_modules_standing_js[] = {
#embed "Resources/modules/standing.js"
};
static const unsigned char file_modules_start_js[] = {
#embed "Resources/modules/start.js"
};
static const unsigned char file_modules_system_js[] = {
#embed "Resources/modules/system.js"
};
static const unsigned char file_modules_tokenrules_js[] = {
#embed "Resources/modules/tokenrules.js"
};
static const unsigned char file_modules_ui_js[] = {
#embed "Resources/modules/ui.js"
};
static const unsigned char file_modules_units_js[] = {
#embed "Resources/modules/units.js"
};
static const unsigned char file_modules_views_js[] = {
#embed "Resources/modules/views.js"
};
static const unsigned char file_modules_ways_js[] = {
#embed "Resources/modules/ways.js"
};
static const unsigned char file_modules_webhooks_js[] = {
#embed "Resources/modules/webhooks.js"
};
static const unsigned char file_styles_chart_css[] = {
#embed "Resources/styles/chart.css"
};
static const unsigned char file_styles_layout_css[] = {
#embed "Resources/styles/layout.css"
};
static const unsigned char file_styles_parts_css[] = {
#embed "Resources/styles/parts.css"
};
static const unsigned char file_styles_print_css[] = {
#embed "Resources/styles/print.css"
};
static const unsigned char file_styles_theme_css[] = {
#embed "Resources/styles/theme.css"
};
static const unsigned char file_docs_guides_dashboard_md[] = {
#embed "../../../docs/guides/dashboard.md"
};
static const unsigned char file_docs_guides_identity_providers_md[] = {
#embed "../../../docs/guides/identity-providers.md"
};
static const unsigned char file_docs_guides_move_from_bloomreach_md[] = {
#embed "../../../docs/guides/move-from/bloomreach.md"
};
static const unsigned char file_docs_guides_read_events_md[] = {
#embed "../../../docs/guides/read-events.md"
};
static const unsigned char file_docs_guides_record_events_md[] = {
#embed "../../../docs/guides/record-events.md"
};
static const unsigned char file_docs_guides_roll_out_enforcement_md[] = {
#embed "../../../docs/guides/roll-out-enforcement.md"
};
static const unsigned char file_docs_guides_rotate_keys_md[] = {
#embed "../../../docs/guides/rotate-keys.md"
};
static const unsigned char file_docs_guides_sign_tokens_md[] = {
#embed "../../../docs/guides/sign-tokens.md"
};
static const unsigned char file_docs_guides_troubleshooting_md[] = {
#embed "../../../docs/guides/troubleshooting.md"
};
static const unsigned char file_docs_guides_web_md[] = {
#embed "../../../docs/guides/web.md"
};
static const unsigned char file_docs_guides_webhooks_md[] = {
#embed "../../../docs/guides/webhooks.md"
};
static const unsigned char file_docs_operating_backup_md[] = {
#embed "../../../docs/operating/backup.md"
};
static const unsigned char file_docs_operating_security_md[] = {
#embed "../../../docs/operating/security.md"
};
static const unsigned char file_docs_operating_several_gateways_md[] = {
#embed "../../../docs/operating/several-gateways.md"
};
static const unsigned char file_docs_reference_error_codes_md[] = {
#embed "../../../docs/reference/error-codes.md"
};
static const unsigned char file_docs_start_md[] = {
#embed "../../../docs/start.md"
};

static const countersign_dashboard_file files[] = {
    {"assets/icons/favicon.svg", file_icons_favicon_svg, sizeof file_icons_favicon_svg},
    {"index.html", file_index_html, sizeof file_index_html},
    {"assets/modules/address.js", file_modules_address_js, sizeof file_modules_address_js},
    {"assets/modules/api.js", file_modules_api_js, sizeof file_modules_api_js},
    {"assets/modules/app.js", file_modules_app_js, sizeof file_modules_app_js},
    {"assets/modules/appsettings.js", file_modules_appsettings_js, sizeof file_modules_appsettings_js},
    {"assets/modules/audit.js", file_modules_audit_js, sizeof file_modules_audit_js},
    {"assets/modules/bulk.js", file_modules_bulk_js, sizeof file_modules_bulk_js},
    {"assets/modules/chart.js", file_modules_chart_js, sizeof file_modules_chart_js},
    {"assets/modules/clients.js", file_modules_clients_js, sizeof file_modules_clients_js},
    {"assets/modules/codes.js", file_modules_codes_js, sizeof file_modules_codes_js},
    {"assets/modules/consumers.js", file_modules_consumers_js, sizeof file_modules_consumers_js},
    {"assets/modules/counts.js", file_modules_counts_js, sizeof file_modules_counts_js},
    {"assets/modules/customers.js", file_modules_customers_js, sizeof file_modules_customers_js},
    {"assets/modules/dialogs.js", file_modules_dialogs_js, sizeof file_modules_dialogs_js},
    {"assets/modules/docs.js", file_modules_docs_js, sizeof file_modules_docs_js},
    {"assets/modules/dom.js", file_modules_dom_js, sizeof file_modules_dom_js},
    {"assets/modules/enforcement.js", file_modules_enforcement_js, sizeof file_modules_enforcement_js},
    {"assets/modules/events.js", file_modules_events_js, sizeof file_modules_events_js},
    {"assets/modules/failures.js", file_modules_failures_js, sizeof file_modules_failures_js},
    {"assets/modules/firststeps.js", file_modules_firststeps_js, sizeof file_modules_firststeps_js},
    {"assets/modules/format.js", file_modules_format_js, sizeof file_modules_format_js},
    {"assets/modules/gateways.js", file_modules_gateways_js, sizeof file_modules_gateways_js},
    {"assets/modules/home.js", file_modules_home_js, sizeof file_modules_home_js},
    {"assets/modules/icons.js", file_modules_icons_js, sizeof file_modules_icons_js},
    {"assets/modules/impact.js", file_modules_impact_js, sizeof file_modules_impact_js},
    {"assets/modules/items.js", file_modules_items_js, sizeof file_modules_items_js},
    {"assets/modules/keys.js", file_modules_keys_js, sizeof file_modules_keys_js},
    {"assets/modules/keysource.js", file_modules_keysource_js, sizeof file_modules_keysource_js},
    {"assets/modules/live.js", file_modules_live_js, sizeof file_modules_live_js},
    {"assets/modules/members.js", file_modules_members_js, sizeof file_modules_members_js},
    {"assets/modules/palette.js", file_modules_palette_js, sizeof file_modules_palette_js},
    {"assets/modules/policy.js", file_modules_policy_js, sizeof file_modules_policy_js},
    {"assets/modules/preferences.js", file_modules_preferences_js, sizeof file_modules_preferences_js},
    {"assets/modules/project.js", file_modules_project_js, sizeof file_modules_project_js},
    {"assets/modules/restrictions.js", file_modules_restrictions_js, sizeof file_modules_restrictions_js},
    {"assets/modules/sample.js", file_modules_sample_js, sizeof file_modules_sample_js},
    {"assets/modules/saved.js", file_modules_saved_js, sizeof file_modules_saved_js},
    {"assets/modules/secondfactor.js", file_modules_secondfactor_js, sizeof file_modules_secondfactor_js},
    {"assets/modules/sessions.js", file_modules_sessions_js, sizeof file_modules_sessions_js},
    {"assets/modules/signin.js", file_modules_signin_js, sizeof file_modules_signin_js},
    {"assets/modules/signingkeys.js", file_modules_signingkeys_js, sizeof file_modules_signingkeys_js},
    {"assets/modules/spark.js", file_modules_spark_js, sizeof file_modules_spark_js},
    {"assets/modules/standing.js", file_modules_standing_js, sizeof file_modules_standing_js},
    {"assets/modules/start.js", file_modules_start_js, sizeof file_modules_start_js},
    {"assets/modules/system.js", file_modules_system_js, sizeof file_modules_system_js},
    {"assets/modules/tokenrules.js", file_modules_tokenrules_js, sizeof file_modules_tokenrules_js},
    {"assets/modules/ui.js", file_modules_ui_js, sizeof file_modules_ui_js},
    {"assets/modules/units.js", file_modules_units_js, sizeof file_modules_units_js},
    {"assets/modules/views.js", file_modules_views_js, sizeof file_modules_views_js},
    {"assets/modules/ways.js", file_modules_ways_js, sizeof file_modules_ways_js},
    {"assets/modules/webhooks.js", file_modules_webhooks_js, sizeof file_modules_webhooks_js},
    {"assets/styles/chart.css", file_styles_chart_css, sizeof file_styles_chart_css},
    {"assets/styles/layout.css", file_styles_layout_css, sizeof file_styles_layout_css},
    {"assets/styles/parts.css", file_styles_parts_css, sizeof file_styles_parts_css},
    {"assets/styles/print.css", file_styles_print_css, sizeof file_styles_print_css},
    {"assets/styles/theme.css", file_styles_theme_css, sizeof file_styles_theme_css},
    {"docs/guides/dashboard.md", file_docs_guides_dashboard_md, sizeof file_docs_guides_dashboard_md},
    {"docs/guides/identity-providers.md", file_docs_guides_identity_providers_md, sizeof file_docs_guides_identity_providers_md},
    {"docs/guides/move-from/bloomreach.md", file_docs_guides_move_from_bloomreach_md, sizeof file_docs_guides_move_from_bloomreach_md},
    {"docs/guides/read-events.md", file_docs_guides_read_events_md, sizeof file_docs_guides_read_events_md},
    {"docs/guides/record-events.md", file_docs_guides_record_events_md, sizeof file_docs_guides_record_events_md},
    {"docs/guides/roll-out-enforcement.md", file_docs_guides_roll_out_enforcement_md, sizeof file_docs_guides_roll_out_enforcement_md},
    {"docs/guides/rotate-keys.md", file_docs_guides_rotate_keys_md, sizeof file_docs_guides_rotate_keys_md},
    {"docs/guides/sign-tokens.md", file_docs_guides_sign_tokens_md, sizeof file_docs_guides_sign_tokens_md},
    {"docs/guides/troubleshooting.md", file_docs_guides_troubleshooting_md, sizeof file_docs_guides_troubleshooting_md},
    {"docs/guides/web.md", file_docs_guides_web_md, sizeof file_docs_guides_web_md},
    {"docs/guides/webhooks.md", file_docs_guides_webhooks_md, sizeof file_docs_guides_webhooks_md},
    {"docs/operating/backup.md", file_docs_operating_backup_md, sizeof file_docs_operating_backup_md},
    {"docs/operating/security.md", file_docs_operating_security_md, sizeof file_docs_operating_security_md},
    {"docs/operating/several-gateways.md", file_docs_operating_several_gateways_md, sizeof file_docs_operating_several_gateways_md},
    {"docs/reference/error-codes.md", file_docs_reference_error_codes_md, sizeof file_docs_reference_error_codes_md},
    {"docs/start.md", file_docs_start_md, sizeof file_docs_start_md},
    {NULL, NULL, 0},
};

const countersign_dashboard_file *countersign_dashboard_first(void) { return files; }

// Made of Clients/web by scripts/web.sh --accept. Without --accept, that script fails if this file is outdated.
static const unsigned char file_countersign_js[] = {
#embed "Resources/countersign.js"
};

static const countersign_dashboard_file browser_client = {"countersign.js", file_countersign_js, sizeof file_countersign_js};

const countersign_dashboard_file *countersign_browser_client(void) { return &browser_client; }
