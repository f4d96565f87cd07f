# SPDX-License-Identifier: GPL-2.0
"""What `sos report` takes along of hiops."""

from sos.report.plugins import IndependentPlugin, Plugin


class Hiops(Plugin, IndependentPlugin):
    """Collects what hiops serves, how it is set up and what it has counted: by hiopsctl, from its
    folders in sysfs, from the list of devices that are bound at boot, and from the drives, which
    the nvme plugin does not find under their names.

    `hiopsctl report` is in it as that writes it, without serial numbers; other commands' output
    has them, and is for `sos clean`.
    """

    short_desc = 'The hiops storage driver'

    plugin_name = 'hiops'
    profiles = ('storage', 'hardware')
    packages = ('hiops-tools',)
    commands = ('hiopsctl',)
    kernel_mods = ('hiops',)

    def setup(self):
        self.add_copy_spec([
            "/etc/hiops/devices",
            "/run/motd.d/hiops",
            "/sys/module/hiops/version",
            "/sys/module/hiops/srcversion",
            "/sys/module/hiops/parameters/*",
            "/sys/block/hiops*/hiops/*",
            "/sys/block/hiops*/inflight",
        ])
        # To read these tells nothing.
        self.add_forbidden_path([
            "/sys/block/hiops*/hiops/rescan_controller",
            "/sys/block/hiops*/hiops/reset_controller",
        ])
        self.add_cmd_output([
            "hiopsctl status",
            "hiopsctl list",
            "hiopsctl --json list",
            "hiopsctl nvme-list -o json",
            "hiopsctl check",
            "hiopsctl metrics",
            "hiopsctl report -",
            "modinfo hiops",
            "hiops-users",
        ])
        self.add_service_status(["hiops-bind.service", "hiops-metrics.timer"])
        self.add_journal(units=["hiops-bind", "hiops-metrics"])
        self.add_device_cmd([
            "nvme id-ctrl -H %(dev)s",
            "nvme smart-log %(dev)s",
            "nvme error-log %(dev)s",
            "smartctl --all -d nvme %(dev)s",
        ], devices='block', whitelist=r'hiops\d+n\d+$')
        self.add_device_cmd("smartctl --all -d sat %(dev)s", devices='block',
                            whitelist=r'hiops\d+d\d+$')
