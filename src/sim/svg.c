/*
 * Charts are made of columns, each of one or more of the report's points, drawn as steps: what happened within a column
 * is its maximum. Throttles have no height of their own; they are drawn as the concurrency that they would have needed,
 * their rate times the mean duration, the rate taken over a second at least.
 */
#include "sim/svg.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 960,
    LEFT = 70,
    RIGHT = 20,
    PLOT_WIDTH = WIDTH - LEFT - RIGHT,
    PLOT_HEIGHT = 180,
    PANEL_HEIGHT = PLOT_HEIGHT + 62,
    LANE_HEIGHT = 22,
    MOST_LANES = 40,
    MOST_COLUMNS = 440,
    LINE_CHARACTERS = 125,
    TEXT_HEIGHT = 17
};

static const char STYLE[] =
    "<style>text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#333}.title{font-size:14px;font-weight:"
    "bold}"
    ".small{font-size:10px}.grid{stroke:#e4e4e4;stroke-width:1}.axis{stroke:#888;stroke-width:1}"
    ".demand{fill:#4c78a8}.provisioned{fill:#2a9d8f}.ready{fill:#d3efea}.throttled{fill:#e45756}"
    ".account{fill:#9db7d5}.line{fill:none;stroke-width:1.8}.pc{stroke:#14776b;stroke-dasharray:6 3}"
    ".rc{stroke:#b35900;stroke-dasharray:10 3}.limit{stroke:#222;stroke-dasharray:2 2}.claimed{stroke:#8e44ad}"
    ".lane{fill:#eeeeee}.init{fill:#f2c14e}.request{stroke:#fff}.inside{fill:#fff}</style>\n";

struct column {
    double provisioned, concurrency, throttled; /* from the bottom up */
    double ready, size, reserved;               /* reserved -1: none */
    double limit, claimed;                      /* the account's */
};

struct chart {
    struct column columns[MOST_COLUMNS + 1];
    size_t count;
    int64_t column_ns, end_ns;
    double top; /* the largest value of the axis */
    int y;      /* of the plot's upper edge */
};

/* ---- scales ---- */

static double x_of(int64_t at_ns, int64_t end_ns)
{
    return LEFT + (double)MIN(MAX(at_ns, 0), end_ns) / (double)end_ns * PLOT_WIDTH;
}

static double y_of(const struct chart *chart, double value)
{
    return chart->y + PLOT_HEIGHT * (1 - MIN(value, chart->top) / chart->top);
}

/* 1, 2 or 5 times a power of ten, so that `range` takes at most `most` of them. */
static double nice_step(double range, int most)
{
    double power = pow(10, floor(log10(range / most)));

    for (int i = 0; i < 3; i++) {
        static const int factors[] = {1, 2, 5};
        if (range / (power * factors[i]) <= most)
            return power * factors[i];
    }
    return power * 10;
}

/* ---- texts ---- */

static void write_escaped(FILE *file, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(file, "&#%u;", c);
        else
            fputc(c < ' ' ? ' ' : c, file); /* other controls are not allowed in XML at all */
    }
}

/* As many words as a line holds. */
static size_t line_length(const char *text)
{
    size_t length = strlen(text), cut;

    if (length <= LINE_CHARACTERS)
        return length;
    for (cut = LINE_CHARACTERS; cut && text[cut] != ' '; cut--)
        continue;
    if (cut)
        return cut;
    for (cut = LINE_CHARACTERS; ((unsigned char)text[cut] & 0xc0) == 0x80; cut--)
        continue; /* not within a character */
    return cut;
}

static int write_description(FILE *file, const char *text, bool draw)
{
    int lines = 0;

    while (text && *text) {
        size_t length = line_length(text);
        if (draw) {
            fprintf(file, "<text x=\"%d\" y=\"%d\">", LEFT, 24 + lines * TEXT_HEIGHT);
            write_escaped(file, text, length);
            fputs("</text>\n", file);
        }
        text += length;
        while (*text == ' ')
            text++;
        lines++;
    }
    return lines * TEXT_HEIGHT;
}

static void write_time(FILE *file, double seconds, double step)
{
    if (step >= 3600)
        fprintf(file, "%g h", seconds / 3600);
    else if (step >= 60)
        fprintf(file, "%g min", seconds / 60);
    else
        fprintf(file, "%g s", seconds);
}

/* ---- axes ---- */

