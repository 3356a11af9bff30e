package cli

import "runtime/debug"

// BuildVersion returns the version of this binary: the release, or what the Go toolchain recorded.
func BuildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// version is set by the linker in a release.
var version string
