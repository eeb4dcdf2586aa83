/* Texts that are read line by line: environment dumps, logs, lists of packages; and which of all
 * forms a text is. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "lint/text.h"

/* One line without its end. */
struct line {
    const char *at, *end;
    uint64_t number;
};

struct lines {
    const char *at, *end;
    uint64_t number;
};

static bool next_line(struct lines *lines, struct line *out) {
    if (lines->at >= lines->end) {
        return false;
    }
    const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *end = newline == NULL ? lines->end : newline;
    /* Where files were put together, one may begin at any line. */
    lines->at += gcmp_utf8_mark_bytes(lines->at, (size_t)(end - lines->at));
    *out = (struct line){lines->at, end, ++lines->number};
    lines->at = newline == NULL ? lines->end : newline + 1;
    if (out->end > out->at && out->end[-1] == '\r') {
        out->end--;
    }
    return true;
}

static void trim(struct line *line) {
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t')) {
        line->at++;
    }
    while (line->end > line->at && (line->end[-1] == ' ' || line->end[-1] == '\t')) {
        line->end--;
    }
}

static size_t length(const struct line *line) {
    return (size_t)(line->end - line->at);
}

static bool starts_with(const struct line *line, const char *prefix) {
    return length(line) >= strlen(prefix) && memcmp(line->at, prefix, strlen(prefix)) == 0;
}

/* Find `word` inside the line. */
static const char *find(const struct line *line, const char *word) {
    return length(line) == 0 ? NULL : memmem(line->at, length(line), word, strlen(word));
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_';
}

/* Where the '=' of KEY=value stands, or NULL. The environment may hold other names too; a key has
 * no space. */
static const char *assignment(const struct line *line) {
    const char *equals = find(line, "=");
    if (equals == NULL || equals == line->at || (*line->at >= '0' && *line->at <= '9')) {
        return NULL;
    }
    for (const char *at = line->at; at < equals; at++) {
        if ((unsigned char)*at <= ' ' || strchr("\"'`$;|&<>(){}", *at) != NULL) {
            return NULL;
        }
    }
    return equals;
}

