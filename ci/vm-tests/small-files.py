# SPDX-License-Identifier: GPL-2.0
"""small-files.py write FOLDER: writes 200 files of 8 KiB, each full of one byte, and removes every
other one. small-files.py read FOLDER: the others are there, whole. (A program a file would take a
machine that is emulated a minute.)
"""
import os
import sys

COUNT, SIZE = 200, 8192


def data(number):
    return bytes([number + 1]) * SIZE


def main():
    verb, folder = sys.argv[1:]
    paths = [os.path.join(folder, str(number)) for number in range(COUNT)]
    if verb == "write":
        for number, path in enumerate(paths):
            with open(path, "wb") as file:
                file.write(data(number))
        # They have their places before half of them go.
        os.sync()
        for path in paths[::2]:
            os.unlink(path)
        return
    left = sorted(os.listdir(folder), key=int)
    if left != [str(number) for number in range(1, COUNT, 2)]:
        sys.exit(f"there are {len(left)} files: {left[:5]}")
    for number in range(1, COUNT, 2):
        with open(paths[number], "rb") as file:
            if file.read() != data(number):
                sys.exit(f"file {number} is not what was written")


main()