static void write_time_axis(FILE *file, int64_t end_ns, int top, int bottom)
{
    static const double steps[] = {60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
    double seconds = (double)end_ns / 1e9, step = nice_step(seconds, 12);

    for (size_t i = 0; step > 20 && i < ARRAY_SIZE(steps); i++) {
        if (seconds / steps[i] <= 12) {
            step = steps[i];
            break;
        }
    }
    for (int i = 0; i * step <= seconds * (1 + 1e-9); i++) {
        double x = LEFT + i * step / seconds * PLOT_WIDTH;
        fprintf(file, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, top, x, bottom);
        fprintf(file, "<text class=\"small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", x, bottom + 13);
        write_time(file, i * step, step);
        fputs("</text>\n", file);
    }
    fprintf(file, "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, bottom, LEFT + PLOT_WIDTH,
            bottom);
}

static void write_value_axis(FILE *file, const struct chart *chart)
{
    double step = nice_step(chart->top, 5);

    step = MAX(step, 1); /* concurrency comes in whole numbers */
    for (double value = 0; value <= chart->top; value += step) {
        double y = y_of(chart, value);
        fprintf(file, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y, LEFT + PLOT_WIDTH,
                y);
        fprintf(file, "<text class=\"small\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.0f</text>\n", LEFT - 6, y + 3.5,
                value);
    }
    fprintf(
        file,
        "<text class=\"small\" text-anchor=\"middle\" transform=\"translate(18 %d) rotate(-90)\">concurrency</text>\n",
        chart->y + PLOT_HEIGHT / 2);
}

struct legend {
    const char *style, *text;
    bool line;
};

static void write_legend(FILE *file, const struct legend *entries, size_t count, int y)
{
    double x = LEFT + PLOT_WIDTH;

    for (size_t i = count; i--;) { /* from the right */
        x -= 7.0 * (double)strlen(entries[i].text) + 34;
        if (entries[i].line)
            fprintf(file, "<path class=\"line %s\" d=\"M%.1f %dh18\"/>", entries[i].style, x, y - 4);
        else
            fprintf(file, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"18\" height=\"10\"/>", entries[i].style, x,
                    y - 9);
        fprintf(file, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x + 23, y, entries[i].text);
    }
}

/* ---- areas and lines ---- */

static double column_x(const struct chart *chart, size_t index)
{
    return x_of((int64_t)index * chart->column_ns, chart->end_ns);
}

/* The member of a column at this offset. */
static double member(const struct chart *chart, size_t index, size_t offset)
{
    return *(const double *)(const void *)((const char *)&chart->columns[index] + offset);
}

/* From 0 up to the sum of the members up to `last` out of `offsets`, as steps; drawn from the highest sum down. */
static void write_area(FILE *file, const struct chart *chart, const char *style, const size_t *offsets, size_t count)
{
    fprintf(file, "<path class=\"%s\" d=\"M%d %d", style, LEFT, chart->y + PLOT_HEIGHT);
    for (size_t i = 0; i < chart->count; i++) {
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += member(chart, i, offsets[k]);
        fprintf(file, "V%.1fH%.1f", y_of(chart, sum), column_x(chart, i + 1));
    }
    fprintf(file, "V%dZ\"/>\n", chart->y + PLOT_HEIGHT);
}

/* Where the value is negative there is no line. */
static void write_line(FILE *file, const struct chart *chart, const char *style, size_t offset)
{
    bool drawing = false;

    fprintf(file, "<path class=\"line %s\" d=\"", style);
    for (size_t i = 0; i < chart->count; i++) {
        double value = member(chart, i, offset);
        if (value < 0 || value > chart->top) {
            drawing = false;
            continue;
        }
        if (!drawing)
            fprintf(file, "M%.1f %.1f", column_x(chart, i), y_of(chart, value));
        else
            fprintf(file, "V%.1f", y_of(chart, value));
        fprintf(file, "H%.1f", column_x(chart, i + 1));
        drawing = true;
    }
    fputs("\"/>\n", file);
}

/* ---- what the columns hold ---- */

/* A column is a part of a second or a number of them, so that no column belongs to two seconds' rates. */
static int64_t points_of_column(const struct report *report)
{
    int64_t points = ((int64_t)report->point_count + MOST_COLUMNS - 1) / MOST_COLUMNS;

    while (NS_PER_S % (points * report->step_ns) && points * report->step_ns % NS_PER_S)
        points++;
    return points;
}

static double throttled_concurrency(const struct report *report, int function, int64_t at_ns, int64_t column_ns)
{
    const struct report_point *total = &report->functions[function].total;
    int64_t window_ns = MAX(NS_PER_S, column_ns), from_ns = at_ns / window_ns * window_ns;
    int64_t to_ns = MIN(from_ns + window_ns, report->scenario->duration_ns);
    struct report_point point = report_point_between(report, function, from_ns, to_ns);
    double mean_ns = total->ended ? (double)total->duration_ns / (double)total->ended : 0;

    return (double)report_throttled(&point) * mean_ns / (double)(to_ns - from_ns);
}

static void begin_chart(struct chart *chart, const struct report *report, int y)
{
    int64_t points = points_of_column(report);

    *chart = (struct chart){.y = y, .end_ns = report->scenario->duration_ns, .column_ns = points * report->step_ns};
    chart->count = (size_t)(((int64_t)report->point_count + points - 1) / points);
}

static void fill_function(struct chart *chart, const struct report *report, int function)
{
    for (size_t i = 0; i < chart->count; i++) {
        int64_t from_ns = (int64_t)i * chart->column_ns;
        struct report_point point = report_point_between(report, function, from_ns, from_ns + chart->column_ns);
        struct column *column = &chart->columns[i];
        column->provisioned = point.provisioned_max;
        column->concurrency = MAX(point.concurrency_max - point.provisioned_max, 0);
        column->throttled = throttled_concurrency(report, function, from_ns, chart->column_ns);
        column->ready = point.provisioned_ready;
        column->size = point.provisioned_size ? point.provisioned_size : -1;
        column->reserved = point.reserved;
        chart->top = MAX(chart->top, point.concurrency_max + column->throttled);
        chart->top = MAX(chart->top, MAX(column->ready, MAX(column->size, column->reserved)));
    }
    chart->top = MAX(chart->top, 1) * 1.08;
}

/* A limit far above everything else would leave the rest flat; it is named in the title then. Returns it. */
static double fill_account(struct chart *chart, const struct report *report)
{
    double limit = 0, others = 1;

    for (size_t i = 0; i < chart->count; i++) {
        int64_t from_ns = (int64_t)i * chart->column_ns;
        struct report_account_point point = report_account_between(report, from_ns, from_ns + chart->column_ns);
        struct column *column = &chart->columns[i];
        column->concurrency = point.concurrency_max;
        column->claimed = (double)point.claimed_max;
        column->limit = point.limit;
        limit = MAX(limit, column->limit);
        others = MAX(others, MAX(column->claimed, column->concurrency));
    }
    chart->top = (limit > 4 * others ? others : MAX(limit, others)) * 1.08;
    return limit;
}

/* ---- panels ---- */

static void write_function_panel(FILE *file, const struct report *report, int function, int y)
{
    static const size_t parts[] = {offsetof(struct column, provisioned), offsetof(struct column, concurrency),
                                   offsetof(struct column, throttled)};
    static const size_t ready[] = {offsetof(struct column, ready)};
    const struct report_point *total = &report->functions[function].total;
    struct legend legend[6];
    struct chart chart;
    size_t count = 0;
    bool has_pc = false, has_rc = false;

    begin_chart(&chart, report, y + 30);
    fill_function(&chart, report, function);
    for (size_t i = 0; i < chart.count; i++) {
        has_pc |= chart.columns[i].size > 0;
        has_rc |= chart.columns[i].reserved >= 0;
    }
    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT, y + 16,
            report->scenario->functions[function].name);
    if (has_pc) {
        write_area(file, &chart, "ready", ready, 1);
        legend[count++] = (struct legend){"ready", "PC ready", false};
        legend[count++] = (struct legend){"provisioned", "on provisioned", false};
    }
    write_value_axis(file, &chart);
    write_time_axis(file, chart.end_ns, chart.y, chart.y + PLOT_HEIGHT);
    if (report_throttled(total))
        write_area(file, &chart, "throttled", parts, 3);
    write_area(file, &chart, "demand", parts, 2);
    write_area(file, &chart, "provisioned", parts, 1);
    legend[count++] = (struct legend){"demand", "on demand", false};
    if (report_throttled(total))
        legend[count++] = (struct legend){"throttled", "throttled", false};
    if (has_pc) {
        write_line(file, &chart, "pc", offsetof(struct column, size));
        legend[count++] = (struct legend){"pc", "PC", true};
    }
    if (has_rc) {
        write_line(file, &chart, "rc", offsetof(struct column, reserved));
        legend[count++] = (struct legend){"rc", "RC", true};
    }
    write_legend(file, legend, count, y + 16);
}

