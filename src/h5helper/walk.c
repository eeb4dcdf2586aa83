/* Walks the groups of a file by hard links, without recursion. Soft links are told and left to the
 * reader; links to other files end the walk. Datasets are told in the order of their addresses,
 * which is that in which they were made: groups list by name.
 *
 * Limits: MAX_OBJECTS groups and datasets each; GCMP_H5_MAX_PATH. */
#include "h5helper/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { MAX_OBJECTS = 1 << 22 };

/* A group or a dataset still to be looked at. */
struct object_link {
    char *path; /* without a slash in front; "" for the root */
    haddr_t address;
};

struct object_list {
    struct object_link *links; /* in the order in which they were found */
    size_t count, capacity;
};

struct walk {
    hid_t file;
    uint64_t base_bytes; /* from which addresses count: behind the user block */
    struct object_list groups, datasets;
    struct gcmp_map seen; /* addresses of groups */
    const char *folder;   /* path of the group that is being looked at */
};

static bool fail_memory(void) {
    helper_fail(GRADCMP_ERROR_MEMORY, "out of memory");
    return false;
}

/* Join the walk's group and a name; malloced, NULL after a failure. */
static char *path_of(const struct walk *walk, const char *name) {
    char *path;
    if (asprintf(&path, "%s%s%s", walk->folder, walk->folder[0] == '\0' ? "" : "/", name) < 0) {
        (void)fail_memory();
        return NULL;
    }
    if (strlen(path) > GCMP_H5_MAX_PATH) {
        helper_fail(GRADCMP_ERROR_LIMIT, "\"%.100s...\": a path of more than %d bytes", path,
                    GCMP_H5_MAX_PATH);
        free(path);
        return NULL;
    }
    return path;
}

/* Append to a list; takes over the path. */
static bool add_link(struct object_list *list, char *path, haddr_t address) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        struct object_link *moved = realloc(list->links, capacity * sizeof *moved);
        if (moved == NULL) {
            free(path);
            return fail_memory();
        }
        list->links = moved;
        list->capacity = capacity;
    }
    list->links[list->count++] = (struct object_link){path, address};
    if (list->count > MAX_OBJECTS) {
        helper_fail(GRADCMP_ERROR_LIMIT, "more than %d groups or datasets", MAX_OBJECTS);
        return false;
    }
    return true;
}

/* Queue a group; takes over the path. A group that two links lead to may be its own ancestor. */
static bool queue_group(struct walk *walk, char *path, haddr_t address) {
    /* The map borrows its keys, and the array moves: keys are copies of their own. */
    haddr_t *key = malloc(sizeof *key);
    if (key == NULL) {
        free(path);
        return fail_memory();
    }
    *key = address;
    enum gcmp_map_result result = gcmp_map_add(&walk->seen, key, sizeof *key, 0, NULL);
    if (result == GCMP_MAP_ADDED) {
        return add_link(&walk->groups, path, address);
    }
    if (result == GCMP_MAP_PRESENT) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": a second hard link to a group", path);
    }
    free(key);
    free(path);
    return fail_memory(); /* unless something else was told already */
}

/* Queue the object behind a hard link. Takes over the path. One that cannot be opened may be a
 * dataset that is too new. */
static bool follow_hard_link(struct walk *walk, hid_t group, const char *name, char *path,
                             haddr_t address) {
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    H5I_type_t type = object < 0 ? H5I_DATASET : H5Iget_type(object);
    if (object >= 0) {
        H5Oclose(object);
    }
    if (type == H5I_GROUP) {
        return queue_group(walk, path, address);
    }
    if (type == H5I_DATASET) {
        return add_link(&walk->datasets, path, address);
    }
    if (type != H5I_DATATYPE) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": neither a group nor a dataset", path);
    }
    free(path);
    return type == H5I_DATATYPE;
}

static bool tell_soft_link(hid_t group, const char *name, const char *path, size_t value_bytes) {
    char target[GCMP_H5_MAX_PATH];
    if (value_bytes > sizeof target ||
        H5Lget_val(group, name, target, sizeof target, H5P_DEFAULT) < 0) {
        return fail_part(path, "soft link");
    }
    target[sizeof target - 1] = '\0';
    put_u8(GCMP_H5_LINK);
    put_text(path, strlen(path));
    put_text(target, strlen(target));
    return true;
}

static bool look_at_link(struct walk *walk, hid_t group, const char *name, const H5L_info_t *info) {
    char *path = path_of(walk, name);
    if (path == NULL) {
        return false;
    }
    if (info->type == H5L_TYPE_HARD) {
        return follow_hard_link(walk, group, name, path, info->u.address);
    }
    bool good = false;
    if (info->type == H5L_TYPE_SOFT) {
        good = tell_soft_link(group, name, path, info->u.val_size);
    } else {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": %s, which is not followed", path,
                    info->type == H5L_TYPE_EXTERNAL ? "a link into another file"
                                                    : "a link of a kind that is not known");
    }
    free(path);
    return good;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *user) {
    return look_at_link(user, group, name, info) ? 0 : -1;
}

