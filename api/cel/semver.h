/* semver.h - versions as github.com/blang/semver/v4 reads them. */
#pragma once

#include "value.h"

/* "1.2.3", with an optional "-pre.release" and "+build". The result borrows from `text`. */
bool cel_semver_parse(struct str text, struct cel_semver *ret_version);
/* <0, 0, >0. Build metadata doesn't count. */
int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b);
