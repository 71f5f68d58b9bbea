/*
 * ListFunctions and ListVersionsByFunction: rows of versions, of one function or of all. A Marker is "NAME:NUMBER" of
 * the last row shown.
 */
#include "api/lambda/configuration.h"
#include "api/lambda/handlers.h"
#include "aws/shapes.h"

/* Rows go into an array until it is full. */
struct listing {
    json_t *rows;
    size_t maximum;
    const char *last; /* "NAME" or "NAME:NUMBER" of the newest row */
    struct arena *arena;
    bool all_versions;
    bool full; /* there is at least one more */
    bool failed;
};

static void list_version(struct listing *listing, const struct catalog_version *version)
{
    const char *name = version->function->name;
    struct span qualifier = listing->all_versions ? span_from(version->number) : SPAN_NONE;

    if (json_array_size(listing->rows) == listing->maximum) {
        listing->full = true;
        return;
    }
    if (json_array_append_new(listing->rows, configuration_render(version, qualifier, CONFIGURATION_LISTED)) < 0)
        listing->failed = true;
    listing->last = arena_printf(listing->arena, "%s:%s", name, version->number);
    if (!listing->last)
        listing->failed = true;
}

/* The versions behind `after` ("" for all), $LATEST first. */
static void list_function(struct listing *listing, const struct catalog_function *function, struct span after)
{
    uint64_t number = 0;

    if (after.length == 0)
        list_version(listing, function->latest);
    else if (span_to_u64(after, UINT64_MAX, &number) < 0)
        number = 0;
    if (!listing->all_versions)
        return;
    TABLE_FOREACH (item, &function->versions) {
        uint64_t own;
        if (listing->full || listing->failed)
            return;
        if (span_to_u64(item->key, UINT64_MAX, &own) == 0 && own > number)
            list_version(listing, item->value);
    }
}

static int list_functions(struct call *call, struct listing *listing, struct span after)
{
    const struct operation *operation = call->operation;
    const struct catalog_scope *scope =
        catalog_find_scope(operation->services->catalog, operation->account, operation->region);
    struct span after_version = after;
    struct span after_name = span_cut(&after_version, ':');
    struct span *names;
    int r;

    if (!scope)
        return 0;
    r = page_sort_keys(call, &scope->functions, &names);
    for (size_t i = 0; r == 0 && i < scope->functions.count && !listing->full && !listing->failed; i++) {
        int order = span_compare(names[i], after_name);
        if (order > 0 || (order == 0 && listing->all_versions && after_version.length))
            list_function(listing, table_get(&scope->functions, names[i]), order > 0 ? SPAN_NONE : after_version);
    }
    return r;
}

/* What a list of functions is to show. */
struct listing_filter {
    bool all_versions;
    bool edge_only; /* replicas of functions of another Region: Kiln has none, so that the list of those is empty */
};

static int check_listing(struct call *call, struct page *page, struct listing_filter *ret_filter)
{
    static const char *const all[] = {"ALL", NULL};
    static const struct validation_constraint constraint = {
        .minimum = 1, .maximum = LAMBDA_MASTER_REGION_MAXIMUM, .pattern = LAMBDA_MASTER_REGION_PATTERN};
    struct span version = SPAN_NONE;
    struct span region = SPAN_NONE;
    int r = page_read(call, page);

    if (r)
        return r;
    if (operation_query(call->operation, SPAN("FunctionVersion"), &version))
        validate_enum(&call->validation, version, "functionVersion", all);
    if (operation_query(call->operation, SPAN("MasterRegion"), &region))
        validate_string(&call->validation, region, "masterRegion", &constraint);
    r = call_finish_validation(call);
    if (r == 0 && region.data && !version.data) /* the text is of public reports */
        r = aws_error_set(&call->error, AWS_ERROR_INVALID_PARAMETER_VALUE,
                          "The combination MasterArn=%.*s and FunctionVersion=NULL is not supported. Please see our "
                          "documentation for valid combinations of ListFunctions options.",
                          SPAN_ARG(region));
    *ret_filter = (struct listing_filter){version.data, region.data && !span_equal(region, SPAN("ALL"))};
    return r;
}

static void respond_rows(struct call *call, const char *member, const struct listing *listing, int r)
{
    page_respond(call, member, listing->rows, listing->full ? span_from(listing->last) : SPAN_NONE,
                 listing->failed ? -ENOMEM : r);
}

void lambda_list_functions(struct operation *operation)
{
    struct call *call = call_new(operation);
    struct listing listing;
    struct page page;
    struct listing_filter filter;
    int r;

    if (!call)
        return;
    r = check_listing(call, &page, &filter);
    if (r) {
        call_end(call, r, "checking the page");
        return;
    }
    listing = (struct listing){
        .rows = json_array(), .maximum = page.maximum, .arena = &operation->arena, .all_versions = filter.all_versions};
    r = filter.edge_only ? 0 : list_functions(call, &listing, page.after);
    respond_rows(call, "Functions", &listing, r);
}

/* ListVersionsByFunction is the same list of one function. */
static bool is_version_marker(struct span after)
{
    return after.length == 0 || span_equal(after, SPAN("$LATEST")) || qualifier_kind_of(after) == QUALIFIER_VERSION;
}

void lambda_list_versions_by_function(struct operation *operation)
{
    struct call *call = call_new(operation);
    const struct catalog_function *function;
    struct listing listing;
    struct page page;
    struct span after;
    int r;

    if (!call)
        return;
    r = page_read(call, &page);
    if (r == 0)
        r = call_check_names(call, FUNCTION_NAME_NAMESPACED, CALL_UNQUALIFIED);
    function = r == 0 ? call_find_function(call) : NULL;
    if (r == 0 && !function)
        r = call_not_found(call, SPAN_NONE);
    if (r) {
        call_end(call, r, "finding the function");
        return;
    }
    after = page.after;
    if (after.length)
        span_cut(&after, ':');
    listing = (struct listing){
        .rows = json_array(), .maximum = page.maximum, .arena = &operation->arena, .all_versions = true};
    if (is_version_marker(after))
        list_function(&listing, function, after);
    respond_rows(call, "Versions", &listing, 0);
}
