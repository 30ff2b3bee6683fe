/* explain_page.h - the page that explain_print.c and explain_evidence.c write together. */
#pragma once

#include "explain.h"
#include "terminal.h"

struct page {
    struct arena *arena;
    int columns; /* 0: nothing is wrapped */
    int64_t now_ms;
    const char *bold; /* static; empty without colours */
    const char *dim;
    const char *plain;
    const char *label; /* of the line before: the same isn't said twice */
};

/* A line under that label; `text` is made safe and wrapped. */
void page_line(struct page *page, const char *label, struct str text);
/* "15:05", or with its day if that isn't today's, in the reader's time zone. */
struct str page_time(struct page *page, int64_t ms);
struct str page_span(struct page *page, int64_t ms); /* "48m" */
/* Who and what stands in the way. */
void page_evidence(struct page *page, const struct admission *admission,
                   const struct explanation *explanation);
/* How it was stopped, and what it has waited for. */
void page_past(struct page *page, const struct admission *admission,
               const struct explanation *explanation);
