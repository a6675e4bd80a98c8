/* Runs the programs of forewarn.messages.plan over serialized messages.
 *
 * A program is checked once, when it is loaded. While it runs, every access to the message is
 * checked against its size, and no memory is taken for elements that are not there. What the steps
 * mean: plan.py. tests/cdr_interpreter.py does the same in Python and is the oracle. Why C:
 * docs/design/decisions.md.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Of the words of a program; decoder.py takes no module with another one. */
enum { FORMAT = 2 };
enum { FIXED = 1, TEXT = 2, REPEAT = 3 };
enum { FIXED_HEAD = 10, READ_WORDS = 10, TEXT_WORDS = 3, REPEAT_HEAD = 7 };
enum { MAX_DEPTH = 200, HEADER = 4 };
/* What may be left over at the end; SLACK more for each empty sequence and wide text, for which
 * rmw_serialize counts an alignment or a terminator that it does not write. */
enum { PADDING = 3, SLACK = 8 };
/* No part is larger (layout.py): sums of two extents must not overflow. */
static const int64_t HUGE_PART = (int64_t)1 << 40;

/* Kinds of columns, and the formats of plan.CODES with the kind that each fills. */
enum { F8, I8, U8, BOOL, STR };
enum { C_BOOL, C_I1, C_U1, C_I2, C_U2, C_I4, C_U4, C_I8, C_U8, C_F4, C_F8, CODES };
static const char KIND_OF[CODES] = {BOOL, I8, I8, I8, I8, I8, I8, I8, U8, F8, F8};

typedef struct {
    char kind;
    char scalar;
    size_t used, room; /* bytes */
    uint8_t *bytes;    /* numbers; `small` until there are more than one */
    PyObject *texts;   /* list of str, for STR */
    uint64_t small;
} Slot;

typedef struct {
    const uint8_t *data; /* after the encapsulation header */
    int64_t size, at, padding;
    int swap;
    Slot *slots;
} Walk;

static int fail_short(const Walk *walk, int64_t needed)
{
    PyErr_Format(PyExc_ValueError, "it ends at byte %lld, where at least %lld more are needed",
                 (long long)(walk->size + HEADER), (long long)(needed - (walk->size - walk->at)));
    return -1;
}

static int fail_count(const Walk *walk, int64_t count)
{
    PyErr_Format(PyExc_ValueError, "%lld elements at byte %lld do not fit in its %lld bytes",
                 (long long)count, (long long)(walk->at + HEADER), (long long)(walk->size + HEADER));
    return -1;
}

/* ---- columns ---- */

static uint8_t *grow(Slot *slot, uint64_t bytes_more)
{
    if (bytes_more > (uint64_t)PY_SSIZE_T_MAX / 2 - slot->used) {
        PyErr_NoMemory();
        return NULL;
    }
    size_t more = (size_t)bytes_more;
    if (more > slot->room - slot->used) {
        size_t room = slot->room * 2;
        if (room < slot->used + more)
            room = slot->used + more;
        uint8_t *bytes = slot->bytes == (uint8_t *)&slot->small ? NULL : slot->bytes;
        uint8_t *grown = PyMem_Realloc(bytes, room);
        if (grown == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        if (bytes == NULL)
            memcpy(grown, &slot->small, slot->used);
        slot->bytes = grown;
        slot->room = room;
    }
    uint8_t *end = slot->bytes + slot->used;
    slot->used += more;
    return end;
}

static uint16_t swap16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }
static uint32_t swap32(uint32_t v)
{
    return v << 24 | (v << 8 & 0xff0000u) | (v >> 8 & 0xff00u) | v >> 24;
}
static uint64_t swap64(uint64_t v)
{
    return (uint64_t)swap32((uint32_t)v) << 32 | swap32((uint32_t)(v >> 32));
}
static uint8_t swap8(uint8_t v) { return v; }

#define GATHER(RAW, SWAP, TYPE, OUT)                         \
    for (int64_t i = 0; i < count; i++, from += stride) {    \
        RAW raw;                                             \
        TYPE value;                                          \
        memcpy(&raw, from, sizeof raw);                      \
        if (swap)                                            \
            raw = SWAP(raw);                                 \
        memcpy(&value, &raw, sizeof value);                  \
        OUT out = (OUT)value;                                \
        memcpy(to + (size_t)i * sizeof out, &out, sizeof out); \
    }                                                        \
    break;

