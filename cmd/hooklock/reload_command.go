package main

import (
	"context"
	"errors"
	"fmt"
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
			return reload(cmd.Context(), e, loaded.Config, pid, wait)
		},
	}
	r.Flags(cmd)
	cmd.Flags().IntVar(&pid, "pid", 0, "signal this process of hooklock serve, without a token")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for the result of a signal")
	return cmd
}

// reload signals the process and waits until its count of reloads grows.
func reload(ctx context.Context, e *cli.Environment, c *config.Config, pid int, wait time.Duration) error {
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
