/*
 * A simulation as a picture, in the manner of the service's documentation: for every function its concurrency over time
 * (provisioned and on demand, one upon the other), what was throttled above it, its PC and RC as areas and lines; the
 * same for the account with what is claimed; and for short runs every environment as a lane with its requests in it.
 */
#pragma once

#include "sim/report.h"

#include <stdio.h>

/* Writes a complete SVG document. -EIO when it could not be written. */
int svg_write(const struct report *report, FILE *file) MUST_USE;
