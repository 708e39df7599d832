/* What every program of a mapping shares: stores that hold boxes of tensors, and the values that move between them.

   A store visits one box after the other. What the new box does not keep leaves, from the inside out: changed values
   go up to the next store of the tensor. What it does not have yet is read from there. Every value that moves is counted.
   A partial sum that is read back leaves the store above, so the parts of an element add up to it, each part once. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THERE = 1, VALUE = 2, CHANGED = 4 }; /* a cell exists; it has a value; it was changed since it came */

typedef struct { /* what one instance of a store holds */
    long low[RANKS], high[RANKS], cells, outer;
    double *value;
    long *done; /* operations that are in the value */
    unsigned char *flags;
} Held;

typedef struct { /* a toll on the way: what is counted there, and by which instances */
    int counter;
    const unsigned char *first;
} Toll;

typedef struct Site Site;
struct Site { /* one tensor of one store */
    int ranks, produced, maximum, parent, children, first_child, input;
    long lanes, inner, needed; /* inner: instances for each instance of the parent's */
    const long *shape;
    int fill_read, fill_write, up_read, up_write; /* numbers of counters */
    const unsigned char *read_first, *write_first; /* per instance: asked by it, not by one that it shares with? */
    int downs, ups;
    const Toll *down, *up;
    Held *held;
    unsigned char *seen; /* a bit for each instance and element: has been here */
    long elements;
    const char *name;
};

/* tables */

static long failures;

static long least(long a, long b) { return a < b ? a : b; }

static long most(long a, long b) { return a > b ? a : b; }

static void failed(const char *what, const Site *s) {
    if (failures++ < 5) fprintf(stderr, "%s: %s\n", s->name, what);
}

static void *room(size_t count, size_t size) {
    void *found = calloc(count ? count : 1, size);
    if (!found) { fprintf(stderr, "out of memory\n"); exit(4); }
    return found;
}

static long volume(int ranks, const long *low, const long *high) {
    long n = 1;
    for (int r = 0; r < ranks; r++) n *= high[r] > low[r] ? high[r] - low[r] : 0;
    return n;
}

static long offset(const Site *s, const Held *h, const long *at) { /* -1 outside */
    long n = 0;
    for (int r = 0; r < s->ranks; r++) {
        if (at[r] < h->low[r] || at[r] >= h->high[r]) return -1;
        n = n * (h->high[r] - h->low[r]) + at[r] - h->low[r];
    }
    return h->cells ? n : -1;
}

static long flat(const Site *s, const long *at) {
    long n = 0;
    for (int r = 0; r < s->ranks; r++) n = n * s->shape[r] + at[r];
    return n;
}

static int next(int ranks, const long *low, const long *high, long *at) { /* the element after `at` of a box */
    for (int r = ranks - 1; r >= 0; r--) {
        if (++at[r] < high[r]) return 1;
        at[r] = low[r];
    }
    return 0;
}

static int inside(int ranks, const long *low, const long *high, const long *at) {
    for (int r = 0; r < ranks; r++)
        if (at[r] < low[r] || at[r] >= high[r]) return 0;
    return 1;
}

static double both(const Site *s, double a, double b) { return s->maximum ? fmax(a, b) : a + b; }

static int was_seen(Site *s, long lane, const long *at) { /* and is from now on */
    long bit = lane * s->elements + flat(s, at);
    unsigned char *byte = &s->seen[bit >> 3], mask = (unsigned char)(1 << (bit & 7));
    int before = (*byte & mask) != 0;
    *byte |= mask;
    return before;
}

static void hand_up(Site *s, long lane, const long *at, double value, long done, int flags) {
    Site *p = &sites[s->parent];
    Held *h = &p->held[lane / s->inner];
    long n = offset(p, h, at);
    if (n < 0) { failed("a value leaves it that is not in the store above", s); return; }
    if (flags & VALUE) h->value[n] = h->flags[n] & VALUE ? both(s, h->value[n], value) : value;
    h->done[n] = (h->flags[n] & THERE ? h->done[n] : 0) + done;
    h->flags[n] |= THERE | (flags & VALUE);
    if (!(flags & CHANGED)) return;
    h->flags[n] |= CHANGED;
    counters[s->up_read]++;
    if (s->write_first[lane]) counters[s->up_write]++;
    for (int k = 0; k < s->ups; k++) counters[s->up[k].counter] += s->up[k].first[lane];
}

