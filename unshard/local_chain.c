/* How ranks share the matrices of one module.
 *
 * What goes into a module and comes out of it has the hidden size h; between them matrices form a
 * chain. All but the last take h (columns) to something that ranks share out, so their rows are
 * split; the last brings that back to h rows, so its columns are split. So [out/tp, h] is split by
 * rows and [h, in/tp] by columns; only [h, h] could be either, and what stands beside it decides.
 */
#include "unshard/local_modules.h"

#include <inttypes.h>
#include <string.h>

#include "base/word.h"

enum role { ROLE_FIRST, ROLE_LAST, ROLE_SQUARE, ROLE_INNER };

/* How often each role occurs, and the last matrix of the chain. */
struct chain {
    const struct gcmp_local_modules *modules;
    struct gcmp_local_module *module;
    size_t counts[4];
    struct gcmp_local_parameter *last; /* NULL: there is none */
};

static enum role role_of(const struct gcmp_local_parameter *matrix, uint64_t hidden) {
    bool takes = gcmp_local_columns(matrix) == hidden, gives = gcmp_local_rows(matrix) == hidden;
    return takes ? (gives ? ROLE_SQUARE : ROLE_FIRST) : (gives ? ROLE_LAST : ROLE_INNER);
}

#define EACH_MATRIX(chain, i)                                                                      \
    for (size_t i = (chain)->module->first; i != SIZE_MAX; i = (chain)->modules->next[i])

static struct gcmp_local_parameter *matrix_at(const struct chain *chain, size_t index) {
    return &chain->modules->parameters[index];
}

/* Of several squares, all of which could be the last: an MLP's modules are made in the order of
 * their use, attention's output first (transformer/mlp.py, transformer/attention.py). */
static bool is_later(const struct chain *chain, const struct gcmp_local_parameter *a,
                     const struct gcmp_local_parameter *b) {
    return chain->module->is_attention ? a->shards->order < b->shards->order
                                       : a->shards->order > b->shards->order;
}

/* Names that Megatron gives to what a module ends with, now and before 2023. */
static bool is_called_last(const struct gcmp_local_parameter *matrix) {
    static const char *const names[] = {"linear_fc2", "linear_proj", "dense_4h_to_h", "dense",
                                        NULL};
    struct gcmp_name_parts parts = gcmp_name_split(gcmp_local_text(matrix));
    return gcmp_find_word(parts.module, parts.module_bytes, names) != NULL;
}

/* The order in which modules are made proves nothing for modules that are not Megatron's own: there
 * the matrix that it makes the last must bear the name that Megatron gives it, and it alone. */
static enum gradcmp_status check_squares(const struct chain *chain, struct gradcmp_error *error) {
    size_t called_last = 0;
    EACH_MATRIX(chain, i) {
        const struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        called_last +=
            role_of(matrix, chain->module->hidden) == ROLE_SQUARE && is_called_last(matrix);
    }
    if (called_last == 1 && is_called_last(chain->last)) {
        return GRADCMP_OK;
    }
    return gcmp_local_refuse(chain->last,
                             "another matrix of the module is as square, and their names and order "
                             "are not Megatron's",
                             error);
}

/* Sizes that latent attention keeps whole between its matrices, where the arguments state them. */
static bool is_latent_input(const struct gcmp_local_modules *modules, uint64_t columns) {
    return columns != 0 && (columns == gcmp_local_argument(modules, "q_lora_rank") ||
                            columns == gcmp_local_argument(modules, "kv_lora_rank"));
}

/* Of several matrices whose rows are as many as the hidden size, those that take a latent size are
 * not the last: it is by chance that a rank's share of the heads is as wide. */
static bool may_be_last(const struct chain *chain, const struct gcmp_local_parameter *matrix) {
    return role_of(matrix, chain->module->hidden) == ROLE_LAST &&
           (chain->counts[ROLE_LAST] == 1 ||
            !is_latent_input(chain->modules, gcmp_local_columns(matrix)));
}

