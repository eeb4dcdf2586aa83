/* The public interface of libgradcmp: compare gradients in checkpoints of one training step,
 * offline.
 *
 * Every handle is opaque and is freed by the function named at its creator. Strings and arrays
 * returned by accessors belong to the handle they came from and live as long as it does. A handle
 * may be used by one thread at a time; different handles may be used in different threads at once.
 * The library never prints, never exits and keeps no global state, but for which checkpoints hold
 * file descriptors: together they keep at most half of what the process may have, and close and
 * open again what is idle, so that any number of checkpoints may be open.
 */
#ifndef GRADCMP_GRADCMP_H
#define GRADCMP_GRADCMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GRADCMP_BUILD)
#define GRADCMP_API __attribute__((visibility("default")))
#else
#define GRADCMP_API
#endif
#define GRADCMP_MUST_USE __attribute__((warn_unused_result))

#define GRADCMP_VERSION_MAJOR 0
#define GRADCMP_VERSION_MINOR 1
#define GRADCMP_VERSION_PATCH 0

/* Result of every call that can fail. The values are part of the interface and never change. */
enum gradcmp_status {
    GRADCMP_OK = 0,
    GRADCMP_ERROR_USAGE = 10,   /* the call or an option is wrong */
    GRADCMP_ERROR_IO = 20,      /* the operating system refused: open, read, write */
    GRADCMP_ERROR_CORRUPT = 30, /* a file contradicts its format, its metadata or its checksum */
    GRADCMP_ERROR_UNSUPPORTED =
        40, /* valid, but not read by this version; the message names the way out */
    GRADCMP_ERROR_LIMIT = 50,    /* a stated limit would be passed */
    GRADCMP_ERROR_MEMORY = 60,   /* out of memory */
    GRADCMP_ERROR_DEVICE = 70,   /* an accelerator failed */
    GRADCMP_ERROR_CANCELLED = 80 /* the progress callback asked to stop */
};

/* Where no byte of a file is to blame. */
#define GRADCMP_NO_OFFSET UINT64_MAX

/* Details of a failure; owned by the caller, filled only on failure. Zero-initialise it. */
struct gradcmp_error {
    enum gradcmp_status code;
    uint64_t offset_bytes; /* first byte at fault in `path`, or GRADCMP_NO_OFFSET */
    char path[1024];   /* file at fault, relative to the working directory as given; "" if none */
    char message[512]; /* one line: what, expected, found */
};

/* Element type as stored. */
enum gradcmp_dtype {
    GRADCMP_DTYPE_NONE = 0, /* not a tensor of numbers (an opaque object) */
    GRADCMP_DTYPE_FLOAT64,
    GRADCMP_DTYPE_FLOAT32,
    GRADCMP_DTYPE_FLOAT16,
    GRADCMP_DTYPE_BFLOAT16,
    GRADCMP_DTYPE_FLOAT8_E4M3FN,
    GRADCMP_DTYPE_FLOAT8_E5M2,
    GRADCMP_DTYPE_INT64,
    GRADCMP_DTYPE_INT32,
    GRADCMP_DTYPE_INT16,
    GRADCMP_DTYPE_INT8,
    GRADCMP_DTYPE_UINT64,
    GRADCMP_DTYPE_UINT32,
    GRADCMP_DTYPE_UINT16,
    GRADCMP_DTYPE_UINT8,
    GRADCMP_DTYPE_BOOL,
    GRADCMP_DTYPE_COMPLEX64,
    GRADCMP_DTYPE_COMPLEX128,
    GRADCMP_DTYPE_COUNT
};

/* Return the name of a type as PyTorch spells it without "torch." ("float32", "float8_e4m3fn"). */
GRADCMP_API const char *gradcmp_dtype_name(enum gradcmp_dtype dtype);

/* Verdict of one parameter, in order of precedence. */
enum gradcmp_verdict {
    GRADCMP_VERDICT_SHAPE = 1, /* the logical shapes differ */
    GRADCMP_VERDICT_MISSING,   /* only the baseline has it */
    GRADCMP_VERDICT_EXTRA,     /* only the candidate has it */
    GRADCMP_VERDICT_CONFLICT,  /* copies within one side differ beyond the bound */
    GRADCMP_VERDICT_NONFINITE, /* NaN or Inf on one side where the other is finite, or on both */
    GRADCMP_VERDICT_UNJUDGED,  /* both all zero, or what cancellation leaves of a zero gradient */
    GRADCMP_VERDICT_FAIL,      /* over the bound */
    GRADCMP_VERDICT_SCALE,     /* inside the bound, but off by a systematic factor */
    GRADCMP_VERDICT_PASS
};

/* Verdict of a baseline and one candidate. */
enum gradcmp_outcome {
    GRADCMP_OUTCOME_CONSISTENT = 0,   /* exit 0 */
    GRADCMP_OUTCOME_INCONSISTENT = 1, /* exit 1 */
    GRADCMP_OUTCOME_UNDECIDED = 2,    /* exit 2: an assumed type decides; say --dtype */
    GRADCMP_OUTCOME_VACUOUS = 3,      /* exit 2: next to nothing was judged */
    GRADCMP_OUTCOME_ERROR = 4         /* exit 2: the candidate could not be read */
};

