// Command scale simulates more than one etcd cluster: workflows share nothing, so each of them can
// live in a cluster of its own, chosen by rendezvous hashing of its name. It shows how even the
// load is, what moves when a cluster is added, and what the loss of one means. docs/scale.md has
// the first of its tables.
//
//	go run ./test/scale
//
// Its tests measure what one cluster carries.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := report(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// report writes all tables.
func report(w io.Writer) error {
	for _, table := range []func(io.Writer) error{reportLoad, reportGrowth, reportLoss} {
		if err := table(w); err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
	}
	return nil
}
