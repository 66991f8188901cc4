"""What the sections of a scenario have in common."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from shortlane.disciplines import Discipline

    #: A scheduler with its parameters.
    Scheduler: TypeAlias = str | Discipline
else:
    Scheduler = str


class Section:
    """A section of a scenario: a dataclass with a field for each key."""

    __slots__ = ()

    KIND: ClassVar[str | None] = None
    """The word under `kind` that chose the section, where one does."""

    def to_dict(self) -> dict[str, Any]:
        """Give the keys that were given, as in a TOML file."""
        keys = {} if self.KIND is None else {"kind": self.KIND}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None:
                keys[key_of(field.name)] = _plain(value)
        return keys


def key_of(field: str) -> str:
    """`back-rate` for `back_rate`, `from` for `from_`."""
    return field.rstrip("_").replace("_", "-")


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
