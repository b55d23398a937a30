#pragma once

#include <stddef.h>

/// One file of the dashboard, as it is served.
typedef struct countersign_dashboard_file {
    /// Below /admin/, such as "assets/app.js"; "index.html" is the page itself.
    const char *path;
    const unsigned char *bytes;
    size_t size;
} countersign_dashboard_file;

/// The first of all files, which follow each other; the last has no path.
const countersign_dashboard_file *countersign_dashboard_first(void);

/// The client for browsers in one file, as web pages load it from the gateway.
const countersign_dashboard_file *countersign_browser_client(void);
