/* When a vehicle that follows its path and boxes that move on run into each other.
 *
 * What is computed, and why it is exact: encounters.py. Additions, multiplications, divisions, roots
 * and comparisons come in a fixed order, and the compiler must not join them; only sine and cosine
 * are the platform's. tests/encounters_interpreter.py does the same in Python and is the oracle.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

/* A vehicle beside its path comes back to it within so many metres; slower than so many metres a
 * second, a path is not followed. */
static const double JOIN = 3.0, STANDSTILL = 1e-3;
enum { COLUMNS = 9 }; /* of Boxes */

/* A straight piece of a motion: where the centre would be at time 0 if it always moved as in this
 * piece, the direction of the motion and of the length, and the times between which it holds. */
typedef struct {
    double x, y, cos, sin, begin, end;
} Piece;

typedef struct {
    Piece *pieces;
    Py_ssize_t count;
    double speed, low[2], high[2]; /* least and greatest x and y of the centre */
} Course;

typedef struct {
    double x, y, yaw, vx, vy, length, width, own_length, own_width;
} Box;

static double least(double a, double b) { return b < a ? b : a; }
static double most(double a, double b) { return b > a ? b : a; }

static void pass(Course *course, double x, double y)
{
    course->low[0] = least(course->low[0], x);
    course->low[1] = least(course->low[1], y);
    course->high[0] = most(course->high[0], x);
    course->high[1] = most(course->high[1], y);
}

static void go(Course *course, double x, double y, double cos, double sin, double begin, double end)
{
    double before = course->speed * begin;
    Piece piece = {x - cos * before, y - sin * before, cos, sin, begin, end};
    course->pieces[course->count++] = piece;
}

/* Return the first of the k points of a path that lies well ahead of a place. */
static Py_ssize_t first_ahead(const double *xs, const double *ys, Py_ssize_t k, double x, double y,
                              double *stations)
{
    double nearest = INFINITY, station = 0.0;
    if (k > 0)
        stations[0] = 0.0;
    for (Py_ssize_t i = 0; i + 1 < k; i++) {
        double ux = xs[i + 1] - xs[i], uy = ys[i + 1] - ys[i], dx = x - xs[i], dy = y - ys[i];
        double square = ux * ux + uy * uy, part = 0.0;
        if (square > 0.0)
            part = least(most((dx * ux + dy * uy) / square, 0.0), 1.0);
        double across = dx - part * ux, along = dy - part * uy;
        double distance = across * across + along * along, length = sqrt(square);
        if (distance < nearest) {
            nearest = distance;
            station = stations[i] + part * length;
        }
        stations[i + 1] = stations[i] + length;
    }
    Py_ssize_t first = 0;
    while (first < k && !(stations[first] > station + JOIN))
        first++;
    return first;
}

/* Fill a course with room for k + 1 pieces. */
static void follow(Course *course, const double *xs, const double *ys, Py_ssize_t k, double x,
                   double y, double heading, double horizon, double *stations)
{
    double c = cos(heading), s = sin(heading), at = 0.0, speed = course->speed;
    course->low[0] = course->high[0] = x;
    course->low[1] = course->high[1] = y;
    if (speed < STANDSTILL) {
        course->speed = 0.0;
        go(course, x, y, c, s, 0.0, horizon);
        return;
    }
    for (Py_ssize_t i = first_ahead(xs, ys, k, x, y, stations); i < k && at < horizon; i++) {
        double dx = xs[i] - x, dy = ys[i] - y, length = sqrt(dx * dx + dy * dy);
        if (length > 0.0) {
            c = dx / length;
            s = dy / length;
            double until = least(at + length / speed, horizon);
            go(course, x, y, c, s, at, until);
            x = xs[i];
            y = ys[i];
            at = until;
            pass(course, x, y);
        }
    }
    if (at < horizon) {
        go(course, x, y, c, s, at, horizon);
        double left = speed * (horizon - at);
        pass(course, x + c * left, y + s * left);
    }
}

static int can_meet(const Course *course, const Box *box, double horizon)
{
    double reach = (box->length + box->width + box->own_length + box->own_width) / 2;
    const double places[2] = {box->x, box->y}, speeds[2] = {box->vx, box->vy};
    for (int axis = 0; axis < 2; axis++) {
        double place = places[axis], later = place + speeds[axis] * horizon;
        if (!(least(place, later) - reach <= course->high[axis] &&
              most(place, later) + reach >= course->low[axis]))
            return 0;
    }
    return 1;
}

