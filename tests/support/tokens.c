#include "support/tokens.h"

#include <stdio.h>
#include <string.h>

static void add(struct tokens *tokens, struct str piece)
{
    size_t room = sizeof(tokens->text) - 1 - tokens->len;
    struct str fitting = str_take(piece, room);

    if (fitting.len > 0) {
        memcpy(tokens->text + tokens->len, fitting.ptr, fitting.len);
        tokens->len += fitting.len;
        tokens->text[tokens->len] = '\0';
    }
}

static struct rc on_token(void *ctx, const struct token *token, struct err *err)
{
    struct tokens *tokens = ctx;
    const char *around = token->kind == TOKEN_STRING ? "\"" : "";
    struct str text = token->text;

    (void)err;
    switch (token->kind) {
    case TOKEN_NULL:
        text = STR("null");
        break;
    case TOKEN_BOOL:
        text = token->boolean ? STR("true") : STR("false");
        break;
    case TOKEN_OBJECT_START:
        text = STR("{");
        break;
    case TOKEN_OBJECT_END:
        text = STR("}");
        break;
    case TOKEN_ARRAY_START:
        text = STR("[");
        break;
    case TOKEN_ARRAY_END:
        text = STR("]");
        break;
    case TOKEN_NUMBER:
    case TOKEN_STRING:
    case TOKEN_KEY:
        break;
    }
    add(tokens, str_from_c(around));
    add(tokens, text);
    add(tokens, str_from_c(around));
    add(tokens, token->kind == TOKEN_KEY ? STR(": ") : STR(" "));
    tokens->count++;
    return RC_SUCCESS;
}

struct token_sink tokens_sink(struct tokens *tokens)
{
    return (struct token_sink){on_token, tokens};
}
