#include "catalog/testing.h"

#include "store/zip_builder.h"

#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

void testing_reopen(struct testing_world *world, size_t waiting_bytes)
{
    struct store_config store = {.data_dir = world->dir, .loop = &world->loop, .max_waiting_bytes = waiting_bytes};
    struct code_config code = {.data_dir = world->dir, .loop = &world->loop};
    struct catalog_config config;
    struct fault fault = {0};
    int r;

    uv_loop_init(&world->loop);
    r = store_open(&store, &world->store, &fault);
    assert(r == 0);
    r = code_store_open(&code, &world->code, &fault);
    assert(r == 0);
    config = (struct catalog_config){.loop = &world->loop, .store = world->store, .code = world->code};
    r = catalog_new(&config, &world->catalog);
    assert(r == 0);
    (void)r;
}

void testing_open(struct testing_world *world)
{
    snprintf(world->dir, sizeof(world->dir), "/tmp/kiln-catalog-test-XXXXXX");
    if (!mkdtemp(world->dir))
        abort();
    testing_reopen(world, 0);
}

void testing_run(struct testing_world *world)
{
    uv_run(&world->loop, UV_RUN_DEFAULT);
}

void testing_load(struct testing_world *world)
{
    struct fault fault;
    int r = catalog_load(world->catalog, &fault);

    assert(r == 0);
    (void)r;
    testing_run(world);
}

void testing_shut(struct testing_world *world)
{
    world->store = store_close(world->store);
    world->catalog = catalog_free(world->catalog);
    world->code = code_store_close(world->code);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    uv_loop_close(&world->loop);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void testing_close(struct testing_world *world)
{
    testing_shut(world);
    nftw(world->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void on_unpacked(int result, const struct code_package *package, const struct fault *fault, void *context)
{
    (void)fault;
    if (result == 0)
        *(struct code_package *)context = *package;
}

struct code_package testing_package(struct testing_world *world, const char *content)
{
    struct zip_entry entry = {.name = SPAN("handler.py"), .mode = S_IFREG | 0644, .content = span_from(content)};
    struct code_package package = {0};
    struct buffer zip = BUFFER_INIT;
    int r;

    zip_build(&zip, &entry, 1);
    r = code_unpack(world->code, &zip, on_unpacked, &package);
    assert(r == 0);
    (void)r;
    while (!package.sha256[0])
        uv_run(&world->loop, UV_RUN_ONCE);
    return package;
}

bool testing_has_package(const struct testing_world *world, const char *sha256)
{
    char path[256];
    struct stat status;

    snprintf(path, sizeof(path), "%s/code/%s", world->dir, sha256);
    return stat(path, &status) == 0;
}
