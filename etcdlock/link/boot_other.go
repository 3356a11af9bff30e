//go:build !linux

package link

import "time"

// bootTime returns 0: only Linux has a clock that counts while the machine is suspended; elsewhere
// the monotonic clock decides alone.
func bootTime() time.Duration { return 0 }