static void leave(Site *s, long lane, const long *at, double value, long done, int flags) {
    if (!(flags & THERE) || !(s->produced || flags & CHANGED)) return;
    if (s->parent >= 0) {
        if (flags & CHANGED || done != s->needed) hand_up(s, lane, at, value, done, flags);
    } else if (done == s->needed) {
        results[s->input][flat(s, at)] = flags & VALUE ? value : 0;
        finished[s->input][flat(s, at)] = 1;
    } else failed("an unfinished value leaves it", s);
}

static void resize(Site *s, Held *h, const long *low, const long *high) { /* cells in both boxes stay */
    long cells = volume(s->ranks, low, high), at[RANKS];
    double *value = room(cells, sizeof *value);
    long *done = room(cells, sizeof *done);
    unsigned char *flags = room(cells, 1);
    if (cells && h->cells) {
        long n = 0;
        memcpy(at, low, sizeof at);
        do {
            long m = offset(s, h, at);
            if (m >= 0) { value[n] = h->value[m]; done[n] = h->done[m]; flags[n] = h->flags[m]; }
            n++;
        } while (next(s->ranks, low, high, at));
    }
    free(h->value); free(h->done); free(h->flags);
    h->value = value; h->done = done; h->flags = flags; h->cells = cells;
    memcpy(h->low, low, sizeof h->low);
    memcpy(h->high, high, sizeof h->high);
}

static void keep(Site *s, long lane, const long *low, const long *high) { /* only what is in a box stays */
    Held *h = &s->held[lane];
    if (!h->cells) return;
    long l[RANKS] = {0}, u[RANKS] = {0}, at[RANKS], n = 0;
    int all = 1;
    for (int r = 0; r < s->ranks; r++) {
        l[r] = low[r] > h->low[r] ? low[r] : h->low[r];
        u[r] = high[r] < h->high[r] ? high[r] : h->high[r];
        if (u[r] <= l[r]) u[r] = l[r];
        all &= l[r] == h->low[r] && u[r] == h->high[r];
    }
    if (all && volume(s->ranks, low, high)) return;
    for (int c = 0; c < s->children; c++) {
        Site *child = &sites[child_of[s->first_child + c]];
        for (long k = 0; k < child->inner; k++) keep(child, lane * child->inner + k, low, high);
    }
    int none = !volume(s->ranks, low, high);
    memcpy(at, h->low, sizeof at);
    do {
        if (none || !inside(s->ranks, l, u, at)) leave(s, lane, at, h->value[n], h->done[n], h->flags[n]);
        n++;
    } while (next(s->ranks, h->low, h->high, at));
    if (none)
        for (int r = 0; r < RANKS; r++) l[r] = u[r] = 0;
    if (none) {
        free(h->value); free(h->done); free(h->flags);
        h->value = NULL; h->done = NULL; h->flags = NULL; h->cells = 0;
    } else resize(s, h, l, u);
}

static void fill(Site *s, long lane, Held *h, long n, const long *at) {
    if (s->parent < 0) {
        if (!s->produced) { h->value[n] = inputs[s->input][flat(s, at)]; h->flags[n] = THERE | VALUE; }
        return;
    }
    Site *p = &sites[s->parent];
    Held *above = &p->held[lane / s->inner];
    long m = offset(p, above, at);
    int there = m >= 0 && above->flags[m] & THERE, complete = there && above->done[m] == s->needed;
    int before = s->produced ? was_seen(s, lane, at) : 1;
    if (!complete && !before) return; /* the first result of a sum: there is nothing to read */
    if (there) {
        h->value[n] = above->value[m];
        h->done[n] = above->done[m];
        h->flags[n] = THERE | (above->flags[m] & VALUE);
        if (!complete) above->flags[m] &= (unsigned char)~(THERE | VALUE);
    }
    if (!complete && !s->produced) failed("it needs a value that is not in the store above", s);
    if (complete || !ONCE) {
        counters[s->fill_write]++;
        if (s->read_first[lane]) counters[s->fill_read]++;
        for (int k = 0; k < s->downs; k++) counters[s->down[k].counter] += s->down[k].first[lane];
    }
}

