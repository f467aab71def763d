"""Hooks of schemathesis: what the OpenAPI document cannot say."""

import datetime

import schemathesis

# Texts of RFC 3339 sort by their year.
THIS_YEAR = str(datetime.date.today().year)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Changes what the schema cannot express.

    A cursor is `next` of an earlier answer. A schema cannot list the cursors that exist, so an invented one that matches it
    is rightly answered with 400 or 410. Invalid requests keep theirs. Data that is older than `Cache-Control: max-age` accepts
    is rightly answered with 503, and no schema knows its age. A time in the future is rightly answered with 400, and no schema
    knows the time of the request.
    """
    if case.headers:
        case.headers.pop("Cache-Control", None)
    if case.meta is None or not case.meta.generation.mode.is_positive or not case.query:
        return
    for name in ("cursor", "after"):
        case.query.pop(name, None)
    for name in ("at", "from", "to"):
        if str(case.query.get(name, "")) >= THIS_YEAR:
            del case.query[name]
