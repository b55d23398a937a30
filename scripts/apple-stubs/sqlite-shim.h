#define SQLITE_PERM 3
#define SQLITE_READONLY 8
#define SQLITE_CANTOPEN 14
#define SQLITE_OPEN_MAIN_DB 0x00000100
#define SQLITE_OPEN_MAIN_JOURNAL 0x00000800
typedef struct sqlite3_file sqlite3_file;
typedef struct sqlite3_vfs sqlite3_vfs;
typedef void (*sqlite3_syscall_ptr)(void);
struct sqlite3_vfs {
    int iVersion;
    sqlite3_vfs *pNext;
    const char *zName;
    int (*xOpen)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
    sqlite3_syscall_ptr (*xGetSystemCall)(sqlite3_vfs *, const char *);
};
sqlite3_vfs *sqlite3_vfs_find(const char *);
int sqlite3_vfs_register(sqlite3_vfs *, int);
