# SPDX-License-Identifier: GPL-2.0
# Untried: parsed by nix-instantiate, never evaluated against nixpkgs. See contrib/README.md.
# The module, for boot.extraModulePackages:
#   config.boot.kernelPackages.callPackage ./module.nix { src = ...; version = "VERSION"; }
# The kernel has to be built with Rust, and its headers to have rust/libkernel.rmeta.
{ lib, stdenv, kernel, rustc, rust-bindgen, src, version }:

stdenv.mkDerivation {
  pname = "hiops";
  inherit src version;

  nativeBuildInputs = kernel.moduleBuildDependencies ++ [ rustc rust-bindgen ];
  hardeningDisable = [ "pic" "format" ];

  buildPhase = ''
    runHook preBuild
    patchShebangs tools
    tools/dkms-source module
    make -C ${kernel.dev}/lib/modules/${kernel.modDirVersion}/build M=$PWD/module modules
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    install -D -m 0644 module/hiops.ko $out/lib/modules/${kernel.modDirVersion}/extra/hiops.ko
    runHook postInstall
  '';

  meta = {
    description = "Driver for NVMe and SATA SSDs whose waiting threads end their I/O themselves";
    license = lib.licenses.gpl2Only;
    platforms = [ "x86_64-linux" ];
    broken = lib.versionOlder kernel.version "7.2";
  };
}
