package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

func newReload(e *cli.Environment) *cobra.Command {
	var r remote.Remote
	var pid int
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "tell a running hooklock serve to reload its configuration, and print the result",
		Long: `Tell a running "hooklock serve" to read its configuration anew, and say whether it was taken over. What needs a restart, or is not valid,
is refused, and the old configuration stays in force: what is wrong is printed, and the exit code is 2.

It asks over the admin API, with a token that may write. With --pid it asks for none: where the file is valid, it sends SIGHUP to that process and reads in
its metrics what came of it, at health.listen, or at admin.listen; one that is refused then is exit code 1. That is the ExecReload of the unit for systemd.`,
		Example: `  hooklock reload
  hooklock reload --config /etc/hooklock/sidecar.yaml --pid "$(systemctl show --property MainPID --value hooklock)"`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("pid") {
				return r.Reload(cmd.Context(), e)
			}
			loaded, err := wiring.Load(e, r.ConfigFile(), nil, true)
			if err == nil {
				err = wiring.Check(loaded, true)
			}
			if err != nil {
				return err
			}
			return signalReload(cmd.Context(), e, loaded.Config, pid, wait)
		},
	}
	r.Flags(cmd)
	cmd.Flags().IntVar(&pid, "pid", 0, "signal this process of hooklock serve, without a token")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for the result of a signal")
	return cmd
}

// signalReload signals the process and waits until its count of reloads grows.
func signalReload(ctx context.Context, e *cli.Environment, c *config.Config, pid int, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	own, err := metricsOf(c)
	if err != nil {
		return err
	}
	defer own.Close()
	before, err := reloadsOf(ctx, own)
	if err != nil {
		return fmt.Errorf("ask the running hooklock: %w; a changed admin.listen or health.listen needs a restart; "+
			"nothing was sent to it", err)
	}
	if err := signalServe(pid, syscall.SIGHUP); err != nil {
		return err
	}
	for last := before; ; cli.Pause(ctx, 50*time.Millisecond) {
		now, err := reloadsOf(ctx, own)
		settled := err == nil && now.count > before.count && now.count == last.count // one page may mix two moments
		switch last = now; {
		case settled && now.taken:
			fmt.Fprintln(e.Stdout, "the configuration was taken over")
			return nil
		case settled:
			return errors.New("the configuration was refused, and the old one stays in force; the log of hooklock " +
				"serve says why (config.refused)")
		case ctx.Err() != nil:
			return fmt.Errorf("process %d got the signal to reload and did not report a result within %v; see its log",
				pid, wait)
		}
	}
}

// metricsOf returns a client of the listener with the metrics, without a token.
func metricsOf(c *config.Config) (*client.Client, error) {
	o := client.Options{URL: remote.AdminURL(c), TLS: wiring.OwnTrust(c)}
	if at := remote.FromHere(c.Health.Listen); at != "" {
		o = client.Options{URL: "http://" + at}
	}
	if o.URL == "" {
		return nil, cli.Misuse(errors.New("admin.listen picks its port at the start: give it one, or health.listen"))
	}
	if c.Admin.TLS.ClientCAFile != "" && c.Health.Listen == "" {
		return nil, cli.Misuse(errors.New("admin.listen asks for a client certificate: set health.listen, such as " +
			"127.0.0.1:8078, where the outcome can be read"))
	}
	return client.New(o)
}

// reloads are the metrics of reloads.
type reloads struct {
	count int64 // taken over and refused, since the start
	taken bool  // whether the last one was taken over
}

func reloadsOf(ctx context.Context, c *client.Client) (r reloads, err error) {
	text, err := c.Metrics(ctx)
	if err != nil {
		return r, err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "hooklock_config_reloads_total":
			r.count += int64(n)
			found = true
		case "hooklock_config_last_reload_successful":
			r.taken = n == 1
		}
	}
	if !found {
		return r, errors.New("its metrics do not count reloads (is OTEL_SDK_DISABLED set?)")
	}
	return r, nil
}

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

func newHealthcheck(e *cli.Environment) *cobra.Command {
	var file, url string
	var live bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "ask a running hooklock serve whether it is ready: the health check of its container",
		Long: `Ask the "hooklock serve" of this machine whether deliveries may come (/readyz), at health.listen, or at admin.listen. The exit code is 0 if they may, and 1
if not, or if there is no answer. A short outage of etcd does not change it; a longer one does, and no restart heals that. So what restarts containers that
fail should ask --live: whether the process answers (/livez).

A file that is not valid is exit code 2. Give --url where the file may change before a reload.`,
		Example: `  hooklock healthcheck --config /etc/hooklock/sidecar.yaml`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := clientOf(e, file, url)
			if err != nil {
				return err
			}
			defer own.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			ask := own.Ready
			if live {
				ask = own.Live
			}
			return answerOf(ask(ctx))
		},
	}
	cmd.Flags().StringVar(&file, "config", wiring.DefaultConfig, "configuration file of that process")
	cmd.Flags().StringVar(&url, "url", "", "ask this URL or HOST:PORT, and read no file")
	cmd.Flags().BoolVar(&live, "live", false, "ask whether the process answers, and not whether it is ready")
	cmd.Flags().DurationVar(&wait, "timeout", 2*time.Second, "how long to wait for the answer")
	return cmd
}

// clientOf returns a client of the process at url or, if that is empty, of the one that has this
// configuration.
func clientOf(e *cli.Environment, file, url string) (*client.Client, error) {
	if url != "" {
		return remote.ClientAt("--url", client.Options{URL: url})
	}
	loaded, err := wiring.Load(e, file, nil, true)
	if err != nil {
		return nil, err
	}
	return metricsOf(loaded.Config)
}

// answerOf returns an error with exit code 1, whatever went wrong.
func answerOf(err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p) && p.Code == client.CodeNotReady:
		return fmt.Errorf("not ready: %s", p.Detail)
	}
	return fmt.Errorf("no answer of hooklock serve: %s", err.Error())
}
