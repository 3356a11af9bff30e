package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
)

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
