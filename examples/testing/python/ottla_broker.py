"""Runs `ottla broker` for a test. Copy this file beside your tests; `ottla` is on the PATH, or OTTLA names the program."""

import os
import subprocess
import tempfile
import threading


class OttlaBroker:
    """A broker on a free port, for a `with` block; `options` are those of `ottla broker`."""

    def __init__(self, *options, timeout=30):
        self._timeout = timeout
        self._properties = {}
        self._ended = False
        self._changed = threading.Condition()
        self._errors = tempfile.TemporaryFile(mode="w+")
        command = [os.environ.get("OTTLA", "ottla"), "broker", "--port", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.bootstrap_servers = self.property("bootstrap.servers")
        except BaseException:
            self.stop()
            raise

    def property(self, name):
        """Returns a property that the broker prints, such as `control` or `sasl.password`; waits until it is there."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._properties or self._ended, self._timeout)
            if name in self._properties:
                return self._properties[name]
        self._errors.seek(0)
        raise RuntimeError(f"ottla broker does not print {name}: {self._errors.read().strip() or 'no error'}")

    def stop(self):
        """Ends the broker, and waits for its end."""
        self._process.terminate()
        try:
            self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _read(self):
        for line in self._process.stdout:
            name, is_property, value = line.rstrip("\n").partition("=")
            with self._changed:
                if is_property:
                    self._properties.setdefault(name, value)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
