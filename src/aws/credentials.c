#include "aws/credentials.h"

#include "aws/arn.h"
#include "base/buffer.h"
#include "base/table.h"

#include <fcntl.h>

enum { FILE_BYTES_MAXIMUM = 1024 * 1024 };

enum setting { SETTING_ACCESS_KEY, SETTING_SECRET, SETTING_TOKEN, SETTING_ACCOUNT, SETTING_COUNT };

/* A profile as it is read; becomes a credential when the file's end shows it to be complete. */
struct profile {
    struct profile *next;
    char *name;
    char *values[SETTING_COUNT];
    unsigned line; /* of its first header */
};

static const char *const setting_names[] = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token",
                                            "aws_account_id"};

struct credentials {
    struct profile *profiles; /* in the order of the file */
    struct credential *list;
    size_t count;
    struct table by_access_key; /* of struct credential */
};

static struct profile *profile_free(struct profile *profile)
{
    if (!profile)
        return NULL;
    for (size_t i = 0; i < SETTING_COUNT; i++)
        free(profile->values[i]);
    free(profile->name);
    free(profile);
    return NULL;
}

struct credentials *credentials_free(struct credentials *credentials)
{
    if (!credentials)
        return NULL;
    while (credentials->profiles) {
        struct profile *next = credentials->profiles->next;
        profile_free(credentials->profiles);
        credentials->profiles = next;
    }
    table_deinit(&credentials->by_access_key);
    free(credentials->list);
    free(credentials);
    return NULL;
}

static void cleanup_credentials(struct credentials **credentials)
{
    credentials_free(*credentials);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

struct reader {
    const char *name;
    unsigned line;
    struct credentials *credentials;
    struct profile *profile; /* the section at hand, NULL before the first */
    struct fault *fault;
};

/* The profile of that name, new at the end when there is none yet. NULL when out of memory. */
static struct profile *find_profile(struct reader *reader, struct span name)
{
    struct profile **at = &reader->credentials->profiles;
    struct profile *profile;

    for (; *at; at = &(*at)->next)
        if (span_equal(span_from((*at)->name), name))
            return *at;
    profile = calloc(1, sizeof(*profile));
    if (!profile)
        return NULL;
    profile->line = reader->line;
    profile->name = span_dup(name);
    if (!profile->name)
        return profile_free(profile);
    *at = profile;
    return profile;
}

static int read_section(struct reader *reader, struct span line)
{
    ptrdiff_t end = span_find(line, ']');
    struct span after = end < 0 ? SPAN_NONE : span_trim(span_slice(line, (size_t)end + 1, line.length));
    struct span name;

    if (end < 0)
        return fault_set(reader->fault, EINVAL, "%s:%u: a section must end with ']'", reader->name, reader->line);
    if (after.length && after.data[0] != '#' && after.data[0] != ';')
        return fault_set(reader->fault, EINVAL, "%s:%u: nothing may follow a section's ']'", reader->name,
                         reader->line);
    name = span_trim(span_slice(line, 1, (size_t)end));
    if (span_starts_with(name, SPAN("profile "))) /* the form of the config file */
        name = span_trim(span_slice(name, 8, name.length));
    if (!name.length)
        return fault_set(reader->fault, EINVAL, "%s:%u: a section must have a name", reader->name, reader->line);
    reader->profile = find_profile(reader, name);
    return reader->profile ? 0 : -ENOMEM;
}

static int store_setting(struct reader *reader, size_t setting, struct span value)
{
    char *copy;

    if (setting == SETTING_ACCOUNT && value.length && !arn_is_account_id(value))
        return fault_set(reader->fault, EINVAL, "%s:%u: aws_account_id must be 12 digits, not '%.*s'", reader->name,
                         reader->line, SPAN_ARG(value));
    copy = value.length ? span_dup(value) : NULL; /* an empty value counts as none */
    if (value.length && !copy)
        return -ENOMEM;
    free(reader->profile->values[setting]);
    reader->profile->values[setting] = copy;
    return 0;
}

static int read_setting(struct reader *reader, struct span line)
{
    struct span value = line;
    struct span key = span_trim(span_cut(&value, '='));

    if (!value.data)
        return fault_set(reader->fault, EINVAL, "%s:%u: expected 'key = value'", reader->name, reader->line);
    if (!key.length)
        return fault_set(reader->fault, EINVAL, "%s:%u: no key before '='", reader->name, reader->line);
    if (!reader->profile)
        return fault_set(reader->fault, EINVAL, "%s:%u: a setting before the first [profile]", reader->name,
                         reader->line);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (span_equal_nocase(key, span_from(setting_names[i])))
            return store_setting(reader, i, span_trim(value));
    return 0;
}

static int read_line(struct reader *reader, struct span line)
{
    struct span text;

    if (line.length && line.data[line.length - 1] == '\r')
        line.length--;
    if (span_find(line, '\0') >= 0)
        return fault_set(reader->fault, EINVAL, "%s:%u: a NUL byte", reader->name, reader->line);
    text = span_trim(line);
    if (!text.length || text.data[0] == '#' || text.data[0] == ';')
        return 0;
    if (text.data[0] == '[')
        return read_section(reader, text);
    if (text.data != line.data && reader->profile) /* indented: belongs to the setting above, as "s3 =" has */
        return 0;
    return read_setting(reader, text);
}

/* --- checking and indexing --------------------------------------------------------------------------------------- */

static const char *account_of(const struct profile *profile)
{
    const char *access_key = profile->values[SETTING_ACCESS_KEY];

    if (profile->values[SETTING_ACCOUNT])
        return profile->values[SETTING_ACCOUNT];
    return credentials_account_of_key(span_from(access_key)).length ? access_key : NULL;
}

static int add_credential(struct reader *reader, const struct profile *profile)
{
    struct credentials *credentials = reader->credentials;
    struct credential *credential = &credentials->list[credentials->count];
    int r;

    if (!profile->values[SETTING_ACCESS_KEY] || !profile->values[SETTING_SECRET])
        return fault_set(reader->fault, EINVAL, "%s:%u: profile '%s' lacks %s", reader->name, profile->line,
                         profile->name,
                         setting_names[profile->values[SETTING_SECRET] ? SETTING_ACCESS_KEY : SETTING_SECRET]);
    *credential = (struct credential){
        .profile = profile->name,
        .access_key = profile->values[SETTING_ACCESS_KEY],
        .secret_key = profile->values[SETTING_SECRET],
        .session_token = profile->values[SETTING_TOKEN],
        .account = account_of(profile),
    };
    r = table_add(&credentials->by_access_key, span_from(credential->access_key), credential);
    if (r == -EEXIST)
        return fault_set(reader->fault, EINVAL, "%s:%u: profile '%s' has the access key of another profile",
                         reader->name, profile->line, profile->name);
    if (r == 0)
        credentials->count++;
    return r;
}

static int add_credentials(struct reader *reader)
{
    struct credentials *credentials = reader->credentials;
    size_t profiles = 0;
    int r = 0;

    for (struct profile *profile = credentials->profiles; profile; profile = profile->next)
        profiles++;
    credentials->list = calloc(profiles + 1, sizeof(*credentials->list));
    if (!credentials->list)
        return -ENOMEM;
    for (struct profile *profile = credentials->profiles; r == 0 && profile; profile = profile->next)
        if (profile->values[SETTING_ACCESS_KEY] || profile->values[SETTING_SECRET])
            r = add_credential(reader, profile);
    if (r == 0 && !credentials->count)
        return fault_set(reader->fault, EINVAL, "%s: no profile has an access key", reader->name);
    return r;
}

int credentials_parse(struct span text, const char *name, struct credentials **ret_credentials, struct fault *fault)
{
    struct credentials *CLEANUP(cleanup_credentials) credentials = calloc(1, sizeof(*credentials));
    struct reader reader = {.name = name, .credentials = credentials, .fault = fault};
    int r = credentials ? 0 : -ENOMEM;

    if (span_starts_with(text, SPAN("\xef\xbb\xbf"))) /* as Windows editors begin a file */
        text = span_slice(text, 3, text.length);
    while (r == 0 && text.data) {
        reader.line++;
        r = read_line(&reader, span_cut(&text, '\n'));
    }
    if (r == 0)
        r = add_credentials(&reader);
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "%s: out of memory", name);
    if (r == 0)
        *ret_credentials = TAKE_PTR(credentials);
    return r;
}

