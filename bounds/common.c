/* The factor common to all parameters. */
#include "bounds/common.h"

#include <math.h>

#include "bounds/bounds.h"
#include "bounds/scale.h"
#include "bounds/verdict.h"

#define UNIT_STEPS   0.4
#define MEDIAN_STEPS 5.0
#define SIGMA_OF_MAD 1.4826
#define MAX_AGAINST  0.05

enum { MIN_PARAMETERS = 2 };

static size_t collect_alpha(const struct gcmp_trial *trial) {
    size_t count = 0;
    for (size_t i = 0; i < trial->count; i++) {
        if (gcmp_has_alpha(&trial->parameters[i])) {
            trial->samples[count++] =
                (struct gcmp_sample){gcmp_factor_of(&trial->parameters[i]), trial->votes[i]};
        }
    }
    return count;
}

/* Rule 1's tolerance of |factor - 1|; the samples hold the alphas and are used up. */
static double tolerance_of(const struct gcmp_trial *trial, size_t count, double factor) {
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        struct gcmp_sample *sample = &trial->samples[i];
        sample->value = fabs(sample->value / factor - 1.0);
        sum += sample->weight;
        squares += sample->weight * sample->weight;
    }
    double sigma = SIGMA_OF_MAD * gcmp_median(trial->samples, count, 0.0);
    return fmax(UNIT_STEPS * gcmp_noise_unit(trial->bound),
                MEDIAN_STEPS * sigma * sqrt(squares) / sum);
}

/* How the parameters, and their votes, take a factor. */
struct poll {
    size_t tried, passed;
    double votes, votes_passed, votes_against;
};

static struct poll take_poll(const struct gcmp_trial *trial, double factor) {
    struct gcmp_spread as_is = gcmp_spread_of(trial, 1.0);
    struct gcmp_spread divided = gcmp_spread_of(trial, factor);
    struct poll poll = {0};
    for (size_t i = 0; i < trial->count; i++) {
        if (!gcmp_has_alpha(&trial->parameters[i])) {
            continue;
        }
        poll.tried++;
        poll.votes += trial->votes[i];
        if (gcmp_verdict_within(trial, &divided, i) == GRADCMP_VERDICT_PASS) {
            poll.passed++;
            poll.votes_passed += trial->votes[i];
        } else if (gcmp_verdict_within(trial, &as_is, i) == GRADCMP_VERDICT_PASS) {
            poll.votes_against += trial->votes[i];
        }
    }
    return poll;
}

/* Rules 2, 3 and 4. */
static bool is_accepted(const struct poll *poll) {
    return 2 * poll->passed >= poll->tried && 2 * poll->votes_passed >= poll->votes * (1 - 1e-9) &&
           poll->votes_against <= MAX_AGAINST * poll->votes;
}

/* The factor that the rests were measured with; 0: none, or not one. */
static double measured_factor(const struct gcmp_trial *trial) {
    double factor = 0.0;
    for (size_t i = 0; i < trial->count; i++) {
        double own = trial->parameters[i].rest.factor;
        factor = own != 0.0 ? own : factor;
    }
    return factor;
}

double gcmp_usual_factor(const struct gcmp_trial *trial) {
    size_t count = collect_alpha(trial);
    double factor = gcmp_median(trial->samples, count, 1.0), measured = measured_factor(trial);
    bool is_measured = measured != 0.0 && fabs(factor / measured - 1.0) <= trial->bound->eps / 8.0;
    return is_measured ? measured : factor;
}

double gcmp_common_factor(const struct gcmp_trial *trial) {
    double factor = trial->usual;
    size_t count = collect_alpha(trial);
    if (count < MIN_PARAMETERS || factor == 0.0) {
        return NAN;
    }
    if (!(fabs(factor - 1.0) > tolerance_of(trial, count, factor))) {
        return NAN;
    }
    struct poll poll = take_poll(trial, factor);
    return is_accepted(&poll) ? factor : NAN;
}
