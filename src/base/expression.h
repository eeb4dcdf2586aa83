/* What a regular expression of a file or of the command line may cost. */
#ifndef GCMP_BASE_EXPRESSION_H
#define GCMP_BASE_EXPRESSION_H

/* Tell what is wrong with a POSIX extended expression before the C library compiles it: NULL, or a
 * phrase. The library repeats what is repeated, so that (a{9}){9} takes 81 states and a++++ doubles
 * at every sign; it descends into every group; and \1 within an expression takes exponential time.
 * None of that is bounded there. */
const char *gcmp_expression_fault(const char *pattern);

#endif
