/* Evaluates ensembles of decision trees and a line over the signals of a window of moments.
 *
 * An ensemble is checked once, when it is made: a child comes after its parent, so that every walk
 * ends. Only additions, multiplications, divisions and comparisons in a fixed order decide the
 * result, so that it has the same bits on every machine; tests/trees_interpreter.py does the same
 * in Python and is the oracle.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Odds beyond these do not change a probability that must stay within (0, 1). */
static const double MOST_LOGIT = 30.0;
/* Infinite values count as this, so that differences are numbers. */
static const double LARGEST = 1e300;
enum { SMALL = 512, FAR = 1 << 20 };

typedef struct {
    PyObject_HEAD
    Py_ssize_t signals, lags, per_signal, features, nodes, trees;
    double base;
    int32_t *lag, *feature, *left, *right, *root;
    double *threshold, *value;
    uint8_t *missing_left, *needed;
    /* Of each feature: slope, centre, lowest and highest; none without a line. */
    double *line;
    Py_ssize_t line_numbers;
} Ensemble;

/* ---- a fixed exponential: exp(-x) for 0 <= x <= MOST_LOGIT, to about one last bit ---- */

static double exp_of_minus(double x)
{
    double t = -x;
    double k = floor(t * 1.4426950408889634 + 0.5);
    double r = (t - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int i = 14; i > 0; i--)
        sum = 1.0 + sum * r / (double)i;
    return ldexp(sum, (int)k);
}

static double probability(double logit)
{
    if (logit != logit)
        return logit;
    double x = logit > MOST_LOGIT ? MOST_LOGIT : logit < -MOST_LOGIT ? -MOST_LOGIT : logit;
    if (x >= 0.0)
        return 1.0 / (1.0 + exp_of_minus(x));
    double e = exp_of_minus(-x);
    return e / (1.0 + e);
}

/* ---- features: what each signal is and how it has changed, signal by signal ---- */

/* A new reference to a value as windows hold it: a float within bounds, or None; NULL without an
 * exception for what is no number. */
static PyObject *as_number(PyObject *value)
{
    double number;
    if (value == Py_None) {
        Py_INCREF(value);
        return value;
    }
    if (PyFloat_Check(value)) {
        number = PyFloat_AsDouble(value);
    } else if (PyLong_Check(value)) { /* Booleans are whole numbers too */
        int overflow;
        (void)PyLong_AsLongLongAndOverflow(value, &overflow);
        number = overflow ? PyLong_AsDouble(value) : (double)PyLong_AsLongLong(value);
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            number = overflow > 0 ? LARGEST : -LARGEST;
        }
    } else {
        return NULL;
    }
    if (number != number)
        Py_RETURN_NONE;
    if (PyFloat_CheckExact(value) && number <= LARGEST && number >= -LARGEST) {
        Py_INCREF(value);
        return value;
    }
    return PyFloat_FromDouble(number > LARGEST ? LARGEST : number < -LARGEST ? -LARGEST : number);
}

static PyObject *Ensemble_row(Ensemble *self, PyObject *values)
{
    if (!PyList_Check(values) || PyList_Size(values) != self->signals) {
        PyErr_Format(PyExc_ValueError, "a list of %zd values is wanted", self->signals);
        return NULL;
    }
    PyObject *row = PyTuple_New(self->signals);
    for (Py_ssize_t i = 0; row != NULL && i < self->signals; i++) {
        PyObject *number = as_number(PyList_GetItem(values, i));
        if (number == NULL) {
            Py_CLEAR(row);
            return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(i);
        }
        PyTuple_SetItem(row, i, number);
    }
    return row;
}

static int read_rows(const Ensemble *self, PyObject *rows, double *table, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *row = PyTuple_GetItem(rows, i);
        if (!PyTuple_Check(row) || PyTuple_Size(row) != self->signals) {
            PyErr_Format(PyExc_ValueError, "a moment is no tuple of %zd values", self->signals);
            return -1;
        }
        for (Py_ssize_t s = 0; s < self->signals; s++) {
            PyObject *item = PyTuple_GetItem(row, s);
            double number = NAN;
            if (PyFloat_Check(item)) {
                number = PyFloat_AsDouble(item);
            } else if (item != Py_None) {
                PyErr_SetString(PyExc_ValueError, "a value is neither a float nor None");
                return -1;
            }
            table[s * count + i] = number;
        }
    }
    return 0;
}

