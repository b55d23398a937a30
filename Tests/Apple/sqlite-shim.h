typedef long long sqlite3_int64; typedef unsigned long long sqlite3_uint64;
typedef struct sqlite3 sqlite3; typedef struct sqlite3_stmt sqlite3_stmt; typedef struct sqlite3_backup sqlite3_backup;
typedef void (*sqlite3_destructor_type)(void*);
#define A(x) __attribute__((availability(ios,introduced=x))) __attribute__((availability(macos,introduced=12.3)))
#define SQLITE_OK 0
#define SQLITE_BUSY 5
#define SQLITE_LOCKED 6
#define SQLITE_IOERR 10
#define SQLITE_CORRUPT 11
#define SQLITE_FULL 13
#define SQLITE_SCHEMA 17
#define SQLITE_CONSTRAINT 19
#define SQLITE_MISMATCH 20
#define SQLITE_NOTADB 26
#define SQLITE_ROW 100
#define SQLITE_DONE 101
#define SQLITE_NULL 5
#define SQLITE_OPEN_READONLY 0x1
#define SQLITE_OPEN_READWRITE 0x2
#define SQLITE_OPEN_CREATE 0x4
#define SQLITE_OPEN_NOMUTEX 0x8000
#define SQLITE_OPEN_EXRESCODE 0x02000000
#define SQLITE_PREPARE_PERSISTENT 0x01
#define SQLITE_CONFIG_MEMSTATUS 9
int sqlite3_config(int, ...);
static inline int countersign_sqlite_without_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
int sqlite3_open_v2(const char*, sqlite3**, int, const char*);
int sqlite3_close_v2(sqlite3*) A(8.2);
int sqlite3_busy_timeout(sqlite3*, int);
int sqlite3_exec(sqlite3*, const char*, int (*)(void*,int,char**,char**), void*, char**);
int sqlite3_prepare_v3(sqlite3*, const char*, int, unsigned int, sqlite3_stmt**, const char**) A(12.0);
sqlite3_backup *sqlite3_backup_init(sqlite3*, const char*, sqlite3*, const char*);
int sqlite3_backup_step(sqlite3_backup*, int); int sqlite3_backup_finish(sqlite3_backup*);
const char *sqlite3_errstr(int) A(8.2); const char *sqlite3_errmsg(sqlite3*); int sqlite3_extended_errcode(sqlite3*); int sqlite3_system_errno(sqlite3*) A(10.0);
int sqlite3_get_autocommit(sqlite3*); sqlite3_int64 sqlite3_changes64(sqlite3*) A(15.4); int sqlite3_changes(sqlite3*); sqlite3_int64 sqlite3_last_insert_rowid(sqlite3*);
int sqlite3_finalize(sqlite3_stmt*); int sqlite3_reset(sqlite3_stmt*); int sqlite3_clear_bindings(sqlite3_stmt*); int sqlite3_step(sqlite3_stmt*);
int sqlite3_bind_null(sqlite3_stmt*, int); int sqlite3_bind_int64(sqlite3_stmt*, int, sqlite3_int64); int sqlite3_bind_double(sqlite3_stmt*, int, double);
int sqlite3_bind_text(sqlite3_stmt*,int,const char*,int,void(*)(void*)); int sqlite3_bind_blob64(sqlite3_stmt*, int, const void*, sqlite3_uint64, void(*)(void*)) A(9.0); int sqlite3_bind_blob(sqlite3_stmt*, int, const void*, int, void(*)(void*)); int sqlite3_bind_zeroblob(sqlite3_stmt*, int, int n);
int sqlite3_column_type(sqlite3_stmt*, int); sqlite3_int64 sqlite3_column_int64(sqlite3_stmt*, int); double sqlite3_column_double(sqlite3_stmt*, int); const unsigned char *sqlite3_column_text(sqlite3_stmt*, int); int sqlite3_column_bytes(sqlite3_stmt*, int); const void *sqlite3_column_blob(sqlite3_stmt*, int);
#define SQLITE_PERM 3
#define SQLITE_READONLY 8
#define SQLITE_CANTOPEN 14
#define SQLITE_STMTSTATUS_VM_STEP 4
int sqlite3_stmt_status(sqlite3_stmt *, int, int);
#define SQLITE_INTEGER 1
#define SQLITE_FLOAT 2
#define SQLITE_TEXT 3
