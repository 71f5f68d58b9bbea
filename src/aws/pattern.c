/*
 * Parse to a small tree, emit a program, run it over all states at once (Thompson's construction, as in Pike's VM
 * without captures): no backtracking, so no text makes it slow. Java's own engine, which the services use, backtracks;
 * for whole-text matching without back references both accept the same texts. A lookahead is a program of its own,
 * run from where it stands. Everything is of fixed size and on the stack: the largest pattern in use needs about half.
 */
#include "aws/pattern.h"

#include <assert.h>

enum { NODES = 512, INSTRUCTIONS = 2048, CLASSES = 64, REPEATS = 512, UNBOUNDED = -1 };

enum node_kind { NODE_EMPTY, NODE_SET, NODE_BEGIN, NODE_END, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_LOOK };

struct node {
    enum node_kind kind;
    short left, right; /* children; for NODE_SET left is the class */
    short minimum, maximum;
    bool behind, negative; /* NODE_LOOK */
};

struct set {
    uint64_t bits[4];
};

enum opcode { OP_SET, OP_BEGIN, OP_END, OP_SPLIT, OP_JUMP, OP_LOOK, OP_BEHIND, OP_MATCH };

struct instruction {
    unsigned char op;
    bool negative;    /* OP_LOOK, OP_BEHIND */
    unsigned short x; /* the class, or where to go; for OP_LOOK where to go on, its program follows */
    unsigned short y; /* OP_SPLIT: the other way */
};

struct program {
    struct set sets[CLASSES];
    struct instruction code[INSTRUCTIONS];
    short set_count, length;
};

struct parser {
    struct span rest;
    struct node nodes[NODES];
    struct program *program;
    short node_count;
    bool failed;
};

/* The states alive at one place of the text; `marks` tells which are listed already. */
struct states {
    unsigned short list[INSTRUCTIONS];
    bool marks[INSTRUCTIONS];
    size_t count;
};

/* --- sets of bytes ----------------------------------------------------------------------------------------------- */

static void set_add_range(struct set *set, unsigned char from, unsigned char to)
{
    for (unsigned c = from; c <= to; c++)
        set->bits[c / 64] |= UINT64_C(1) << c % 64;
}

static bool set_has(const struct set *set, unsigned char c)
{
    return set->bits[c / 64] >> c % 64 & 1;
}

static void set_invert(struct set *set)
{
    for (size_t i = 0; i < 4; i++)
        set->bits[i] = ~set->bits[i];
}

static void set_join(struct set *set, const struct set *other)
{
    for (size_t i = 0; i < 4; i++)
        set->bits[i] |= other->bits[i];
}

/* --- parsing ----------------------------------------------------------------------------------------------------- */

static short parse_alternatives(struct parser *parser);

static short fail(struct parser *parser)
{
    parser->failed = true;
    return 0;
}

static int peek(const struct parser *parser)
{
    return parser->rest.length ? (unsigned char)parser->rest.data[0] : -1;
}

static int next(struct parser *parser)
{
    int c = peek(parser);

    if (c >= 0)
        parser->rest = span_slice(parser->rest, 1, parser->rest.length);
    return c;
}

static bool accept(struct parser *parser, struct span text)
{
    if (!span_starts_with(parser->rest, text))
        return false;
    parser->rest = span_slice(parser->rest, text.length, parser->rest.length);
    return true;
}

static short node_new(struct parser *parser, struct node node)
{
    if (parser->node_count == NODES)
        return fail(parser);
    parser->nodes[parser->node_count] = node;
    return parser->node_count++;
}

static short set_node(struct parser *parser, const struct set *set)
{
    struct program *program = parser->program;
    short at = 0;

    while (at < program->set_count && memcmp(&program->sets[at], set, sizeof(*set)) != 0)
        at++;
    if (at == CLASSES)
        return fail(parser);
    if (at == program->set_count)
        program->sets[program->set_count++] = *set;
    return node_new(parser, (struct node){.kind = NODE_SET, .left = at});
}

static unsigned char hex_digit(struct parser *parser)
{
    int c = next(parser);

    if (c >= '0' && c <= '9')
        return (unsigned char)(c - '0');
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (unsigned char)((c | 32) - 'a' + 10);
    fail(parser);
    return 0;
}

