"""The command line for a program that starts it, like `frontrow demo` its server: it ends when that program is gone.

The program keeps the other end of standard input open. When it dies, however it dies, the system closes that end.
"""

import os
import signal
import threading

from frontrow.cli.main import main


def _end_with_the_parent() -> None:
    while os.read(0, 4_096):  # not sys.stdin: its lock would be held when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_parent, daemon=True, name="parent").start()
    main()
