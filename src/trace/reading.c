/* The sentence that sums a comparison up. */
#include <string.h>

#include "base/text.h"
#include "trace/combine.h"

enum { MAX_LISTED = 8, MAX_GROUPS = 4 };

/* ---- parts */

static void add_ranks(struct gcmp_text *text, const int64_t *ranks, size_t count) {
    gcmp_text_add(text, count == 1 ? "rank " : "ranks ");
    for (size_t i = 0; i < count && i < MAX_LISTED; i++) {
        gcmp_text_addf(text, "%s%lld", i == 0 ? "" : ", ", (long long)ranks[i]);
    }
    if (count > MAX_LISTED) {
        gcmp_text_addf(text, " and %zu more", count - MAX_LISTED);
    }
}

static const char *event_name(const struct gcmp_kept *event) {
    return event->id != NULL ? event->id : event->name != NULL ? event->name : "?";
}

/* "aten.mm.default:3 in decoder.layers.0 (iteration 1, microbatch 0, forward)" */
static void add_event(struct gcmp_text *text, const struct gcmp_kept *event) {
    gcmp_text_add(text, event_name(event));
    if (event->module != NULL && event->module[0] != '\0' && event->id != NULL &&
        strstr(event->id, event->module) == NULL) {
        gcmp_text_addf(text, " in %s", event->module);
    }
    const char *before = " (";
    if (event->iteration >= 0) {
        gcmp_text_addf(text, "%siteration %lld", before, (long long)event->iteration);
        before = ", ";
    }
    if (event->microbatch >= 0) {
        gcmp_text_addf(text, "%smicrobatch %lld", before, (long long)event->microbatch);
        before = ", ";
    }
    if (event->phase != NULL && event->phase[0] != '\0') {
        gcmp_text_addf(text, "%s%s", before, event->phase);
        before = ", ";
    }
    gcmp_text_add(text, before[0] == ',' ? ")" : "");
}

