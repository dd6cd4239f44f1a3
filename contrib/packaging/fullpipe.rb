# Homebrew on Linux, from the release's tarball.
class Fullpipe < Formula
  desc "Finds what keeps a TCP transfer from filling its path, and fixes it"
  homepage "@ADDRESS@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux

  on_intel do
    url "@ADDRESS@/fullpipe-@VERSION@-x86_64-linux.tar.gz"
    sha256 "@SHA256_X86_64@"
  end
  on_arm do
    url "@ADDRESS@/fullpipe-@VERSION@-aarch64-linux.tar.gz"
    sha256 "@SHA256_AARCH64@"
  end

  def install
    bin.install "fullpipe"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/fullpipe"
    zsh_completion.install "completions/_fullpipe"
    fish_completion.install "completions/fullpipe.fish"
  end

  test do
    assert_match "18.25 MB", shell_output("#{bin}/fullpipe calc --rate 1gbit --rtt 146ms")
  end
end