static void visit(int number, long lane, const long *low, const long *high, long outer) {
    Site *s = &sites[number];
    Held *h = &s->held[lane];
    int known = h->outer == outer;
    long cells = volume(s->ranks, low, high), at[RANKS] = {0}, none[RANKS] = {0}, n = 0;
    h->outer = outer;
    if (known && h->cells && cells && !memcmp(h->low, low, s->ranks * sizeof *low)
        && !memcmp(h->high, high, s->ranks * sizeof *high)) return;
    if (known && cells) keep(s, lane, low, high);
    else keep(s, lane, none, none);
    const Held before = *h; /* what stays is a box; its cells are read no more */
    if (!cells) return;
    resize(s, h, low, high);
    memcpy(at, low, s->ranks * sizeof *low);
    do {
        if (!before.cells || !inside(s->ranks, before.low, before.high, at)) fill(s, lane, h, n, at);
        n++;
    } while (next(s->ranks, low, high, at));
}

static void close_store(int number, long lane) {
    long none[RANKS] = {0};
    keep(&sites[number], lane, none, none);
    sites[number].held[lane].outer = -1;
}

static int grown(int ranks, long *low, long *high, const long *l, const long *h, int some) { /* the hull of boxes */
    for (int r = 0; r < ranks; r++)
        if (l[r] >= h[r]) return some;
    for (int r = 0; r < ranks; r++) {
        low[r] = some ? least(low[r], l[r]) : l[r];
        high[r] = some ? most(high[r], h[r]) : h[r];
    }
    return 1;
}

static int operand(int number, long lane, const long *at, double *value, long *counted) {
    Site *s = &sites[number];
    for (int r = 0; r < s->ranks; r++)
        if (at[r] < 0 || at[r] >= s->shape[r]) return 0; /* padding */
    Held *h = &s->held[lane];
    long n = offset(s, h, at);
    if (counted) ++*counted;
    if (n < 0 || !(h->flags[n] & THERE) || h->done[n] != s->needed) { failed("an operation reads what is not there", s); return 1; }
    *value = h->flags[n] & VALUE ? h->value[n] : 0;
    return 1;
}

/* Adds a value to its element; true if the instance has done so before: then it reads what it wrote. */
static int result(int number, long lane, const long *at, double value, int none, unsigned char *begun, long place,
                  long *back, long *written) {
    Site *s = &sites[number];
    for (int r = 0; r < s->ranks; r++)
        if (at[r] < 0 || at[r] >= s->shape[r]) return -1; /* padding */
    Held *h = &s->held[lane];
    long n = offset(s, h, at), bit = place * s->elements + flat(s, at);
    if (n < 0) { failed("an operation writes outside its tile", s); return -1; }
    unsigned char *byte = &begun[bit >> 3], mask = (unsigned char)(1 << (bit & 7));
    int again = (*byte & mask) != 0;
    *byte |= mask;
    if (again && back) ++*back;
    if (written) ++*written;
    if (!none) h->value[n] = h->flags[n] & VALUE ? both(s, h->value[n], value) : value;
    h->done[n] = (h->flags[n] & THERE ? h->done[n] : 0) + 1;
    h->flags[n] |= (unsigned char)(THERE | CHANGED | (none ? 0 : VALUE));
    return again;
}

static void begin(int given, const long *sizes, int made, const long *lengths, int count) {
    FILE *file = fopen("inputs.bin", "rb");
    for (int i = 0; i < given; i++) {
        inputs[i] = room(sizes[i], sizeof **inputs);
        if (!file || fread(inputs[i], sizeof **inputs, sizes[i], file) != (size_t)sizes[i]) {
            fprintf(stderr, "inputs.bin is missing or too short\n");
            exit(5);
        }
    }
    if (file) fclose(file);
    for (int i = 0; i < made; i++) {
        results[i] = room(lengths[i], sizeof **results);
        finished[i] = room(lengths[i], 1);
    }
    for (int i = 0; i < count; i++) {
        Site *s = &sites[i];
        s->held = room(s->lanes, sizeof *s->held);
        for (long k = 0; k < s->lanes; k++) s->held[k].outer = -1;
        if (s->produced) s->seen = room(s->lanes * s->elements / 8 + 1, 1);
    }
}

static int end(int made, const long *lengths, int moves, int einsums) {
    FILE *file = fopen("results.bin", "wb");
    if (!file) { fprintf(stderr, "results.bin cannot be written\n"); return 5; }
    for (int i = 0; i < made; i++) {
        fwrite(results[i], sizeof **results, lengths[i], file);
        fwrite(finished[i], 1, lengths[i], file);
    }
    if (fclose(file)) { fprintf(stderr, "results.bin cannot be written\n"); return 5; }
    for (int i = 0; i < moves; i++) printf("%ld\n", counters[i]);
    for (int i = 0; i < einsums; i++) printf("%ld\n", operations[i]);
    printf("%ld\n", failures);
    return 0;
}
