#include <sqlite3.h>

/* sqlite3_config takes a variable number of arguments, which Swift cannot pass. */
static inline int countersign_sqlite_without_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
