/* Heat maps as pictures. The PNG is made here: sixteen colours, four bits a pixel, in one stored
 * block of deflate (RFC 1951, 3.2.4), so that no more than two checksums are needed. */
#include "report/heat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "report/facts.h"
#include "report/html_page.h"
#include "report/page.h"

enum { MAX_STORED_BYTES = 65535, SIDE = GRADCMP_HEAT_CELLS };

/* Inside the bound from pale to blue, beyond it from yellow to dark red; readable on both grounds.
 */
static const unsigned char palette[GCMP_HEAT_STEPS][3] = {
    {247, 249, 251}, {232, 240, 248}, {214, 229, 243}, {193, 216, 237},
    {168, 200, 229}, {139, 181, 219}, {108, 160, 207}, {76, 138, 193},
    {254, 224, 128}, {253, 190, 94},  {250, 150, 72},  {240, 108, 58},
    {219, 66, 48},   {184, 32, 44},   {128, 8, 38},    {128, 128, 128}};

unsigned gcmp_heat_step(double cell, double bound) {
    int exponent;
    if (isnan(cell)) {
        return GCMP_HEAT_NONE;
    }
    if (!(cell > 0.0)) {
        return 0;
    }
    double ratio = cell / bound;
    if (isinf(ratio) || isnan(ratio)) {
        return GCMP_HEAT_LAST;
    }
    double half = frexp(ratio, &exponent); /* ratio = half * 2^exponent, half in [0.5, 1) */
    int step = GCMP_HEAT_AT_BOUND + exponent - (half == 0.5);
    return step < 1 ? 1 : step > GCMP_HEAT_LAST ? GCMP_HEAT_LAST : (unsigned)step;
}

struct bytes {
    unsigned char data[SIDE * (SIDE / 2 + 1) + 512];
    size_t length;
};

static void add_u32be(struct bytes *to, unsigned long value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        to->data[to->length++] = (unsigned char)(value >> shift & 255);
    }
}

static void add_raw(struct bytes *to, const void *data, size_t length) {
    memcpy(to->data + to->length, data, length);
    to->length += length;
}

static void add_chunk(struct bytes *to, const char type[4], const unsigned char *data,
                      size_t length) {
    add_u32be(to, length);
    size_t start = to->length;
    add_raw(to, type, 4);
    add_raw(to, data, length);
    add_u32be(to, crc32(crc32(0, NULL, 0), to->data + start, (uInt)(4 + length)));
}

/* The rows as PNG filters them (not at all), in a stored block in a zlib stream. */
static size_t pack(unsigned char *out, const unsigned char *steps, unsigned rows,
                   unsigned columns) {
    unsigned char *at = out + 7;
    for (unsigned row = 0; row < rows; row++) {
        *at++ = 0; /* no filter */
        for (unsigned column = 0; column < columns; column += 2) {
            const unsigned char *pixel = steps + (size_t)row * columns + column;
            /* NOLINTNEXTLINE(clang-analyzer-core.*): all steps are set */
            *at++ = (unsigned char)(pixel[0] << 4 | (column + 1 < columns ? pixel[1] : 0));
        }
    }
    size_t raw = (size_t)(at - out) - 7;
    const unsigned char head[] = {0x78,
                                  0x01,
                                  0x01, /* the last block, stored */
                                  (unsigned char)(raw & 255),
                                  (unsigned char)(raw >> 8),
                                  (unsigned char)(~raw & 255),
                                  (unsigned char)(~raw >> 8 & 255)};
    memcpy(out, head, sizeof head);
    unsigned long sum = adler32(adler32(0, NULL, 0), out + 7, (uInt)raw);
    for (int shift = 24; shift >= 0; shift -= 8) {
        *at++ = (unsigned char)(sum >> shift & 255);
    }
    return (size_t)(at - out);
}