/* Return the word used in reports: "consistent", "fail" and so on. */
GRADCMP_API const char *gradcmp_verdict_name(enum gradcmp_verdict verdict);
GRADCMP_API const char *gradcmp_outcome_name(enum gradcmp_outcome outcome);

/* Return the version as "MAJOR.MINOR.PATCH". */
GRADCMP_API const char *gradcmp_version(void);

/* Name one thing that this build can do: features are numbered from 0; NULL is behind the last.
 * *kind (NULL allowed) is "format" for a format that is read, "kernel" for an instruction set that
 * this processor runs, "device" for what adds up: "cpu", and "cuda" where that plug-in is
 * installed. */
GRADCMP_API const char *gradcmp_feature(size_t index, const char **kind);

/* Called now and then from the thread that made the call; return nonzero to cancel.
 * bytes_done and bytes_total count the bytes of slabs. */
typedef int (*gradcmp_progress_fn)(void *user, uint64_t bytes_done, uint64_t bytes_total);

/* Receive one piece of output; return 0, or nonzero when it could not be written. */
typedef int (*gradcmp_write_fn)(void *user, const char *bytes, size_t length_bytes);

/* Called from the thread that made the call, at most once for each reason, with one line that a
 * person should see although nothing is lost: an accelerator failed, and the processor took over; a
 * file system refused direct reads. */
typedef void (*gradcmp_warn_fn)(void *user, const char *line);

/* What adds the sums up; the figures are the same. */
enum gradcmp_device {
    GRADCMP_DEVICE_AUTO = 0, /* a GPU where one is at hand and the job is large enough to gain */
    GRADCMP_DEVICE_CPU = 1,
    GRADCMP_DEVICE_CUDA = 2 /* a GPU or an error (DEVICE) */
};

/* How reads run ahead of sums; the figures are the same. */
enum gradcmp_reads {
    GRADCMP_READS_AUTO = 0,   /* direct reads by io_uring, others by threads: the kernel reads ahead
                                 for these itself */
    GRADCMP_READS_URING = 1,  /* by io_uring where the kernel allows it, else by threads */
    GRADCMP_READS_THREADS = 2 /* by more threads */
};

/* The processes that a launcher (mpirun, srun) started together, or NULL; see the end. */
struct gradcmp_ranks;

/* How judgement and reading are to be done. Start from GRADCMP_OPTIONS_INIT. */
struct gradcmp_options {
    size_t struct_size;       /* sizeof(struct gradcmp_options) of the caller */
    const char *state;        /* NULL: exp_avg where either side has it, else main_grad */
    const char *match;        /* POSIX extended regex on canonical names; NULL: all */
    const char *exclude;      /* POSIX extended regex; NULL: none */
    enum gradcmp_dtype dtype; /* compute type; GRADCMP_DTYPE_NONE: from the checkpoints */
    double k;                 /* factor of the bound; 0: 4, or 32 for float32 and float64 */
    double C;                 /* growth per layer; 0: 1.03 */
    double max_bound;         /* cap; 0: 0.25 */
    uint64_t vocab;           /* true rows of the vocabulary; 0: from the checkpoints */
    uint64_t layers;          /* L; 0: from the checkpoints */
    int64_t iteration;     /* iteration to open below a parent directory; -1: the tracker decides */
    uint64_t buffer_bytes; /* bound of all buffers of all threads; 0: 48 MiB */
    unsigned threads;      /* 0: CPU affinity and cgroup quota */
    int compat_megatron;   /* nonzero: one constant bound, l = 0 and L = 32 */
    int strict;            /* nonzero: unjudged parameters fail the pair */
    int verify;     /* 1: also check records needed in part; -1: check no checksum; 0: whole ones */
    int allow_same; /* nonzero: the same directory may stand on both sides */
    int allow_iterations;         /* nonzero: different iterations may be compared */
    gradcmp_progress_fn progress; /* may be NULL */
    void *progress_user;
    const char *map; /* YAML file of rules that rename, split, join, transpose; NULL: none */
    int map_side;    /* of one checkpoint alone: 1 takes the rules for baselines too, 2 those for
                        candidates, 0 refuses both; comparing sets it for itself */
    const char *previous_a; /* the baseline one step before: exp_avg is made the gradient; NULL */
    const char *previous_b; /* the same of the only candidate */
    enum gradcmp_device device;
    unsigned device_index; /* with GRADCMP_DEVICE_CUDA: which one, from 0 */
    gradcmp_warn_fn warn;  /* may be NULL */
    void *warn_user;
    const char *fit;   /* file of `gradcmp fit` whose k, C and floors judge; NULL: the theory */
    int allow_loose;   /* gradcmp_fit_make: nonzero: good pairs may be beyond the theory's bound */
    int allow_routing; /* nonzero: what a flipped choice of experts explains does not fail a pair */
    enum gradcmp_reads reads;
    int direct; /* nonzero: read past the page cache (O_DIRECT) where the file system allows it */
    struct gradcmp_ranks *ranks; /* that share the work of gradcmp_compare, gradcmp_check,
                                    gradcmp_fit_make and gradcmp_sweep_run: each makes the same
                                    calls, and rank 0 alone has a whole result. NULL: none */
};
#define GRADCMP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct gradcmp_options), NULL, NULL, NULL, GRADCMP_DTYPE_NONE, 0.0, 0.0, 0.0, 0, 0, \
            -1, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, GRADCMP_DEVICE_AUTO, 0,      \
            NULL, NULL, NULL, 0, 0, GRADCMP_READS_AUTO, 0, NULL                                    \
    }

