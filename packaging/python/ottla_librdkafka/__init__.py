"""Ottla's librdkafka.so.1, and the means to put it into an installed confluent_kafka."""

__version__ = "@VERSION@"
#: The version of librdkafka whose functions the library has.
LIBRDKAFKA = "@LIBRDKAFKA@"