static void write_account_panel(FILE *file, const struct report *report, int y)
{
    static const size_t parts[] = {offsetof(struct column, concurrency)};
    static const struct legend legend[] = {
        {"account", "in flight", false}, {"claimed", "claimed", true}, {"limit", "account limit", true}};
    struct chart chart;
    double limit;

    begin_chart(&chart, report, y + 30);
    limit = fill_account(&chart, report);
    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"%d\">account%s", LEFT, y + 16,
            limit > chart.top ? "" : "</text>\n");
    if (limit > chart.top)
        fprintf(file, " (limit %.0f, above the picture)</text>\n", limit);
    write_value_axis(file, &chart);
    write_time_axis(file, chart.end_ns, chart.y, chart.y + PLOT_HEIGHT);
    write_area(file, &chart, "account", parts, 1);
    write_line(file, &chart, "limit", offsetof(struct column, limit));
    write_line(file, &chart, "claimed", offsetof(struct column, claimed));
    write_legend(file, legend, limit > chart.top ? 2 : 3, y + 16);
}

/* ---- lanes ---- */

static bool has_lanes(const struct report *report)
{
    return !report->too_many_environments && !report->too_many_requests && report->request_count &&
           report->environment_count && report->environment_count <= MOST_LANES;
}

/* Lanes last until the last request is answered. */
static int64_t lanes_end(const struct report *report)
{
    int64_t end_ns = report->scenario->duration_ns;

    for (size_t i = 0; i < report->request_count; i++)
        end_ns = MAX(end_ns, report->requests_seen[i].ended_ns);
    return end_ns;
}

