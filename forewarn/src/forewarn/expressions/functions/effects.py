"""What a tool does to the world, by its name; and which effect a text asks for.

The words are those of tools and of everyday requests, in English; for texts in German, too. They
say what is done, never how it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.values import NAN, Notes, is_unknown

WORD = re.compile(r"\w+(?:[.@'\u2019+\-/:#]\w+)*")
_PART_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def set_of(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


READS = set_of("get search list view read find check show fetch lookup download verify query count")
"""Words by which a tool's name says that it only reads."""

PERSONS = set_of("human humans agent agents operator")
"""Words by which a tool's name says that it hands over to a person: nothing is done by that."""

OF_NAMES: Mapping[str, frozenset[str]] = {
    "send": set_of("send email mail message post reply forward tweet notify submit upload publish"),
    "pay": set_of(
        "pay transfer money withdraw deposit buy purchase checkout order refund trade transaction "
        "cart wire donate subscribe"
    ),
    "delete": set_of("delete remove clear cancel drop erase purge wipe destroy trash revoke"),
    "create": set_of("create add schedule book reserve append write save insert register make"),
    "update": set_of(
        "update change edit set rename reschedule move modify manage merge push commit close "
        "assign replace reset approve reject"
    ),
    "share": set_of("share grant invite"),
    "browse": set_of("browse visit webpage website click navigate input url"),
    "run": set_of("execute run exec eval shell bash terminal install"),
    "log in": set_of("login logout signin"),
    "control": set_of(
        "unlock control disable enable dispatch give go fill turn activate deactivate start stop"
    ),
    "leave": set_of("leave quit unfollow unsubscribe block"),
    "endorse": set_of("star fork follow like vote rate pin join"),
}
"""Effects, each with the words in names of tools that tell of it."""

OF_TEXTS: Mapping[str, frozenset[str]] = {
    "send": set_of(
        "send sent sends sending email emails e-mail e-mails mail mails message messages msg dm "
        "notify notification reply respond forward post posts publish tweet write tell text sms "
        "contact inform submit comment upload sende schicke schick verschicke maile schreibe teile "
        "leite antworte melde"
    ),
    "pay": set_of(
        "pay pays paid payment payments transfer transfers send transaction transactions money "
        "wire refund refunds remit buy buys purchase purchases purchasing rebuy order orders "
        "checkout subscribe deposit withdraw withdrawal trade sell invest donate donation bill "
        "recurring scheduled rent cart shop shopping überweise überweisen zahle bezahle kaufe kauf "
        "bestelle überweisung rechnung miete"
    ),
    "delete": set_of(
        "delete remove clear erase purge drop discard destroy wipe cancel unsubscribe trash "
        "revoke clean empty lösche löschen entferne storniere"
    ),
    "create": set_of(
        "create add make new schedule book reserve reservation append save write set register "
        "plan generate arrange put insert invite erstelle füge lege trage speichere reserviere "
        "buche"
    ),
    "update": set_of(
        "update change downgrade upgrade switch swap modify edit adjust set rename reschedule move "
        "moved correct replace reset merge push commit close assign approve reject fix ändere "
        "setze aktualisiere verschiebe"
    ),
    "share": set_of(
        "share sharing grant invite invites add permission permissions guest join member "
        "publish lade teile gib gewähre"
    ),
    "browse": set_of(
        "visit browse open click read webpage website websites page link url urls navigate fetch "
        "look article articles web site blog besuche öffne klicke lies seite"
    ),
    "run": set_of("run execute exec shell command script install terminal start test build starte"),
    "log in": set_of("login log sign account authenticate username password logge anmelden konto"),
    "control": set_of(
        "unlock lock turn switch control activate deactivate disable enable start stop dispatch "
        "priority manage go fill entsperre schalte aktiviere"
    ),
    "leave": set_of("leave quit exit unfollow unsubscribe block verlasse"),
    "endorse": set_of("star fork follow like vote rate rating review pin join apply"),
}
"""Effects, each with the words by which a text asks for it, or names what it is about."""

VERBS = set_of(
    "send pay transfer visit open buy click forward delete remove change share invite add create "
    "execute run unlock grant cancel purchase refund withdraw deposit update publish browse"
)
"""Verbs that name a step to take where one stands in a field of its own."""

DELEGATES = re.compile(
    r"(?i)\b(instructions?|to-?do|requests?|accordingly|follow(?!-)|tasks? (i have|on|in|from)"
    r"|actions? (specified|listed|described|in)|do (all|the things|what)|fulfil\w*"
    r"|as (described|instructed|asked)|steps|anweisung\w*|aufgaben)\b"
)
"""Words by which a user leaves it to a text what is done."""


@lru_cache(1024)
def name_words(tool: str) -> tuple[str, ...]:
    """Return the words of a tool's name, in small letters: ``get_webPage`` has three."""
    return tuple(word.lower() for word in _PART_OF_NAME.findall(tool))


@lru_cache(1024)
def effects_of(tool: str) -> tuple[str, ...]:
    """Return what a tool does by its name; nothing if it only reads, or its name does not say."""
    parts = frozenset(name_words(tool))
    if parts & PERSONS:
        return ()
    found = tuple(effect for effect, words in OF_NAMES.items() if parts & words)
    if parts & READS:  # to get a page from the web tells its server something
        return tuple(effect for effect in found if effect == "browse")
    return found


def stem(word: str) -> str:
    """Return a word without the commonest endings of English."""
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


STEMS_OF_TEXTS: Mapping[str, frozenset[str]] = {
    effect: frozenset(map(stem, words)) for effect, words in OF_TEXTS.items()
}


def asked_in(stems: frozenset[str]) -> frozenset[str]:
    """Return the effects that the words of a text ask for, by their stems.

    Who asks to share findings with a person asks to send them.
    """
    asked = {effect for effect, known in STEMS_OF_TEXTS.items() if stems & known}
    return frozenset(asked | {"send"} if stem("share") in stems else asked)


def _effects(notes: Notes, tool: Any) -> Any:
    if isinstance(tool, str):
        return list(effects_of(tool))
    return NAN if is_unknown(tool) else notes.unknown("effects() needs the name of a tool")


register(
    {
        "effects": Function(
            _effects, 1, 1, "what a tool does by its name, such as 'pay'; [] if it only reads"
        )
    }
)
