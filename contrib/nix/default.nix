# SPDX-License-Identifier: GPL-2.0
# Untried: parsed by nix-instantiate, never evaluated against nixpkgs. See contrib/README.md.
# The tools: pkgs.callPackage ./default.nix { src = ./hiops_VERSION.tar.xz; version = "VERSION"; }
{ lib, stdenv, cargo, rustc, bash, coreutils, kmod, gnused, makeWrapper, bpftrace
, src, version, withTrace ? false }:

stdenv.mkDerivation {
  pname = "hiops-tools";
  inherit src version;

  nativeBuildInputs = [ cargo rustc makeWrapper ];
  buildInputs = [ bash ];

  # The crates are in the source: nothing is fetched.
  buildPhase = ''
    runHook preBuild
    patchShebangs tools
    mkdir -p built/cargo/tools
    cp debian/cargo/Cargo.* built/cargo/
    cp -r tools/hiopsctl built/cargo/tools/
    vendor=$PWD/vendor
    (
      cd built/cargo
      HIOPS_VERSION=${version} CARGO_HOME=$PWD/home cargo build --offline --locked --release \
        -p hiopsctl --config 'source.crates-io.replace-with="vendor"' \
        --config "source.vendor.directory=\"$vendor\""
    )
    runHook postBuild
  '';

  # udev's rules and units name the programs by their paths here; initramfs-tools and dracut are not
  # NixOS'.
  installPhase = ''
    runHook preInstall
    PREFIX=/usr DESTDIR=$PWD/tree tools/hiops-install --tools built/cargo/target/release/hiopsctl
    mkdir -p $out
    cp -r tree/usr/sbin $out/bin
    cp -r tree/usr/share tree/usr/libexec $out/
    mkdir -p $out/lib
    cp -r tree/usr/lib/udev tree/usr/lib/systemd $out/lib/
    rm -r $out/share/initramfs-tools
    mv $out/share/zsh/vendor-completions $out/share/zsh/site-functions
    grep -rlE '/usr/(sbin|libexec)' $out | xargs sed -i \
      -e "s,/usr/sbin,$out/bin,g" -e "s,/usr/libexec,$out/libexec,g"
    for program in $out/bin/hiops-*; do
      wrapProgram $program --prefix PATH : \
        ${lib.makeBinPath ([ coreutils gnused kmod ] ++ lib.optional withTrace bpftrace)}
    done
    runHook postInstall
  '';

  meta = {
    description = "Hand NVMe and SATA drives to the hiops driver, and watch them";
    license = lib.licenses.gpl2Only;
    platforms = [ "x86_64-linux" ];
  };
}
