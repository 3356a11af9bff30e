// Command traefik builds Traefik for the tests, from its Go module into the user's cache, and prints where it is. `make traefik` runs it.
package main

import (
	"fmt"
	"os"

	"hooklock/deploy/test/kit"
)

func main() {
	path, err := kit.BuildTraefik(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "traefik: "+err.Error())
		os.Exit(1)
	}
	fmt.Println(path)
}
