# `make install` for users and packagers of the C library; cargo does the work. `cargo xtask install --help` lists the files.
#
#   make install PREFIX=/usr DESTDIR=/tmp/package

PREFIX = /usr/local
LIBDIR = lib
DESTDIR =
CARGO = cargo

.PHONY: all install check

all:
	$(CARGO) build --profile packaged -p ottla-capi -p ottla-cli

install:
	$(CARGO) xtask install --prefix "$(PREFIX)" --libdir "$(LIBDIR)" --destdir "$(DESTDIR)"

check:
	$(CARGO) xtask abi