static enum gradcmp_status find_last(struct chain *chain, struct gradcmp_error *error) {
    uint64_t hidden = chain->module->hidden;
    EACH_MATRIX(chain, i) {
        chain->counts[role_of(matrix_at(chain, i), hidden)]++;
    }
    size_t squares = chain->counts[ROLE_SQUARE];
    bool is_lone_square = squares == 1 && chain->counts[ROLE_FIRST] == 0;
    EACH_MATRIX(chain, i) {
        struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        if (may_be_last(chain, matrix)) {
            if (chain->last != NULL) {
                return gcmp_local_refuse(
                    matrix, "another matrix of the module ends in the hidden size", error);
            }
            chain->last = matrix;
        }
    }
    EACH_MATRIX(chain, i) {
        struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        if (chain->counts[ROLE_LAST] == 0 && role_of(matrix, hidden) == ROLE_SQUARE &&
            !is_lone_square && (chain->last == NULL || is_later(chain, matrix, chain->last))) {
            chain->last = matrix;
        }
    }
    bool is_told_by_order = chain->counts[ROLE_LAST] == 0 && squares > 1;
    return is_told_by_order && chain->last != NULL ? check_squares(chain, error) : GRADCMP_OK;
}

/* Matrices that are no chain: gates and routers are whole on every rank; one that takes several
 * times h to a share of h (multi-token prediction's) is split by rows. */
static enum gradcmp_status decide_lone(struct chain *chain, struct gradcmp_error *error) {
    uint64_t hidden = chain->module->hidden;
    EACH_MATRIX(chain, i) {
        struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        uint64_t rows = gcmp_local_rows(matrix), columns = gcmp_local_columns(matrix);
        bool is_share = rows < hidden && rows * matrix->ranks == hidden && columns % hidden == 0;
        bool is_wide = is_share && columns > hidden; /* no gate, though it has rows like one */
        if (!is_wide && gcmp_local_is_gate(chain->modules, rows)) {
            continue;
        }
        if (is_share) {
            matrix->split = GCMP_SPLIT_ROWS;
            continue;
        }
        return gcmp_local_refuse(matrix, "no matrix beside it takes what it gives", error);
    }
    return GRADCMP_OK;
}

/* Rows that make a latent size. */
static bool is_latent(const struct gcmp_local_modules *modules, uint64_t rows) {
    uint64_t query = gcmp_local_argument(modules, "q_lora_rank");
    uint64_t key = gcmp_local_argument(modules, "kv_lora_rank");
    uint64_t position = gcmp_local_argument(modules, "qk_pos_emb_head_dim");
    return rows != 0 && (rows == query || (key != 0 && rows == key + position));
}

/* A matrix in the midst of the chain takes something else than the hidden size. */
static bool is_inner(const struct chain *chain, const struct gcmp_local_parameter *matrix) {
    return matrix != chain->last && gcmp_local_columns(matrix) != chain->module->hidden;
}

static bool feeds_inner(const struct chain *chain, uint64_t rows) {
    EACH_MATRIX(chain, i) {
        const struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        if (is_inner(chain, matrix) && gcmp_local_columns(matrix) == rows) {
            return true;
        }
    }
    return false;
}

/* Multi-latent attention: h to a latent size, which is whole on every rank, to the heads, which
 * are split. What makes the latent size is whole or split by rows, as its rows tell. */
static enum gradcmp_status decide_first_of_latent(const struct chain *chain,
                                                  struct gcmp_local_parameter *matrix,
                                                  struct gradcmp_error *error) {
    uint64_t rows = gcmp_local_rows(matrix), all = rows * matrix->ranks;
    bool is_stated = gcmp_local_argument(chain->modules, "kv_lora_rank") != 0;
    if (is_stated ? is_latent(chain->modules, rows) : feeds_inner(chain, rows)) {
        matrix->split = GCMP_SPLIT_NONE;
        return GRADCMP_OK;
    }
    if (!is_stated && !feeds_inner(chain, all)) {
        return gcmp_local_refuse(matrix, "the latent sizes are not known", error);
    }
    matrix->split = GCMP_SPLIT_ROWS;
    return GRADCMP_OK;
}

/* Sizes inside of such modules that the arguments state: where `columns` is one of them as it is,
 * and not as the share of one, ranks hold the module whole. */
static bool is_stated_whole(const struct chain *chain, uint64_t columns) {
    const struct gcmp_local_modules *modules = chain->modules;
    uint64_t heads = gcmp_local_argument(modules, "num_attention_heads");
    const uint64_t of_attention[] = {heads * gcmp_local_argument(modules, "kv_channels"),
                                     heads * gcmp_local_argument(modules, "v_head_dim"), 0};
    const uint64_t of_mlp[] = {gcmp_local_argument(modules, "ffn_hidden_size"),
                               gcmp_local_argument(modules, "moe_ffn_hidden_size"),
                               gcmp_local_argument(modules, "moe_shared_expert_intermediate_size")};
    const uint64_t *stated = chain->module->is_attention ? of_attention : of_mlp;
    bool is_whole = false, is_share = false;
    for (size_t i = 0; i < 3; i++) {
        is_whole = is_whole || (stated[i] != 0 && stated[i] == columns);
        is_share = is_share || (stated[i] != 0 && stated[i] == columns * chain->module->ranks);
    }
    return is_whole && !is_share;
}

