/* The parts of JSON documents that several commands share. */
#include "report/json_parts.h"

#include "gradcmp/sys/format.h"
#include "report/facts.h"

void gcmp_emit_parallel(struct gcmp_emitter *json, const char *key,
                        const struct gradcmp_parallel *parallel) {
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_known(json, "tp", parallel->tp);
    gcmp_emit_known(json, "pp", parallel->pp);
    gcmp_emit_known(json, "vp", parallel->vp);
    gcmp_emit_known(json, "dp", parallel->dp);
    gcmp_emit_known(json, "cp", parallel->cp);
    gcmp_emit_known(json, "ep", parallel->ep);
    gcmp_emit_known(json, "etp", parallel->etp);
    gcmp_emit_known(json, "world", parallel->world);
    gcmp_emit_close(json);
}

static void write_setting(struct gcmp_emitter *json, const struct gradcmp_setting *setting) {
    switch (setting->kind) {
    case GRADCMP_SETTING_BOOL:
        gcmp_emit_bool(json, setting->name, setting->integer != 0);
        break;
    case GRADCMP_SETTING_INT:
        gcmp_emit_integer(json, setting->name, setting->integer);
        break;
    case GRADCMP_SETTING_FLOAT:
        gcmp_emit_real(json, setting->name, setting->number);
        break;
    case GRADCMP_SETTING_TEXT:
        gcmp_emit_text(json, setting->name, setting->text);
        break;
    case GRADCMP_SETTING_NONE:
    default:
        gcmp_emit_null(json, setting->name);
    }
}

void gcmp_emit_settings(struct gcmp_emitter *json, const char *key,
                        const struct gradcmp_catalogue *catalogue) {
    gcmp_emit_open_object(json, key, true);
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        write_setting(json, &catalogue->settings[i]);
    }
    gcmp_emit_close(json);
}

void gcmp_emit_format(struct gcmp_emitter *json, const char *key,
                      const struct gradcmp_catalogue *catalogue) {
    gcmp_emit_text(json, key, catalogue->format == NULL ? NULL : catalogue->format->name);
}

void gcmp_emit_error(struct gcmp_emitter *json, const char *key,
                     const struct gradcmp_error *error) {
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_text(json, "file", error->path[0] == '\0' ? NULL : error->path);
    if (error->offset_bytes == GRADCMP_NO_OFFSET) {
        gcmp_emit_null(json, "offset");
    } else {
        gcmp_emit_count(json, "offset", error->offset_bytes);
    }
    gcmp_emit_text(json, "message", error->message);
    gcmp_emit_close(json);
}

void gcmp_emit_options(struct gcmp_emitter *json, const struct gradcmp_options *options) {
    struct gcmp_option_value values[GCMP_MAX_OPTION_VALUES];
    size_t count = gcmp_options_listed(options, values);
    gcmp_emit_open_object(json, "options", false);
    for (size_t i = 0; i < count; i++) {
        switch (values[i].kind) {
        case GCMP_OPTION_SWITCH:
            gcmp_emit_bool(json, values[i].key, values[i].count != 0);
            break;
        case GCMP_OPTION_TEXT:
            gcmp_emit_text(json, values[i].key, values[i].text);
            break;
        case GCMP_OPTION_REAL:
            gcmp_emit_real(json, values[i].key, values[i].real);
            break;
        case GCMP_OPTION_COUNT:
            gcmp_emit_count(json, values[i].key, values[i].count);
            break;
        }
    }
    gcmp_emit_close(json);
}
