/* Tags of roles and policies. */
#include "api/iam/handlers.h"
#include "api/iam/iam_call.h"

static int edit_tag(struct iam_call *call, json_t *entity)
{
    return iam_read_tags(call, json_object_get(entity, "Tags"));
}

static int edit_untag(struct iam_call *call, json_t *entity)
{
    const struct uri_query *form = &call->operation->form;

    for (size_t i = 1; query_has_item(form, "TagKeys", i); i++) {
        struct span key = query_item(form, "TagKeys", i, NULL);
        if (key.data)
            json_object_deln(json_object_get(entity, "Tags"), key.data, key.length);
    }
    return 0;
}

/* What an edit needs: the list that must not be missing, and its name in a refusal. */
struct tag_edit {
    const char *list;
    const char *shown;
    int (*edit)(struct iam_call *call, json_t *entity);
};

static const struct tag_edit tag = {"Tags", "tags", edit_tag};
static const struct tag_edit untag = {"TagKeys", "tagKeys", edit_untag};

static void start_edit(struct operation *operation, void (*read)(struct iam_call *call), const struct tag_edit *edit)
{
    struct iam_call *call = iam_call_new(operation);
    int r;

    if (!call)
        return;
    read(call);
    validate_present(&call->validation, query_has_item(&operation->form, edit->list, 1), edit->shown);
    r = iam_finish_validation(call);
    if (r)
        iam_end(call, r, "checking the tags");
    else
        iam_submit_edit(call, edit->edit);
}

static void list(struct operation *operation, void (*read)(struct iam_call *call))
{
    struct iam_call *call = iam_call_new(operation);
    const json_t *entity = NULL;
    int r;

    if (!call)
        return;
    read(call);
    iam_read_page(call);
    r = iam_finish_validation(call);
    if (r == 0)
        entity = iam_find(call);
    if (r == 0 && !entity)
        r = iam_refuse_missing(call);
    if (r)
        iam_end(call, r, "finding the tags");
    else
        iam_respond_page(call, "Tags", iam_render_tags(json_object_get(entity, "Tags")), "Key");
}

void iam_tag_role(struct operation *operation)
{
    start_edit(operation, iam_read_role, &tag);
}

void iam_untag_role(struct operation *operation)
{
    start_edit(operation, iam_read_role, &untag);
}

void iam_list_role_tags(struct operation *operation)
{
    list(operation, iam_read_role);
}

void iam_tag_policy(struct operation *operation)
{
    start_edit(operation, iam_read_policy, &tag);
}

void iam_untag_policy(struct operation *operation)
{
    start_edit(operation, iam_read_policy, &untag);
}

void iam_list_policy_tags(struct operation *operation)
{
    list(operation, iam_read_policy);
}
