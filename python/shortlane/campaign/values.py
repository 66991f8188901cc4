"""Values of a sweep: numbers with units as scenario files write them, lists, and ranges.

`"4mbit"`, `"300packets"` and `"20ms"` are quantities, read as the scenario reader reads them: `k`
and `m` of a size are powers of 1024, those of a rate powers of 1000. A range between two of them is

* linear: `{ from = "4mbit", to = "12mbit", step = "4mbit" }`, or `count = 3` instead of `step`;
* geometric: `{ from = 1, to = 64, factor = 2 }`, or `count = 7, scale = "geometric"`.

Values are written in the unit of `from`, exactly where six significant digits are enough.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from shortlane.errors import InputError

__all__ = ["Value", "is_range", "quantity", "values"]

#: What a key of a scenario may take in a sweep.
Value = str | int | float | bool | list["Value"] | dict[str, "Value"]

#: More values of one key are a typing mistake.
MOST = 10_000

Sizes = dict[str, int | Fraction]

RATES: Sizes = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
BYTE_RATES: Sizes = {"bps": 8, "kbps": 8 * 10**3, "mbps": 8 * 10**6, "gbps": 8 * 10**9}
BYTES: Sizes = {"b": 1, "bytes": 1, "k": 2**10, "kb": 2**10}
BYTES |= {"m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
PACKETS: Sizes = {"packets": 1, "packet": 1, "p": 1}
TIMES: Sizes = {"s": 1, "sec": 1, "ms": Fraction(1, 10**3), "msec": Fraction(1, 10**3), "min": 60}
TIMES |= {"us": Fraction(1, 10**6), "usec": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}

KINDS: dict[str, Sizes] = {
    "a rate": RATES | BYTE_RATES,
    "bytes": BYTES,
    "packets": PACKETS,
    "a time": TIMES,
    "a number": {"": 1},
    "a percentage": {"%": Fraction(1, 100)},
}
#: Unit -> (what it measures, its size in bit/s, bytes, packets, seconds or nothing).
UNITS: dict[str, tuple[str, Fraction]] = {
    unit: (kind, Fraction(size)) for kind, units in KINDS.items() for unit, size in units.items()
}
#: Units that have no parts.
WHOLE = {"bit", "b", "bytes", "packets", "packet", "p", "ns"}


def quantity(text: str | float) -> float:
    """The number that `text` means, in bit/s, bytes, packets, seconds or without a unit.

    `quantity("4mbit")` is 4e6, `quantity("16kb")` 16384, `quantity("20ms")` 0.02. Raises
    `InputError` for text that is no quantity.
    """
    return float(_Quantity.read(text, "quantity").base)


def is_range(value: object) -> bool:
    """Whether a table is a range rather than keys of the scenario."""
    return isinstance(value, Mapping) and "from" in value


def values(given: object, where: str) -> list[Value]:
    """The values that a list or a range stands for.

    `where` names file and key in errors: `InputError` with what was found and what is accepted.
    """
    if isinstance(given, Mapping) and is_range(given):
        found = _range(given, where)
    elif isinstance(given, list):
        found = list(given)
    else:
        accepted = 'a list, or a range such as { from = "4mbit", to = "12mbit", step = "4mbit" }'
        raise InputError(f"{where} = {given!r} is not accepted; it takes {accepted}")
    if not found:
        raise InputError(f"{where} is an empty list; it takes at least one value")
    for index, value in enumerate(found):
        if value in found[:index]:
            raise InputError(f"{where} has {value!r} twice; each value is run once")
    return found


class _Quantity(NamedTuple):
    base: Fraction
    unit: str
    whole: bool

    @classmethod
    def read(cls, given: object, where: str) -> "_Quantity":
        if isinstance(given, int | float) and not isinstance(given, bool):
            return cls(Fraction(str(given)), "", isinstance(given, int))
        match = (
            re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z%]*)", given) if isinstance(given, str) else None
        )
        if match is None or match[2] not in UNITS:
            accepted = 'a number, or one with a unit such as "10mbit", "64kb", "300packets", "20ms"'
            raise InputError(f"{where} = {given!r} is not accepted; it takes {accepted}")
        unit = match[2]
        return cls(Fraction(match[1]) * UNITS[unit][1], unit, unit in WHOLE)

    @property
    def kind(self) -> str:
        return UNITS[self.unit][0]

    def like(self, base: Fraction) -> str | int | float:
        """The quantity `base` written as this one is."""
        number = base / UNITS[self.unit][1]
        if self.whole:
            rounded = round(number)
            return f"{rounded}{self.unit}" if self.unit else rounded
        text = f"{Decimal(f'{float(number):.6g}'):f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{text}{self.unit}" if self.unit else float(text)


def _range(given: Mapping[str, object], where: str) -> list[Value]:
    accepted = "from, to, and one of step, factor and count (with scale)"
    for key in given:
        if key not in ("from", "to", "step", "factor", "count", "scale"):
            raise InputError(f"{where}: a range has no key {key!r}; it takes {accepted}")
    ways = [key for key in ("step", "factor", "count") if key in given]
    if "to" not in given or len(ways) != 1:
        raise InputError(f"{where} = {dict(given)!r} is not accepted; it takes {accepted}")
    first = _Quantity.read(given["from"], f"{where}.from")
    last = _Quantity.read(given["to"], f"{where}.to")
    if last.kind != first.kind or last.base < first.base:
        found = f"{where}: from {given['from']!r} to {given['to']!r}"
        raise InputError(f"{found} is not accepted; it takes {first.kind} from low to high")
    if ways == ["count"]:
        steps = _counted(given, first, last, where)
    elif "scale" in given:
        raise InputError(f"{where}: scale goes with count; {ways[0]} says already how values grow")
    else:
        steps = _stepped(given, ways[0], first, last, where)
    rounded = bool(first.unit) or given.get("scale") == "geometric"
    whole = first.whole and (rounded or all(step.denominator == 1 for step in steps))
    return list(dict.fromkeys(first._replace(whole=whole).like(step) for step in steps))


def _stepped(
    given: Mapping[str, object], way: str, first: _Quantity, last: _Quantity, where: str
) -> list[Fraction]:
    by = _Quantity.read(given[way], f"{where}.{way}")
    if way == "step":
        fine, accepted = by.kind == first.kind and by.base > 0, f"{first.kind} above 0"
    else:
        fine = by.kind == "a number" and by.base > 1 and first.base > 0
        accepted = "a number above 1, and from above 0"
    if not fine:
        raise InputError(f"{where}.{way} = {given[way]!r} is not accepted; it takes {accepted}")
    steps = [first.base]
    while (after := steps[-1] + by.base if way == "step" else steps[-1] * by.base) <= last.base:
        steps.append(after)
        if len(steps) > MOST:
            raise InputError(f"{where} has more than {MOST} values; it takes at most that many")
    return steps


def _counted(
    given: Mapping[str, object], first: _Quantity, last: _Quantity, where: str
) -> list[Fraction]:
    count, scale = given["count"], given.get("scale", "linear")
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= MOST:
        accepted = f"a whole number from 2 to {MOST}"
        raise InputError(f"{where}.count = {count!r} is not accepted; it takes {accepted}")
    if scale not in ("linear", "geometric") or (scale == "geometric" and first.base <= 0):
        accepted = '"linear", or "geometric" with from above 0'
        raise InputError(f"{where}.scale = {scale!r} is not accepted; it takes {accepted}")
    parts = [Fraction(index, count - 1) for index in range(count)]
    if scale == "linear":
        return [first.base + part * (last.base - first.base) for part in parts]
    ratio = float(last.base / first.base)
    between = [first.base * Fraction(ratio ** float(part)) for part in parts[1:-1]]
    return [first.base, *between, last.base]
