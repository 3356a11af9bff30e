package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"hooklock/cmd/hooklock/cli"

	"github.com/spf13/cobra"
)

func newDrain() *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "tell a running hooklock serve to send senders elsewhere: the preStop hook of its container",
		Long: `Tell a running "hooklock serve" to send senders elsewhere: /readyz turns 503, and each answer ends its connection. Deliveries are still
taken, and what runs goes on; SIGTERM ends the process. There is no way back but a restart.

It sends SIGUSR1 to --pid, which is 1 in a container of its own.`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return signalServe(pid, syscall.SIGUSR1) },
	}
	cmd.Flags().IntVar(&pid, "pid", 1, "process ID of hooklock serve")
	return cmd
}

// signalServe signals the process, unless it is visibly another program: outside of a container
// process 1 is the init system.
func signalServe(pid int, signal syscall.Signal) error {
	if pid < 1 { // kill(2) takes 0 for a process group and -1 for all processes
		return cli.Misuse(fmt.Errorf("--pid %d: give the ID of one process, from 1 on", pid))
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil &&
		filepath.Base(program) != filepath.Base(own) {
		return cli.Misuse(fmt.Errorf("process %d is %s, and not hooklock; give --pid", pid, program))
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal process %d: %w; give --pid", pid, err)
	}
	return nil
}