static void write_box(FILE *file, const char *style, double x, double to, double y, double height)
{
    fprintf(file, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", style, x, y,
            MAX(to - x, 0.5), height);
}

static void write_lane(FILE *file, const struct report *report, const struct report_environment *environment,
                       int64_t end_ns, double y)
{
    const struct scenario_function *function = &report->scenario->functions[environment->function];
    double from = x_of(environment->started_ns, end_ns), ready = x_of(environment->ready_ns, end_ns);
    char label[REPORT_LABEL_BYTES];

    fprintf(file, "<text text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s%s</text>", LEFT - 6, y + 14,
            report_label(environment->number, label), environment->provisioned ? " (PC)" : "");
    write_box(file, "lane", from, x_of(environment->gone_ns, end_ns), y + 2, LANE_HEIGHT - 4);
    if (environment->ready_ns > 0)
        write_box(file, "init", from, ready, y + 2, LANE_HEIGHT - 4);
    if (report->scenario->function_count > 1)
        fprintf(file, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">%s</text>", from + 3, y + 13, function->name);
    fputs("\n", file);
}

static void write_lane_request(FILE *file, const struct report *report, const struct report_request *request,
                               int64_t end_ns, int top)
{
    double from = x_of(request->started_ns, end_ns), to = x_of(request->ended_ns, end_ns), y;

    if (request->verdict != REPORT_SERVED) { /* beneath the lanes */
        y = top + (double)report->environment_count * LANE_HEIGHT;
        from = x_of(request->arrived_ns, end_ns);
        fprintf(file, "<path class=\"throttled\" d=\"M%.1f %.1fl5 9h-10Z\"/>\n", from, y + 5);
        return;
    }
    y = top + (double)request->environment * LANE_HEIGHT;
    write_box(file, request->provisioned ? "provisioned request" : "demand request", from, to, y + 4, LANE_HEIGHT - 8);
    if (to - from > 7 * (1 + log10((double)request->number + 1))) /* the number fits */
        fprintf(file, "<text class=\"inside small\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%lld</text>",
                (from + to) / 2, y + 14.5, (long long)request->number + 1);
    fputs("\n", file);
}

static void write_lanes(FILE *file, const struct report *report, int y)
{
    static const struct legend legend[] = {{"init", "Init", false},
                                           {"demand", "request on demand", false},
                                           {"provisioned", "request on provisioned", false},
                                           {"throttled", "throttled or failed", false},
                                           {"lane", "idle", false}};
    int64_t end_ns = lanes_end(report);
    int top = y + 30, bottom = top + (int)(report->environment_count + 1) * LANE_HEIGHT;

    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"%d\">environments</text>\n", LEFT, y + 16);
    write_legend(file, legend, ARRAY_SIZE(legend), y + 16);
    write_time_axis(file, end_ns, top, bottom);
    for (size_t i = 0; i < report->environment_count; i++)
        write_lane(file, report, &report->environments[i], end_ns, top + (double)i * LANE_HEIGHT);
    for (size_t i = 0; i < report->request_count; i++)
        write_lane_request(file, report, &report->requests_seen[i], end_ns, top);
}

/* ---- the document ---- */

static int lanes_height(const struct report *report)
{
    return has_lanes(report) ? (int)(report->environment_count + 1) * LANE_HEIGHT + 62 : 0;
}

int svg_write(const struct report *report, FILE *file)
{
    const struct scenario *scenario = report->scenario;
    int head = 20 + write_description(file, scenario->description, false), y = head;
    int height = head + (int)(scenario->function_count + 1) * PANEL_HEIGHT + lanes_height(report);

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n%s"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height, STYLE, WIDTH, height);
    write_description(file, scenario->description, true);
    if (has_lanes(report)) {
        write_lanes(file, report, y);
        y += lanes_height(report);
    }
    for (size_t i = 0; i < scenario->function_count; i++, y += PANEL_HEIGHT)
        write_function_panel(file, report, (int)i, y);
    write_account_panel(file, report, y);
    fputs("</svg>\n", file);
    return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
