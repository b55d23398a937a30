#pragma once

#include <stddef.h>

typedef struct countersign_dashboard_file {
    /// The path below /admin/, such as "assets/modules/app.js". The page is "index.html".
    const char *path;
    const unsigned char *bytes;
    size_t size;
} countersign_dashboard_file;

/// An array of all files. The last entry has no path.
const countersign_dashboard_file *countersign_dashboard_first(void);

/// The browser SDK in one file, which web pages load from the gateway.
const countersign_dashboard_file *countersign_browser_client(void);
