/* What every program of a mapping shares: stores that hold boxes of tensors, and the values that move between them.

   A store visits one box after the other. What the new box does not keep leaves, from the inside out: changed values
   go up to the next store of the tensor. What it does not have yet is read from there. Every value that moves is
   counted. A partial sum that is read back leaves the store above, so the parts of an element add up to it, each part
   once. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An element is in the tile; a result or a part of one is there; it has a value; it was changed. */
enum { IN = 1, THERE = 2, VALUE = 4, CHANGED = 8 };

typedef struct { /* what one instance of a store holds: a box, of which `count` elements are in its tile */
    long low[RANKS], high[RANKS], cells, count, outer;
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
    int ranks, produced, maximum, parent, children, first_child, given, made;
    long lanes, inner, needed; /* inner: instances for each instance of the parent's */
    const int *needed_of; /* operations that complete each element, where they are not as many for all */
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

static long offset(const Site *s, const Held *h, const long *at) { /* in the box; -1 outside or not in the tile */
    long n = 0;
    if (!h->cells) return -1;
    for (int r = 0; r < s->ranks; r++) {
        if (at[r] < h->low[r] || at[r] >= h->high[r]) return -1;
        n = n * (h->high[r] - h->low[r]) + at[r] - h->low[r];
    }
    return h->flags[n] & IN ? n : -1;
}

static long place_of(int ranks, const long *shape, const long *at) { /* in row-major order */
    long n = 0;
    for (int r = 0; r < ranks; r++) n = n * shape[r] + at[r];
    return n;
}

static long flat(const Site *s, const long *at) { return place_of(s->ranks, s->shape, at); }

static void at_place(const Site *s, long n, long *at) { /* the element of a site at a place */
    for (int r = s->ranks - 1; r >= 0; r--) {
        at[r] = n % s->shape[r];
        n /= s->shape[r];
    }
}

/* An element of one site as another one of the same tensor has it, which may have it under other ranks. */
static void as_in(const Site *of, const Site *s, const long *at, long *there) {
    if (of == s || (of->ranks == s->ranks && !memcmp(of->shape, s->shape, s->ranks * sizeof *at)))
        memcpy(there, at, s->ranks * sizeof *at);
    else at_place(of, flat(s, at), there);
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

static long needed(const Site *s, const long *at) { return s->needed_of ? s->needed_of[flat(s, at)] : s->needed; }

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
    long up[RANKS];
    as_in(p, s, at, up);
    long n = offset(p, h, up);
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
        if (flags & CHANGED || done != needed(s, at)) hand_up(s, lane, at, value, done, flags);
    } else if (done == needed(s, at)) {
        results[s->made][flat(s, at)] = flags & VALUE ? value : 0;
        finished[s->made][flat(s, at)] = 1;
    } else failed("an unfinished value leaves it", s);
}

static void resize(Site *s, Held *h, const long *low, const long *high) { /* what is in both boxes stays */
    long cells = volume(s->ranks, low, high), at[RANKS] = {0}, n = 0;
    double *value = room(cells, sizeof *value);
    long *done = room(cells, sizeof *done);
    unsigned char *flags = room(cells, 1);
    memcpy(at, low, s->ranks * sizeof *at);
    if (h->count) do {
        long m = offset(s, h, at);
        if (m >= 0) { value[n] = h->value[m]; done[n] = h->done[m]; flags[n] = h->flags[m]; }
        n++;
    } while (next(s->ranks, low, high, at));
    free(h->value); free(h->done); free(h->flags);
    h->value = value; h->done = done; h->flags = flags; h->cells = cells;
    memcpy(h->low, low, s->ranks * sizeof *low);
    memcpy(h->high, high, s->ranks * sizeof *high);
}

