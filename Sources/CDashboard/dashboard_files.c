#include "dashboard_files.h"

// The files are part of the program (C23, 6.10.4), so that it needs nothing beside itself. They stand in
// Sources/CountersignGateway/Dashboard/Resources; a new one needs two lines here.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const countersign_dashboard_file files[] = {
    {NULL, NULL, 0},
};

const countersign_dashboard_file *countersign_dashboard_first(void) { return files; }
