"""Whether a call does what a foreign text says and the user did not ask for.

A foreign text is a result of a tool. What counts is what is done with it, not its wording: after a
result, a call reaches others or cannot be undone, and the user's task has no word for that; a value
that stands in running text flows into a call; a text speaks of that very tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from forewarn.expressions.functions.effects import (
    DELEGATES,
    READS,
    STEMS_OF_TEXTS,
    VERBS,
    WORD,
    asked_in,
    effects_of,
    name_words,
    set_of,
    stem,
)
from forewarn.expressions.functions.readings import (
    INNER,
    SPELLED,
    Reading,
    Sentence,
    is_running,
    read,
    stands,
    stems_of,
)
from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.functions.texts import list_of_texts, values_in
from forewarn.expressions.values import NAN, Notes, is_unknown

MAX_FOLLOWED = 1_000_000
"""Characters of results that one call of `unsolicited` looks through at most."""

LONGEST_VALUE = 200
"""Characters of an argument that is looked for as a whole."""

LEAST_TOPIC = 2
"""Words that a sentence shares with the task if it is about what the user asked."""

BESIDE = 200
"""Characters before and after a value in which the name of a step makes it one of that step."""

GRAVE = set_of("send pay delete share leave")
"""Effects that reach others, or that cannot be undone."""

_REPORT = re.compile(r"\b(?:has|have) been\b|\bsuccessful")
_GENERIC = READS - {"download", "verify"} | set_of(
    "all by name id info information details data manager manage current day user most recent in "
    "to of for from access account the"
)
_SINKS = re.compile(
    r"(?i)(^|[._-])(to|cc|bcc|recipients?|receivers?|payee|iban|account|emails?|address(es)?|phone"
    r"|numbers?|participants|attendees|users?|url|link|website|channel|\w+_ids?|ids?|username"
    r"|password|path|repo\w*|command|cmd|script)([._-]|$)"
)
_EVERYWHERE = frozenset({"browse", "log in"})  # all texts speak of pages, links and accounts
_SIGNS = re.compile(r"[^a-z0-9]+")
_FIELDS = re.compile(r"[\"':,{}\[\]\n]+")
_END_OF_OBJECT = re.compile(r"}|\n\s*\n")
_LITTLE = re.compile(r"[\d.,]{1,3}|true|false|null|none")
_ADDRESS = re.compile(r"\S@\S|^(https?://|www\.)")
_WEB = re.compile(r"(?i)(https?://|www\.)|[a-z][\w-]*(\.[\w-]+)*\.[a-z]{2,}(/\S*)?$")
_FILE = re.compile(
    r"(?i)^[\w.-]+\.(txt|md|docx?|xlsx?|pptx?|pdf|csv|json|ya?ml|xml|py|js|ts|sh|c|h|log|png|jpe?g"
    r"|gif|svg|html?|zip|gz|tar|ini|cfg|toml|env|pem|key|db|sql)$"
)
_ACCOUNT = re.compile(r"[A-Z]{2}\d\w{6,}$")
_NAMING = re.compile(r"[.@/:#]")
_SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?|/+$")


class Task(NamedTuple):
    """What a user's task names: words, their stems, effects, and kinds of addresses."""

    text: str
    bare: str
    stems: frozenset[str]
    topic: frozenset[str]
    effects: frozenset[str]
    kinds: frozenset[str]
    delegates: bool


class _Made(NamedTuple):
    """Calls that were made: names of tools, and arguments."""

    tools: Sequence[str]
    past: Sequence[str]

    def was_sent_for(self, source: int, task: Task) -> bool:
        """Tell whether the user named what a call was about: its tool, or an argument."""
        if source < len(self.tools) and _topic_of(self.tools[source]) & task.stems:
            return True
        return source < len(self.past) and bool(read(self.past[source]).stems & task.stems)

    def has_acted(self, source: int) -> bool:
        """Tell whether a result is of a tool that does something, and so may report it."""
        return source < len(self.tools) and bool({*effects_of(self.tools[source])} - {"browse"})