/* What stands after a backslash. Returns whether it is one character, then in `*ret_char`. */
static bool parse_escape(struct parser *parser, struct set *set, unsigned char *ret_char)
{
    int c = next(parser);

    switch (c) {
    case 'd':
        set_add_range(set, '0', '9');
        return false;
    case 'w':
        set_add_range(set, '0', '9');
        set_add_range(set, 'a', 'z');
        set_add_range(set, 'A', 'Z');
        set_add_range(set, '_', '_');
        return false;
    case 's':
    case 'S':
        set_add_range(set, '\t', '\r');
        set_add_range(set, ' ', ' ');
        if (c == 'S')
            set_invert(set);
        return false;
    case 'p':
        if (accept(parser, SPAN("{N}"))) {
            set_add_range(set, '0', '9');
        } else if (accept(parser, SPAN("{Z}"))) {
            set_add_range(set, ' ', ' ');
        } else if (accept(parser, SPAN("{L}"))) {
            set_add_range(set, 'a', 'z');
            set_add_range(set, 'A', 'Z');
            set_add_range(set, 0x80, 0xff);
        } else {
            fail(parser);
        }
        return false;
    case 'x':
        *ret_char = (unsigned char)(hex_digit(parser) << 4);
        *ret_char |= hex_digit(parser);
        break;
    default:
        if (c < 0 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'))
            fail(parser);
        *ret_char = (unsigned char)c;
    }
    set_add_range(set, *ret_char, *ret_char);
    return true;
}

/* One item of a class: a set (then false) or a character. */
static bool parse_class_item(struct parser *parser, struct set *set, unsigned char *ret_char)
{
    int c = next(parser);

    if (c == '\\')
        return parse_escape(parser, set, ret_char);
    if (c < 0)
        fail(parser);
    *ret_char = (unsigned char)c;
    set_add_range(set, *ret_char, *ret_char);
    return true;
}

static short parse_class(struct parser *parser)
{
    struct set set = {{0}};
    bool negated = accept(parser, SPAN("^"));

    while (!parser->failed && peek(parser) != ']') {
        struct set item = {{0}};
        unsigned char from, to;
        bool single = parse_class_item(parser, &item, &from);
        bool range = single && parser->rest.length > 1 && peek(parser) == '-' && parser->rest.data[1] != ']';
        if (range) {
            next(parser);
            if (!parse_class_item(parser, &item, &to) || to < from)
                return fail(parser);
            set_add_range(&item, from, to);
        }
        set_join(&set, &item);
    }
    next(parser);
    if (negated)
        set_invert(&set);
    return set_node(parser, &set);
}

static short parse_group(struct parser *parser)
{
    struct node look = {.kind = NODE_LOOK};
    bool is_look = true;
    short inner;

    if (accept(parser, SPAN("?!")))
        look.negative = true;
    else if (accept(parser, SPAN("?<!")))
        look.negative = look.behind = true;
    else if (!accept(parser, SPAN("?=")))
        is_look = false;
    if (!is_look)
        accept(parser, SPAN("?:"));
    inner = parse_alternatives(parser);
    if (!accept(parser, SPAN(")")))
        return fail(parser);
    if (!is_look)
        return inner;
    if (look.behind && parser->nodes[inner].kind != NODE_SET)
        return fail(parser);
    look.left = inner;
    return node_new(parser, look);
}

static short parse_atom(struct parser *parser)
{
    struct set set = {{0}};
    unsigned char single;
    int c = next(parser);

    switch (c) {
    case '(':
        return parse_group(parser);
    case '[':
        return parse_class(parser);
    case '^':
        return node_new(parser, (struct node){.kind = NODE_BEGIN});
    case '$':
        return node_new(parser, (struct node){.kind = NODE_END});
    case '\\':
        parse_escape(parser, &set, &single);
        return set_node(parser, &set);
    case '.':
        set_add_range(&set, '\n', '\n');
        set_add_range(&set, '\r', '\r');
        set_invert(&set);
        return set_node(parser, &set);
    case '*':
    case '+':
    case '?':
    case '{':
        return fail(parser);
    default:
        set_add_range(&set, (unsigned char)c, (unsigned char)c);
        return set_node(parser, &set);
    }
}

/* Digits; -1 when there are none. */
static int parse_number(struct parser *parser)
{
    int value = -1;

    while (peek(parser) >= '0' && peek(parser) <= '9') {
        value = MAX(value, 0) * 10 + next(parser) - '0';
        if (value > REPEATS)
            return fail(parser);
    }
    return value;
}

/* What stands between braces. */
static bool parse_braces(struct parser *parser, int *ret_minimum, int *ret_maximum)
{
    int minimum = parse_number(parser);
    int maximum = minimum;

    if (accept(parser, SPAN(",")))
        maximum = peek(parser) == '}' ? UNBOUNDED : parse_number(parser);
    if (minimum < 0 || (maximum != UNBOUNDED && maximum < minimum) || !accept(parser, SPAN("}")))
        return false;
    *ret_minimum = minimum;
    *ret_maximum = maximum;
    return true;
}

static short parse_repeat(struct parser *parser)
{
    short atom = parse_atom(parser);
    int minimum = 1, maximum = 1;

    if (accept(parser, SPAN("*"))) {
        minimum = 0, maximum = UNBOUNDED;
    } else if (accept(parser, SPAN("+"))) {
        maximum = UNBOUNDED;
    } else if (accept(parser, SPAN("?"))) {
        minimum = 0;
    } else if (accept(parser, SPAN("{"))) {
        if (!parse_braces(parser, &minimum, &maximum))
            return fail(parser);
    } else {
        return atom;
    }
    return node_new(
        parser, (struct node){.kind = NODE_REPEAT, .left = atom, .minimum = (short)minimum, .maximum = (short)maximum});
}

static short parse_sequence(struct parser *parser)
{
    short sequence = node_new(parser, (struct node){.kind = NODE_EMPTY});

    while (!parser->failed && peek(parser) >= 0 && peek(parser) != '|' && peek(parser) != ')') {
        short right = parse_repeat(parser);
        sequence = parser->nodes[sequence].kind == NODE_EMPTY
                       ? right
                       : node_new(parser, (struct node){.kind = NODE_CAT, .left = sequence, .right = right});
    }
    return sequence;
}

static short parse_alternatives(struct parser *parser)
{
    short left = parse_sequence(parser);

    while (!parser->failed && accept(parser, SPAN("|"))) {
        short right = parse_sequence(parser);
        left = node_new(parser, (struct node){.kind = NODE_ALT, .left = left, .right = right});
    }
    return left;
}

/* --- emitting ---------------------------------------------------------------------------------------------------- */

static void emit_node(struct parser *parser, short index);

static short emit(struct parser *parser, struct instruction instruction)
{
    struct program *program = parser->program;

    if (program->length == INSTRUCTIONS) {
        fail(parser);
        return 0;
    }
    program->code[program->length] = instruction;
    return program->length++;
}

static unsigned short here(const struct parser *parser)
{
    return (unsigned short)parser->program->length;
}

static void emit_alternative(struct parser *parser, const struct node *node)
{
    struct instruction *code = parser->program->code;
    short split = emit(parser, (struct instruction){.op = OP_SPLIT});
    short jump;

    code[split].x = here(parser);
    emit_node(parser, node->left);
    jump = emit(parser, (struct instruction){.op = OP_JUMP});
    code[split].y = here(parser);
    emit_node(parser, node->right);
    code[jump].x = here(parser);
}

/* The mandatory copies, then either a loop or a chain of optional copies, each of which may leave to the end. */
static void emit_repeat(struct parser *parser, const struct node *node)
{
    struct instruction *code = parser->program->code;
    unsigned short splits[REPEATS];
    int optional = node->maximum == UNBOUNDED ? 1 : node->maximum - node->minimum;

    for (int i = 0; i < node->minimum && !parser->failed; i++)
        emit_node(parser, node->left);
    for (int i = 0; i < optional && !parser->failed; i++) {
        splits[i] = (unsigned short)emit(parser, (struct instruction){.op = OP_SPLIT});
        code[splits[i]].x = here(parser);
        emit_node(parser, node->left);
        if (node->maximum == UNBOUNDED)
            emit(parser, (struct instruction){.op = OP_JUMP, .x = splits[i]});
    }
    for (int i = 0; i < optional && !parser->failed; i++)
        code[splits[i]].y = here(parser);
}

static void emit_look(struct parser *parser, const struct node *node)
{
    short look;

    if (node->behind) {
        unsigned short set = (unsigned short)parser->nodes[node->left].left;
        emit(parser, (struct instruction){.op = OP_BEHIND, .negative = node->negative, .x = set});
        return;
    }
    look = emit(parser, (struct instruction){.op = OP_LOOK, .negative = node->negative});
    emit_node(parser, node->left);
    emit(parser, (struct instruction){.op = OP_MATCH});
    parser->program->code[look].x = here(parser);
}

static void emit_node(struct parser *parser, short index)
{
    const struct node *node = &parser->nodes[index];

    if (parser->failed)
        return;
    switch (node->kind) {
    case NODE_EMPTY:
        break;
    case NODE_SET:
        emit(parser, (struct instruction){.op = OP_SET, .x = (unsigned short)node->left});
        break;
    case NODE_BEGIN:
        emit(parser, (struct instruction){.op = OP_BEGIN});
        break;
    case NODE_END:
        emit(parser, (struct instruction){.op = OP_END});
        break;
    case NODE_CAT:
        emit_node(parser, node->left);
        emit_node(parser, node->right);
        break;
    case NODE_ALT:
        emit_alternative(parser, node);
        break;
    case NODE_REPEAT:
        emit_repeat(parser, node);
        break;
    case NODE_LOOK:
        emit_look(parser, node);
        break;
    }
}

static int compile(const char *pattern, struct program *program)
{
    struct parser parser = {.rest = span_from(pattern), .program = program};
    short root;

    program->set_count = program->length = 0;
    root = parse_alternatives(&parser);
    if (parser.rest.length)
        fail(&parser);
    emit_node(&parser, root);
    emit(&parser, (struct instruction){.op = OP_MATCH});
    return parser.failed ? -EINVAL : 0;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

static bool run(const struct program *program, unsigned short start, struct span text, size_t from, bool whole);

/* Adds a state and all that can be reached from it without reading. Recursion is bounded by the marks. */
static void states_add(const struct program *program, struct states *states, unsigned short at, struct span text,
                       size_t position)
{
    const struct instruction *instruction = &program->code[at];
    bool holds;

    if (states->marks[at])
        return;
    states->marks[at] = true;
    switch (instruction->op) {
    case OP_JUMP:
        states_add(program, states, instruction->x, text, position);
        return;
    case OP_SPLIT:
        states_add(program, states, instruction->x, text, position);
        states_add(program, states, instruction->y, text, position);
        return;
    case OP_BEGIN:
        if (position == 0)
            states_add(program, states, (unsigned short)(at + 1), text, position);
        return;
    case OP_END:
        if (position == text.length)
            states_add(program, states, (unsigned short)(at + 1), text, position);
        return;
    case OP_BEHIND:
        holds = position > 0 && set_has(&program->sets[instruction->x], (unsigned char)text.data[position - 1]);
        if (holds != instruction->negative)
            states_add(program, states, (unsigned short)(at + 1), text, position);
        return;
    case OP_LOOK:
        if (run(program, (unsigned short)(at + 1), text, position, false) != instruction->negative)
            states_add(program, states, instruction->x, text, position);
        return;
    default:
        states->list[states->count++] = at;
    }
}

static void states_clear(const struct program *program, struct states *states)
{
    memset(states->marks, 0, (size_t)program->length * sizeof(states->marks[0]));
    states->count = 0;
}

/* From `start` at place `from`: does it match up to the end (`whole`), or up to anywhere? */
static bool run(const struct program *program, unsigned short start, struct span text, size_t from, bool whole)
{
    struct states pair[2];
    struct states *now = &pair[0], *then = &pair[1], *swap;

    states_clear(program, now);
    states_add(program, now, start, text, from);
    for (size_t position = from;; position++) {
        states_clear(program, then);
        for (size_t i = 0; i < now->count; i++) {
            const struct instruction *instruction = &program->code[now->list[i]];
            if (instruction->op == OP_MATCH) {
                if (!whole || position == text.length)
                    return true;
            } else if (position < text.length &&
                       set_has(&program->sets[instruction->x], (unsigned char)text.data[position])) {
                states_add(program, then, (unsigned short)(now->list[i] + 1), text, position + 1);
            }
        }
        if (position == text.length || then->count == 0)
            return false;
        swap = now, now = then, then = swap;
    }
}

bool pattern_matches(const char *pattern, struct span text)
{
    struct program program;
    int r = compile(pattern, &program);

    assert(r == 0);
    return r == 0 && run(&program, 0, text, 0, true);
}

int pattern_check(const char *pattern)
{
    struct program program;

    return compile(pattern, &program);
}