static enum gradcmp_status set_env(struct gcmp_lint_source *source, const char *key,
                                   size_t key_bytes, const struct line *value,
                                   struct gradcmp_error *error) {
    struct gcmp_lint_setting setting = {.kind = GCMP_LINT_ENV, .line = value->number};
    setting.name = gcmp_arena_text(source->arena, key, key_bytes);
    setting.text = gcmp_arena_text(source->arena, value->at, length(value));
    if (setting.name == NULL || setting.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_lint_set(source, &setting, error);
}

enum gradcmp_status gcmp_lint_read_nul(const char *bytes, size_t length_bytes,
                                       struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    const char *at = bytes, *end = bytes + length_bytes;
    uint64_t number = 0;
    source->form = GCMP_LINT_ENV_DUMP;
    source->has_env = true;
    while (at < end) {
        const char *stop = memchr(at, '\0', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        number++;
        if (equals != NULL && equals > at) {
            struct line value = {equals + 1, stop, number};
            GCMP_TRY(set_env(source, at, (size_t)(equals - at), &value, error));
        } else if (stop > at && source->stray_lines++ == 0) {
            source->first_stray_line = number;
        }
        at = stop + 1;
    }
    return GRADCMP_OK;
}

/* Take the quotes off a value of a .env file, and a comment behind it. `env` prints values as they
 * are, so that only a value that is quoted as a whole is one. */
static void unquote(struct line *value) {
    if (length(value) < 2 || (*value->at != '"' && *value->at != '\'')) {
        return;
    }
    const char *closing = memchr(value->at + 1, *value->at, length(value) - 1);
    if (closing == NULL) {
        return;
    }
    struct line rest = {closing + 1, value->end, 0};
    trim(&rest);
    if (length(&rest) == 0 || *rest.at == '#') {
        value->at++;
        value->end = closing;
    }
}

enum gradcmp_status gcmp_lint_read_env(const char *bytes, size_t length_bytes,
                                       struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    struct lines lines = {bytes, bytes + length_bytes, 0};
    struct line line;
    source->form = GCMP_LINT_ENV_DUMP;
    source->has_env = true;
    while (next_line(&lines, &line)) {
        struct line own = line;
        trim(&own);
        if (length(&own) == 0 || *own.at == '#') {
            continue;
        }
        bool is_export = starts_with(&own, "export ") || starts_with(&own, "declare -x ");
        if (is_export) {
            own.at += starts_with(&own, "export ") ? 7 : 11;
            trim(&own);
        }
        const char *equals = assignment(&own);
        if (equals == NULL) {
            if (!is_export && source->stray_lines++ == 0) {
                source->first_stray_line = line.number;
            }
            continue;
        }
        struct line value = {equals + 1, line.end, line.number}; /* blanks at the end count */
        unquote(&value);
        GCMP_TRY(set_env(source, own.at, (size_t)(equals - own.at), &value, error));
    }
    return GRADCMP_OK;
}

/* --- logs --- */

/* "  name ............ value": the form in which Megatron-LM prints its arguments. */
static bool printed_argument(const struct line *line, struct line *name, struct line *value) {
    const char *dots = find(line, " ..");
    if (dots == NULL) {
        return false;
    }
    const char *start = dots;
    while (start > line->at && is_name_byte(start[-1])) {
        start--;
    }
    const char *at = dots + 1;
    while (at < line->end && *at == '.') {
        at++;
    }
    if (start == dots || (*start >= '0' && *start <= '9') || at - dots < 3 ||
        (at < line->end && *at != ' ')) {
        return false;
    }
    *name = (struct line){start, dots, line->number};
    *value = (struct line){at, line->end, line->number};
    trim(value);
    return true;
}

static enum gradcmp_status set_arg(struct gcmp_lint_source *source, const char *name,
                                   const char *text, uint64_t line, struct gradcmp_error *error) {
    bool is_true = strcmp(text, "True") == 0, is_false = strcmp(text, "False") == 0;
    struct gcmp_lint_setting setting = {.line = line, .is_switch = is_true || is_false};
    setting.text = is_true ? "true" : is_false ? "false" : strcmp(text, "None") == 0 ? NULL : text;
    const struct gcmp_lint_setting *known = gcmp_lint_find(source, GCMP_LINT_ARG, name);
    if (known != NULL &&
        ((known->text == NULL && setting.text == NULL) ||
         (known->text != NULL && setting.text != NULL && strcmp(known->text, setting.text) == 0))) {
        return GRADCMP_OK; /* several ranks print the same */
    }
    return gcmp_lint_set_argument(source, name, setting, error);
}

static enum gradcmp_status set_arg_span(struct gcmp_lint_source *source, const struct line *name,
                                        const struct line *value, struct gradcmp_error *error) {
    const char *own = gcmp_arena_text(source->arena, name->at, length(name));
    const char *text = gcmp_arena_text(source->arena, value->at, length(value));
    if (own == NULL || text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return set_arg(source, own, text, name->number, error);
}

static const char applied[] = "deterministic computing is applied for npu";
static const char seeds[] = "setting random seeds to ";

enum gradcmp_status gcmp_lint_read_log(const char *bytes, size_t length_bytes,
                                       struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    struct lines lines = {bytes, bytes + length_bytes, 0};
    struct line line, name, value;
    source->form = GCMP_LINT_LOG;
    source->has_args = true;
    while (next_line(&lines, &line)) {
        const char *seed = find(&line, seeds);
        if (seed == NULL && printed_argument(&line, &name, &value)) {
            GCMP_TRY(set_arg_span(source, &name, &value, error));
        } else if (find(&line, applied) != NULL) {
            GCMP_TRY(set_arg(source, "npu_deterministic", "True", line.number, error));
        } else if (seed != NULL && gcmp_lint_find(source, GCMP_LINT_ARG, "seed") == NULL) {
            const char *at = seed + sizeof seeds - 1;
            const char *stop = at;
            while (stop < line.end && *stop >= '0' && *stop <= '9') {
                stop++;
            }
            name = (struct line){"seed", NULL, line.number};
            name.end = name.at + 4;
            value = (struct line){at, stop, line.number};
            GCMP_TRY(set_arg_span(source, &name, &value, error));
        }
    }
    if (source->count == 0) {
        gcmp_lint_note(source, "%s: a training log that prints no argument", source->path);
    }
    return GRADCMP_OK;
}

/* --- packages --- */

/* "name==version" or "name @ where". */
static bool package_of(const struct line *line, struct line *name, struct line *version) {
    const char *equals = find(line, "=="), *at = find(line, " @ ");
    const char *stop = equals != NULL ? equals : at;
    if (stop == NULL || stop == line->at) {
        return false;
    }
    for (const char *byte = line->at; byte < stop; byte++) {
        if (!is_name_byte(*byte) && *byte != '-' && *byte != '.') {
            return false;
        }
    }
    *name = (struct line){line->at, stop, line->number};
    *version = (struct line){stop + (equals != NULL ? 2 : 3), line->end, line->number};
    trim(version);
    return length(version) > 0;
}

enum gradcmp_status gcmp_lint_read_pip(const char *bytes, size_t length_bytes,
                                       struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    struct lines lines = {bytes, bytes + length_bytes, 0};
    struct line line, name, version;
    source->form = GCMP_LINT_PIP;
    source->has_packages = true;
    while (next_line(&lines, &line)) {
        trim(&line);
        if (!package_of(&line, &name, &version)) {
            continue;
        }
        char own[200];
        size_t count = 0;
        for (; count < length(&name) && count + 1 < sizeof own; count++) {
            char byte = name.at[count];
            own[count] = byte == '-' || byte == '.'   ? '_'
                         : byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a')
                                                      : byte;
        }
        own[count] = '\0';
        struct gcmp_lint_setting setting = {
            .kind = GCMP_LINT_PACKAGE, .name = own, .line = line.number};
        setting.text = gcmp_arena_text(source->arena, version.at, length(&version));
        if (setting.text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_lint_set(source, &setting, error));
    }
    return GRADCMP_OK;
}

/* --- which form --- */

/* What the lines of a text look like. */
struct census {
    size_t lines, assignments, exports, yaml_keys, packages, arguments;
    bool has_launch, has_log, has_shebang, has_array;
};

static bool is_launch_word(const struct line *line) {
    static const char *const words[] = {"torchrun", "python", "deepspeed ", "accelerate ", "srun ",
                                        "mpirun ",  "msrun ", "bash ",      "sh "};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (starts_with(line, words[i])) {
            return true;
        }
    }
    return false;
}

static bool is_yaml_key(const struct line *line) {
    const char *colon = find(line, ":");
    if (colon == NULL || colon == line->at || (colon + 1 < line->end && colon[1] != ' ')) {
        return false;
    }
    for (const char *at = line->at; at < colon; at++) {
        if (!is_name_byte(*at) && strchr("-<./\"'", *at) == NULL) {
            return false;
        }
    }
    return true;
}

static void count_line(struct census *census, struct line line) {
    struct line name, value;
    bool is_log = find(&line, applied) != NULL || find(&line, seeds) != NULL ||
                  find(&line, " iteration ") != NULL || find(&line, "] iteration ") != NULL;
    if (printed_argument(&line, &name, &value)) {
        census->arguments++;
    }
    trim(&line);
    if (length(&line) == 0 || *line.at == '#' ||
        (starts_with(&line, "---") && length(&line) == 3)) {
        return;
    }
    census->lines++;
    census->has_log = census->has_log || is_log;
    const char *equals = find(&line, "=");
    if (starts_with(&line, "export ") || starts_with(&line, "declare -x ")) {
        census->exports++;
    } else if (package_of(&line, &name, &value)) {
        census->packages++;
    } else if (equals != NULL && assignment(&line) == equals) {
        census->assignments++;
        /* NAME=( and NAME=value command belong to scripts */
        const char *name_end = line.at;
        while (name_end < equals && is_name_byte(*name_end)) {
            name_end++;
        }
        bool is_array = name_end == equals && equals + 1 < line.end && equals[1] == '(';
        census->has_array = census->has_array || is_array;
        census->has_launch = census->has_launch || find(&line, " torchrun ") != NULL ||
                             find(&line, " python") != NULL;
    } else if (is_launch_word(&line)) {
        census->has_launch = true;
    } else if (is_yaml_key(&line)) {
        census->yaml_keys++;
    }
}

static struct census take_census(const char *bytes, size_t length_bytes) {
    struct census census = {0};
    struct lines lines = {bytes, bytes + length_bytes, 0};
    struct line line;
    census.has_shebang = length_bytes > 1 && bytes[0] == '#' && bytes[1] == '!';
    while (next_line(&lines, &line)) {
        count_line(&census, line);
    }
    return census;
}

static bool ends_with(const char *path, const char *ending) {
    size_t count = strlen(path), end = strlen(ending);
    return count > end && strcmp(path + count - end, ending) == 0;
}

static enum gcmp_lint_form choose(const struct census *census, const char *path) {
    size_t settings = census->assignments + census->exports;
    if (census->has_shebang || ends_with(path, ".sh") || ends_with(path, ".bash") ||
        ends_with(path, ".slurm") || ends_with(path, ".sbatch")) {
        return GCMP_LINT_SCRIPT;
    }
    if (census->arguments > 0 || census->has_log) {
        return GCMP_LINT_LOG;
    }
    if (census->packages > 0 && census->packages * 2 > census->lines) {
        return GCMP_LINT_PIP;
    }
    if (ends_with(path, ".yaml") || ends_with(path, ".yml") ||
        (census->yaml_keys > 0 && census->yaml_keys > settings)) {
        return GCMP_LINT_YAML;
    }
    if (settings > 0 && (census->has_launch || census->has_array)) {
        return GCMP_LINT_SCRIPT;
    }
    if (settings > 0 && settings * 2 >= census->lines) {
        return GCMP_LINT_ENV_DUMP;
    }
    return census->has_launch ? GCMP_LINT_SCRIPT : (enum gcmp_lint_form)0;
}

enum gradcmp_status gcmp_lint_read_text(const char *bytes, size_t length_bytes,
                                        struct gcmp_lint_source *source,
                                        struct gradcmp_error *error) {
    static const char pointer[] = "version https://git-lfs";
    size_t mark_bytes = gcmp_utf8_mark_bytes(bytes, length_bytes);
    bytes += mark_bytes;
    length_bytes -= mark_bytes;
    const char *first = bytes + strspn(bytes, " \t\r\n");
    if (length_bytes == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, source->path, 0, "an empty file");
    }
    if (strncmp(bytes, pointer, sizeof pointer - 1) == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, source->path, 0,
                     "line 1: a pointer of Git LFS in place of the file (git lfs pull fetches it)");
    }
    if (memchr(bytes, '\0', length_bytes) != NULL) {
        struct line head = {bytes, bytes + strlen(bytes), 1};
        if (assignment(&head) == NULL) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, 0,
                         "bytes that are no text, and no environment (KEY=value, each ended by a "
                         "zero byte)");
        }
        return gcmp_lint_read_nul(bytes, length_bytes, source, error);
    }
    if (*first == '{') {
        return gcmp_lint_read_json(bytes, length_bytes, source, error);
    }
    struct census census = take_census(bytes, length_bytes);
    switch (choose(&census, source->path)) {
    case GCMP_LINT_SCRIPT:
        return gcmp_lint_read_script(bytes, length_bytes, source, error);
    case GCMP_LINT_LOG:
        return gcmp_lint_read_log(bytes, length_bytes, source, error);
    case GCMP_LINT_PIP:
        return gcmp_lint_read_pip(bytes, length_bytes, source, error);
    case GCMP_LINT_YAML:
        return gcmp_lint_read_yaml(bytes, length_bytes, source, error);
    case GCMP_LINT_ENV_DUMP:
        return gcmp_lint_read_env(bytes, length_bytes, source, error);
    default:
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, GRADCMP_NO_OFFSET,
                     "no settings: neither an environment (KEY=value), a launch script, arguments "
                     "(JSON, YAML), a training log, pip freeze, nor a checkpoint");
    }
}