/* What the chain's last matrix takes must be what the others give. */
static enum gradcmp_status check_sizes(const struct chain *chain, size_t others,
                                       struct gradcmp_error *error) {
    uint64_t columns = gcmp_local_columns(chain->last), rows = chain->module->rest_rows;
    if (chain->module->is_attention) {
        return rows >= columns
                   ? GRADCMP_OK
                   : gcmp_local_refuse(chain->last, "it takes more than there is", error);
    }
    bool fits = rows == columns || rows / 2 == columns; /* gated, in one matrix or two */
    return others > 0 && fits && rows % columns == 0
               ? GRADCMP_OK
               : gcmp_local_refuse(chain->last, "it does not take what the others give", error);
}

static enum gradcmp_status decide_chain(struct chain *chain, struct gradcmp_error *error) {
    bool has_inner = false;
    size_t others = 0;
    EACH_MATRIX(chain, i) {
        const struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        has_inner = has_inner || is_inner(chain, matrix);
        if (matrix != chain->last) {
            others++;
            chain->module->rest_rows += gcmp_local_rows(matrix);
        }
    }
    uint64_t columns = gcmp_local_columns(chain->last);
    if (columns == 0) {
        return gcmp_local_refuse(chain->last, "it is empty", error);
    }
    GCMP_TRY(has_inner ? GRADCMP_OK : check_sizes(chain, others, error));
    if (is_stated_whole(chain, columns)) {
        return GRADCMP_OK;
    }
    EACH_MATRIX(chain, i) {
        struct gcmp_local_parameter *matrix = matrix_at(chain, i);
        matrix->split = matrix == chain->last ? GCMP_SPLIT_COLUMNS : GCMP_SPLIT_ROWS;
        matrix->is_gated = !chain->module->is_attention && matrix != chain->last && others == 1 &&
                           gcmp_local_rows(matrix) == 2 * columns;
        if (has_inner && matrix != chain->last && !is_inner(chain, matrix)) {
            GCMP_TRY(decide_first_of_latent(chain, matrix, error));
        }
    }
    return GRADCMP_OK;
}

/* Ranks that hold no experts of replica 0 write no file, so that of a dump it is not known how many
 * ranks there were. Where all columns together are the n-th part of h, the rest is missing: in most
 * models heads * size of a head = h. */
static enum gradcmp_status check_complete(const struct chain *chain, struct gradcmp_error *error) {
    const struct gcmp_local_modules *modules = chain->modules;
    uint64_t hidden = chain->module->hidden;
    if (modules->catalogue->parallel.tp != 0 || modules->sizes->experts == 0 ||
        !chain->module->is_attention || chain->last == NULL) {
        return GRADCMP_OK;
    }
    uint64_t all = gcmp_local_columns(chain->last) * chain->module->ranks;
    if (all == 0 || all >= hidden || hidden % all != 0) {
        return GRADCMP_OK;
    }
    GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
              "incomplete: %s has %" PRIu64 " columns on all %" PRIu32
              " tensor-parallel ranks together, but the hidden size is %" PRIu64
              ": ranks beyond those of the experts wrote no file",
              gcmp_local_text(chain->last), all, chain->module->ranks, hidden);
}

enum gradcmp_status gcmp_local_chain(const struct gcmp_local_modules *modules,
                                     struct gcmp_local_module *module,
                                     struct gradcmp_error *error) {
    struct chain chain = {.modules = modules, .module = module};
    bool is_split = module->ranks > 1;
    if (module->hidden == 0) {
        return is_split ? gcmp_local_refuse(&modules->parameters[module->first],
                                            "the hidden size cannot be told", error)
                        : GRADCMP_OK;
    }
    enum gradcmp_status status = find_last(&chain, is_split ? error : NULL);
    if (status != GRADCMP_OK) {
        return is_split ? status : GRADCMP_OK;
    }
    GCMP_TRY(check_complete(&chain, error));
    if (!is_split) {
        return GRADCMP_OK;
    }
    return chain.last == NULL ? decide_lone(&chain, error) : decide_chain(&chain, error);
}