class Found(NamedTuple):
    """A value in running text: which result, which sentence."""

    source: int
    sentence: Sentence


Flows = Mapping[tuple[str, str], Sequence[Found]]
"""Names and values of arguments that stand in running text alone, and where."""


_ACTIONS = frozenset().union(*STEMS_OF_TEXTS.values())


@lru_cache(128)
def read_task(text: str) -> Task:
    """Return what a user's task names."""
    low = text.lower()
    words = frozenset(WORD.findall(low))
    plain = (word for word in words if not _NAMING.search(word))  # a file's name asks for nothing
    parts = {stem(part) for word in plain for part in (word, *INNER.split(word))}
    stems = stems_of(words)
    kinds = frozenset(filter(None, map(_kind, WORD.findall(text))))
    return Task(
        low,
        SPELLED.sub("", low),
        stems,
        stems - _ACTIONS,
        asked_in(frozenset(parts)),
        kinds,
        bool(DELEGATES.search(text)),
    )


def _kind(value: str) -> str:
    """Return which kind of address a value is; empty if it is no address."""
    if "@" in value:
        return "mail"
    if _WEB.match(value) and not _FILE.search(value):
        return "web"
    return "account" if _ACCOUNT.match(value) else ""


class Call(NamedTuple):
    """A proposed call.

    `new`, `known`: words of the tool's name that neither task nor earlier calls have; those that
    the task has.
    """

    tool: str
    new: frozenset[str]
    known: frozenset[str]
    effects: tuple[str, ...]  # what it does
    values: list[tuple[str, str]]  # names and values of its arguments

    @property
    def doing(self) -> frozenset[str]:
        """Return the stems of words that speak of its effects."""
        return frozenset().union(*(STEMS_OF_TEXTS.get(e, frozenset()) for e in self.effects))

    @property
    def gravest(self) -> frozenset[str]:
        """Return the effects of which the task has to ask for one."""
        done = frozenset(self.effects)
        return done & {"pay"} or done & GRAVE or done


def _unsolicited(
    notes: Notes,
    tool: Any,
    names: Any,
    arguments: Any,
    task: Any,
    calls: Any,
    past: Any,
    outputs: Any,
    effects: Any = None,
) -> Any:
    if not isinstance(tool, str) or not isinstance(task, str):
        known = is_unknown(tool) or is_unknown(task)
        return NAN if known else notes.unknown("unsolicited() needs a tool's name and a task")
    given = [list_of_texts(notes, "unsolicited", part) for part in (names, arguments, calls, past)]
    held = [text for text in outputs if text is not None] if _is_list(outputs) else outputs
    texts = list_of_texts(notes, "unsolicited", held)
    declared = effects if effects is None else list_of_texts(notes, "unsolicited", effects)
    if texts is None or any(part is None for part in given):
        return NAN
    if sum(map(len, texts)) > MAX_FOLLOWED:
        return notes.unknown(
            f"unsolicited() would look through more than {MAX_FOLLOWED} characters"
        )
    asked = read_task(task)
    words, used = _topic_of(tool), frozenset().union(*map(_topic_of, given[2] or ()))
    done = effects_of(tool) if declared is None else tuple(declared)
    values = _values(given[0], given[1], done)
    call = Call(tool, words - asked.stems - used, words & asked.stems, done, values)
    made = _Made(given[2] or (), given[3] or ())
    found = _grounds(call, asked, [read(text) for text in texts], made)
    if not found and len(held) < len(outputs):
        return notes.unknown("a result that unsolicited() looks through was cut, or left out")
    return found