static int gather(Slot *slot, int code, const uint8_t *from, int64_t stride, int64_t count, int swap)
{
    uint8_t *to = grow(slot, (uint64_t)count * (slot->kind == BOOL ? 1 : 8));
    if (to == NULL)
        return -1;
    switch (code) {
    case C_BOOL:
        for (int64_t i = 0; i < count; i++, from += stride)
            to[i] = *from != 0;
        break;
    case C_I1: GATHER(uint8_t, swap8, int8_t, int64_t)
    case C_U1: GATHER(uint8_t, swap8, uint8_t, int64_t)
    case C_I2: GATHER(uint16_t, swap16, int16_t, int64_t)
    case C_U2: GATHER(uint16_t, swap16, uint16_t, int64_t)
    case C_I4: GATHER(uint32_t, swap32, int32_t, int64_t)
    case C_U4: GATHER(uint32_t, swap32, uint32_t, int64_t)
    case C_I8: GATHER(uint64_t, swap64, int64_t, int64_t)
    case C_U8: GATHER(uint64_t, swap64, uint64_t, uint64_t)
    case C_F4: GATHER(uint32_t, swap32, float, double)
    case C_F8: GATHER(uint64_t, swap64, double, double)
    }
    return 0;
}

static int add_count(Walk *walk, int64_t slot, int64_t count)
{
    if (slot < 0)
        return 0;
    uint8_t *to = grow(&walk->slots[slot], sizeof count);
    if (to == NULL)
        return -1;
    memcpy(to, &count, sizeof count);
    return 0;
}

static int add_text(Walk *walk, int64_t slot, PyObject *text)
{
    if (text == NULL)
        return -1;
    int failed = PyList_Append(walk->slots[slot].texts, text);
    Py_DECREF(text);
    return failed;
}

/* ---- steps ---- */

static int read_u32(Walk *walk, uint32_t *value)
{
    int64_t at = (walk->at + 3) & ~(int64_t)3;
    if (at > walk->size || walk->size - at < 4)
        return fail_short(walk, at + 4 - walk->at);
    memcpy(value, walk->data + at, 4);
    if (walk->swap)
        *value = swap32(*value);
    walk->at = at + 4;
    return 0;
}

/* Whether parts in a row, the first at `phase`, all look like the first. */
static int steady(const int64_t *op, int phase)
{
    const int64_t *extents = op + 2, *reads = op + FIXED_HEAD;
    int next = phase;
    for (int round = 0; round < 8; round++) {
        next = (int)((next + extents[next]) & 7);
        if (extents[next] != extents[phase])
            return 0;
        for (int64_t r = 0; r < op[1]; r++)
            if (reads[r * READ_WORDS + 2 + next] != reads[r * READ_WORDS + 2 + phase])
                return 0;
    }
    return 1;
}

static int run_fixed(Walk *walk, const int64_t *op, int64_t count)
{
    while (count > 0) {
        int phase = (int)(walk->at & 7);
        int64_t extent = op[2 + phase], left = walk->size - walk->at;
        int64_t now = count > 1 && steady(op, phase) ? count : 1;
        if (extent > left || now > left / extent)
            return fail_short(walk, extent > left ? extent : extent * (left / extent + 1));
        const int64_t *read = op + FIXED_HEAD;
        for (int64_t r = 0; r < op[1]; r++, read += READ_WORDS)
            if (gather(&walk->slots[read[0]], (int)read[1], walk->data + walk->at + read[2 + phase],
                       extent, now, walk->swap) < 0)
                return -1;
        walk->at += extent * now;
        count -= now;
    }
    return 0;
}

static PyObject *wide_text(const Walk *walk, uint32_t length)
{
    uint16_t *units = PyMem_Malloc((size_t)length * 2 + 2);
    if (units == NULL)
        return PyErr_NoMemory();
    PyObject *text = NULL;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t unit;
        memcpy(&unit, walk->data + walk->at + (int64_t)i * 4, 4);
        if (walk->swap)
            unit = swap32(unit);
        if (unit > 0xffff) {
            PyErr_Format(PyExc_ValueError, "no UTF-16 text at byte %lld",
                         (long long)(walk->at + HEADER));
            goto done;
        }
        units[i] = (uint16_t)unit;
    }
    int order = PY_BIG_ENDIAN ? 1 : -1;
    text = PyUnicode_DecodeUTF16((const char *)units, (Py_ssize_t)length * 2, NULL, &order);