/* The time in which the shadows on a direction overlap, given their distance at time 0, its change in
 * a second, and the distance within which they overlap. Return 0 if there is none. */
static int narrow(double distance, double speed, double reach, double *begin, double *end)
{
    if (speed == 0.0)
        return fabs(distance) < reach;
    double one = (-reach - distance) / speed, two = (reach - distance) / speed;
    *begin = most(*begin, speed < 0.0 ? two : one);
    *end = least(*end, speed < 0.0 ? one : two);
    return *begin < *end;
}

static double meeting(const Course *course, const Box *box)
{
    double c = cos(box->yaw), s = sin(box->yaw);
    double half = box->length / 2, side = box->width / 2;
    double own = box->own_length / 2, flank = box->own_width / 2;
    for (Py_ssize_t i = 0; i < course->count; i++) {
        const Piece *piece = &course->pieces[i];
        double pc = piece->cos, ps = piece->sin, begin = piece->begin, end = piece->end;
        double dx = box->x - piece->x, dy = box->y - piece->y;
        double wx = box->vx - pc * course->speed, wy = box->vy - ps * course->speed;
        double along = fabs(pc * c + ps * s), across = fabs(pc * s - ps * c);
        if (narrow(dx * pc + dy * ps, wx * pc + wy * ps, own + half * along + side * across, &begin,
                   &end) &&
            narrow(dy * pc - dx * ps, wy * pc - wx * ps, flank + half * across + side * along, &begin,
                   &end) &&
            narrow(dx * c + dy * s, wx * c + wy * s, half + own * along + flank * across, &begin,
                   &end) &&
            narrow(dy * c - dx * s, wy * c - wx * s, side + own * across + flank * along, &begin,
                   &end))
            return begin;
    }
    return INFINITY;
}

static PyObject *times(Course *course, const Py_buffer *path, const double place[3],
                       const Py_buffer *boxes, double horizon)
{
    Py_ssize_t k = path->len / (Py_ssize_t)(2 * sizeof(double));
    Py_ssize_t n = boxes->len / (Py_ssize_t)(COLUMNS * sizeof(double));
    const double *xs = path->buf, *columns = boxes->buf;
    double *stations = PyMem_New(double, k + 1);
    course->pieces = PyMem_New(Piece, k + 1);
    double *found = PyMem_New(double, n + 1);
    PyObject *result = NULL;
    if (stations == NULL || course->pieces == NULL || found == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    follow(course, xs, xs + k, k, place[0], place[1], place[2], horizon, stations);
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *at = columns + i;
        Box box = {at[0],     at[n],     at[2 * n], at[3 * n], at[4 * n],
                   at[5 * n], at[6 * n], at[7 * n], at[8 * n]};
        found[i] = can_meet(course, &box, horizon) ? meeting(course, &box) : INFINITY;
    }
    result = PyBytes_FromStringAndSize((const char *)found, n * (Py_ssize_t)sizeof *found);
done:
    PyMem_Free(stations);
    PyMem_Free(course->pieces);
    PyMem_Free(found);
    return result;
}

static int holds_rows(const Py_buffer *data, Py_ssize_t rows)
{
    return data->len % (rows * (Py_ssize_t)sizeof(double)) == 0 &&
           (uintptr_t)data->buf % _Alignof(double) == 0;
}

static PyObject *times_to_conflict(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer path, boxes;
    double place[3], horizon;
    Course course = {0};
    if (!PyArg_ParseTuple(args, "y*(dddd)y*d", &path, &place[0], &place[1], &place[2], &course.speed,
                          &boxes, &horizon))
        return NULL;
    PyObject *result = NULL;
    if (!holds_rows(&path, 2) || !holds_rows(&boxes, COLUMNS))
        PyErr_SetString(PyExc_ValueError, "a path has two rows of aligned float64, boxes have nine");
    else
        result = times(&course, &path, place, &boxes, horizon);
    PyBuffer_Release(&path);
    PyBuffer_Release(&boxes);
    return result;
}

static PyMethodDef methods[] = {
    {"times_to_conflict", times_to_conflict, METH_VARARGS,
     "times_to_conflict(path, vehicle, boxes, horizon): the seconds of each box, as bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_encounters",
    .m_doc = "The compiled part of encounters.py.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__encounters(void) { return PyModule_Create(&module); }
