# SPDX-License-Identifier: GPL-2.0
# The front door of hiops. Each command is a script that a person can also run alone.
# Everything downloaded or built goes to $HIOPS_CACHE (default ~/.cache/hiops).

KVER ?= stock

.PHONY: help run demo test test-long soak fuzz blktests bench modules deb deb-source repo vm \
	env install uninstall
help: ## this list
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

run: ## from nothing to emulated NVMe and SATA SSDs on hiops: verified, and measured beside in-tree
	@ci/env
	@ci/main-job

demo: ## drives on hiops under fio in a virtual machine, and hiopsctl stat --watch; q ends it
	@ci/demo

test: ## every test; the last line is "N passed, N failed"
	@ci/env --with-debug
	@ci/test $(CHECKS)

test-long: ## that, and what is long by nature: on each kernel, with fresh seeds, an hour and more
	@ci/env --with-debug
	@HIOPS_LONG=1 ci/test $(CHECKS)

soak: ## every switch at random under verified load, SECONDS of it (600); PROTOCOL=blocks
	@ci/env --with-debug
	@HIOPS_SOAK_S=$(or $(SECONDS),600) HIOPS_SOAK_PROTOCOL=$(PROTOCOL) ci/check-vm soak

fuzz: ## devices that do whatever breaks a driver, SECONDS of it for each (600)
	@ci/fuzz nvme $(or $(SECONDS),600)
	@ci/fuzz ahci $(or $(SECONDS),600)

blktests: ## blktests on either driver's disk; SUITE=DIR: a checkout of it
	@ci/env
	@ci/blktests "$(SUITE)" $(TESTS)

# With DISK=/dev/NAME that disk is measured, read only (WRITE=1: and overwritten).
bench: ## the measurements of bench/, as a table, JSON and plots; JOBS='NAME...' or DISK=/dev/NAME
ifdef DISK
	@mkdir -p bench/results
	@bench/run disk "$(DISK)" $(if $(WRITE),--write) \
		--json "bench/results/disk-$(notdir $(DISK)).json"
else
	@ci/env
	@bench/run $(JOBS)
endif

modules: ## hiops.ko for KVER: stock (default), debug, or a release of Debian's; KDIR=TREE: your own
	@ci/env
	@ci/module $(if $(KDIR),--kdir "$(KDIR)",$(KVER))

deb: ## Debian packages: tools, DKMS, and a module for each of KVER='stock oldest RELEASE...'
	@ci/env
	@ci/deb $(KVER)

deb-source: ## the Debian source package, built in a clean root with the network off
	@ci/env
	@ci/deb-source --check

repo: ## packages for KVER as an apt repository in DIR, signed where HIOPS_REPO_KEY names a gpg key
	@ci/env
	@debs=$$(ci/deb $(KVER)) && \
		ci/repo "$(or $(DIR),$${HIOPS_CACHE:-$$HOME/.cache/hiops}/repo)" $$debs

vm: ## a shell command in a virtual machine: make vm CMD='lsblk'
	@ci/vm -- sh -c '$(or $(CMD),uname -a; lsblk)'

env: ## prepare the lab: root, stock kernel
	@ci/env

ifeq ($(KVER),stock)
install: RELEASE = $(shell $(if $(KDIR),make -s -C "$(KDIR)" kernelrelease,uname -r))
else
install: RELEASE = $(KVER)
endif
install: ## on this machine, for its running kernel, KVER or KDIR: module, tools, udev rules, boot
	@tools/hiops-install --check "$(RELEASE)"
	@ci/env-host
	@ko=$$(ci/module $(if $(KDIR),--kdir "$(KDIR)","$(RELEASE)")) && ctl=$$(ci/hiopsctl) && \
		tools/hiops-install "$$ko" "$(RELEASE)" "$$ctl"

uninstall: ## take all of that away again
	@tools/hiops-install --remove
