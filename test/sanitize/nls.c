/*
 * nls.c
 *	  No message catalogs; loaded before PostgreSQL's programs beside AddressSanitizer's library.
 *
 * Where that library is loaded first, glibc 2.36 unlocks its lock of message catalogs once more
 * than it locked it, before main, and the first bindtextdomain() waits for ever.
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