static int read_file(int fd, struct buffer *buffer)
{
    for (;;) {
        ssize_t got;
        int r = buffer_reserve(buffer, 4096);

        if (r < 0)
            return r;
        got = read(fd, buffer->data + buffer->length, buffer->capacity - buffer->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        buffer->length += (size_t)got;
        if (buffer->length > FILE_BYTES_MAXIMUM)
            return -EFBIG;
    }
}

int credentials_load(const char *path, struct credentials **ret_credentials, struct fault *fault)
{
    struct buffer CLEANUP(buffer_deinit) text = BUFFER_INIT;
    int CLEANUP(cleanup_close) fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : read_file(fd, &text);

    if (r < 0)
        return fault_set(fault, -r, "%s: %s", path, strerror(-r));
    return credentials_parse(buffer_span(&text), path, ret_credentials, fault);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

const struct credential *credentials_find(const struct credentials *credentials, struct span access_key)
{
    return table_get(&credentials->by_access_key, access_key);
}

const struct credential *credentials_of_account(const struct credentials *credentials, struct span account,
                                                struct span default_account)
{
    for (size_t i = 0; i < credentials->count; i++) {
        const struct credential *credential = &credentials->list[i];

        if (span_equal(account, credential->account ? span_from(credential->account) : default_account))
            return credential;
    }
    return NULL;
}

size_t credentials_count(const struct credentials *credentials)
{
    return credentials->count;
}

const struct credential *credentials_at(const struct credentials *credentials, size_t index)
{
    return &credentials->list[index];
}

struct span credentials_account_of_key(struct span access_key)
{
    return arn_is_account_id(access_key) ? access_key : SPAN_NONE;
}