struct gradcmp_checkpoint;
struct gradcmp_report;

/* Open the checkpoint at `path`: an iteration directory, its parent, or a file. Reads metadata
 * only. On success *out is owned by the caller (gradcmp_checkpoint_free); on failure *out is NULL.
 */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_checkpoint_open(const char *path, const struct gradcmp_options *options,
                        struct gradcmp_checkpoint **out, struct gradcmp_error *error);

/* Free a checkpoint; NULL is allowed. */
GRADCMP_API void gradcmp_checkpoint_free(struct gradcmp_checkpoint *checkpoint);

/* Tell what the checkpoint is made of, without reading tensors.
 * shape has ndim entries; norm, max_abs and sha256 are set only by gradcmp_checkpoint_stats. */
struct gradcmp_tensor_info {
    const char *name;  /* canonical name of the parameter */
    const char *state; /* "exp_avg", "param", ... */
    int64_t layer;     /* l: 0 embeddings, 1..L, L+1 heads */
    enum gradcmp_dtype dtype;
    unsigned ndim;
    const uint64_t *shape;
    size_t pieces; /* slabs it is stored in, copies included */
    size_t copies; /* replicas kept apart; 1 where there is one */
};

/* Write what `gradcmp ls` shows; `stats` reads every listed tensor. Any of state may be NULL for
 * all. */
enum gradcmp_ls_format { GRADCMP_LS_TEXT, GRADCMP_LS_JSON };
struct gradcmp_ls_options {
    size_t struct_size;
    enum gradcmp_ls_format format;
    int stats;      /* nonzero: norm, max_abs, sha256 of every tensor */
    int as_float32; /* nonzero: sha256 of the values as binary32 */
    int color;      /* nonzero: ANSI colours (text only) */
    int verbose;
    int utf8; /* nonzero: characters beyond ASCII are printed as they are (text only) */
};
#define GRADCMP_LS_OPTIONS_INIT                                                                    \
    { sizeof(struct gradcmp_ls_options), GRADCMP_LS_TEXT, 0, 0, 0, 0, 0 }
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_checkpoint_list(struct gradcmp_checkpoint *checkpoint,
                        const struct gradcmp_options *options, const struct gradcmp_ls_options *ls,
                        gradcmp_write_fn write, void *user, struct gradcmp_error *error);

/* Walk the tensors of an open checkpoint, sorted by name and state. */
GRADCMP_API size_t gradcmp_checkpoint_tensor_count(const struct gradcmp_checkpoint *checkpoint);
GRADCMP_API void gradcmp_checkpoint_tensor(const struct gradcmp_checkpoint *checkpoint,
                                           size_t index, struct gradcmp_tensor_info *out);

/* Read one unsharded tensor, row-major, in its stored type and the host's byte order, into `buffer`
 * of `length_bytes`, which must be the exact size (elements times element size). */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_checkpoint_read(struct gradcmp_checkpoint *checkpoint, size_t index, void *buffer,
                        size_t length_bytes, struct gradcmp_error *error);

/* Write the unsharded parameters of one state (options->state; NULL: all) whose names pass match
 * and exclude as one safetensors file: weights under their canonical names, other states as
 * "optimizer.state.STATE.NAME"; what is known of the run goes into __metadata__. Nonzero as_float32
 * converts floating values to binary32. Tensors are streamed; nothing is held whole. IO where
 * `write` fails, UNSUPPORTED where no tensor is left or a type has no name in safetensors. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_checkpoint_extract(struct gradcmp_checkpoint *checkpoint,
                           const struct gradcmp_options *options, int as_float32,
                           gradcmp_write_fn write, void *user, struct gradcmp_error *error);

/* The same as one HDF5 file, written to `descriptor`: an empty regular file that is open for
 * reading and writing, and stays the caller's. Names are paths of groups; datasets are chunked,
 * under zstd (filter 32015); what is known of the run and of each tensor are attributes. The helper
 * program writes it. UNSUPPORTED too where the helper is not there. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_checkpoint_extract_hdf5(struct gradcmp_checkpoint *checkpoint,
                                const struct gradcmp_options *options, int as_float32,
                                int descriptor, struct gradcmp_error *error);

/* Compare every candidate with the baseline. A candidate that cannot be opened or read gets the
 * outcome GRADCMP_OUTCOME_ERROR in the report and the call still succeeds; the call fails when the
 * baseline cannot be read or the options are wrong. On success *out is owned by the caller
 * (gradcmp_report_free). All candidates are measured in one reading of the baseline; after
 * GRADCMP_ERROR_CANCELLED *out holds those candidates that were finished when causes were looked
 * for (free it too), or is NULL where there are none. *out is NULL after every other failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_compare(const char *baseline, const char *const *candidates, size_t candidate_count,
                const struct gradcmp_options *options, struct gradcmp_report **out,
                struct gradcmp_error *error);

/* Free a report; NULL is allowed. */
GRADCMP_API void gradcmp_report_free(struct gradcmp_report *report);

/* Figures of one parameter. Figures that do not exist are NaN; see the has_ fields. */
struct gradcmp_parameter_result {
    const char *name;
    int64_t layer;
    enum gradcmp_verdict verdict;
    unsigned ndim;
    const uint64_t *shape;
    double rel, rel_common, bound, ratio; /* ratio = judged rel / bound */
    double eps_multiple;                  /* judged rel / eps */
    double alpha, alpha_tolerance, rho, cosine;
    double norm_a, norm_b, max_abs;
};

