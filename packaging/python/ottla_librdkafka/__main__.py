"""python -m ottla_librdkafka install | uninstall | status"""

import argparse
import sys

from . import LIBRDKAFKA, __version__, swap


def main():
    parser = argparse.ArgumentParser(
        prog="python -m ottla_librdkafka",
        description="Put Ottla's Kafka client library into the installed confluent_kafka, or the original back.",
    )
    parser.add_argument("command", choices=["install", "uninstall", "status"])
    parser.add_argument(
        "--site", metavar="FOLDER", help="the site-packages folder with confluent_kafka (default: where Python finds it)"
    )
    parser.add_argument("--version", action="version", version="%s (librdkafka %s)" % (__version__, LIBRDKAFKA))
    arguments = parser.parse_args()
    try:
        print(getattr(swap, arguments.command)(arguments.site))
    except swap.Refused as refused:
        print("nothing was changed: %s" % refused, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
