/* Words of texts: a table that numbers them, and where a text is cut. Words are kept as UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 1, LETTER = 2, SIGN = 4 }; /* \w; \w but digits and _; what belongs to words beside */
enum { BASIC = 0x10000 };                /* characters whose kind and lower case are looked up */

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FIRST_MARK(marks) (__builtin_clzll(marks) >> 3) /* of 8 bytes, the first that is marked */
#else
#define FIRST_MARK(marks) (__builtin_ctzll(marks) >> 3)
#endif

typedef struct {
    uint64_t hash;
    int64_t start; /* in text */
    int32_t size, characters;
} word_entry;

typedef struct {
    uint32_t hash;
    int32_t number; /* -1: free */
} word_slot;

typedef struct {
    uint8_t *text;
    int64_t used, room;
    word_entry *entries;
    int64_t n_words, entry_room;
    word_slot *slots;
    uint64_t mask; /* number of slots, a power of 2, minus 1 */
} word_table;

typedef struct {
    uint64_t hash;
    int64_t start, end, characters; /* characters: of all words of the text up to its end, without spaces */
} text_token;

typedef struct {
    const word_table *left_out; /* words that are no tokens */
    word_table *words;
    uint64_t seed;
    int32_t start, body; /* kinds of the first character of a word, and of the others: at least one */
    int32_t lower, learn;
    int64_t least, most, longest; /* n-grams; characters of a word that is learned, 0: any number */
    uint8_t kinds[BASIC];
    uint8_t *text; /* words of one text in their order, each with a space behind it */
    uint8_t *small, *inside; /* of a text of ASCII: small letters, and which characters are of words */
    text_token *tokens;
    int64_t room, n_tokens;
    int32_t *numbers;
    int64_t n_numbers, number_room;
    int64_t *sizes;
    int64_t n_sizes, size_room;
} text_reader;

static uint8_t basic_kinds[BASIC];
static uint16_t basic_lower[BASIC];

static int32_t find_kind(uint32_t c) { /* as `re` has it */
    if (!Py_UNICODE_ISALNUM(c)) return c == '_' ? WORD : 0;
    return Py_UNICODE_ISDECIMAL(c) ? WORD : WORD | LETTER;
}

static void fill_basic(void) {
    for (uint32_t c = 0; c < BASIC; c++) {
        basic_kinds[c] = (uint8_t)find_kind(c);
        basic_lower[c] = (uint16_t)Py_UNICODE_TOLOWER(c);
    }
}

/* Make room for n items of a size; 0 if there is none. */
static int grown(void **items, int64_t *room, int64_t n, size_t size) {
    if (n <= *room) return 1;
    const int64_t wanted = n + n / 2 + 64;
    void *found = realloc(*items, (size_t)wanted * size);
    if (!found) return 0;
    *items = found, *room = wanted;
    return 1;
}

/* The first 8 bytes of a word, as a number, without what is behind its end. */
static inline uint64_t head_of(const uint8_t *word, int64_t size) {
    uint64_t head;
    memcpy(&head, word, 8);
    const int behind = size < 8 ? 64 - 8 * (int)size : 0;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return head >> behind;
#else
    return head << behind;
#endif
}

/* A hash of a word behind which 8 bytes can be read. Results do not depend on it. */
static inline uint64_t hash_of(const uint8_t *word, int64_t size, uint64_t seed) {
    uint64_t hash = seed ^ (uint64_t)size;
    for (; size > 0; size -= 8, word += 8) {
        const unsigned __int128 product = (unsigned __int128)(hash ^ head_of(word, size)) * 0x9e3779b97f4a7c15u;
        hash = (uint64_t)product ^ (uint64_t)(product >> 64) ^ seed;
    }
    return hash ^ hash >> 29;
}

/* Whether two words are equal, behind each of which 8 bytes can be read. */
static inline int same(const uint8_t *a, const uint8_t *b, int64_t size) {
    uint64_t first, second;
    for (; size > 8; size -= 8, a += 8, b += 8) {
        memcpy(&first, a, 8), memcpy(&second, b, 8);
        if (first != second) return 0;
    }
    return head_of(a, size) == head_of(b, size);
}

/* The place of a word, or of the free slot where it would be. */
static inline word_slot *slot_of(const word_table *table, const uint8_t *word, int64_t size, uint64_t hash) {
    for (uint64_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        word_slot *slot = table->slots + i;
        if (slot->number < 0) return slot;
        if (slot->hash != (uint32_t)(hash >> 32)) continue;
        const word_entry *entry = table->entries + slot->number;
        if (entry->size == size && same(table->text + entry->start, word, size)) return slot;
    }
}

