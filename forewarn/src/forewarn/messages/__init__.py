"""Messages: from bytes to columns, and from columns to values."""

from forewarn.messages.blocks import BlockExtractor, block_extractor
from forewarn.messages.definitions import MessageType, installed_message_type, message_type
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.foreign import ForeignExtractor, ForeignType, foreign_type
from forewarn.messages.schema import DefinitionError

__all__ = [
    "BlockExtractor",
    "DefinitionError",
    "Extractor",
    "ForeignExtractor",
    "ForeignType",
    "MessageType",
    "block_extractor",
    "compile_extractor",
    "foreign_type",
    "installed_message_type",
    "message_type",
]
