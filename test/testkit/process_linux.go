package testkit

import "syscall"

// dieWithParent lets the kernel end the process when the test process is killed: no cleanup would run then.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