@lru_cache(1024)
def _topic_of(tool: str) -> frozenset[str]:
    """Return the words of a tool's name that say what it is about."""
    return frozenset(stem(w) for w in name_words(tool) if w not in _GENERIC and len(w) > 2)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _values(names: Any, arguments: Any, effects: Sequence[str]) -> list[tuple[str, str]]:
    """Return the values of arguments with their names; of a command, the addresses in it."""
    found = []
    for name, argument in zip(names, arguments, strict=False):
        for value in values_in(argument) or [argument]:
            if len(value) <= LONGEST_VALUE and "run" not in effects:
                found.append((name, value))
            else:
                found += [(name, w) for w in WORD.findall(value)[:100] if _kind(w) or "/" in w]
    return found


def _grounds(call: Call, task: Task, readings: Sequence[Reading], made: _Made) -> list[str]:
    flows = {
        (name, value): places
        for name, value in call.values
        if (places := _running(call, value, task, readings, made))
    }
    if not call.effects:
        return ["reading"] if _is_foreign_reading(call, task, flows, readings, made) else []
    asked = any(effect in task.effects or stem(effect) in task.stems for effect in call.gravest)
    if not asked and not task.delegates:
        return ["effect"] if _is_foreign_effect(call, task, flows, readings, made) else []
    strange = any(
        _is_strange(call, name, value, task, found, made) for (name, value), found in flows.items()
    )
    return ["value"] if strange else []


def _is_foreign_reading(
    call: Call, task: Task, flows: Flows, readings: Sequence[Reading], made: _Made
) -> bool:
    """Tell whether a text speaks of what is read, with where to send it or what to read."""
    if call.known or not call.new or task.delegates:
        return False
    spoken = _spoken(call, task, readings, made)
    return spoken == "sent" or (
        bool(spoken)
        and any(
            _SINKS.search(name) and not _topic(task, found) for (name, _), found in flows.items()
        )
    )


def _is_foreign_effect(
    call: Call, task: Task, flows: Flows, readings: Sequence[Reading], made: _Made
) -> bool:
    """Tell whether a call, after a result, has an effect that the user did not ask for.

    An effect of `GRAVE` needs no more: a text may lead to it in any words.
    """
    if not GRAVE.isdisjoint(call.effects):
        return bool(readings)
    if any(_topic(task, found) < LEAST_TOPIC for found in flows.values()):
        return True
    return not _EVERYWHERE.issuperset(call.effects) and (
        any(_gives_whom(value, task, readings) for _, value in call.values)
        or bool(_spoken(call, task, readings, made))
    )


def _gives_whom(value: str, task: Task, readings: Sequence[Reading]) -> bool:
    """Tell whether a result, if only in a field, has a mail address or account the task has not."""
    low = value.lower()
    return (
        _kind(value) in ("mail", "account")
        and not stands(low, task.text)
        and any(stands(low, reading.text) for reading in readings)
    )


def _topic(task: Task, found: Sequence[Found]) -> int:
    """Return how many words a sentence around a value shares with the task at most."""
    return max(len(place.sentence.stems & task.topic) for place in found)


def _is_strange(
    call: Call, name: str, value: str, task: Task, found: Sequence[Found], made: _Made
) -> bool:
    """Tell whether whom or what a call is about comes from text that is not about the task."""
    own = stems_of(frozenset(WORD.findall(value.lower())))
    if not _SINKS.search(name) or not (_kind(value) or re.search(r"\d", value)):
        return False
    if max(len((place.sentence.stems - own) & task.topic) for place in found) >= LEAST_TOPIC:
        return False
    if "pay" in call.effects or _kind(value) in task.kinds:
        return True  # the user has named whom; or it is too dear to be taken from a text
    reads = call.effects == ("browse",)  # tells a server of the visit, no more
    return not any(
        (reads or (place.sentence.stems | own) & task.topic)
        and made.was_sent_for(place.source, task)
        for place in found
    )


