// Command prepare makes what some tests need and no package brings, in the user's cache, and prints
// where it is: `prepare traefik`, built from its Go module, and `prepare debian`, a tree that
// boots. `make test-fronts` and `make test-systemd` run it.
package main

import (
	"fmt"
	"io"
	"os"

	"hooklock/deploy/test/kit"
)

func main() {
	for _, what := range os.Args[1:] {
		make, known := map[string]func(io.Writer) (string, error){"traefik": kit.BuildTraefik,
			"debian": kit.BuildDebian}[what]
		if !known {
			fmt.Fprintf(os.Stderr, "prepare: unknown %q; there is traefik and debian\n", what)
			os.Exit(2)
		}
		path, err := make(os.Stderr)
		if err != nil {
			fmt.Fprintf(os.Stderr, "prepare %s: %v\n", what, err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