/* Walk a report. Indices out of range give GRADCMP_OUTCOME_ERROR, NULL or a zeroed result. What is
 * UNDECIDED or VACUOUS has a doubt, a line that says why, else NULL; it belongs to the report. */
GRADCMP_API size_t gradcmp_report_candidate_count(const struct gradcmp_report *report);
GRADCMP_API enum gradcmp_outcome gradcmp_report_outcome(const struct gradcmp_report *report,
                                                        size_t candidate);
GRADCMP_API const struct gradcmp_error *gradcmp_report_error(const struct gradcmp_report *report,
                                                             size_t candidate);
GRADCMP_API const char *gradcmp_report_path(const struct gradcmp_report *report, size_t candidate);
GRADCMP_API const char *gradcmp_report_doubt(const struct gradcmp_report *report, size_t candidate);
GRADCMP_API size_t gradcmp_report_parameter_count(const struct gradcmp_report *report,
                                                  size_t candidate);
GRADCMP_API void gradcmp_report_parameter(const struct gradcmp_report *report, size_t candidate,
                                          size_t index, struct gradcmp_parameter_result *out);
/* Return l of the onset, or -1 when there is none. */
GRADCMP_API int64_t gradcmp_report_onset(const struct gradcmp_report *report, size_t candidate);
/* Return the exit status that a program should end with: the highest over the candidates. */
GRADCMP_API int gradcmp_report_exit_status(const struct gradcmp_report *report);

/* How the terminal report looks. */
struct gradcmp_text_options {
    size_t struct_size;
    int color;      /* nonzero: ANSI colours */
    int utf8;       /* nonzero: bars and marks beyond ASCII */
    int verbose;    /* nonzero: every parameter, unjudged ones and notes in full */
    unsigned top;   /* failing parameters listed; 0: 20 */
    unsigned width; /* columns; 0: 80 */
};
#define GRADCMP_TEXT_OPTIONS_INIT                                                                  \
    { sizeof(struct gradcmp_text_options), 0, 0, 0, 0, 0 }

/* Write the terminal report; fails with GRADCMP_ERROR_IO when `write` does. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_text(const struct gradcmp_report *report,
                          const struct gradcmp_text_options *text, gradcmp_write_fn write,
                          void *user, struct gradcmp_error *error);

/* Write the report as JSON (schema 1), the same bytes on any thread count and device. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_json(const struct gradcmp_report *report, gradcmp_write_fn write, void *user,
                          struct gradcmp_error *error);

/* Findings of `gradcmp check` over one or more checkpoints. */
struct gradcmp_findings;

/* Look at each checkpoint alone, at any step: copies agree, tied weights are equal, model weights
 * are their rounded fp32 masters, nothing is NaN or Inf, no tensor or shard is all zero or all
 * subnormal, no parameter lost one of its states, padding rows are zero. Reads every state. A
 * checkpoint that cannot be read is kept as an error in the result and the call still succeeds. On
 * success *out is owned by the caller (gradcmp_findings_free); *out is NULL after every failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_check(const char *const *paths, size_t path_count, const struct gradcmp_options *options,
              struct gradcmp_findings **out, struct gradcmp_error *error);

/* Free findings; NULL is allowed. */
GRADCMP_API void gradcmp_findings_free(struct gradcmp_findings *findings);

/* Number of findings over all checkpoints. */
GRADCMP_API size_t gradcmp_findings_count(const struct gradcmp_findings *findings);

/* Return why checkpoint `index` (in the order given) could not be read, or NULL. */
GRADCMP_API const struct gradcmp_error *
gradcmp_findings_error(const struct gradcmp_findings *findings, size_t index);

/* Return the exit status that a program should end with: 0 clean, 1 findings, 2 not all was read.
 */
GRADCMP_API int gradcmp_findings_exit_status(const struct gradcmp_findings *findings);

