package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/embedded"
	"hooklock/etcdlock/tend"
)

func newEmbedded(e *cli.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "embedded",
		Short: "back up the embedded etcd, restore it, or move it to an etcd cluster",
		Long: `Back up the embedded etcd, restore it, or move it to an etcd cluster. Do not copy data_dir instead: fencing tokens would go back, and a copy
of files that are being written may be none.`,
		Args: remote.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBackup(e), newRestore(e), newExport(e))
	return cmd
}

func newBackup(e *cli.Environment) *cobra.Command {
	var r remote.Remote
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "write a consistent copy of the embedded etcd of a running hooklock into a file",
		Long: `Write a consistent copy of the embedded etcd of a running hooklock into a file, with mode 0600: every answer that is kept is in it. A file that
is there is replaced when the new one is whole. It is an etcd snapshot: "etcdutl snapshot status" shows it, too.`,
		Example: `  hooklock embedded backup backup.db --config sidecar.yaml`,
		Args:    remote.OneArg("FILE"),
		RunE: r.Action(e, func(ctx context.Context, d *remote.Desk, args []string) error {
			size, err := embedded.Save(args[0], func(w io.Writer) error { return d.Backup(ctx, w) })
			if err != nil {
				return err
			}
			said, err := json.Marshal(map[string]any{"file": args[0], "bytes": size})
			if err != nil {
				return fmt.Errorf("say what was written: %w", err)
			}
			return d.PrintResult(said, fmt.Sprintf("%s: %d bytes, whole", args[0], size))
		}),
	}
	r.Flags(cmd)
	return cmd
}

func newRestore(e *cli.Environment) *cobra.Command {
	var path string
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "restore the embedded etcd's data from a backup; hooklock must not run",
		Long: `Make the embedded etcd's data anew from a backup, in data_dir. Hooklock must not run. Do it as the user that hooklock runs as.

Fencing tokens grow: the new ones are larger than all that were given out before. What ran since the backup is not known any more: such
events run again when their senders repeat them. What ran at the time of the backup is taken for unknown.`,
		Example: `  hooklock embedded restore backup.db --config sidecar.yaml --replace`,
		Args:    remote.OneArg("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := embeddedConfig(e, path)
			if err != nil {
				return err
			}
			done, err := embedded.Restore(embedded.RestoreOptions{File: args[0],
				Dir: wiring.EmbeddedOptions(c, nil).Dir, Replace: replace, Now: time.Now()})
			if err != nil {
				return fmt.Errorf("restore %s: %w", cli.Plain(args[0]), err)
			}
			fmt.Fprintf(e.Stdout, "restored into %s; fencing tokens continue after %d\n", cli.Plain(c.DataDir),
				done.Revision)
			if done.Kept != "" {
				fmt.Fprintf(e.Stdout, "the data before is in %s; remove it when it is not needed any more\n",
					cli.Plain(done.Kept))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	cmd.Flags().BoolVar(&replace, "replace", false, "move the data that is there out of the way")
	return cmd
}

func newExport(e *cli.Environment) *cobra.Command {
	var path string
	var members []string
	cmd := &cobra.Command{
		Use:   "export DIR --member NAME=PEER-URL [--member NAME=PEER-URL ...]",
		Short: "write the embedded etcd's data as that of an etcd cluster; hooklock must not run",
		Long: `Make the data of an etcd cluster out of the embedded etcd's: for each member a folder below DIR with its name. Carry each to its member as its
--data-dir, start etcd, set etcd.endpoints, and start hooklock. Everything that was recorded is known there, and fencing tokens grow. The
embedded etcd's data stays as it is; do not use it again.`,
		Example: `  hooklock embedded export new-cluster --member etcd-0=https://10.0.0.1:2380 --member etcd-1=https://10.0.0.2:2380 --member etcd-2=https://10.0.0.3:2380`,
		Args:    remote.OneArg("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := embedded.ParseMembers(members)
			if err != nil {
				return cli.Misuse(fmt.Errorf("--member: %w", err))
			}
			c, err := embeddedConfig(e, path)
			if err != nil {
				return err
			}
			o := wiring.EmbeddedOptions(c,
				slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
			revision, err := embedded.Export(cmd.Context(), o, args[0], all, time.Now())
			if err != nil {
				return fmt.Errorf("export: %w", err)
			}
			for _, m := range all {
				fmt.Fprintf(e.Stdout, "%s\n", cli.Plain(filepath.Join(args[0], m.Name)))
			}
			fmt.Fprintf(e.Stdout, "fencing tokens continue after %d\n", revision)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig,
		"configuration file of the hooklock that has the embedded etcd")
	cmd.Flags().StringArrayVar(&members, "member", nil,
		"NAME=URL of a member of the new cluster, with the URL at which the other members reach it")
	remote.NoFiles(cmd, "member")
	return cmd
}

// embeddedConfig reads the data_dir of a configuration, which may name etcd.endpoints already.
func embeddedConfig(e *cli.Environment, path string) (*config.Config, error) {
	loaded, err := wiring.Load(e, path, nil, false)
	if err != nil {
		return nil, err
	}
	return loaded.Config, nil
}

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
