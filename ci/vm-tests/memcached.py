#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What memcached.sh asks of memcached: memcached.py VERB ARG...

set, mix, get PORT STATE COUNT [FIRST]: sets so many values, from that number on; gets as many at
random, while every thirtieth request sets one anew; gets each. STATE is the file that says which
content each has last been given. Each value that comes back is compared, byte by byte; the last
line says how many came, and how many were missed or wrong.
"""

import hashlib
import json
import os
import random
import socket
import sys

SIZES = (100, 400, 2000)
# Clients that ask at once, each for so many values before it looks at an answer.
CLIENTS, AHEAD = 16, 8
SETS = 30


def content(number, turn):
    """What the value of that number is when it has been set so many times."""
    size = SIZES[number % len(SIZES)]
    return hashlib.shake_128(f"{number} {turn}".encode()).digest(size)


class Client:
    """A connection that keeps to memcached's text protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        self.stream = self.socket.makefile("rb")

    def send(self, *pieces):
        self.socket.sendall(b"".join(pieces))

    def line(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"memcached has gone: {line}")
        return line[:-2]

    def ask_set(self, number, turn):
        data = content(number, turn)
        self.send(b"set value-%d 0 0 %d\r\n" % (number, len(data)), data, b"\r\n")

    def answer_set(self):
        answer = self.line()
        assert answer == b"STORED", answer

    def ask_get(self, number):
        self.send(b"get value-%d\r\n" % number)

    def answer_get(self, number):
        """The value, or None."""
        words = self.line().split()
        if words == [b"END"]:
            return None
        assert words[:2] == [b"VALUE", b"value-%d" % number], words
        data = self.stream.read(int(words[3]) + 2)
        assert data.endswith(b"\r\n") and self.line() == b"END", "the end of an answer"
        return data[:-2]


class Values:
    """What is in memcached, as far as it is told."""

    def __init__(self, port, state, numbers):
        self.clients = [Client(port) for _ in range(CLIENTS)]
        self.state, self.turns = state, {}
        if os.path.exists(state):
            with open(state, encoding="ascii") as text:
                self.turns = {int(number): turn for number, turn in json.load(text).items()}
        self.numbers = numbers
        self.hits = self.misses = self.wrong = 0

    def all_do(self, numbers, ask, answer):
        """Each client asks for AHEAD of them, then looks at the answers, and so on."""
        numbers = list(numbers)
        for first in range(0, len(numbers), CLIENTS * AHEAD):
            pairs = [(self.clients[at % CLIENTS], number)
                     for at, number in enumerate(numbers[first : first + CLIENTS * AHEAD])]
            for client, number in pairs:
                ask(client, number)
            for client, number in pairs:
                answer(client, number)

    def set(self, numbers):
        """Gives each another content than it had."""
        for number in numbers:
            self.turns[number] = self.turns.get(number, 0) + 1
        self.all_do(numbers, lambda client, number: client.ask_set(number, self.turns[number]),
                    lambda client, _: client.answer_set())

    def look(self, client, number):
        got = client.answer_get(number)
        if got is None:
            self.misses += 1
        elif got == content(number, self.turns[number]):
            self.hits += 1
        else:
            self.wrong += 1
            print(f"value {number} of turn {self.turns[number]}: {got[:40].hex()}...")

    def get(self, numbers):
        self.all_do(numbers, Client.ask_get, self.look)

    def mix(self):
        dice = random.Random(6)
        batch = CLIENTS * AHEAD
        for _ in range(0, len(self.numbers), batch):
            self.set(dice.sample(self.numbers, batch // SETS))
            self.get(dice.choices(self.numbers, k=batch))

    def end(self):
        with open(self.state, "w", encoding="ascii") as out:
            json.dump(self.turns, out)
        print(f"hits={self.hits} misses={self.misses} wrong={self.wrong}")


def main(verb, *args):
    count, first = int(args[2]), int(args[3]) if args[3:] else 0
    values = Values(args[0], args[1], range(first, first + count))
    if verb == "set":
        values.set(values.numbers)
    elif verb == "get":
        values.get(values.numbers)
    else:
        values.mix()
    values.end()


main(*sys.argv[1:])