done:
    PyMem_Free(units);
    return text;
}

static int run_text(Walk *walk, const int64_t *op)
{
    uint32_t length;
    if (read_u32(walk, &length) < 0)
        return -1;
    int64_t bytes = (int64_t)length * (op[2] ? 4 : 1);
    if (bytes > walk->size - walk->at)
        return fail_count(walk, length);
    const uint8_t *start = walk->data + walk->at;
    if (op[2]) {
        walk->padding += SLACK;
        if (op[1] >= 0 && add_text(walk, op[1], wide_text(walk, length)) < 0)
            return -1;
    } else {
        if (length > 0 && start[length - 1] != 0) {
            PyErr_Format(PyExc_ValueError, "the text at byte %lld does not end in a zero",
                         (long long)(walk->at + HEADER));
            return -1;
        }
        Py_ssize_t characters = length > 0 ? (Py_ssize_t)length - 1 : 0;
        if (op[1] >= 0 &&
            add_text(walk, op[1], PyUnicode_DecodeUTF8((const char *)start, characters, NULL)) < 0)
            return -1;
    }
    walk->at += bytes;
    return 0;
}

static int run(Walk *walk, const int64_t *op, const int64_t *end);

static int run_times(Walk *walk, const int64_t *op, int64_t words, int64_t count)
{
    if (words > 0 && op[0] == FIXED && words == FIXED_HEAD + op[1] * READ_WORDS)
        return run_fixed(walk, op, count);
    for (int64_t i = 0; i < count; i++)
        if (run(walk, op, op + words) < 0)
            return -1;
    return 0;
}

static int run_repeat(Walk *walk, const int64_t *op)
{
    int64_t count = op[1], first;
    if (count < 0) {
        uint32_t given;
        if (read_u32(walk, &given) < 0)
            return -1;
        count = given;
        if (count == 0)
            walk->padding += SLACK;
    }
    if (count > (walk->size - walk->at) / op[4])
        return fail_count(walk, count);
    if (add_count(walk, op[2], count) < 0)
        return -1;
    first = count < op[3] ? count : op[3];
    if (run_times(walk, op + REPEAT_HEAD, op[5], first) < 0)
        return -1;
    return run_times(walk, op + REPEAT_HEAD + op[5], op[6], count - first);
}

static int run(Walk *walk, const int64_t *op, const int64_t *end)
{
    while (op < end) {
        switch (*op) {
        case FIXED:
            if (run_fixed(walk, op, 1) < 0)
                return -1;
            op += FIXED_HEAD + op[1] * READ_WORDS;
            break;
        case TEXT:
            if (run_text(walk, op) < 0)
                return -1;
            op += TEXT_WORDS;
            break;
        default:
            if (run_repeat(walk, op) < 0)
                return -1;
            op += REPEAT_HEAD + op[5] + op[6];
        }
    }
    return 0;
}

/* ---- the type Program ---- */

typedef struct {
    PyObject_HEAD
    int64_t *words;
    int64_t length;
    char *kinds; /* two for each slot: kind, scalar */
    Py_ssize_t slots;
} Program;

static int has_slot(const Program *program, int64_t slot, int kind)
{
    return slot >= 0 && slot < program->slots && program->kinds[slot * 2] == kind;
}