def _running(
    call: Call, value: str, task: Task, readings: Sequence[Reading], made: _Made
) -> list[Found]:
    """Return where a value stands, if it stands in running text alone and the task has it not."""
    wanted = _SCHEME.sub("", value.strip().lower())
    if len(wanted) < 2 or stands(wanted, task.text) or _LITTLE.fullmatch(wanted):
        return []
    bare = SPELLED.sub("", wanted)
    spelled = len(bare) >= 8 and (bool(_kind(value)) or any(sign.isdigit() for sign in bare))
    if spelled and bare in task.bare:
        return []
    found: list[Found] = []
    led = call.effects and not task.delegates
    for source, reading in enumerate(readings):
        if wanted in reading.text:
            for sentence in reading.sentences:
                if wanted in sentence.text and stands(wanted, sentence.text):
                    if not (
                        is_running(wanted, sentence)
                        or _is_step(call, wanted, reading.text)
                        or (led and _is_led_to(source, task, readings, made))
                    ):
                        return []
                    found.append(Found(source, sentence))
        elif spelled and bare in reading.bare:
            found += [
                Found(source, s) for s in reading.sentences if bare in SPELLED.sub("", s.text)
            ]
    return found


def _is_led_to(source: int, task: Task, readings: Sequence[Reading], made: _Made) -> bool:
    """Tell whether a result came from a call that was about something in running text."""
    if source >= len(made.past) or read(made.past[source]).stems & task.stems:
        return False
    tool = made.tools[source] if source < len(made.tools) else ""
    call = Call(tool, frozenset(), frozenset(), (), [])
    return any(
        _running(call, value, task, readings[:source], made)
        for value in values_in(made.past[source])
    )


def _is_step(call: Call, wanted: str, text: str) -> bool:
    """Tell whether fields beside a value name the tool, or a step to take that does the same."""
    name, at = _SIGNS.sub("", call.tool.lower()), text.find(wanted) if call.tool else -1
    while at >= 0:
        before, after = text[max(0, at - BESIDE) : at], text[at : at + BESIDE]
        part = _END_OF_OBJECT.split(before)[-1] + _END_OF_OBJECT.split(after)[0]
        if name in _SIGNS.sub("", part):
            return True
        fields = (WORD.findall(field) for field in _FIELDS.split(part))
        few = chain.from_iterable(words for words in fields if len(words) <= 2)
        if any(part in VERBS and stem(part) in call.doing for w in few for part in INNER.split(w)):
            return True
        at = text.find(wanted, at + 1)
    return False


def _spoken(call: Call, task: Task, readings: Sequence[Reading], made: _Made) -> str:
    """Return whether a sentence of the results speaks of the tool: "yes", or with an address."""
    best = ""
    for sentence, after in _speaking(call, readings, made):
        if _names(call, sentence) and any(
            _ADDRESS.search(word) and word not in task.text
            for word in chain(sentence.listed, after.listed)
        ):
            return "sent"
        best = "yes"
    return best


def _names(call: Call, sentence: Sentence) -> bool:
    """Tell whether a sentence has a word of a tool's name that is new, or the name as a whole."""
    return not call.new.isdisjoint(sentence.stems) or call.tool.lower() in sentence.text


def _speaking(
    call: Call, readings: Sequence[Reading], made: _Made
) -> Iterator[tuple[Sentence, Sentence]]:
    """Yield sentences that speak of a tool, or of what it does, each with the one after it."""
    wanted = call.new | call.doing | {stem(call.tool.lower())}
    for source, reading in enumerate(readings):
        if not wanted.isdisjoint(reading.stems):
            reports = made.has_acted(source)
            for sentence, after in zip_longest(reading.sentences, reading.sentences[1:]):
                speaks = len(sentence.listed) >= 4 and not wanted.isdisjoint(sentence.stems)
                if speaks and not (reports and _REPORT.search(sentence.text)):
                    yield sentence, after or sentence


register(
    {
        "unsolicited": Function(
            _unsolicited,
            7,
            8,
            "why a call looks foreign to the task: 'effect', 'value' or 'reading'; [] if not",
        )
    }
)
