/* SQLite as a program: `sql FILE STATEMENTS`. */
#include <stdio.h>
#include <stdlib.h>

#include "sqlite3.h"

/* The rows of each statement, one a line, and their columns with a bar between them. */
static int row(void *nothing, int count, char **values, char **names) {
    for (int i = 0; i < count; i++) printf("%s%s", values[i] == NULL ? "" : values[i], i + 1 < count ? "|" : "\n");
    return 0;
}

int main(int count, char **words) {
    sqlite3 *db;
    char *error = NULL;
    if (count != 3) return fputs("usage: sql FILE STATEMENTS\n", stderr), 2;
    if (sqlite3_open(words[1], &db) != SQLITE_OK || sqlite3_exec(db, words[2], row, NULL, &error) != SQLITE_OK) {
        return fprintf(stderr, "%s\n", error == NULL ? sqlite3_errmsg(db) : error), 1;
    }
    return sqlite3_close(db) != SQLITE_OK;
}
