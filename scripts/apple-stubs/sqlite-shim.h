#define SQLITE_PERM 3
#define SQLITE_READONLY 8
#define SQLITE_CANTOPEN 14
#define SQLITE_STMTSTATUS_VM_STEP 4
int sqlite3_stmt_status(sqlite3_stmt *, int, int);
#define SQLITE_INTEGER 1
#define SQLITE_FLOAT 2
#define SQLITE_TEXT 3