static int check_fixed(const Program *program, const int64_t *op, int64_t left)
{
    if (left < FIXED_HEAD || op[1] < 0 || op[1] > (left - FIXED_HEAD) / READ_WORDS)
        return -1;
    for (int phase = 0; phase < 8; phase++)
        if (op[2 + phase] < 1 || op[2 + phase] > HUGE_PART)
            return -1;
    const int64_t *read = op + FIXED_HEAD;
    for (int64_t r = 0; r < op[1]; r++, read += READ_WORDS) {
        static const int sizes[CODES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
        if (read[1] < 0 || read[1] >= CODES || !has_slot(program, read[0], KIND_OF[read[1]]))
            return -1;
        for (int phase = 0; phase < 8; phase++)
            if (read[2 + phase] < 0 || read[2 + phase] > op[2 + phase] - sizes[read[1]])
                return -1;
    }
    return 0;
}

/* Check that a program stays within its own words and slots; return -1 if it does not. */
static int check(const Program *program, const int64_t *op, const int64_t *end, int depth)
{
    if (depth > MAX_DEPTH)
        return -1;
    while (op < end) {
        int64_t left = end - op;
        if (*op == FIXED) {
            if (check_fixed(program, op, left) < 0)
                return -1;
            op += FIXED_HEAD + op[1] * READ_WORDS;
        } else if (*op == TEXT) {
            if (left < TEXT_WORDS || (op[1] >= 0 && !has_slot(program, op[1], STR)))
                return -1;
            op += TEXT_WORDS;
        } else {
            if (*op != REPEAT || left < REPEAT_HEAD || op[4] < 1 || op[3] < 0 || op[5] < 0 ||
                op[6] < 0 || op[5] > left - REPEAT_HEAD || op[6] > left - REPEAT_HEAD - op[5] ||
                (op[2] >= 0 && !has_slot(program, op[2], I8)))
                return -1;
            const int64_t *body = op + REPEAT_HEAD, *skip = body + op[5];
            if (check(program, body, skip, depth + 1) < 0 ||
                check(program, skip, skip + op[6], depth + 1) < 0)
                return -1;
            op = skip + op[6];
        }
    }
    return 0;
}

static void Program_dealloc(Program *self)
{
    PyMem_Free(self->words);
    PyMem_Free(self->kinds);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_Free(self);
    Py_DECREF(type); /* which an instance of a heap type holds */
}

static PyObject *Program_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *words, *kinds;
    Py_ssize_t length, slots;
    static char *names[] = {"words", "kinds", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "y#y#", names, &words, &length, &kinds, &slots))
        return NULL;
    Program *self = (Program *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->words = PyMem_Malloc(length > 0 ? (size_t)length : 1);
    self->kinds = PyMem_Malloc(slots > 0 ? (size_t)slots : 1);
    if (self->words == NULL || self->kinds == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    memcpy(self->words, words, (size_t)length);
    memcpy(self->kinds, kinds, (size_t)slots);
    self->length = length / 8;
    self->slots = slots / 2;
    int wrong = length % 8 || slots % 2;
    for (Py_ssize_t i = 0; i < self->slots; i++)
        wrong |= self->kinds[i * 2] < F8 || self->kinds[i * 2] > STR;
    if (wrong || check(self, self->words, self->words + self->length, 0) < 0) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_ValueError, "not a program");
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *take(Slot *slot)
{
    if (slot->kind == STR) {
        if (slot->scalar && PyList_Size(slot->texts) > 0)
            return Py_NewRef(PyList_GetItem(slot->texts, 0));
        return Py_NewRef(slot->texts);
    }
    if (!slot->scalar)
        return PyBytes_FromStringAndSize((const char *)slot->bytes, (Py_ssize_t)slot->used);
    union {
        double f8;
        int64_t i8;
        uint64_t u8;
        uint8_t b;
    } value = {0};
    memcpy(&value, slot->bytes, slot->used < 8 ? slot->used : 8);
    switch (slot->kind) {
    case F8: return PyFloat_FromDouble(value.f8);
    case I8: return PyLong_FromLongLong(value.i8);
    case U8: return PyLong_FromUnsignedLongLong(value.u8);
    default: return PyBool_FromLong(value.b);
    }
}

static void close_slots(const Program *self, Slot *slots)
{
    for (Py_ssize_t i = 0; i < self->slots; i++) {
        Py_XDECREF(slots[i].texts);
        if (slots[i].bytes != (uint8_t *)&slots[i].small)
            PyMem_Free(slots[i].bytes);
    }
    PyMem_Free(slots);
}

/* Prepare the columns of a message, or of many: then none of them is scalar. */
static Slot *open_slots(const Program *self, int many)
{
    Slot *slots = PyMem_Calloc(self->slots > 0 ? (size_t)self->slots : 1, sizeof *slots);
    if (slots == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    int failed = 0;
    for (Py_ssize_t i = 0; i < self->slots; i++) {
        Slot *slot = &slots[i];
        slot->kind = self->kinds[i * 2];
        slot->scalar = (char)(!many && self->kinds[i * 2 + 1]);
        slot->bytes = (uint8_t *)&slot->small;
        slot->room = sizeof slot->small;
        if (slot->kind == STR && (slot->texts = PyList_New(0)) == NULL)
            failed = 1;
    }
    if (failed) {
        close_slots(self, slots);
        return NULL;
    }
    return slots;
}

static int walk_message(const Program *self, Slot *slots, PyObject *message)
{
    Py_buffer data;
    if (PyObject_GetBuffer(message, &data, PyBUF_SIMPLE) < 0)
        return -1;
    const uint8_t *bytes = data.buf;
    int failed = -1;
    if (data.len < HEADER || bytes[0] != 0 || bytes[1] > 1) {
        PyErr_SetString(PyExc_ValueError, "it does not begin with the header of plain CDR "
                                          "(0x0000 or 0x0001 and two more bytes)");
    } else {
        Walk walk = {bytes + HEADER, data.len - HEADER, 0, PADDING, bytes[1] != !PY_BIG_ENDIAN, slots};
        failed = run(&walk, self->words, self->words + self->length);
        if (!failed && walk.size - walk.at > walk.padding) {
            PyErr_Format(PyExc_ValueError, "%lld bytes are left over after the last field",
                         (long long)(walk.size - walk.at));
            failed = -1;
        }
    }
    PyBuffer_Release(&data);
    return failed;
}

static PyObject *take_all(const Program *self, Slot *slots)
{
    PyObject *columns = PyList_New(self->slots);
    for (Py_ssize_t i = 0; columns != NULL && i < self->slots; i++) {
        PyObject *column = take(&slots[i]);
        if (column == NULL)
            Py_CLEAR(columns);
        else
            PyList_SetItem(columns, i, column);
    }
    return columns;
}

static PyObject *Program_call(Program *self, PyObject *args, PyObject *keywords)
{
    PyObject *message;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "a program takes the bytes of a message only");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O", &message))
        return NULL;
    Slot *slots = open_slots(self, 0);
    if (slots == NULL)
        return NULL;
    PyObject *columns = walk_message(self, slots, message) < 0 ? NULL : take_all(self, slots);
    close_slots(self, slots);
    return columns;
}

static PyObject *Program_many(Program *self, PyObject *messages)
{
    if (!PyList_Check(messages)) {
        PyErr_SetString(PyExc_TypeError, "many() takes a list of messages");
        return NULL;
    }
    Slot *slots = open_slots(self, 1);
    if (slots == NULL)
        return NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(messages); i++) {
        /* Ours too: what lends its bytes may run Python, which may change the list. */
        PyObject *message = Py_NewRef(PyList_GetItem(messages, i));
        failed = walk_message(self, slots, message);
        Py_DECREF(message);
    }
    PyObject *columns = failed ? NULL : take_all(self, slots);
    close_slots(self, slots);
    return columns;
}

static PyMethodDef program_methods[] = {
    {"many", (PyCFunction)(void *)Program_many, METH_O,
     "many(messages): fill the columns of all messages of a list, those of scalars too end to end."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "Program(words, kinds): call it with the bytes of a message to fill the columns."},
    {Py_tp_new, (void *)Program_new},
    {Py_tp_dealloc, (void *)Program_dealloc},
    {Py_tp_call, (void *)Program_call},
    {Py_tp_methods, (void *)program_methods},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "forewarn.messages._cdr.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = program_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_cdr",
    .m_doc = "The compiled interpreter of extraction programs.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__cdr(void)
{
    PyObject *type = PyType_FromSpec(&program_spec);
    PyObject *created = type == NULL ? NULL : PyModule_Create(&module);
    if (created != NULL && (PyModule_AddIntConstant(created, "FORMAT", FORMAT) < 0 ||
                            PyModule_AddObjectRef(created, "Program", type) < 0))
        Py_CLEAR(created);
    Py_XDECREF(type);
    return created;
}
