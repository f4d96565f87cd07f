#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The main job at size: 16 processes over 128 MiB, and a source tree of more than 10,000 files on
# ext4; in make test-long on xfs, too.
# vm: --cpus 2 --memory 3G --timeout 1200
# vm: --qemu "-drive file=$DIR/ssd,if=none,id=ssd,format=raw,discard=unmap"
# vm: --qemu "-device nvme,id=ssd0,serial=first,drive=ssd,max_ioqpairs=4,addr=5"
# image: ssd 2G
exec ci/first-io --jobs 16 --size 128 --fs "ext4${HIOPS_LONG:+ xfs}" \
	--tree "$HIOPS_CACHE/kernel-$(cat /etc/hiops-kernel-release)/tree.tar" 0000:00:05.0 \
	hiops_nvme
