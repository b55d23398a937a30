"""Compares a client's behavior with a scenario's expectations."""

# Tolerance of clock values, in seconds: header fields have whole seconds, and real time passes.
TOLERANCE = 2
CLOCKS = ("clock_offset", "clock_skew")


def difference(expected, observed, resolve, path=""):
    """Returns the first difference as text, or None. Ignores members of `observed` that `expected` does not have.

    `resolve` replaces a text such as `jwt ada 600` by the token that it stands for.
    """
    differs = f"{path}: expected {expected!r}, was {observed!r}"
    if isinstance(expected, list):
        if not isinstance(observed, list) or len(expected) != len(observed):
            return differs
        pairs = [(f"{path}[{index}]", *pair) for index, pair in enumerate(zip(expected, observed))]
    elif isinstance(expected, dict) and expected.keys() & {"at_most", "at_least"}:
        least, most = expected.get("at_least", float("-inf")), expected.get("at_most", float("inf"))
        return None if isinstance(observed, (int, float)) and least <= observed <= most else differs
    elif isinstance(expected, dict):
        if not isinstance(observed, dict):
            return differs
        pairs = [(f"{path}.{name}".lstrip("."), value, observed.get(name)) for name, value in expected.items()]
    elif path.endswith(CLOCKS) and expected is not None:
        return None if observed is not None and abs(expected - observed) <= TOLERANCE else differs
    else:
        same = resolve(expected) == observed and isinstance(expected, bool) == isinstance(observed, bool)
        return None if same else differs
    return next((found for place, one, other in pairs if (found := difference(one, other, resolve, place))), None)
