"""Words of texts as numbers: cutting, looking up and counting. It gives the GIL away, and holds no text."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

__all__ = ["TextReader", "Words", "tally"]

cdef extern from *:  # Python.h
    int PyUnicode_KIND(object text)
    int PyUnicode_IS_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef extern from "words.h" nogil:
    enum:
        LETTER
        SIGN
        WORD
    ctypedef struct word_entry:
        uint64_t hash
        int64_t start
        int32_t size
        int32_t characters
    ctypedef struct word_table:
        uint8_t *text
        word_entry *entries
        int64_t n_words
        void *slots
    ctypedef struct text_reader:
        const word_table *left_out
        word_table *words
        uint64_t seed
        int32_t start
        int32_t body
        int32_t lower
        int32_t learn
        int64_t least
        int64_t most
        int64_t longest
        uint8_t kinds[0]
        uint8_t *text
        uint8_t *small
        void *tokens
        int32_t *numbers
        int64_t n_numbers
        int64_t *sizes
        int64_t n_sizes
    uint8_t basic_kinds[0]
    void fill_basic()
    uint64_t hash_of(const uint8_t *word, int64_t size, uint64_t seed)
    int resize_slots(word_table *table, uint64_t n_slots)
    int32_t number_of(word_table *table, const uint8_t *word, int64_t size, int64_t characters, uint64_t hash)
    int read_text(text_reader *reader, const void *data, int width, int64_t length)
    int64_t tally_texts(
        const int32_t *numbers, const int64_t *sizes, const int32_t *columns, int64_t n_texts, int64_t n_columns,
        int64_t *heads, int32_t *texts, int64_t *next, int64_t *start, int32_t *found, int32_t *counts)

cdef inline int width_of(object text) except -1:
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str; got {type(text).__name__}")
    return 0 if PyUnicode_IS_ASCII(text) else PyUnicode_KIND(text)


cdef enum:
    FIRST_SLOTS = 4096

cdef uint64_t SEED = <uint64_t>hash("words") | 1  # of this process: nobody can write texts whose words collide
fill_basic()


cdef class Words:
    """Different words, numbered in the order in which they came."""

    cdef word_table table

    def __cinit__(self, words=()):
        cdef bytes encoded
        memset(&self.table, 0, sizeof(self.table))
        if not resize_slots(&self.table, FIRST_SLOTS):
            raise MemoryError
        for word in words:
            encoded = word.encode("utf-8", "surrogatepass") + bytes(8)
            self._add(encoded, len(encoded) - 8, len(word), hash_of(encoded, len(encoded) - 8, SEED))

    def __dealloc__(self):
        free(self.table.text)
        free(self.table.entries)
        free(self.table.slots)

    cdef int32_t _add(self, const uint8_t *word, int64_t size, int64_t characters, uint64_t hash) except -1:
        cdef int32_t number = number_of(&self.table, word, size, characters, hash)
        if number < 0:
            raise MemoryError
        return number

    def __len__(self):
        return self.table.n_words

    def names(self):
        """All words.

        Equivalent to: ``list(numbers)``, of a dict from words to numbers
        """
        cdef word_entry *entries = self.table.entries
        cdef int64_t i
        return [
            (<const char *>self.table.text)[entries[i].start : entries[i].start + entries[i].size].decode("utf-8", "surrogatepass")
            for i in range(self.table.n_words)
        ]

    def merge(self, Words other):
        """Enter the words of others, and return their numbers here, of shape (n_words,).

        Equivalent to: ``np.array([numbers.setdefault(word, len(numbers)) for word in other.names()])``
        """
        cdef word_entry *entry
        cdef int64_t i, n = other.table.n_words
        found = np.empty(n, np.int32)
        cdef int32_t[::1] out = found
        for i in range(n):
            entry = &other.table.entries[i]
            out[i] = self._add(other.table.text + entry.start, entry.size, entry.characters, entry.hash)
        return found


cdef class TextReader:
    """Cuts texts into words of two characters or more, and appends the numbers of each text's words.

    The first character of a word is a letter or, with `digits`, any of `\\w`; the others are of `\\w` and `signs`. Words
    that are `left_out` are none. With `learn`, new words of at most `longest` characters (0: any) are entered; else
    words without a number are passed over. `lower` is for texts whose characters have one small letter each.
    """

    cdef Words words, left_out
    cdef text_reader *state

    def __cinit__(
        self, Words words, Words left_out, *, signs=(), bint digits=False, bint lower=True, int64_t least=1,
        int64_t most=1, bint learn=True, int64_t longest=0,
    ):
        cdef int64_t first, last, c
        self.words, self.left_out = words, left_out
        self.state = <text_reader *>malloc(sizeof(text_reader))
        if self.state == NULL:
            raise MemoryError
        memset(self.state, 0, sizeof(text_reader))
        memcpy(self.state.kinds, basic_kinds, sizeof(self.state.kinds))
        for first, last in signs:
            for c in range(first, last + 1):
                self.state.kinds[c] |= SIGN
        self.state.left_out, self.state.words, self.state.seed = &left_out.table, &words.table, SEED
        self.state.start, self.state.body = WORD if digits else LETTER, WORD | SIGN
        self.state.lower, self.state.learn = lower, learn
        self.state.least, self.state.most, self.state.longest = least, most, longest

    def __dealloc__(self):
        if self.state != NULL:
            free(self.state.text)
            free(self.state.small)
            free(self.state.tokens)
            free(self.state.numbers)
            free(self.state.sizes)
            free(self.state)

    def read(self, tuple texts):
        """Append the numbers of the words of texts; several texts are read without the GIL.

        Equivalent to, for each text::

            words = [word for word in re.findall(pattern, text.lower()) if word not in left_out]
            numbers += [numbers_of[word] for word in words]
            sizes.append(len(words))
        """
        cdef Py_ssize_t n = len(texts)
        cdef int width, good
        if n == 1:
            width = width_of(texts[0])
            good = read_text(self.state, PyUnicode_DATA(texts[0]), width, PyUnicode_GET_LENGTH(texts[0]))
        else:
            good = self._read_all(texts, n)
        if not good:
            raise MemoryError

    cdef int _read_all(self, tuple texts, Py_ssize_t n) except -1:
        cdef uint64_t[::1] data = np.empty(n, np.uint64)
        cdef int64_t[::1] lengths = np.empty(n, np.int64)
        cdef int32_t[::1] widths = np.empty(n, np.int32)
        cdef Py_ssize_t i
        cdef int good = 1
        for i in range(n):
            widths[i] = width_of(texts[i])
            data[i], lengths[i] = <uint64_t>PyUnicode_DATA(texts[i]), PyUnicode_GET_LENGTH(texts[i])
        with nogil:
            for i in range(n):
                good = good and read_text(self.state, <void *>data[i], widths[i], lengths[i])
        return good

    def take(self):
        """Return the numbers of all words since the last call, of shape (n_tokens,), and how many each text has.

        Equivalent to: ``np.array(numbers, np.int32), np.array(sizes)``
        """
        numbers, sizes = np.empty(self.state.n_numbers, np.int32), np.empty(self.state.n_sizes, np.int64)
        cdef int32_t[::1] to_numbers = numbers
        cdef int64_t[::1] to_sizes = sizes
        if self.state.n_numbers:
            memcpy(&to_numbers[0], self.state.numbers, self.state.n_numbers * sizeof(int32_t))
        if self.state.n_sizes:
            memcpy(&to_sizes[0], self.state.sizes, self.state.n_sizes * sizeof(int64_t))
        self.state.n_numbers = self.state.n_sizes = 0
        return numbers, sizes


def tally(
    const int32_t[::1] numbers, const int64_t[::1] sizes, int64_t n_columns, const int32_t[::1] columns=None,
):
    """Count the words of texts: the start of each text, its different columns, ascending, and how often each comes.

    Columns are the numbers or, with `columns`, what these have for them; words of a negative column are left out.

    Equivalent to, for each text: ``np.unique(columns[numbers], return_counts=True)``, without negative ones
    """
    cdef int64_t used, n = sizes.shape[0], n_tokens = numbers.shape[0]
    starts, found, counts = np.zeros(n + 1, np.int64), np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32)
    if not n_tokens:
        return starts, found, counts
    cdef int64_t[::1] heads = np.zeros(n_columns + 1, np.int64), next_place = np.empty(n, np.int64), start = starts
    cdef int32_t[::1] texts = np.empty(n_tokens, np.int32), out = found, count = counts
    cdef const int32_t *named = &columns[0] if columns is not None else NULL
    with nogil:
        used = tally_texts(
            &numbers[0], &sizes[0], named, n, n_columns, &heads[0], &texts[0], &next_place[0], &start[0], &out[0], &count[0])
    return starts, found[:used].copy(), counts[:used].copy()