static bool look_at_group(struct walk *walk, const struct object_link *group) {
    hsize_t index = 0;
    char *path = group->path;
    haddr_t address = group->address;
    walk->folder = path;
    hid_t id = H5Oopen_by_addr(walk->file, address);
    bool good = id >= 0 && H5Iget_type(id) == H5I_GROUP &&
                H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, &index, visit_link, walk) >= 0;
    if (!good && !helper_has_failed()) {
        (void)fail_part(path, "links of the group");
    }
    H5Oclose(id);
    return good && !helper_has_failed();
}

/* Order by address; links to one dataset by path. */
static int compare_links(const void *left, const void *right) {
    const struct object_link *a = left, *b = right;
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return strcmp(a->path, b->path);
}

static bool tell_link(const struct walk *walk, const struct object_link *link) {
    hid_t object = H5Oopen_by_addr(walk->file, link->address);
    if (object >= 0) {
        bool good = tell_dataset(object, link->path);
        H5Oclose(object);
        return good;
    }
    enum newer told = newer_tell(walk->base_bytes, link->address, link->path);
    if (told == NEWER_NONE) {
        (void)fail_part(link->path, "object");
    }
    return told == NEWER_TOLD;
}

static bool tell_datasets(struct walk *walk) {
    struct object_list *list = &walk->datasets;
    if (list->count > 0) {
        qsort(list->links, list->count, sizeof *list->links, compare_links);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!tell_link(walk, &list->links[i])) {
            return false;
        }
    }
    return true;
}

/* Integers of the file itself that tell when it was written. */
static bool tell_number(hid_t root, const char *name) {
    long long value = 0;
    hid_t attribute = H5Aexists(root, name) > 0 ? H5Aopen(root, name, H5P_DEFAULT) : -1;
    if (attribute < 0) {
        return true;
    }
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool scalar = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_INTEGER &&
                  H5Sget_simple_extent_npoints(space) == 1;
    if (scalar && H5Aread(attribute, H5T_NATIVE_LLONG, &value) >= 0 && value >= 0) {
        put_u8(GCMP_H5_NUMBER);
        put_text(name, strlen(name));
        put_u64((uint64_t)value);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return true;
}

/* Tell a text attribute of a file that gradcmp extracted. */
static bool put_attribute(hid_t attribute, hid_t type, const char *name) {
    char *text = NULL;
    bool is_read = H5Aread(attribute, type, &text) >= 0 && text != NULL;
    if (is_read && strlen(text) <= GCMP_H5_MAX_TEXT) {
        put_u8(GCMP_H5_TEXT);
        put_text(name, strlen(name));
        put_text(text, strlen(text));
    }
    H5free_memory(text);
    return is_read || fail_part(name, "text attribute");
}

static herr_t visit_attribute(hid_t root, const char *name, const H5A_info_t *info, void *user) {
    (void)info;
    (void)user;
    if (strncmp(name, "gradcmp.", 8) != 0 || strlen(name) > GCMP_H5_MAX_PATH) {
        return 0;
    }
    hid_t attribute = H5Aopen(root, name, H5P_DEFAULT);
    hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    bool is_text = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
                   H5Tis_variable_str(type) > 0 && H5Sget_simple_extent_npoints(space) == 1;
    bool good = !is_text || put_attribute(attribute, type, name);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return good ? 0 : -1;
}

/* What an extracted file says of the run. */
static bool tell_texts(hid_t root) {
    hsize_t index = 0;
    bool good = H5Aiterate2(root, H5_INDEX_NAME, H5_ITER_INC, &index, visit_attribute, NULL) >= 0;
    return good || helper_has_failed() || fail_part("/", "attributes");
}

/* Bytes in front of the file's beginning that belong to others. */
static bool read_base(struct walk *walk) {
    hsize_t bytes = 0;
    hid_t properties = H5Fget_create_plist(walk->file);
    bool good = properties >= 0 && H5Pget_userblock(properties, &bytes) >= 0;
    H5Pclose(properties);
    walk->base_bytes = bytes;
    return good || fail_part("/", "superblock");
}

bool walk_file(hid_t file) {
    struct walk walk = {.file = file, .seen = GCMP_MAP_INIT};
    H5O_info_t info;
    hid_t root = H5Oopen(file, "/", H5P_DEFAULT);
    if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) {
        return fail_part("/", "root group");
    }
    bool good = tell_number(root, "iteration") && tell_number(root, "step") && tell_texts(root) &&
                !helper_has_failed();
    H5Oclose(root);
    char *path = strdup("");
    good = good && read_base(&walk) && path != NULL && queue_group(&walk, path, info.addr);
    for (size_t done = 0; good && done < walk.groups.count; done++) {
        struct object_link group = walk.groups.links[done]; /* the array may move */
        good = look_at_group(&walk, &group);
    }
    return good && tell_datasets(&walk); /* what the walk holds goes with the process */
}