void gcmp_heat_add_png(struct gcmp_text *text, const unsigned char *steps, unsigned rows,
                       unsigned columns) {
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    struct bytes header = {.length = 0}, png = {.length = 0};
    unsigned char packed[SIDE * (SIDE / 2 + 1) + 16];
    if (rows == 0 || columns == 0 || rows > SIDE || columns > SIDE) {
        return;
    }
    add_u32be(&header, columns);
    add_u32be(&header, rows);
    add_raw(&header, "\4\3\0\0\0", 5); /* four bits a pixel, by palette */
    add_raw(&png, signature, sizeof signature);
    add_chunk(&png, "IHDR", header.data, header.length);
    add_chunk(&png, "PLTE", palette[0], sizeof palette);
    add_chunk(&png, "IDAT", packed, pack(packed, steps, rows, columns));
    add_chunk(&png, "IEND", packed, 0);
    gcmp_text_add(text, "data:image/png;base64,");
    gcmp_base64_add(text, png.data, png.length);
}

/* Write the picture itself. */
static void add_image(struct gcmp_markup *html, const char *class_name, const char *text,
                      const unsigned char *steps, const unsigned sizes[2]) {
    struct gcmp_text source = GCMP_TEXT_INIT;
    gcmp_heat_add_png(&source, steps, sizes[0], sizes[1]);
    gcmp_markup_empty(html, "img", "class", class_name, "alt", text, "src",
                      source.bytes == NULL ? "" : source.bytes, NULL);
    html->out->text.failed = html->out->text.failed || source.failed;
    gcmp_text_free(&source);
}

/* "rows 0 to 4095 downwards (64 a cell), columns 0 to 1023". */
static void add_caption(struct gcmp_markup *html,
                        const struct gradcmp_parameter_report *parameter) {
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned ndim = gcmp_compared_shape(parameter, shape);
    uint64_t columns = ndim == 0 ? 1 : shape[ndim - 1];
    uint64_t rows = ndim < 2 ? 1 : gcmp_shape_elems(ndim - 1, shape);
    char figure[GCMP_FIGURE_BYTES];
    gcmp_markup_open(html, "figcaption", NULL);
    gcmp_markup_textf(html, "%s row%s down, ", gcmp_figure_count(figure, rows),
                      rows == 1 ? "" : "s");
    gcmp_markup_textf(html, "%s column%s across", gcmp_figure_count(figure, columns),
                      columns == 1 ? "" : "s");
    gcmp_markup_textf(html, ", in %u x %u cells", (unsigned)parameter->heat.rows,
                      (unsigned)parameter->heat.columns);
    gcmp_markup_close(html);
}

void gcmp_heat_html(struct gcmp_markup *html, const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_heat *heat = &parameter->heat;
    unsigned char steps[SIDE * SIDE];
    if (heat->cells == NULL || heat->rows == 0 || heat->columns == 0 || heat->rows > SIDE ||
        heat->columns > SIDE) {
        return;
    }
    for (size_t i = 0; i < (size_t)heat->rows * heat->columns; i++) {
        steps[i] = (unsigned char)gcmp_heat_step(heat->cells[i], parameter->bound);
    }
    const unsigned sizes[2] = {heat->rows, heat->columns};
    gcmp_markup_open_line(html, "figure", NULL);
    add_image(html, "heat", "heat map of the difference", steps, sizes);
    add_caption(html, parameter);
    gcmp_markup_close(html);
}

void gcmp_heat_legend(struct gcmp_markup *html) {
    unsigned char steps[GCMP_HEAT_LAST];
    for (unsigned i = 0; i < GCMP_HEAT_LAST; i++) {
        steps[i] = (unsigned char)(i + 1);
    }
    const unsigned sizes[2] = {1, GCMP_HEAT_LAST};
    gcmp_markup_open_line(html, "p", "class", "scale", NULL);
    gcmp_markup_text(html, "Maps: error of a cell, ");
    gcmp_markup_element(html, "span", "1/64 of the bound", NULL);
    add_image(html, NULL, "from 1/64 of the bound to 64 times the bound", steps, sizes);
    gcmp_markup_element(html, "span",
                        "64 times the bound; each step is a factor of 2, grey: NaN or "
                        "Inf alone",
                        NULL);
    gcmp_markup_close(html);
}
