package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/etcdlock/tend"
)

func newEtcd(e *cli.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "defragment the etcd cluster while hooklock runs",
		Long:  "Do to the members of the etcd cluster what has to be done to one after the other while hooklock runs.",
		Args:  remote.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDefrag(e))
	return cmd
}

func newDefrag(e *cli.Environment) *cobra.Command {
	var path string
	var alone bool
	cmd := &cobra.Command{
		Use:   "defrag",
		Short: "defragment each member of the etcd cluster, the leader last",
		Long: `Defragment each member of the etcd cluster: first the followers, one at a time; then the leadership is moved to one of them, and the member that
had it comes last. While a leader is defragmented, etcd renews no lease through any member, and sessions end. Between two members it waits
until all are well. It refuses, with the reason, where a member is away, behind, damaged or a learner, and where there is one member.

It uses etcd.endpoints and the user of the configuration, which with authentication needs the role root: HOOKLOCK__ETCD__USERNAME and
HOOKLOCK__ETCD__PASSWORD_FILE, or HOOKLOCK__ETCD__TLS__CERT_FILE and HOOKLOCK__ETCD__TLS__KEY_FILE, name another one.`,
		Example: `  hooklock etcd defrag --config sidecar.yaml`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := wiring.Load(e, path, nil, true)
			if err != nil {
				return err
			}
			if len(loaded.Config.Etcd.Endpoints) == 0 {
				return cli.Misuse(errors.New("etcd.endpoints is empty: the embedded etcd defragments itself when " +
					"that is worth it"))
			}
			o, err := wiring.StoreOptions(loaded.Config, nil)
			if err != nil {
				return err
			}
			err = (&tend.Defragmenter{Target: o.Target(), Alone: alone, Say: func(s tend.Step) {
				fmt.Fprintln(e.Stdout, cli.Plain(stepText(s)))
			}}).Run(cmd.Context())
			if err != nil {
				return fmt.Errorf("defragment etcd: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	cmd.Flags().BoolVar(&alone, "alone", false, "also where etcd has one member: it does not answer meanwhile")
	return cmd
}

func stepText(s tend.Step) string {
	if s.Moved {
		return fmt.Sprintf("%s (%s): is the leader now", s.Member, s.Endpoint)
	}
	const mib = 1 << 20
	return fmt.Sprintf("%s (%s): defragmented in %v, %.1f MiB before, %.1f MiB now", s.Member, s.Endpoint,
		s.Took.Round(time.Millisecond), float64(s.Before)/mib, float64(s.After)/mib)
}
