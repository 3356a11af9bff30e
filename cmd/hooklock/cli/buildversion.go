package cli

import "runtime/debug"

// BuildVersion is the version of this binary, as well as it is known.
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
