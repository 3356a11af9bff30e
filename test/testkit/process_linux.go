package testkit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dieWithParent lets the kernel end the process when the test process is killed: no cleanup would
// run then.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// standsStill reports whether SIGSTOP has reached every thread of a process.
func standsStill(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) // "123 (name) T 1 …"; a name may hold anything
		if err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false
		}
	}
	return err == nil
}