static int resize_slots(word_table *table, uint64_t n_slots) {
    word_slot *slots = malloc(n_slots * sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xff, n_slots * sizeof *slots);
    free(table->slots);
    table->slots = slots, table->mask = n_slots - 1;
    for (int64_t j = 0; j < table->n_words; j++) {
        const uint64_t hash = table->entries[j].hash;
        uint64_t i = hash & table->mask;
        while (slots[i].number >= 0) i = (i + 1) & table->mask;
        slots[i].hash = (uint32_t)(hash >> 32), slots[i].number = (int32_t)j;
    }
    return 1;
}

/* The number of a word, which is entered if it is new; -1 without memory. */
static int32_t number_of(word_table *table, const uint8_t *word, int64_t size, int64_t characters, uint64_t hash) {
    word_slot *slot = slot_of(table, word, size, hash);
    if (slot->number >= 0) return slot->number;
    const int64_t n = table->n_words;
    if (n >= INT32_MAX || size >= INT32_MAX || !grown((void **)&table->text, &table->room, table->used + size + 8, 1) ||
        !grown((void **)&table->entries, &table->entry_room, n + 1, sizeof(word_entry)))
        return -1;
    memcpy(table->text + table->used, word, (size_t)size);
    table->entries[n] = (word_entry){hash, table->used, (int32_t)size, (int32_t)characters};
    table->used += size, table->n_words++;
    slot->hash = (uint32_t)(hash >> 32), slot->number = (int32_t)n;
    if (2 * (uint64_t)table->n_words > table->mask && !resize_slots(table, 2 * (table->mask + 1))) return -1;
    return (int32_t)n;
}

