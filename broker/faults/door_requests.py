"""What the HTTP door takes: `{"fault": "fail", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3}`.

The rest of the object is the arguments of FaultControl's method of that name. `"times": null`: all, until cleared.
"""

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.faults.fault import Fault

_MATCH: Final = ("api", "times", "client_id", "topic", "partition", "broker")
FAULTS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "fail": (("api", "error"), (*_MATCH, "message")),
    "delay": (("delay_ms",), _MATCH),
    "drop": ((), _MATCH),
    "cut": ((), (*_MATCH, "after_work")),
    "throttle": (("throttle_time_ms",), _MATCH),
    "move_leader": (("topic",), ("partition", "to", "unavailable_ms")),
    "lose_coordinator": ((), ("group_id", "transactional_id", "unavailable_ms", "loading_ms")),
    "freeze": ((), ("duration_ms", "broker")),
    "fill_disk": ((), ("broker",)),
    "bounce": ((), ("broker",)),
}
"""Each fault: what has to be said, and what may be."""
_STRINGS: Final = frozenset({"client_id", "topic", "message", "group_id", "transactional_id"})
_NUMBERS: Final = frozenset({"delay_ms", "unavailable_ms", "loading_ms", "duration_ms"})
_INTEGERS: Final = frozenset({"times", "partition", "broker", "throttle_time_ms", "to"})
_MOST_CHARACTERS: Final = 1_000


def ask_for(control: "FaultControl", body: bytes) -> "Fault":
    """Have the control do it. Raises ValueError for what cannot be meant, and what the control's method raises."""
    wanted = _decoded(body)
    name = wanted.pop("fault", None)
    if not isinstance(name, str) or name not in FAULTS:
        raise ValueError(f'"fault" says which one: {", ".join(FAULTS)}')
    needed, allowed = FAULTS[name]
    if missing := [each for each in needed if wanted.get(each) is None]:
        raise ValueError(f"{name} needs {', '.join(missing)}")
    if unknown := sorted(wanted.keys() - {*needed, *allowed}):
        raise ValueError(f"{name} takes {', '.join(dict.fromkeys((*needed, *allowed)))}: not {unknown[0][:60]!r}")
    for key, value in wanted.items():
        _check(key, value)
    # A null says the same as nothing, but for times: all.
    arguments = {key: value for key, value in wanted.items() if value is not None or key == "times"}
    fault: Fault = getattr(control, name)(**arguments)
    return fault


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        wanted = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as failure:
        raise ValueError(f"the body is no JSON: {type(failure).__name__}") from failure
    if not isinstance(wanted, dict):
        raise ValueError("the body is to be a JSON object")
    return wanted


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _check(key: str, value: Any) -> None:
    if value is None:
        return
    if key in _STRINGS:
        is_right, what = isinstance(value, str) and len(value) <= _MOST_CHARACTERS, "a text"
    elif key == "after_work":
        is_right, what = isinstance(value, bool), "true or false"
    elif key in _INTEGERS:
        is_right, what = _is_integer(value), "a whole number"
    elif key in _NUMBERS:
        is_right, what = _is_integer(value) or isinstance(value, float), "a number"
    else:
        is_right, what = isinstance(value, str) or _is_integer(value), "a name or a number"
    if not is_right:
        raise ValueError(f"{key} is to be {what}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
