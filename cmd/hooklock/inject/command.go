package inject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

// New returns the command inject. It reads stdin if no file is named.
func New(e *cli.Environment, stdin io.Reader) *cobra.Command {
	var o options
	var path string
	cmd := &cobra.Command{
		Use:   "inject [FILE...]",
		Short: "write the sidecar into manifests of Kubernetes, and print them",
		Long: `Write the sidecar into manifests of Kubernetes, from files or from standard input, and print them. Each Deployment, StatefulSet or
DaemonSet that a Service among them selects gets Hooklock's container, its volumes, and time to end; deliveries go to the port that the Service
named, and the Service leads to Hooklock. Everything else is printed as it came.

With --config, sidecar.yaml is checked and becomes the ConfigMap "hooklock" of the output; a changed one rolls the pods. Secrets are files of the
Secret "hooklock", which is yours to make.

The first time, apply the pods before the Service, in the order that docs/kubernetes.md has:

  hooklock inject --image registry.example.com/hooklock:1.0 --config sidecar.yaml --first-rollout shop.yaml > guarded.yaml
  kubectl apply -f guarded.yaml -l 'hooklock!=service'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error {
			if o.Image == "" {
				return cli.Misuse(errors.New("give --image with the name that your registry has for Hooklock's image"))
			}
			if path != "" {
				if err := o.readConfig(e, path); err != nil {
					return err
				}
			}
			in, err := openManifests(files, stdin)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			notes, err := injectManifests(in, &out, o)
			if err != nil {
				return cli.Misuse(err)
			}
			for _, n := range notes {
				fmt.Fprintln(e.Stderr, "hooklock: "+n)
			}
			_, err = out.WriteTo(e.Stdout)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Image, "image", "", "Hooklock's image in your registry (required)")
	f.StringVar(&path, "config", "", "sidecar.yaml, to become the ConfigMap hooklock; empty: there is such a "+
		"ConfigMap already")
	f.StringVar(&o.Service, "service", "", "the Service that takes deliveries, where several select the same pods")
	f.BoolVar(&o.FirstRollout, "first-rollout", false,
		"keep the old pods for a minute beside the new ones, so that no delivery is lost the first time")
	return cmd
}

// readConfig returns the text of the configuration, which must be valid.
func (o *options) readConfig(e *cli.Environment, path string) error {
	loaded, err := wiring.Load(e, path, nil, false)
	if err == nil {
		_, err = wiring.NewRules(loaded.Config)
	}
	if problems := (config.Problems)(nil); errors.As(err, &problems) {
		return cli.Misuse(err)
	} else if err != nil {
		return err
	}
	o.Config, err = os.ReadFile(path) //nolint:gosec // the file that the user names
	return err
}

func openManifests(files []string, stdin io.Reader) (io.Reader, error) {
	if len(files) == 0 {
		return stdin, nil
	}
	var all bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		all.WriteString("\n---\n")
		// it would be a part of the first key: only the first one of all is no text
		all.Write(bytes.TrimPrefix(text, []byte("\ufeff")))
	}
	return &all, nil
}
