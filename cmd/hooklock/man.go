package main

import (
	"errors"
	"fmt"
	"os"

	"hooklock/cmd/hooklock/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is for packagers, so it is not in the help.
func newMan() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "write the manual pages",
		Long: "Write a manual page for each command. Their date is SOURCE_DATE_EPOCH where that is set, so that " +
			"they can be reproduced.",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return cli.Misuse(errors.New("say where to with --dir"))
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make the folder of the pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "hooklock " + cli.BuildVersion(), Manual: "Hooklock"}
			if err := doc.GenManTree(root, header, dir); err != nil {
				return fmt.Errorf("write the pages: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the pages")
	return cmd
}
