/* The streaming writer of XML and HTML. */
#include "report/markup.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/printable.h"

void gcmp_markup_escape(struct gcmp_text *text, const char *string) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, string, true);
    const char *at = safe.bytes == NULL ? "" : safe.bytes;
    while (*at != '\0') {
        size_t plain = strcspn(at, "&<>\"'");
        gcmp_text_add_bytes(text, at, plain);
        at += plain;
        switch (*at) {
        case '&':
            gcmp_text_add(text, "&amp;");
            break;
        case '<':
            gcmp_text_add(text, "&lt;");
            break;
        case '>':
            gcmp_text_add(text, "&gt;");
            break;
        case '"':
            gcmp_text_add(text, "&quot;");
            break;
        case '\'':
            gcmp_text_add(text, "&#39;");
            break;
        default:
            continue; /* the end */
        }
        at++;
    }
    text->failed = text->failed || safe.failed;
    gcmp_text_free(&safe);
}

/* Add "<name a="b"", without the end of the tag. */
static void start_tag(struct gcmp_markup *markup, const char *name, va_list attributes) {
    struct gcmp_text *text = &markup->out->text;
    gcmp_text_add(text, "<");
    gcmp_text_add(text, name);
    for (const char *key = va_arg(attributes, const char *); key != NULL;
         key = va_arg(attributes, const char *)) {
        const char *value = va_arg(attributes, const char *);
        if (value != NULL) {
            gcmp_text_addf(text, " %s=\"", key);
            gcmp_markup_escape(text, value);
            gcmp_text_add(text, "\"");
        }
    }
}

static void push(struct gcmp_markup *markup, const char *name) {
    assert(markup->depth < GCMP_MARKUP_MAX_DEPTH);
    markup->open[markup->depth++] = name;
    gcmp_text_add(&markup->out->text, ">");
}

void gcmp_markup_open(struct gcmp_markup *markup, const char *name, ...) {
    va_list attributes;
    va_start(attributes, name);
    start_tag(markup, name, attributes);
    va_end(attributes);
    push(markup, name);
}

void gcmp_markup_open_line(struct gcmp_markup *markup, const char *name, ...) {
    va_list attributes;
    gcmp_text_add(&markup->out->text, "\n");
    gcmp_out_drain(markup->out);
    va_start(attributes, name);
    start_tag(markup, name, attributes);
    va_end(attributes);
    push(markup, name);
}

void gcmp_markup_close(struct gcmp_markup *markup) {
    assert(markup->depth > 0);
    gcmp_text_addf(&markup->out->text, "</%s>", markup->open[--markup->depth]);
    gcmp_out_drain(markup->out);
}

void gcmp_markup_empty(struct gcmp_markup *markup, const char *name, ...) {
    va_list attributes;
    va_start(attributes, name);
    start_tag(markup, name, attributes);
    va_end(attributes);
    gcmp_text_add(&markup->out->text, "/>");
    gcmp_out_drain(markup->out);
}

void gcmp_markup_element(struct gcmp_markup *markup, const char *name, const char *content, ...) {
    va_list attributes;
    va_start(attributes, content);
    start_tag(markup, name, attributes);
    va_end(attributes);
    push(markup, name);
    gcmp_markup_text(markup, content);
    gcmp_markup_close(markup);
}

void gcmp_markup_text(struct gcmp_markup *markup, const char *content) {
    gcmp_markup_escape(&markup->out->text, content);
}

void gcmp_markup_textf(struct gcmp_markup *markup, const char *format, ...) {
    char line[512]; /* formats here take figures and our own words, never names from files */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    gcmp_markup_text(markup, line);
}
