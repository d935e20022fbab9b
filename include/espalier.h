/* Espalier for C: what libespalier.so shows (docs/library.md). */
#ifndef ESPALIER_H
#define ESPALIER_H

#if defined(__GNUC__)
#define ESPALIER_API __attribute__((visibility("default")))
#else
#define ESPALIER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is loaded, as "0.1.0". */
ESPALIER_API const char* espalier_version(void);

#ifdef __cplusplus
}
#endif

#endif
