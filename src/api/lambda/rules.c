#include "api/lambda/rules.h"

void rules_validate_strings(struct call *call, const struct string_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *parent = input_find(call->input, rules[i].parent);
        bool present = input_has(parent, rules[i].member);
        if (rules[i].required)
            validate_present(&call->validation, present, rules[i].path);
        if (present)
            validate_string(&call->validation, input_string(parent, rules[i].member), rules[i].path,
                            &rules[i].constraint);
    }
}

void rules_validate_numbers(struct call *call, const struct number_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *parent = input_find(call->input, rules[i].parent);
        if (input_has(parent, rules[i].member))
            validate_range(&call->validation, input_integer(parent, rules[i].member, 0), rules[i].path,
                           rules[i].minimum, rules[i].maximum);
    }
}

void rules_validate_lists(struct call *call, const struct list_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *list = json_object_get(input_find(call->input, rules[i].parent), rules[i].member);
        struct span *values = list ? input_strings(call, list) : NULL;
        if (values)
            validate_list(&call->validation, values, json_array_size(list), rules[i].path, rules[i].minimum,
                          rules[i].maximum, &rules[i].constraint);
    }
}
