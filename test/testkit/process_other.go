//go:build !linux

package testkit

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }

// standsStill cannot be known here.
func standsStill(int) bool { return true }
