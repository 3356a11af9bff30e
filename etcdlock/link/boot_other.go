//go:build !linux

package link

import "time"

// bootTime: only Linux has a clock that tells a suspended machine; elsewhere the monotonic clock decides alone.
func bootTime() time.Duration { return 0 }