static void describe(const Ensemble *self, const double *table, Py_ssize_t count, double *found)
{
    for (Py_ssize_t s = 0; s < self->signals; s++) {
        const double *values = table + s * count;
        double now = values[count - 1];
        *found++ = now;
        for (Py_ssize_t i = 0; i < self->lags; i++) {
            Py_ssize_t at = count - 1 - self->lag[i];
            *found++ = now - values[at < 0 ? 0 : at];
        }
    }
}

/* Fill `found` with the features of a window; returns -1 with an exception. */
static int features_of(const Ensemble *self, PyObject *rows, double *found)
{
    if (!PyTuple_Check(rows) || PyTuple_Size(rows) == 0) {
        PyErr_SetString(PyExc_ValueError, "a window is a tuple of at least one moment");
        return -1;
    }
    Py_ssize_t count = PyTuple_Size(rows);
    double few[SMALL], *table = few;
    if (count > FAR / self->signals) {
        PyErr_SetString(PyExc_ValueError, "the window is too long");
        return -1;
    }
    if (count * self->signals > SMALL) {
        table = PyMem_New(double, count * self->signals);
        if (table == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    int failed = read_rows(self, rows, table, count);
    if (!failed)
        describe(self, table, count, found);
    if (table != few)
        PyMem_Free(table);
    return failed;
}

/* ---- trees ---- */

static int32_t below(const Ensemble *self, int32_t node, const double *x)
{
    double value = x[self->feature[node]];
    int left = value != value ? self->missing_left[node] : value <= self->threshold[node];
    return left ? self->left[node] : self->right[node];
}

/* What a feature adds beside the trees; nothing where it is unknown. */
static double on_line(const Ensemble *self, Py_ssize_t feature, const double *x)
{
    const double *line = self->line + 4 * feature;
    double value = x[feature];
    if (value != value)
        return 0.0;
    value = value < line[2] ? line[2] : value > line[3] ? line[3] : value;
    return line[0] * (value - line[1]);
}

static double logit_of(const Ensemble *self, const double *x)
{
    double sum = self->base;
    for (Py_ssize_t i = 0; i < self->trees; i++) {
        int32_t node = self->root[i];
        while (self->feature[node] >= 0)
            node = below(self, node, x);
        sum += self->value[node];
    }
    for (Py_ssize_t f = 0; 4 * f < self->line_numbers; f++)
        sum += on_line(self, f, x);
    return sum;
}

static int is_known(const Ensemble *self, const double *x)
{
    for (Py_ssize_t f = 0; f < self->features; f++)
        if (self->needed[f] && x[f] != x[f])
            return 0;
    return 1;
}

typedef PyObject *(*Use)(const Ensemble *, const double *);

static PyObject *with_features(const Ensemble *self, PyObject *rows, Use use)
{
    double few[SMALL], *x = few;
    if (self->features > SMALL) {
        x = PyMem_New(double, self->features);
        if (x == NULL)
            return PyErr_NoMemory();
    }
    PyObject *result = features_of(self, rows, x) < 0 ? NULL : use(self, x);
    if (x != few)
        PyMem_Free(x);
    return result;
}

static PyObject *as_list(const double *values, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(values[i]);
        if (number == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SetItem(list, i, number);
    }
    return list;
}

static PyObject *use_features(const Ensemble *self, const double *x)
{
    return as_list(x, self->features);
}

static PyObject *use_score(const Ensemble *self, const double *x)
{
    if (!is_known(self, x))
        Py_RETURN_NONE;
    return PyFloat_FromDouble(probability(logit_of(self, x)));
}

/* The mean logit of the data, then by how much each signal moves it: from node to node of each
 * walk, the change of the mean belongs to the signal that is asked about; so does what it adds on
 * the line. */
static PyObject *use_shares(const Ensemble *self, const double *x)
{
    if (!is_known(self, x))
        Py_RETURN_NONE;
    double few[SMALL], *shares = few;
    if (self->signals + 1 > SMALL) {
        shares = PyMem_New(double, self->signals + 1);
        if (shares == NULL)
            return PyErr_NoMemory();
    }
    memset(shares, 0, (size_t)(self->signals + 1) * sizeof *shares);
    shares[0] = self->base;
    for (Py_ssize_t i = 0; i < self->trees; i++) {
        int32_t node = self->root[i];
        shares[0] += self->value[node];
        while (self->feature[node] >= 0) {
            int32_t next = below(self, node, x);
            shares[1 + self->feature[node] / self->per_signal] +=
                self->value[next] - self->value[node];
            node = next;
        }
    }
    for (Py_ssize_t f = 0; 4 * f < self->line_numbers; f++)
        shares[1 + f / self->per_signal] += on_line(self, f, x);
    PyObject *list = as_list(shares, self->signals + 1);
    if (shares != few)
        PyMem_Free(shares);
    return list;
}

static PyObject *Ensemble_features(Ensemble *self, PyObject *rows)
{
    return with_features(self, rows, use_features);
}

static PyObject *Ensemble_score(Ensemble *self, PyObject *rows)
{
    return with_features(self, rows, use_score);
}

static PyObject *Ensemble_shares(Ensemble *self, PyObject *rows)
{
    return with_features(self, rows, use_shares);
}

/* The same for a row of features, a buffer of doubles. */
static PyObject *of_buffer(Ensemble *self, PyObject *argument, Use use)
{
    Py_buffer data;
    if (PyObject_GetBuffer(argument, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL;
    if (data.len != self->features * (Py_ssize_t)sizeof(double) ||
        (uintptr_t)data.buf % _Alignof(double))
        PyErr_Format(PyExc_ValueError, "%zd aligned features are wanted", self->features);
    else
        result = use(self, (const double *)data.buf);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *Ensemble_judge(Ensemble *self, PyObject *features)
{
    return of_buffer(self, features, use_score);
}

static PyObject *Ensemble_explain(Ensemble *self, PyObject *features)
{
    return of_buffer(self, features, use_shares);
}

/* ---- making one ---- */

/* Return a copy of an array of `*count` entries; a count below 0 is set to how many there are. */
static void *copied(PyObject *bytes, Py_ssize_t width, Py_ssize_t *count, const char *name)
{
    Py_buffer data;
    if (PyObject_GetBuffer(bytes, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    void *copy = NULL;
    if (data.len % width || (*count >= 0 && data.len / width != *count)) {
        PyErr_Format(PyExc_ValueError, "%s: a wrong number of bytes, %zd", name, data.len);
    } else if ((copy = PyMem_Malloc((size_t)data.len + 1)) == NULL) {
        PyErr_NoMemory();
    } else {
        memcpy(copy, data.buf, (size_t)data.len);
        *count = data.len / width;
    }
    PyBuffer_Release(&data);
    return copy;
}

static int is_sound(const Ensemble *self)
{
    int64_t n = self->nodes;
    for (Py_ssize_t i = 0; i < self->lags; i++)
        if (self->lag[i] < 1 || self->lag[i] > FAR)
            return 0;
    for (Py_ssize_t i = 0; i < self->trees; i++)
        if (self->root[i] < 0 || self->root[i] >= n)
            return 0;
    for (int64_t i = 0; i < n; i++) {
        if (self->feature[i] < -1 || self->feature[i] >= self->features)
            return 0;
        if (!isfinite(self->threshold[i]) || !isfinite(self->value[i]))
            return 0;
        if (self->feature[i] >= 0 && (self->left[i] <= i || self->left[i] >= n ||
                                      self->right[i] <= i || self->right[i] >= n))
            return 0;
    }
    if (self->line_numbers && self->line_numbers != 4 * self->features)
        return 0;
    for (Py_ssize_t i = 0; i < self->line_numbers; i++)
        if (!isfinite(self->line[i]) || (i % 4 == 3 && self->line[i - 1] > self->line[i]))
            return 0;
    return isfinite(self->base);
}

static void Ensemble_dealloc(Ensemble *self)
{
    void *all[] = {self->lag,       self->feature, self->left,         self->right, self->root,
                   self->threshold, self->value,   self->missing_left, self->needed, self->line};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PyMem_Free(all[i]);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_Free(self);
    Py_DECREF(type); /* which an instance of a heap type holds */
}

static int filled(Ensemble *self, PyObject **part)
{
    Py_ssize_t *nodes = &self->nodes;
    self->lags = self->trees = self->nodes = self->line_numbers = -1;
    if (!(self->lag = copied(part[0], 4, &self->lags, "lags")))
        return -1;
    self->per_signal = 1 + self->lags;
    if (self->per_signal > FAR / self->signals) {
        PyErr_SetString(PyExc_ValueError, "too many lags");
        return -1;
    }
    self->features = self->signals * self->per_signal;
    if (!(self->root = copied(part[1], 4, &self->trees, "roots")) ||
        !(self->feature = copied(part[2], 4, nodes, "features")) ||
        !(self->threshold = copied(part[3], 8, nodes, "thresholds")) ||
        !(self->left = copied(part[4], 4, nodes, "left")) ||
        !(self->right = copied(part[5], 4, nodes, "right")) ||
        !(self->missing_left = copied(part[6], 1, nodes, "missing_left")) ||
        !(self->value = copied(part[7], 8, nodes, "values")) ||
        !(self->needed = copied(part[8], 1, &self->features, "needed")) ||
        !(self->line = copied(part[9], 8, &self->line_numbers, "line")))
        return -1;
    if (!is_sound(self)) {
        PyErr_SetString(PyExc_ValueError, "the trees do not fit together");
        return -1;
    }
    return 0;
}

static PyObject *Ensemble_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *part[10];
    Py_ssize_t signals;
    double base;
    if (!PyArg_ParseTuple(args, "ndOOOOOOOOOO", &signals, &base, &part[0], &part[1], &part[2],
                          &part[3], &part[4], &part[5], &part[6], &part[7], &part[8],
                          &part[9]))
        return NULL;
    if (signals < 1 || signals > FAR / 64) {
        PyErr_SetString(PyExc_ValueError, "no number of signals");
        return NULL;
    }
    Ensemble *self = (Ensemble *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->signals = signals;
    self->base = base;
    if (filled(self, part) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"row", (PyCFunction)Ensemble_row, METH_O,
     "row(values): a moment of a window; the number of the first value that is none."},
    {"features", (PyCFunction)Ensemble_features, METH_O, "features(window): what trees ask about."},
    {"score", (PyCFunction)Ensemble_score, METH_O, "score(window): probability; None if unknown."},
    {"shares", (PyCFunction)Ensemble_shares, METH_O,
     "shares(window): the mean logit, and by how much each signal moves it; None if unknown."},
    {"judge", (PyCFunction)Ensemble_judge, METH_O, "judge(features): as score, from a row."},
    {"explain", (PyCFunction)Ensemble_explain, METH_O, "explain(features): as shares, from a row."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot ensemble_slots[] = {
    {Py_tp_doc, "Ensemble(signals, base, lags, roots, features, thresholds, left, right, "
                "missing_left, values, needed, line): arrays are bytes."},
    {Py_tp_new, (void *)Ensemble_new},
    {Py_tp_dealloc, (void *)Ensemble_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec ensemble_spec = {
    .name = "forewarn.wings.scores._trees.Ensemble",
    .basicsize = sizeof(Ensemble),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = ensemble_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_trees",
    .m_doc = "The compiled evaluation of ensembles of trees.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__trees(void)
{
    PyObject *type = PyType_FromSpec(&ensemble_spec);
    PyObject *created = type == NULL ? NULL : PyModule_Create(&module);
    if (created != NULL && PyModule_AddObjectRef(created, "Ensemble", type) < 0)
        Py_CLEAR(created);
    Py_XDECREF(type);
    return created;
}
