# SPDX-License-Identifier: GPL-2.0
"""A machine's console on a terminal: whose a key is, and that the terminal is left as it was."""

import os
import pty
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

import terminal


class Terminals(unittest.TestCase):
    def setUp(self):
        self.person, self.keys = pty.openpty()
        self.console, self.machine = socket.socketpair()
        self.shown, screen = os.pipe()
        self.before = termios.tcgetattr(self.keys)
        self.ended = []
        args = self.console, self.keys, screen
        self.thread = threading.Thread(target=lambda: self.ended.append(terminal.relay(*args)))
        self.thread.start()
        for fd in (self.person, self.keys, self.shown, screen):
            self.addCleanup(os.close, fd)
        for end in (self.console, self.machine):
            self.addCleanup(end.close)

    def begun(self):
        """The machine says something: from now on keys are its own."""
        self.machine.sendall(b"hello")
        self.assertEqual(os.read(self.shown, 5), b"hello")

    def test_keys_go_to_the_machine_and_q_is_an_interrupt(self):
        self.begun()
        os.write(self.person, b"aq\r")
        self.assertEqual(self.machine.recv(3, socket.MSG_WAITALL), b"a\x03\r")
        self.machine.close()
        self.thread.join()
        self.assertEqual(self.ended, [True])

    def test_the_terminal_is_raw_meanwhile_and_then_as_it_was(self):
        self.assertEqual(termios.tcgetattr(self.keys), self.before)
        self.begun()
        self.assertFalse(termios.tcgetattr(self.keys)[3] & termios.ICANON)
        self.machine.close()
        self.thread.join()
        self.assertEqual(termios.tcgetattr(self.keys), self.before)

    def test_without_a_machine_it_ends(self):
        self.machine.close()
        self.thread.join()
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(terminal.connected(f"{folder}/none", gone.pid))