/* Write the findings for people, or as JSON (schema 1). */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_text(const struct gradcmp_findings *findings,
                            const struct gradcmp_text_options *text, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_json(const struct gradcmp_findings *findings, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);

/* Rounding noise measured on known-good pairs: k, C and a floor of every parameter. */
struct gradcmp_fit;

/* Compare every good checkpoint with the baseline and fit k, C and floors to their noise (how is
 * derived in bounds/fit.h). The call succeeds whatever it finds; whether there is a fit, the exit
 * status tells. USAGE where the options bring a bound of their own. On success *out is owned by the
 * caller (gradcmp_fit_free); *out is NULL after every failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_fit_make(const char *baseline, const char *const *goods, size_t good_count,
                 const struct gradcmp_options *options, struct gradcmp_fit **out,
                 struct gradcmp_error *error);

/* Free a fit; NULL is allowed. */
GRADCMP_API void gradcmp_fit_free(struct gradcmp_fit *fit);

/* Return the exit status that a program should end with: 0 there is a fit; 1 a pair is not good; 2
 * a pair could not be read, or all are equal to the last bit and there is nothing to measure. */
GRADCMP_API int gradcmp_fit_exit_status(const struct gradcmp_fit *fit);

/* Return why good checkpoint `index` could not be read, or NULL. */
GRADCMP_API const struct gradcmp_error *gradcmp_fit_error(const struct gradcmp_fit *fit,
                                                          size_t index);

/* Write the fit as a table for people, as JSON (schema 1), or as the YAML file that
 * gradcmp_options.fit takes (USAGE where there is no fit). IO when `write` fails. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_fit_write_text(const struct gradcmp_fit *fit, const struct gradcmp_text_options *text,
                       gradcmp_write_fn write, void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_fit_write_json(const struct gradcmp_fit *fit, gradcmp_write_fn write, void *user,
                       struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_fit_write_yaml(const struct gradcmp_fit *fit, gradcmp_write_fn write, void *user,
                       struct gradcmp_error *error);

/* Many configurations against one baseline. */
struct gradcmp_sweep;

/* What is swept. Start from GRADCMP_SWEEP_OPTIONS_INIT. */
struct gradcmp_sweep_options {
    size_t struct_size;
    const char *plan; /* YAML: a sweep plan, or a model_config.yaml of Megatron's functional tests;
                         NULL: all checkpoints below the folder */
    const char *baseline; /* path, or its label below the folder; NULL: the plan's, else the one
                             with the least parallelism */
    const char *resume;   /* file that keeps what is judged: pairs in it that have not changed are
                             taken over, and finished ones are added; NULL: none */
    const char *golden;   /* golden values of Megatron-LM's tests (JSON): num-zeros is held against
                             the zeros in the gradients; NULL: those beside a model_config.yaml */
};
#define GRADCMP_SWEEP_OPTIONS_INIT                                                                 \
    { sizeof(struct gradcmp_sweep_options), NULL, NULL, NULL, NULL }

/* Find the checkpoints below `folder` (NULL with a plan: the plan's own folder), choose the
 * baseline, and compare all others with it, in one reading of the baseline (with `resume`: one for
 * every four candidates, and what is finished is written after each). What `options` set wins over
 * the plan. A checkpoint that cannot be read fails its own row. On success *out is owned by the
 * caller (gradcmp_sweep_free); after GRADCMP_ERROR_CANCELLED it holds the finished rows, or is NULL
 * where there are none. Errors: as gradcmp_compare; CORRUPT, with the line, for a plan, and for a
 * file to resume from that is damaged or is none; USAGE where there are not two checkpoints. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_sweep_run(const char *folder, const struct gradcmp_sweep_options *sweep_options,
                  const struct gradcmp_options *options, struct gradcmp_sweep **out,
                  struct gradcmp_error *error);

/* Free a sweep and its report; NULL is allowed. */
GRADCMP_API void gradcmp_sweep_free(struct gradcmp_sweep *sweep);

/* Return the comparisons, one a configuration; they belong to the sweep. */
GRADCMP_API const struct gradcmp_report *gradcmp_sweep_report(const struct gradcmp_sweep *sweep);

/* Return the label of a row (a candidate of the report), or NULL. */
GRADCMP_API const char *gradcmp_sweep_label(const struct gradcmp_sweep *sweep, size_t row);

/* Return the exit status that a program should end with: that of the report, where an outcome that
 * the plan expects counts as 0; 1 where a run did not do what its configuration says or repeats
 * differ; 2 where a configuration of a recipe has no run. */
GRADCMP_API int gradcmp_sweep_exit_status(const struct gradcmp_sweep *sweep);

/* Write the matrix of configurations by layers, or JSON (schema 1). */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_sweep_write_text(const struct gradcmp_sweep *sweep, const struct gradcmp_text_options *text,
                         gradcmp_write_fn write, void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_sweep_write_json(const struct gradcmp_sweep *sweep, gradcmp_write_fn write, void *user,
                         struct gradcmp_error *error);

/* What `bits`, `trace`, `metrics` or `lint` found; free it with gradcmp_evidence_free. */
struct gradcmp_evidence;

/* How one thing that was looked at came out. */
enum gradcmp_case_outcome {
    GRADCMP_CASE_PASS = 0,    /* as it should be */
    GRADCMP_CASE_FAIL = 1,    /* a difference or finding */
    GRADCMP_CASE_SKIPPED = 2, /* left out, or not comparable; text says why */
    GRADCMP_CASE_ERROR = 3    /* could not be read or judged */
};

/* One thing that was looked at: a group of `bits`, a rank of `trace`, a metric, a rule of `lint`.
 */
struct gradcmp_case {
    const char *group; /* what it belongs to ("exp_avg", "rank 3"); never NULL */
    const char *name;  /* unique within the group; never NULL */
    enum gradcmp_case_outcome outcome;
    const char *text; /* one line: what was found; NULL where there is nothing to say */
    const char *file; /* where, or NULL */
    uint64_t line;    /* of the file, from 1; 0: none */
};

/* Free evidence; NULL is allowed. */
GRADCMP_API void gradcmp_evidence_free(struct gradcmp_evidence *evidence);

/* Return the verdict as the JSON spells it ("identical", "diverged", "differ", "warn", ...). */
GRADCMP_API const char *gradcmp_evidence_verdict(const struct gradcmp_evidence *evidence);
/* Return the one line that sums it up. */
GRADCMP_API const char *gradcmp_evidence_summary(const struct gradcmp_evidence *evidence);
/* Return the exit status that a program should end with: 0, 1 or 2. */
GRADCMP_API int gradcmp_evidence_exit_status(const struct gradcmp_evidence *evidence);

/* How `gradcmp metrics` judges. Start from GRADCMP_METRICS_OPTIONS_INIT. */
struct gradcmp_metrics_options {
    size_t struct_size; /* sizeof(struct gradcmp_metrics_options) of the caller */
    int approximate;    /* nonzero: within tolerances; 0: every stored value is the same */
    const char *match;  /* POSIX extended regex on names of metrics; NULL: all */
    const char *exclude;
    /* "NAME=X": relative tolerance of a metric in approximate mode. Defaults as in Megatron-LM's
     * checks: 0.05, 0.20 for num-zeros; 1% of the steps (1 to 50) may be outside. */
    const char *const *tolerances;
    size_t tolerance_count;
    /* "NAME=X": B's median may be at most X times A's, over steps 5 to 20 (30 to 45 of a run of
     * more than 25); replaces every other judgement of that metric. */
    const char *const *max_ratios;
    size_t max_ratio_count;
};
#define GRADCMP_METRICS_OPTIONS_INIT                                                               \
    { sizeof(struct gradcmp_metrics_options), 0, NULL, NULL, NULL, 0, NULL, 0 }

/* Compare the metric series of two runs: TensorBoard event files (a file, or a folder with those of
 * a run and its restarts), golden values as Megatron-LM's tests keep them (JSON), training logs
 * with iteration lines, or CSV; found out by content, and not necessarily alike. A side that cannot
 * be read gives the verdict "invalid" (exit status 2) and no failure. USAGE: an option makes no
 * sense. On success *out is owned by the caller (gradcmp_evidence_free); NULL after a failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_metrics(const char *a, const char *b, const struct gradcmp_metrics_options *options,
                struct gradcmp_evidence **out, struct gradcmp_error *error);

/* How `gradcmp lint` judges. Start from GRADCMP_LINT_OPTIONS_INIT. */
struct gradcmp_lint_options {
    size_t struct_size; /* sizeof(struct gradcmp_lint_options) of the caller */
    const char *rules;  /* "megatron", "ascend", "gradients", several with commas; NULL or "auto":
                           megatron or ascend, as the files tell */
    int strict;         /* nonzero: warnings make the exit status 1 */
    int pair;           /* nonzero: two paths of two runs, and what differs between them */
};
#define GRADCMP_LINT_OPTIONS_INIT                                                                  \
    { sizeof(struct gradcmp_lint_options), NULL, 0, 0 }

/* Look at the determinism settings of one run (with `pair`: of two). Each path is an environment
 * dump, a launch script, arguments or a configuration as JSON or YAML, a training log, the output
 * of pip freeze, a checkpoint or its common.pt; found out by content. A path that cannot be read
 * gives the verdict "invalid" (exit status 2) and no failure. USAGE: an option or the number of
 * paths makes no sense. On success *out is owned by the caller (gradcmp_evidence_free); NULL after
 * a failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_lint(const char *const *paths, size_t path_count,
             const struct gradcmp_lint_options *options, struct gradcmp_evidence **out,
             struct gradcmp_error *error);

/* Write what a rule ("MG02") looks at, accepts, and why. USAGE: no such rule. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status gradcmp_lint_explain(const char *rule,
                                                                      gradcmp_write_fn write,
                                                                      void *user,
                                                                      struct gradcmp_error *error);

/* Walk the cases. An index out of range gives a zeroed case. */
GRADCMP_API size_t gradcmp_evidence_case_count(const struct gradcmp_evidence *evidence);
GRADCMP_API void gradcmp_evidence_case(const struct gradcmp_evidence *evidence, size_t index,
                                       struct gradcmp_case *out);

/* Write the evidence for people, or as JSON (schema 1); IO when `write` fails. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_text(const struct gradcmp_evidence *evidence,
                            const struct gradcmp_text_options *text, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_json(const struct gradcmp_evidence *evidence, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);

/* What gradcmp_bits leaves out, and what it has in place of a twin. Start from
 * GRADCMP_BITS_OPTIONS_INIT. */
struct gradcmp_bits_options {
    size_t struct_size;
    const char *const *ignore; /* globs of paths that may differ: "args.lr", "*seed*" */
    size_t ignore_count;
    int no_default_ignore; /* nonzero: those of gradcmp_bits_default_ignore count too */
    const char *hash;      /* file of fingerprints to write, or to check against; NULL: none */
};
#define GRADCMP_BITS_OPTIONS_INIT                                                                  \
    { sizeof(struct gradcmp_bits_options), NULL, 0, 0, NULL }

/* Name what may differ by default: globs are numbered from 0; NULL is behind the last. */
GRADCMP_API const char *gradcmp_bits_default_ignore(size_t index);

/* Compare everything that a resume restores, bit for bit: paths[0] with each other path. Where all
 * are folders of runs with several iterations, those that both have are compared in their order;
 * one that the other run lacks behind its own first differs. With bits->hash every checkpoint is
 * compared with the fingerprints in that file, and one path is enough; where there is no such file,
 * it is written from paths[0] first. A candidate that cannot be read is an error in the evidence
 * and the call still succeeds. USAGE for too few paths; the errors of opening paths[0]; CORRUPT for
 * a damaged file of fingerprints. On success *out is owned by the caller (gradcmp_evidence_free);
 * *out is NULL after every failure. `bits` may be NULL. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_bits(const char *const *paths, size_t count, const struct gradcmp_options *options,
             const struct gradcmp_bits_options *bits, struct gradcmp_evidence **out,
             struct gradcmp_error *error);

/* What becomes one test case of a JUnit report. */
enum gradcmp_junit_level {
    GRADCMP_JUNIT_PARAMETER = 0, /* each parameter, beside one case for the verdict */
    GRADCMP_JUNIT_LAYER,         /* each layer, beside one case for the verdict */
    GRADCMP_JUNIT_CANDIDATE      /* the verdict alone */
};

/* How documents are made. Start from GRADCMP_DOCUMENT_OPTIONS_INIT; NULL means the same. */
struct gradcmp_document_options {
    size_t struct_size;
    enum gradcmp_junit_level junit_level;
    unsigned top; /* failing parameters told in full (HTML: with heat map); 0: 50, Markdown 20,
                     annotations 10 */
    size_t rows;  /* rows of a table in HTML, the worst first; 0: 5,000 */
};
#define GRADCMP_DOCUMENT_OPTIONS_INIT                                                              \
    { sizeof(struct gradcmp_document_options), GRADCMP_JUNIT_PARAMETER, 0, 0 }

/* Write a report as a document. All of them give the same bytes for the same report, in any locale
 * and without times; names from files are escaped. They fail with GRADCMP_ERROR_IO when `write`
 * does and with GRADCMP_ERROR_MEMORY.
 *
 * html: one page that needs nothing else (style, script and pictures are in it; it can load
 * nothing). junit: JUnit XML, a suite for each candidate (checkpoint, group), its last case the
 * verdict. markdown: a short text for the comment of a merge request. annotations: lines that
 * GitHub Actions shows as errors, warnings and notices. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_html(const struct gradcmp_report *report,
                          const struct gradcmp_document_options *options, gradcmp_write_fn write,
                          void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_junit(const struct gradcmp_report *report,
                           const struct gradcmp_document_options *options, gradcmp_write_fn write,
                           void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_markdown(const struct gradcmp_report *report,
                              const struct gradcmp_document_options *options,
                              gradcmp_write_fn write, void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_annotations(const struct gradcmp_report *report,
                                 const struct gradcmp_document_options *options,
                                 gradcmp_write_fn write, void *user, struct gradcmp_error *error);

/* Write all figures of a report, and the heat maps of what fails, as one HDF5 file to `descriptor`:
 * an empty regular file that is open for reading and writing, and stays the caller's. README.md
 * lists the datasets; they are chunked, under zstd (filter 32015). The helper program writes it:
 * UNSUPPORTED where that is not installed, IO where it cannot write. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_report_write_hdf5(const struct gradcmp_report *report, int descriptor,
                          struct gradcmp_error *error);

/* The same of the findings of `check`. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_html(const struct gradcmp_findings *findings,
                            const struct gradcmp_document_options *options, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_junit(const struct gradcmp_findings *findings,
                             const struct gradcmp_document_options *options, gradcmp_write_fn write,
                             void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_markdown(const struct gradcmp_findings *findings,
                                const struct gradcmp_document_options *options,
                                gradcmp_write_fn write, void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_findings_write_annotations(const struct gradcmp_findings *findings,
                                   const struct gradcmp_document_options *options,
                                   gradcmp_write_fn write, void *user, struct gradcmp_error *error);

/* The same of the evidence of `bits`, `trace`, `metrics` and `lint`: a test case, row or line for
 * each of its cases. junit_level CANDIDATE leaves the verdict alone. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_html(const struct gradcmp_evidence *evidence,
                            const struct gradcmp_document_options *options, gradcmp_write_fn write,
                            void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_junit(const struct gradcmp_evidence *evidence,
                             const struct gradcmp_document_options *options, gradcmp_write_fn write,
                             void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_markdown(const struct gradcmp_evidence *evidence,
                                const struct gradcmp_document_options *options,
                                gradcmp_write_fn write, void *user, struct gradcmp_error *error);
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_evidence_write_annotations(const struct gradcmp_evidence *evidence,
                                   const struct gradcmp_document_options *options,
                                   gradcmp_write_fn write, void *user, struct gradcmp_error *error);

/* How traces are compared. Start from GRADCMP_TRACE_OPTIONS_INIT. */
struct gradcmp_trace_options {
    size_t struct_size; /* sizeof(struct gradcmp_trace_options) of the caller */
    int lenient; /* nonzero: what cannot be read or compared is left out, the rest is judged */
    gradcmp_progress_fn progress; /* may be NULL; counts bytes of both sides */
    void *progress_user;
};
#define GRADCMP_TRACE_OPTIONS_INIT                                                                 \
    { sizeof(struct gradcmp_trace_options), 0, NULL, NULL }

/* Find the first operation whose outputs differ in two traces of a run: directories of rank-local
 * records as Megatron-LM's tracer, PyTorch's DebugMode or msprobe write them, or folders with
 * several of them. Verdicts: "match", "diverged", and "invalid" (exit status 2) where a file is
 * damaged, of unknown schema or recorded in another way than its counterpart; the call succeeds
 * then, and the cases tell file and line. It fails where a path cannot be opened (IO), where
 * `progress` cancels, and without memory. options NULL: the defaults. On success *out is owned by
 * the caller (gradcmp_evidence_free); on failure it is NULL. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_trace(const char *a, const char *b, const struct gradcmp_trace_options *options,
              struct gradcmp_evidence **out, struct gradcmp_error *error);

/* A YAML file of options: one mapping of names to values or lists of values. */
struct gradcmp_config;

/* What a value is. A number in quotes is text. */
enum gradcmp_config_kind {
    GRADCMP_CONFIG_TEXT = 1,
    GRADCMP_CONFIG_NUMBER,
    GRADCMP_CONFIG_BOOL, /* value is "true" or "false" however the file spells it */
    GRADCMP_CONFIG_NULL
};

/* One name and value; the items of a list follow one another under the same name. */
struct gradcmp_config_entry {
    const char *name;
    const char *value; /* as written, without quotes; "" for NULL */
    enum gradcmp_config_kind kind;
    int is_item;   /* nonzero: of a list */
    uint64_t line; /* of the value, from 1 */
};

/* Read such a file, of at most 16 MiB. What the names and values mean is the caller's affair; a
 * name that stands twice, a mapping or list within a list, and what is no mapping of texts are
 * CORRUPT, with "line N: ..." in the message. IO where it cannot be read. On success *out is owned
 * by the caller (gradcmp_config_free); *out is NULL after every failure. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_config_open(const char *path, struct gradcmp_config **out, struct gradcmp_error *error);

/* Free a configuration; NULL is allowed. */
GRADCMP_API void gradcmp_config_free(struct gradcmp_config *config);

/* Walk the entries, in the order of the file. An index out of range gives a zeroed entry. */
GRADCMP_API size_t gradcmp_config_count(const struct gradcmp_config *config);
GRADCMP_API void gradcmp_config_entry(const struct gradcmp_config *config, size_t index,
                                      struct gradcmp_config_entry *out);

/* What a process in the sandbox may still open. Start from GRADCMP_SANDBOX_OPTIONS_INIT. */
struct gradcmp_sandbox_options {
    size_t struct_size;
    const char *const *inputs; /* files, and folders with what is beneath them; missing ones are
                                  left out */
    size_t input_count;
    const char *const *outputs; /* files to be written, also missing ones: their folder may be
                                   written to, and what is there be replaced */
    size_t output_count;
};
#define GRADCMP_SANDBOX_OPTIONS_INIT                                                               \
    { sizeof(struct gradcmp_sandbox_options), NULL, 0, NULL, 0 }

/* Give up, for this process and for good, whatever comparing checkpoints does not take (Linux:
 * Landlock and seccomp): only inputs can be read and only beside outputs can be written; no program
 * can be started, no network or other process be spoken to, no memory be made executable. HDF5 is
 * still read by the helper program, which a process forked here starts from then on. For programs
 * that read what they do not trust, and do nothing else; not with GPUs, which take more rights.
 * Call it once, before threads are started: what already runs keeps its rights, as do open
 * descriptors. TMPDIR is set to a new folder that goes away with the process. UNSUPPORTED where the
 * kernel, a container or the processor does not allow it: end the process then, it may have given
 * up part of its rights. USAGE when called again; IO; MEMORY. `sandbox` may be NULL. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_sandbox_enter(const struct gradcmp_sandbox_options *sandbox, struct gradcmp_error *error);

/* --- several processes --- */

/* Tell whether a launcher started this process together with others, by what it put into the
 * environment (Open MPI, PMI, PMIx, SLURM). Nonzero: *index is this process' rank, counted from 0,
 * and *count how many there are, 0 where that is not said. Zero also where there is just one. */
GRADCMP_API int gradcmp_ranks_launched(unsigned *index, unsigned *count);

/* Join the other processes, through the MPI plug-in that lies beside the library. *out is NULL
 * where there are none, and after a failure; else the caller parts from them with
 * gradcmp_ranks_leave, as the last thing that it does. All processes must call it, once, and all
 * that follows from one thread. DEVICE where there is no plug-in or MPI fails, USAGE where a
 * process is of another version. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status gradcmp_ranks_join(struct gradcmp_ranks **out,
                                                                    struct gradcmp_error *error);

/* Return which process this is and how many there are; 0 and 1 with NULL. Rank 0 is the one that
 * reports. */
GRADCMP_API unsigned gradcmp_ranks_index(const struct gradcmp_ranks *ranks);
GRADCMP_API unsigned gradcmp_ranks_count(const struct gradcmp_ranks *ranks);

/* What a process leaves with. Zero-initialise it and set struct_size. Exit statuses are 0 and 1
 * after a result, 2 after a failure, 128 plus the signal after an interrupt. */
struct gradcmp_farewell {
    size_t struct_size;
    int exit_status; /* on return, of rank 0: what all of them come to */
    char text[512]; /* why it failed, one line. On return, of rank 0: what it has to say for another
                       process; "" where there is nothing */
    gradcmp_progress_fn progress; /* called while waiting; nonzero: interrupted. May be NULL */
    void *progress_user;
};

/* Wait for all other processes to leave, asleep, and part from them; `ranks` is freed. A process
 * that leaves with a failure makes the others end. Fails where one of them is gone for good or
 * waiting was interrupted; the process should then end without another word. */
GRADCMP_API GRADCMP_MUST_USE enum gradcmp_status
gradcmp_ranks_leave(struct gradcmp_ranks *ranks, struct gradcmp_farewell *farewell,
                    struct gradcmp_error *error);

#ifdef __cplusplus
}
#endif

#endif
