/*
 * The layers of a function: what CreateFunction and UpdateFunctionConfiguration may name, and what of it goes into the
 * version's document: [{"Arn", "CodeSize", "Package", "UnpackedSize"}, ...], of which answers show the first two.
 */
#pragma once

#include "api/lambda/input.h"

/*
 * Checks the Layers of call->input, if there are any: at most 5, none twice, of this Region, there and shared with the
 * caller. Their packages are then held by the call until it ends, and call->layers has what the document will. 0 or a
 * refusal.
 */
int function_layers_check(struct call *call) MUST_USE;
/*
 * Refuses a version's document whose package and layers are together too large when unpacked. Without layers the
 * package's own limit is all there is. 0 or a refusal.
 */
int function_layers_check_size(struct call *call, const json_t *document) MUST_USE;
/* Gives back what the call holds. */
void function_layers_release(struct call *call);

/* Puts call->layers in the place of the document's Layers, when the input has some; none are no member. -ENOMEM. */
int function_layers_put(const struct call *call, json_t *document) MUST_USE;
/* Takes what is not to be shown (UnpackedSize, and the like of each layer) out of an answer made from a document.
 * -ENOMEM. */
int function_layers_hide(json_t *answer) MUST_USE;
