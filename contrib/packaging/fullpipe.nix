# Nix, from the release's tarball: nix-build -E '(import <nixpkgs> { }).callPackage ./fullpipe.nix { }'
{ lib, stdenvNoCC, fetchurl, installShellFiles }:
let
  tarballs = {
    x86_64-linux = {
      url = "@ADDRESS@/fullpipe-@VERSION@-x86_64-linux.tar.gz";
      sha256 = "@SHA256_X86_64@";
    };
    aarch64-linux = {
      url = "@ADDRESS@/fullpipe-@VERSION@-aarch64-linux.tar.gz";
      sha256 = "@SHA256_AARCH64@";
    };
  };
in
stdenvNoCC.mkDerivation {
  pname = "fullpipe";
  version = "@VERSION@";
  src = fetchurl tarballs.${stdenvNoCC.hostPlatform.system};
  nativeBuildInputs = [ installShellFiles ];
  # It is stripped and static as it is.
  dontStrip = true;
  installPhase = ''
    install -Dm755 fullpipe $out/bin/fullpipe
    installManPage man/*.1
    installShellCompletion --bash completions/fullpipe
    installShellCompletion --zsh completions/_fullpipe
    installShellCompletion --fish completions/fullpipe.fish
  '';
  meta = {
    description = "Finds what keeps a TCP transfer from filling its path, and fixes it";
    license = with lib.licenses; [ mit asl20 ];
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "fullpipe";
  };
}
