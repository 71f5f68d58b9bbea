/*
 * The stored form: collections of JSON documents, each with a format number.
 *
 *   functions  ACCOUNT/REGION/NAME          {"format", "next_version", "reserved"?, "tags"}
 *   versions   ACCOUNT/REGION/NAME/NUMBER   {"format", "state", "update", "revision", "code", "code_bytes",
 *                                            "source_description"?, "provisioned"?, "configuration"}
 *   aliases    ACCOUNT/REGION/NAME/ALIAS    {"format", "version", "description", "revision", "additional"?, "weight"?,
 *                                            "provisioned"?}
 *
 *   records (record.c has the collections' names)
 *              ACCOUNT/REGION/NAME          {"format", "record"}
 *
 * where "provisioned" is {"requested", "modified"}.
 *
 * Numbers are padded with zeros in keys, so that the order of keys is the order of publication. A function is what has
 * all of its documents; they change together in one batch.
 */
#pragma once

#include "base/buffer.h"
#include "catalog/internal.h"

#define DOCUMENT_FUNCTIONS SPAN("functions")
#define DOCUMENT_VERSIONS  SPAN("versions")
#define DOCUMENT_ALIASES   SPAN("aliases")

/* Appends to an empty buffer. 0 or -ENOMEM. */
int document_function_key(const struct catalog_function *function, struct buffer *key) MUST_USE;
int document_version_key(const struct catalog_function *function, const char *number, struct buffer *key) MUST_USE;
int document_alias_key(const struct catalog_function *function, const char *name, struct buffer *key) MUST_USE;

/* A key's parts; `last` is empty for functions. Numbers are without padding. -EPROTO when there are too few. */
struct document_key {
    struct span account;
    struct span region;
    struct span function;
    struct span last;
};

int document_parse_key(struct span key, bool has_last, struct document_key *ret_key) MUST_USE;

struct document_version {
    enum catalog_state state;
    enum catalog_update update;
    const char *revision_id;
    struct span code_sha256;
    uint64_t code_bytes;
    const char *source_description; /* NULL: none */
    struct catalog_provisioned provisioned;
    json_t *configuration; /* borrowed from the parsed document */
};

struct document_alias {
    const char *version;
    const char *description;
    const char *revision_id;
    const char *additional; /* NULL: none */
    double weight;
    struct catalog_provisioned provisioned;
};

/* Append the bytes to an empty buffer. 0 or -ENOMEM. */
int document_write_function(const struct function_facts *facts, struct buffer *bytes) MUST_USE;
int document_write_version(const struct document_version *version, struct buffer *bytes) MUST_USE;
int document_write_alias(const struct document_alias *alias, struct buffer *bytes) MUST_USE;

/* A record's own document inside of what is stored. */
int document_write_record(json_t *record, struct buffer *bytes) MUST_USE;
/* -EPROTO, -ENOMEM. The caller owns the result, an object. */
int document_read_record(struct span bytes, json_t **ret_record) MUST_USE;

/* Parses and checks the format number. -EPROTO (not ours, or newer), -ENOMEM. The caller owns the result. */
int document_parse(struct span bytes, json_t **ret_document) MUST_USE;
/* Read a parsed document; results are borrowed from it, but for the tags, which the caller owns. -EPROTO. */
int document_read_function(json_t *document, struct function_facts *ret_facts) MUST_USE;
int document_read_version(json_t *document, struct document_version *ret_version) MUST_USE;
int document_read_alias(json_t *document, struct document_alias *ret_alias) MUST_USE;
