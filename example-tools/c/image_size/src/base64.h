/* Reads base64, standard and for URLs, with or without `=` at its end. */
#include <stdbool.h>
#include <stddef.h>

/* Writes at most `capacity` bytes of the beginning of the text, and their number. False: a character is not of base64. */
bool base64_begin(const char *text, size_t length, unsigned char *bytes, size_t capacity, size_t *count);