static inline uint8_t *write_utf8(uint8_t *out, uint32_t c) {
    if (c < 0x80) {
        *out++ = (uint8_t)c;
        return out;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *out++ = (uint8_t)((0xff00 >> (more + 1)) | (c >> 6 * more));
    for (int i = more - 1; i >= 0; i--) *out++ = (uint8_t)(0x80 | (c >> 6 * i & 0x3f));
    return out;
}

static inline uint32_t character(const text_reader *r, const void *data, int width, int64_t i, int32_t *kind) {
    uint32_t c = width == 1 ? ((const uint8_t *)data)[i] : width == 2 ? ((const uint16_t *)data)[i] : ((const uint32_t *)data)[i];
    if (width < 4 || c < BASIC) {
        c = r->lower ? basic_lower[c] : c;
        *kind = r->kinds[c];
    } else {
        c = r->lower ? Py_UNICODE_TOLOWER(c) : c;
        *kind = c < BASIC ? r->kinds[c] : find_kind(c);
    }
    return c;
}

/* Take a word as the next token, unless it is left out, and return where the next one is to be written. */
static inline uint8_t *keep(text_reader *r, uint8_t *word, uint8_t *end, int64_t characters) {
    const uint64_t hash = hash_of(word, end - word, r->seed);
    if (r->left_out->n_words && slot_of(r->left_out, word, end - word, hash)->number >= 0) return word;
    __builtin_prefetch(r->words->slots + (hash & r->words->mask));
    characters += r->n_tokens ? r->tokens[r->n_tokens - 1].characters : 0;
    r->tokens[r->n_tokens++] = (text_token){hash, word - r->text, end - r->text, characters};
    *end = ' ';
    return end + 1;
}

/* Cut a text of characters of a width: the words of `\b[start][body]+`, but those that are left out. */
static inline void cut_characters(text_reader *r, const void *data, int width, int64_t length) {
    uint8_t *out = r->text;
    int64_t i = 0;
    int32_t before = 0, kind;
    while (i < length) {
        const int64_t first = i;
        uint32_t c = character(r, data, width, i++, &kind);
        const int starts = (kind & r->start) && !before;
        before = kind & WORD;
        if (!starts) continue;
        uint8_t *end = write_utf8(out, c);
        while (i < length) {
            c = character(r, data, width, i, &kind);
            if (!(kind & r->body)) break;
            end = write_utf8(end, c), i++;
        }
        if (i - first < 2) continue;
        before = 0; /* what follows is no part of a word */
        out = keep(r, out, end, i - first);
    }
}

/* The same for a text of ASCII, whose words are runs of characters that begin with a letter, in vectors. */
static void cut_ascii(text_reader *r, const uint8_t *data, int64_t length) {
    uint8_t *restrict small = r->small, *restrict inside = r->inside, *out = r->text;
    const uint8_t lower = r->lower != 0;
    for (int64_t i = 0; i < length; i++) {
        const uint8_t c = data[i], folded = c | 32;
        const uint8_t letter = (uint8_t)(folded - 'a') < 26;
        small[i] = letter & lower ? folded : c;
        inside[i] = (letter | ((uint8_t)(c - '0') < 10) | (c == '_')) << 7;
    }
    memset(inside + length, 0, 8);
    for (int64_t i = 0; i < length;) {
        uint64_t marks;
        memcpy(&marks, inside + i, 8);
        if (!marks) {
            i += 8;
            continue;
        }
        i += FIRST_MARK(marks);
        int64_t end = i;
        for (;; end += 8) {
            memcpy(&marks, inside + end, 8);
            marks = ~marks & 0x8080808080808080u;
            if (marks) break;
        }
        end += FIRST_MARK(marks);
        if (end - i > 1 && r->kinds[small[i]] & r->start) {
            for (int64_t j = 0; j < end - i; j += 8) memcpy(out + j, small + i + j, 8);
            out = keep(r, out, out + (end - i), end - i);
        }
        i = end + 1;
    }
}

/* Append the numbers of a text's n-grams, the shortest first, in their order; 0 without memory. */
static int read_text(text_reader *r, const void *data, int width, int64_t length) {
    const int64_t wanted = 5 * length + 16;
    if (wanted > r->room) {
        free(r->text), free(r->small), free(r->tokens);
        r->text = calloc((size_t)wanted, 1), r->small = calloc((size_t)(2 * length + 32), 1);
        r->tokens = malloc((size_t)(length / 2 + 1) * sizeof(text_token));
        r->room = r->text && r->small && r->tokens ? wanted : 0;
        if (!r->room) return 0;
        r->inside = r->small + length + 16;
    }
    r->n_tokens = 0;
    if (width == 0) cut_ascii(r, data, length);
    else if (width == 1) cut_characters(r, data, 1, length);
    else if (width == 2) cut_characters(r, data, 2, length);
    else cut_characters(r, data, 4, length);
    const int64_t before = r->n_numbers;
    for (int64_t n = r->least; n <= r->most && n <= r->n_tokens; n++) {
        if (!grown((void **)&r->numbers, &r->number_room, r->n_numbers + r->n_tokens, sizeof(int32_t))) return 0;
        for (int64_t i = 0; i + n <= r->n_tokens; i++) {
            const text_token *first = r->tokens + i, *last = first + n - 1;
            const uint8_t *word = r->text + first->start;
            const int64_t size = last->end - first->start;
            const int64_t characters = last->characters - (i ? first[-1].characters : 0) + n - 1;
            const uint64_t hash = n == 1 ? first->hash : hash_of(word, size, r->seed);
            int32_t number;
            if (!r->learn) {
                number = slot_of(r->words, word, size, hash)->number;
                if (number < 0) continue;
            } else {
                if (r->longest && characters > r->longest) continue;
                number = number_of(r->words, word, size, characters, hash);
                if (number < 0) return 0;
            }
            r->numbers[r->n_numbers++] = number;
        }
    }
    if (!grown((void **)&r->sizes, &r->size_room, r->n_sizes + 1, sizeof(int64_t))) return 0;
    r->sizes[r->n_sizes++] = r->n_numbers - before;
    return 1;
}

/* Count the words of texts, which have `columns` (null: those of their numbers; negative: none): the start of each text,
 * its different columns, ascending, and how often each comes. Returns how many these are. All is passed over column by
 * column, so that nothing need be sorted. Room: `heads` for the columns and 1, `next` for the texts, `texts`, `found`
 * and `counts` for the tokens. */
static int64_t tally_texts(const int32_t *numbers, const int64_t *sizes, const int32_t *columns, int64_t n_texts,
                           int64_t n_columns, int64_t *heads, int32_t *texts, int64_t *next, int64_t *start,
                           int32_t *found, int32_t *counts) {
    int64_t at = 0, used = 0;
    for (int64_t i = 0; i < n_texts; i++) {
        next[i] = at;
        for (const int64_t end = at + sizes[i]; at < end; at++) {
            const int32_t j = columns ? columns[numbers[at]] : numbers[at];
            if (j >= 0) heads[j + 1]++;
        }
    }
    for (int64_t j = 0; j < n_columns; j++) heads[j + 1] += heads[j];
    at = 0;
    for (int64_t i = 0; i < n_texts; i++)
        for (const int64_t end = at + sizes[i]; at < end; at++) {
            const int32_t j = columns ? columns[numbers[at]] : numbers[at];
            if (j >= 0) texts[heads[j]++] = (int32_t)i;
        }
    for (int64_t j = 0, e = 0; j < n_columns; j++)
        for (; e < heads[j]; e++) found[next[texts[e]]++] = (int32_t)j;
    at = 0;
    for (int64_t i = 0; i < n_texts; i++) {
        start[i] = used;
        for (int64_t e = at; e < next[i]; e++) {
            if (used > start[i] && found[used - 1] == found[e]) counts[used - 1]++;
            else found[used] = found[e], counts[used++] = 1;
        }
        at += sizes[i];
    }
    start[n_texts] = used;
    return used;
}
