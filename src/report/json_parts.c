/* The parts of JSON documents that several commands share. */
#include "report/json_parts.h"

#include "gradcmp/sys/format.h"

void gcmp_json_parallel(struct gcmp_json *json, const char *key,
                        const struct gradcmp_parallel *parallel) {
    gcmp_json_open_object(json, key, false);
    gcmp_json_known(json, "tp", parallel->tp);
    gcmp_json_known(json, "pp", parallel->pp);
    gcmp_json_known(json, "vp", parallel->vp);
    gcmp_json_known(json, "dp", parallel->dp);
    gcmp_json_known(json, "cp", parallel->cp);
    gcmp_json_known(json, "ep", parallel->ep);
    gcmp_json_known(json, "etp", parallel->etp);
    gcmp_json_known(json, "world", parallel->world);
    gcmp_json_close(json);
}

static void write_setting(struct gcmp_json *json, const struct gradcmp_setting *setting) {
    switch (setting->kind) {
    case GRADCMP_SETTING_BOOL:
        gcmp_json_bool(json, setting->name, setting->integer != 0);
        break;
    case GRADCMP_SETTING_INT:
        gcmp_json_integer(json, setting->name, setting->integer);
        break;
    case GRADCMP_SETTING_FLOAT:
        gcmp_json_real(json, setting->name, setting->number);
        break;
    case GRADCMP_SETTING_TEXT:
        gcmp_json_text(json, setting->name, setting->text);
        break;
    case GRADCMP_SETTING_NONE:
    default:
        gcmp_json_null(json, setting->name);
    }
}

void gcmp_json_settings(struct gcmp_json *json, const char *key,
                        const struct gradcmp_catalogue *catalogue) {
    gcmp_json_open_object(json, key, true);
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        write_setting(json, &catalogue->settings[i]);
    }
    gcmp_json_close(json);
}

void gcmp_json_format(struct gcmp_json *json, const char *key,
                      const struct gradcmp_catalogue *catalogue) {
    gcmp_json_text(json, key, catalogue->format == NULL ? NULL : catalogue->format->name);
}