/* Of what an instance holds only what is in a box of the site `of` stays; the rest leaves, from the inside out. */
static void keep(const Site *of, const long *low, const long *high, Site *s, long lane) {
    Held *h = &s->held[lane];
    if (!h->count) return;
    for (int c = 0; c < s->children; c++) {
        Site *child = &sites[child_of[s->first_child + c]];
        for (long k = 0; k < child->inner; k++) keep(of, low, high, child, lane * child->inner + k);
    }
    long at[RANKS] = {0}, there[RANKS], n = 0;
    memcpy(at, h->low, s->ranks * sizeof *at);
    do {
        if (h->flags[n] & IN) {
            as_in(of, s, at, there);
            if (!inside(of->ranks, low, high, there)) {
                leave(s, lane, at, h->value[n], h->done[n], h->flags[n]);
                h->flags[n] = 0;
                h->done[n] = 0;
                h->count--;
            }
        }
        n++;
    } while (next(s->ranks, h->low, h->high, at));
    if (!h->count) {
        free(h->value); free(h->done); free(h->flags);
        h->value = NULL; h->done = NULL; h->flags = NULL; h->cells = 0;
    }
}

static void fill(Site *s, long lane, Held *h, long n, const long *at) {
    h->flags[n] = IN;
    h->done[n] = 0;
    h->count++;
    if (s->parent < 0) {
        if (!needed(s, at)) { /* given: nobody writes it */
            h->value[n] = inputs[s->given][flat(s, at)];
            h->flags[n] |= THERE | VALUE;
        }
        return;
    }
    Site *p = &sites[s->parent];
    Held *above = &p->held[lane / s->inner];
    long up[RANKS];
    as_in(p, s, at, up);
    long m = offset(p, above, up);
    int there = m >= 0 && above->flags[m] & THERE, complete = there && above->done[m] == needed(s, at);
    int before = s->produced ? was_seen(s, lane, at) : 1;
    if (!complete && !before) return; /* the first result of a sum: there is nothing to read */
    if (there) {
        h->value[n] = above->value[m];
        h->done[n] = above->done[m];
        h->flags[n] |= THERE | (above->flags[m] & VALUE);
        if (!complete) {
            above->flags[m] &= (unsigned char)~(THERE | VALUE);
            above->done[m] = 0;
        }
    }
    if (!complete && !s->produced) failed("it needs a value that is not in the store above", s);
    if (complete || !ONCE) {
        counters[s->fill_write]++;
        if (s->read_first[lane]) counters[s->fill_read]++;
        for (int k = 0; k < s->downs; k++) counters[s->down[k].counter] += s->down[k].first[lane];
    }
}

static struct { /* the tile that a store is about to take: the hull of what the Einsums below it need */
    Site *site;
    long low[RANKS], high[RANKS];
    unsigned char *marks[RANKS]; /* of a rank that is written with gaps, the positions that are reached */
    int some, work;
} tile;

static void begin_tile(int number) {
    memset(&tile, 0, sizeof tile);
    tile.site = &sites[number];
}

static void reach(const long box[][2]) { /* one Einsum more; per rank from where to where, cut at the shape */
    const Site *s = tile.site;
    tile.work = 1;
    for (int r = 0; r < s->ranks; r++)
        if (most(box[r][0], 0) >= least(box[r][1], s->shape[r])) return;
    for (int r = 0; r < s->ranks; r++) {
        long low = most(box[r][0], 0), high = least(box[r][1], s->shape[r]);
        tile.low[r] = tile.some ? least(tile.low[r], low) : low;
        tile.high[r] = tile.some ? most(tile.high[r], high) : high;
    }
    tile.some = 1;
}

static inline void mark(int rank, long at) {
    if (!tile.marks[rank]) tile.marks[rank] = room(tile.high[rank] - tile.low[rank], 1);
    if (at >= tile.low[rank] && at < tile.high[rank]) tile.marks[rank][at - tile.low[rank]] = 1;
}

