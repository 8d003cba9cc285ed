/*
 * nls.c
 *	  Replaces glibc's functions of message catalogs by functions without effect.
 *
 * test/sanitize.sh preloads it into PostgreSQL's programs, together with AddressSanitizer's
 * library. When that library is loaded first, glibc 2.36 unlocks the lock of its message catalogs
 * once too often before main(), and the first bindtextdomain() never returns.
 */
#include <stddef.h>

char *bindtextdomain(const char *domain, const char *directory);
char *textdomain(const char *domain);
char *bind_textdomain_codeset(const char *domain, const char *codeset);

char *
bindtextdomain(const char *domain, const char *directory)
{
	(void) domain;
	return (char *) directory;
}

char *
textdomain(const char *domain)
{
	return (char *) domain;
}

char *
bind_textdomain_codeset(const char *domain, const char *codeset)
{
	(void) domain;
	return (char *) codeset;
}