static bool is_same_text(const char *a, const char *b) {
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static bool is_same_event(const struct gcmp_kept *a, const struct gcmp_kept *b) {
    return a->iteration == b->iteration && a->microbatch == b->microbatch &&
           a->occurrence == b->occurrence && is_same_text(a->name, b->name) &&
           is_same_text(a->id, b->id) && is_same_text(a->module, b->module);
}

/* Ranks of one role whose first difference is the same event. */
struct group {
    const struct gcmp_trace_rank *first;
    int64_t *ranks; /* all in one array, one group behind the other */
    size_t count;
};

struct sentence {
    struct gcmp_trace_run *run;
    const struct gcmp_trace_content *content;
    struct gcmp_text text;
    int64_t *ranks; /* room for all */
    bool *is_told;
    size_t judged; /* ranks that both sides have */
};

static void begin_part(struct sentence *s) {
    gcmp_text_add(&s->text, s->text.length_bytes == 0 ? "" : "; ");
}

/* Take the next group of a role that was not told yet; false where none is left. */
static bool next_group(struct sentence *s, enum gcmp_role role, struct group *group) {
    const struct gcmp_trace_content *content = s->content;
    *group = (struct group){NULL, s->ranks, 0};
    for (size_t i = 0; i < content->rank_count; i++) {
        const struct gcmp_trace_rank *rank = &content->ranks[i];
        if (s->is_told[i] || rank->role != role ||
            (role != GCMP_ROLE_STRUCTURAL && !rank->told->has_value)) {
            continue;
        }
        bool same =
            group->first == NULL ||
            (role == GCMP_ROLE_STRUCTURAL
                 ? rank->told->structural.index == group->first->told->structural.index
                 : is_same_event(&rank->told->value.event, &group->first->told->value.event));
        if (same) {
            group->first = group->first == NULL ? rank : group->first;
            group->ranks[group->count++] = rank->rank;
            s->is_told[i] = true;
        }
    }
    return group->count > 0;
}

/* ---- what the ranks share */

static const struct gcmp_coordinate *find_coordinate(const struct gcmp_rank_result *rank,
                                                     const char *family) {
    for (size_t i = 0; i < rank->coordinate_count; i++) {
        if (strcmp(rank->coordinates[i].family, family) == 0) {
            return &rank->coordinates[i];
        }
    }
    return NULL;
}

static const struct gcmp_trace_rank *find_rank(const struct sentence *s, int64_t rank) {
    for (size_t i = 0; i < s->content->rank_count; i++) {
        if (s->content->ranks[i].rank == rank) {
            return &s->content->ranks[i];
        }
    }
    return NULL;
}

/* Tell where the ranks of a group stand in the groups of collectives, where they stand alike. */
static void add_coordinates(struct sentence *s, const struct group *group) {
    const struct gcmp_rank_result *first = group->first->told;
    for (size_t i = 0; i < first->coordinate_count; i++) {
        const struct gcmp_coordinate *wanted = &first->coordinates[i];
        bool shared = wanted->size > 1;
        for (size_t r = 1; r < group->count && shared; r++) {
            const struct gcmp_trace_rank *rank = find_rank(s, group->ranks[r]);
            const struct gcmp_coordinate *found =
                rank == NULL ? NULL : find_coordinate(rank->told, wanted->family);
            shared = found != NULL && found->index == wanted->index;
        }
        if (shared) {
            gcmp_text_addf(&s->text, ", %s index %zu of %zu", wanted->family, wanted->index,
                           wanted->size);
        }
    }
}

/* ---- roles */

static void tell_origin(struct sentence *s, const struct group *group) {
    begin_part(s);
    add_event(&s->text, &group->first->told->value.event);
    gcmp_text_add(&s->text, " gives other outputs from equal inputs on ");
    if (group->count == s->judged && s->judged > 1) {
        gcmp_text_addf(&s->text, "all %zu ranks: %s", s->judged,
                       group->first->told->value.event.is_collective
                           ? "the collective itself, its algorithm or order of reduction"
                           : "the operation itself");
    } else if (s->judged == 1) {
        add_ranks(&s->text, group->ranks, group->count);
        gcmp_text_add(&s->text, ", the only one that was traced");
    } else {
        add_ranks(&s->text, group->ranks, group->count);
        gcmp_text_addf(&s->text, " of %zu", s->judged);
        add_coordinates(s, group);
        gcmp_text_add(&s->text, ": its placement, topology, input split or order of reduction, "
                                "rather than the operation itself");
    }
    if (group->first->by->strength == GCMP_STRENGTH_XOR && s->content->trace_count == 1) {
        gcmp_text_add(&s->text, " (by XOR digests, which cannot see permuted inputs)");
    }
}

static void tell_receiver(struct sentence *s, const struct group *group) {
    const struct gcmp_value_difference *value = &group->first->told->value;
    begin_part(s);
    add_ranks(&s->text, group->ranks, group->count);
    bool by_collective = value->event.is_collective && value->inputs_match == GCMP_YES;
    if (by_collective && !value->same_group) {
        gcmp_text_add(&s->text, group->count == 1 ? " gets it" : " get it");
        gcmp_text_add(&s->text, " where the group differs, through ");
    } else if (by_collective) {
        gcmp_text_add(&s->text, group->count == 1 ? " gets it through " : " get it through ");
    } else if (value->arguments_match == GCMP_NO) {
        gcmp_text_add(&s->text, ": other arguments of ");
    } else if (value->at_start) {
        gcmp_text_add(&s->text, ": inputs differ already at the start, ");
    } else {
        gcmp_text_add(&s->text, ": no operation to blame, what differs first is an input, of ");
    }
    add_event(&s->text, &value->event);
    if (by_collective && value->peer_count == 0 && value->silent_count > 0) {
        gcmp_text_add(&s->text, ", from ");
        add_ranks(&s->text, value->silent_peers, value->silent_count);
        gcmp_text_add(&s->text, " perhaps, not traced");
    }
}

static void tell_simple(struct sentence *s, const struct group *group, const char *before,
                        const char *behind) {
    begin_part(s);
    add_ranks(&s->text, group->ranks, group->count);
    gcmp_text_add(&s->text, before);
    add_event(&s->text, &group->first->told->value.event);
    gcmp_text_add(&s->text, behind);
}

static void tell_structural(struct sentence *s, const struct group *group) {
    const struct gcmp_structural *found = &group->first->told->structural;
    begin_part(s);
    add_ranks(&s->text, group->ranks, group->count);
    gcmp_text_addf(&s->text, ": %s at record %llu, ",
                   found->ended != '\0' ? "one side ends"
                   : found->is_order    ? "another order"
                                        : "other events",
                   (unsigned long long)found->index);
    gcmp_text_addf(&s->text, "%s in A, ", found->has_a ? event_name(&found->a) : "nothing");
    gcmp_text_addf(&s->text, "%s in B; what follows is no evidence",
                   found->has_b ? event_name(&found->b) : "nothing");
}

/* Tell all groups of a role. */
static void tell_role(struct sentence *s, enum gcmp_role role) {
    struct group group;
    size_t told = 0;
    while (next_group(s, role, &group)) {
        if (told++ == MAX_GROUPS) {
            begin_part(s);
            gcmp_text_addf(&s->text, "and more of role %s", gcmp_role_name(role));
            return;
        }
        switch (role) {
        case GCMP_ROLE_ORIGIN:
            tell_origin(s, &group);
            break;
        case GCMP_ROLE_RECEIVER:
            tell_receiver(s, &group);
            break;
        case GCMP_ROLE_SOURCE:
            tell_simple(s, &group, ": the first difference is ",
                        ", which has no tensor inputs: seeds or generators differ");
            break;
        case GCMP_ROLE_INPUTS:
            tell_simple(s, &group,
                        group.count == 1 ? " begins with other inputs, "
                                         : " begin with other inputs, ",
                        ": other data or another order of it, no operation");
            break;
        case GCMP_ROLE_STRUCTURAL:
            tell_structural(s, &group);
            break;
        default:
            tell_simple(s, &group, ": the first difference is ",
                        ", whose operation or inputs were not recorded");
        }
    }
}

static void tell_missing(struct sentence *s) {
    const struct gcmp_trace_content *content = s->content;
    if (content->missing_a_count > 0) {
        begin_part(s);
        add_ranks(&s->text, content->missing_a, content->missing_a_count);
        gcmp_text_add(&s->text, " only in B");
    }
    if (content->missing_b_count > 0) {
        begin_part(s);
        add_ranks(&s->text, content->missing_b, content->missing_b_count);
        gcmp_text_add(&s->text, " only in A");
    }
}

static void tell_match(struct sentence *s) {
    uint64_t records = 0;
    enum gcmp_strength strongest = GCMP_STRENGTH_NONE;
    for (size_t i = 0; i < s->content->trace_count; i++) {
        const struct gcmp_trace_result *trace = &s->content->traces[i];
        records += trace->records;
        strongest = trace->strength > strongest ? trace->strength : strongest;
    }
    gcmp_text_addf(&s->text, "%llu records of %zu rank%s are equal", (unsigned long long)records,
                   s->judged, s->judged == 1 ? "" : "s");
    gcmp_text_add(
        &s->text,
        strongest == GCMP_STRENGTH_METADATA ? "; shapes and types alone were recorded, no values"
        : strongest == GCMP_STRENGTH_XOR    ? " (XOR digests, which cannot see permutations)"
        : strongest == GCMP_STRENGTH_STATISTICS ? " (statistics, which can hide differences)"
        : strongest == GCMP_STRENGTH_SAMPLED ? " (digests of samples, which can hide differences)"
                                             : "");
}

/* What an equal trace does not tell of. */
static void tell_gaps(struct sentence *s) {
    size_t bare = 0;
    bool saw_skipped = false;
    for (size_t i = 0; i < s->content->rank_count; i++) {
        const struct gcmp_trace_rank *rank = &s->content->ranks[i];
        if (rank->role != GCMP_ROLE_MISSING) {
            bare += !rank->has_evidence;
            saw_skipped |= rank->saw_skipped;
        }
    }
    if (bare > 0) {
        gcmp_text_addf(&s->text, "; of the tensors of %zu rank%s nothing was recorded", bare,
                       bare == 1 ? "" : "s");
    }
    gcmp_text_add(&s->text, saw_skipped ? "; some tensors were not fingerprinted" : "");
}

static const struct gcmp_rank_result *find_damaged(const struct sentence *s,
                                                   const struct gcmp_trouble *trouble) {
    for (size_t i = 0; i < s->content->trace_count; i++) {
        const struct gcmp_trace_result *trace = &s->content->traces[i];
        for (size_t r = 0; r < trace->rank_count; r++) {
            if (trace->ranks[r].rank == trouble->rank && trouble->layout != NULL &&
                strcmp(trouble->layout, trace->name) == 0) {
                return &trace->ranks[r];
            }
        }
    }
    return NULL;
}

/* What spoils the comparison, and how far it was equal. */
static void tell_troubles(struct sentence *s) {
    const struct gcmp_trouble *first = s->run->first;
    if (first == NULL && s->content->is_bare) {
        gcmp_text_add(&s->text, "no record holds a value of a tensor, so that the same events "
                                "came proves nothing");
    }
    if (first != NULL) {
        begin_part(s);
        gcmp_text_add(&s->text, first->path);
        if (first->line > 0) {
            gcmp_text_addf(&s->text, ": line %llu", (unsigned long long)first->line);
        }
        gcmp_text_addf(&s->text, ": %s", first->text);
    }
    if (s->run->trouble_count > 1) {
        gcmp_text_addf(&s->text, " (and %zu more)", s->run->trouble_count - 1);
    }
    const struct gcmp_rank_result *damaged = first == NULL ? NULL : find_damaged(s, first);
    if (damaged != NULL) {
        begin_part(s);
        gcmp_text_addf(&s->text, "the first %llu records of rank %lld are equal",
                       (unsigned long long)damaged->equal_prefix, (long long)damaged->rank);
    }
}

static void tell_all(struct sentence *s) {
    static const enum gcmp_role roles[] = {GCMP_ROLE_ORIGIN,   GCMP_ROLE_SOURCE,
                                           GCMP_ROLE_INPUTS,   GCMP_ROLE_STRUCTURAL,
                                           GCMP_ROLE_RECEIVER, GCMP_ROLE_UNPROVEN};
    if (s->content->verdict == GCMP_TRACE_INVALID) {
        tell_troubles(s);
        return;
    }
    if (s->content->verdict == GCMP_TRACE_MATCH) {
        tell_match(s);
        tell_gaps(s);
    }
    tell_missing(s);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        tell_role(s, roles[i]);
    }
    if (s->run->trouble_count > 0) {
        begin_part(s);
        gcmp_text_addf(&s->text, "left out: %zu, the first %s: %s", s->run->trouble_count,
                       s->run->first->path, s->run->first->text);
    }
}

const char *gcmp_trace_reading(struct gcmp_trace_run *run,
                               const struct gcmp_trace_content *content) {
    struct sentence s = {.run = run, .content = content, .text = GCMP_TEXT_INIT};
    const char *reading = NULL;
    s.ranks = gcmp_arena_alloc(run->arena, content->rank_count, sizeof *s.ranks);
    s.is_told = gcmp_arena_alloc(run->arena, content->rank_count, sizeof *s.is_told);
    for (size_t i = 0; i < content->rank_count; i++) {
        s.judged += content->ranks[i].role != GCMP_ROLE_MISSING;
    }
    if (s.ranks != NULL && s.is_told != NULL) {
        tell_all(&s);
        if (!s.text.failed) {
            reading = gcmp_arena_text(run->arena, s.text.bytes == NULL ? "" : s.text.bytes,
                                      s.text.length_bytes);
        }
    }
    gcmp_text_free(&s.text);
    return reading;
}