static void take(long lane, long outer) { /* what of the last tile is in the new one stays, if `outer` is the same */
    Site *s = tile.site;
    Held *h = &s->held[lane];
    int known = h->outer == outer, same = known && h->count > 0;
    long cells = volume(s->ranks, tile.low, tile.high), at[RANKS] = {0}, none[RANKS] = {0}, n = 0;
    if (!tile.work) return;
    h->outer = outer;
    for (int r = 0; r < s->ranks; r++) same &= h->low[r] == tile.low[r] && h->high[r] == tile.high[r];
    if (!same) {
        if (known && cells) keep(s, tile.low, tile.high, s, lane);
        else keep(s, none, none, s, lane);
    }
    if (!same && cells) {
        resize(s, h, tile.low, tile.high);
        memcpy(at, tile.low, s->ranks * sizeof *at);
        do {
            int wanted = !(h->flags[n] & IN);
            for (int r = 0; r < s->ranks; r++) wanted &= !tile.marks[r] || tile.marks[r][at[r] - tile.low[r]];
            if (wanted) fill(s, lane, h, n, at);
            n++;
        } while (next(s->ranks, tile.low, tile.high, at));
    }
    for (int r = 0; r < s->ranks; r++) free(tile.marks[r]);
}

static void close_store(int number, long lane) {
    long none[RANKS] = {0};
    keep(&sites[number], none, none, &sites[number], lane);
    sites[number].held[lane].outer = -1;
}

static int padding(int ranks, const long *shape, const long *at) {
    for (int r = 0; r < ranks; r++)
        if (at[r] < 0 || at[r] >= shape[r]) return 1;
    return 0;
}

static void read_here(Site *s, long lane, const long *at, double *value, long *counted) {
    Held *h = &s->held[lane];
    long n = offset(s, h, at);
    if (counted) ++*counted;
    if (n < 0 || !(h->flags[n] & THERE) || h->done[n] != needed(s, at))
        failed("an operation reads what is not there", s);
    else if (h->flags[n] & VALUE) *value = h->value[n];
}

static inline int read_value(int number, long lane, const long *at, double *value, long *counted) { /* false: padding */
    Site *s = &sites[number];
    *value = 0;
    if (padding(s->ranks, s->shape, at)) return 0;
    read_here(s, lane, at, value, counted);
    return 1;
}

/* The same of a tensor under ranks of another shape. */
static inline int read_view(int number, long lane, int ranks, const long *shape, const long *at, double *value,
                            long *counted) {
    Site *s = &sites[number];
    long there[RANKS];
    *value = 0;
    if (padding(ranks, shape, at)) return 0;
    at_place(s, place_of(ranks, shape, at), there);
    read_here(s, lane, there, value, counted);
    return 1;
}

/* Adds a value to its element, of which what is there counts `scale` times; true if the instance has done so before:
   then it reads what it wrote. */
static int add(int number, long lane, const long *at, double scale, double value, int none, unsigned char *begun,
               long place, long *back, long *written) {
    Site *s = &sites[number];
    if (padding(s->ranks, s->shape, at)) return -1;
    Held *h = &s->held[lane];
    long n = offset(s, h, at), bit = place * s->elements + flat(s, at);
    if (n < 0) { failed("an operation writes outside its tile", s); return -1; }
    unsigned char *byte = &begun[bit >> 3], mask = (unsigned char)(1 << (bit & 7));
    int again = (*byte & mask) != 0;
    *byte |= mask;
    if (again && back) ++*back;
    if (written) ++*written;
    if (!none) h->value[n] = h->flags[n] & VALUE ? both(s, scale * h->value[n], value) : value;
    h->done[n] = (h->flags[n] & THERE ? h->done[n] : 0) + 1;
    h->flags[n] |= (unsigned char)(THERE | CHANGED | (none ? 0 : VALUE));
    return again;
}

static void begin(int given, const long *sizes, int made, const long *lengths, int count) {
    for (int i = 0; i < given; i++) {
        char name[32];
        sprintf(name, "input%d.bin", i);
        FILE *file = fopen(name, "rb");
        inputs[i] = room(sizes[i], sizeof **inputs);
        if (!file || fread(inputs[i], sizeof **inputs, sizes[i], file) != (size_t)sizes[i]) {
            fprintf(stderr, "%s is missing or too short\n", name);
            exit(5);
        }
        fclose(file);
    }
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
    for (int i = 0; i < moves; i++) printf("%s\t%ld\n", counted_names[i], counters[i]);
    for (int i = 0; i < einsums; i++) printf("%s\toperations\t%ld\n", einsum_names[i], operations[i]);
    printf("values that were not where the tree says\t%ld\n", failures);
    return 0;
}
