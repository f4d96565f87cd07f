# SPDX-License-Identifier: GPL-2.0
"""Outside the guest, in the lab's root: what the programs that are measured have on their drives
from the start, made once so that all sides have the same."""

import programs_guest


def options(parser):
    parser.add_argument("--data", required=True, help="the folder that it is put into")
    parser.add_argument("--folder", required=True, help="of ci/env-programs")
    parser.add_argument("--programs", required=True)


def run(args):
    programs_guest.make(args.data, args.folder, programs_guest.chosen(args.programs))
